"""How far ahead one of two arms must be, by what the rewards of both say about their average.

Symmetry: if looks and stopping do not change when the arms are exchanged, the one that is ahead by
x when it is chosen is the worse one with probability phi(x) = 1 / (1 + rho^x), rho from the means.
So if an arm is chosen only where, at every level of the average mean (boundary.py),

    phi(lead) <= error * W,

and W is a supermartingale from 1 if the means are of that level, then it is wrong with probability
E phi(lead) <= error. W is a mixture of evidence that the means are of another level, or are equal,
from counts and sums alone. docs/pairs.md has the theorem and its proof."""

import math

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certification.pairs.boundary import LARGEST_EXPONENT, Boundary

# Weights in W beside its floor: of bets that the average is well below its level, ...
LOWER = 0.02
BELOW = (0.85, 0.6, 0.25)  # ... so many times the least of the level,
BEYOND = 0.003  # of bets that it is on the other side of 1/2, ...
AT = (0.65, 0.9)  # ... there. The rest bets on an average slightly below the level, but for a part
NO_BET = 0.15  # of it; and of both of these
TIED = 0.4  # is multiplied by evidence that the arms are equal
STAKE = 0.5  # of the capital, at most, by a slight bet
# share of the pulls in which a tie of its level is decided: then a slight bet has had its use
RESTS = 0.6
LEAST_ODDS = 1e-100  # for which a lead is looked for
LOOKED = 2.0  # standard deviations of the lead after a request that it is short by before


class Lead:
    """The evidence of a run, at every level and its mirror image above 1/2."""

    def __init__(self, boundary: Boundary) -> None:
        self.boundary = boundary
        self.pulls = 0  # of each arm at the last look
        self.total = 0.0  # successes of both
        means = boundary.means
        demanded = -np.log(boundary.errors)  # (level,) ln of the odds at which an arm is chosen
        tie = (demanded / boundary.log_odds) ** 2 / boundary.moves  # (level,) pulls of each arm
        self._rests_at = RESTS * tie
        # relative error of the distance per error of the mean, times the exponent at stake
        slope = demanded * (1 - 2 * means) / (means * (1 - means))
        strengths = np.minimum(slope / (2 * self._rests_at), STAKE / (1 - means))  # (level,)
        self._slight = np.log1p(strengths * means), np.log1p(-strengths * (1 - means))
        shrunk = boundary.moves * np.exp(self._slight[0] + self._slight[1])
        self._tie_rate = -np.log1p(-shrunk * (1 - 1 / np.cosh(boundary.log_odds / 2)))
        # what a failure multiplies the capital of the bets by: a success by that part of the mean
        self._lower = [(part, np.log1p(-part * means) - np.log1p(-means)) for part in BELOW]
        self._held_pulls: FloatArray = np.zeros(means.size)  # (level,) of each arm, when it rested
        self._held_total: FloatArray = np.zeros(means.size)

    def see(self, pulls: int, total: float) -> None:
        """Take in how often each arm was pulled, and the sum of all their rewards."""
        betting = self.pulls < self._rests_at  # settled before these rewards came
        self._held_pulls[betting] = pulls
        self._held_total[betting] = total
        self.pulls, self.total = pulls, total

    def short(self, lead: float) -> float:
        """By how much a lead falls short of choosing an arm; if by nothing, it is chosen."""
        odds = 1 / (self.boundary.errors * self.capital(lead)) - 1  # (side, level) at least
        needed = np.log(np.maximum(odds, LEAST_ODDS)) / self.boundary.log_odds
        return float(needed.max()) - lead

    def worth(self, lead: float) -> float:
        """Pulls of each arm before the next look: the nearer to the end, the fewer."""
        mean = (self.total + 1) / (2 * self.pulls + 2)
        return (self.short(lead) / LOOKED) ** 2 / (2 * mean * (1 - mean))

    def capital(self, lead: float) -> FloatArray:
        """W if the average mean is of a level, and if one minus it is: (side, level)."""
        half = self.boundary.log_odds * lead / 2  # (level,)
        log_cosh = half + np.log1p(np.exp(-2 * half)) - math.log(2)
        tied = self.pulls * self._tie_rate - log_cosh  # (level,)
        here = NO_BET + (1 - NO_BET) * _exp(self._slight_bets())  # (side, level)
        bets = (1 - LOWER - BEYOND) * here * (1 - TIED + TIED * _exp(tied))
        bets += self._other_levels()
        floors = self.boundary.floors
        result: FloatArray = floors + (1 - floors) * bets
        return result

    def _slight_bets(self) -> FloatArray:
        """Log capital of the bets that the average is slightly lower: (side, level)."""
        twice, ones = 2 * self._held_pulls, self._held_total
        won = np.stack([ones, twice - ones])
        result: FloatArray = (twice - won) * self._slight[0] + won * self._slight[1]
        return result

    def _other_levels(self) -> FloatArray:
        """Capital of the bets that it is much lower, or on the other side of 1/2: (side, level)."""
        won = np.array([[self.total], [2 * self.pulls - self.total]])
        lost = 2 * self.pulls - won  # (side, 1)
        lower = [_exp(won * math.log(part) + lost * odds) for part, odds in self._lower]
        beyond = [_exp(won * math.log(2 * at) + lost * math.log(2 - 2 * at)) for at in AT]
        result: FloatArray = LOWER * np.mean(lower, axis=0) + BEYOND * np.mean(beyond, axis=0)
        return result


def _exp(exponent: FloatArray) -> FloatArray:
    """Large capitals are cut: a smaller one proves less."""
    result: FloatArray = np.exp(np.minimum(exponent, LARGEST_EXPONENT))
    return result
