"""Two arms with 0/1 rewards: how many successes one must lead by to be chosen.

Let p and p + g be the means, m their average, and s the probability that a pull of each gives
different rewards. The lead of the better arm is a random walk that moves with probability s, then
up with probability (1 + g/s) / 2. By symmetry, if looks and stopping do not change when the arms
are exchanged, an arm that is chosen with a lead of x is the worse one with probability

    phi(x) = 1 / (1 + rho^x),    rho = (1 + g/s) / (1 - g/s).

If the lead has stayed within +-c for all of N pulls each, its sign decides, and that is wrong with
probability E[phi(|lead|); the walk stayed inside], which falls with g/s and with s.

A *level* is a range of 2 m (1 - m) + epsilon^2 / 2, from `moves` up to the level before; every
average mean lies in one. In it g/s is at least epsilon over its upper end, and s at least its lower
end. Before the last pull an arm is chosen only where at every level

    phi(lead) <= error * W,

with `error` what the last pull leaves of delta, and W a supermartingale from 1 if the means are of
that level: then it is wrong with probability E phi(lead) <= error. W is a mixture of evidence that
the means are of another level, or are equal, from counts and sums alone. docs/pairs.md has the
theorem and its proof."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

from shortlist.arrays import ROUNDED, FloatArray
from shortlist.certificates.frame import ROUNDING, swap_failure

FINEST, COARSEST = 1.001, 1.02  # ratio of the ends of a level: the first one, and the last ones
WIDENED = 1.2  # from one level to the next
LARGEST_GAP = 0.999  # nearer to 1 the odds lose their digits, and then there is no level left
MOST_WALKED = 10_000_000  # of an arm: up to there powers are exact to ROUNDING
LARGEST_LOG_ODDS = 300.0  # of odds at a place, on both sides of 1
MOST_TILT = 1 - 1e-9
MOST_DISTANCE = 1024  # largest lead: up to there the sum over all places of a walk is short
REFUTED = 0.02  # share of the error at every level, at least, for evidence that it is another one
USED = 1 - 1e-6  # share of the error that is used: rounding errors are less than the rest
# weights in W next to its floor: of bets that the average is well below its level, ...
LOWER = 0.02
LOWER_MEANS = (0.85, 0.6, 0.25)  # ... at these multiples of the least mean of the level,
BEYOND = 0.003  # of bets that it is on the other side of 1/2, ...
AT = (0.65, 0.9)  # ... there. The rest bets on an average slightly below the level, but for a part
NO_BET = 0.15  # of it; and of both of these
TIE_WEIGHT = 0.4  # is multiplied by evidence that the arms are equal
SLIGHT_STAKE = 0.5  # largest share of the wealth that a slight bet stakes
RESTS = 0.6  # share of the pulls that decide a tie of its level after which a slight bet rests


@dataclass(frozen=True, eq=False)
class TwoArmBoundary:
    """When one of two arms is chosen: for every level of their average mean, from 1/2 down."""

    pulls: int  # of every arm, at most
    distance: int  # ahead: at every level that is far enough
    log_odds: FloatArray  # (level,) ln rho at its upper end, the least there
    means: FloatArray  # (level,) the least average mean in it
    moves: FloatArray  # (level,) the least s in it
    errors: FloatArray  # (level,) of choosing an arm before the last pull
    floors: FloatArray  # (level,) share of the error that `distance` needs


@cache
def boundary(gap: float, pulls: int, delta: float) -> TwoArmBoundary | None:
    """The nearest boundary that chooses an arm worse by `gap` with probability <= delta."""
    if not 1 <= pulls <= MOST_WALKED or gap > LARGEST_GAP or swap_failure(gap, pulls) >= delta:
        return None
    ends = _level_ends(gap)
    low, high = 0, 1
    while not _is_far_enough(ends[:2], gap, pulls, high, delta):
        low, high = high, 2 * high
        if high > MOST_DISTANCE:
            return None
    while high - low > 1:  # a nearer boundary fails more often
        middle = (low + high) // 2
        enough = _is_far_enough(ends[:2], gap, pulls, middle, delta)
        low, high = (low, middle) if enough else (middle, high)
    while not _is_far_enough(ends, gap, pulls, high, delta):  # hardly ever
        high += 1
    return _made(ends, gap, pulls, high, delta)


def _level_ends(gap: float) -> FloatArray:
    """From the average mean 1/2, where 2 m (1 - m) + gap^2 / 2 is largest, down to gap / 2."""
    ends, ratio = [(1 + gap**2) / 2], FINEST
    while ends[-1] > gap:
        ends.append(max(gap, ends[-1] / ratio))
        ratio = min(1 + WIDENED * (ratio - 1), COARSEST)
    return np.array(ends)


def _is_far_enough(ends: FloatArray, gap: float, pulls: int, distance: int, delta: float) -> bool:
    """Whether choosing at `distance` leaves REFUTED of the error at all of these levels."""
    tilts = _tilts(ends, gap)
    left = USED * delta - undecided(tilts, ends[1:], pulls, distance)
    return bool((mistaken(log_odds(tilts), distance) <= (1 - REFUTED) * left).all())


def _made(ends: FloatArray, gap: float, pulls: int, distance: int, delta: float) -> TwoArmBoundary:
    tilts, moves = _tilts(ends, gap), ends[1:]
    errors = USED * delta - undecided(tilts, moves, pulls, distance)
    odds = log_odds(tilts)
    # 2 m (1 - m) + gap^2 / 2 = moves, and m <= 1/2
    means = (1 - np.sqrt(np.maximum(1 - 2 * moves + gap**2, 0.0))) / 2
    floors = mistaken(odds, distance) / errors
    return TwoArmBoundary(pulls, distance, odds, means, moves, errors, floors)


def _tilts(ends: FloatArray, gap: float) -> FloatArray:
    """The least g/s in every level, or less: odds are finite."""
    return np.minimum(gap / ends[:-1], MOST_TILT)


def log_odds(tilts: FloatArray) -> FloatArray:
    """The logarithm of rho, for walks of tilt g/s."""
    return np.log1p(tilts) - np.log1p(-tilts)


def mistaken(odds: FloatArray, lead: float) -> FloatArray:
    """phi: the probability that an arm with this lead is the worse one."""
    return 1 / (1 + np.exp(np.minimum(odds * lead, LARGEST_LOG_ODDS)))


def undecided(tilts: FloatArray, moves: FloatArray, pulls: int, c: int) -> FloatArray:
    """P(no lead of c, and the worse arm ahead at the end, or half of a tie): (level,), or more.

    Paths between +-c are counted by the eigenvectors of the walk: mode j has the shape
    sin(pi j (place + c) / 2c), and shrinks by cos(pi j / 2c) per move."""
    modes = np.arange(1, 2 * c, 2)  # even ones are 0 at the start
    angles = math.pi * modes / (2 * c)
    signs = np.sin(math.pi * modes / 2) / c  # (mode,)
    behind = np.arange(1 - c, 1)  # places
    shapes = np.sin(angles[:, None] * (behind + c))  # (mode, place)
    tilts = np.minimum(tilts, math.tanh(LARGEST_LOG_ODDS / c))  # that fails more often
    tilted = np.exp(np.outer(log_odds(tilts), behind) / 2)  # (level, place)
    tilted[:, -1] /= 2  # ties
    shrinking = np.sqrt(1 - tilts**2)[:, None] * np.cos(angles)  # (level, mode) a move
    left = signs * (1 - moves[:, None] + moves[:, None] * shrinking) ** pulls  # (level, mode)
    parts = left * (tilted @ shapes.T)
    rounding = ROUNDING * np.abs(parts) + ROUNDED * c**2 * np.abs(left)  # angles are up to pi c
    result: FloatArray = (parts + rounding).sum(1)
    return result


class LeadEvidence:
    """The evidence of a run, at every level and its mirror image above 1/2."""

    def __init__(self, boundary: TwoArmBoundary) -> None:
        self.boundary = boundary
        self.pulls = 0  # of each arm at the last look
        self.total = 0.0  # successes of both
        means = boundary.means
        demanded = -np.log(boundary.errors)  # (level,) ln of the odds at which an arm is chosen
        tie = (demanded / boundary.log_odds) ** 2 / boundary.moves  # (level,) pulls of each arm
        self._rests_at = RESTS * tie
        # relative error of the distance per error of the mean, times the exponent at stake
        slope = demanded * (1 - 2 * means) / (means * (1 - means))
        strengths = np.minimum(slope / (2 * self._rests_at), SLIGHT_STAKE / (1 - means))  # (level,)
        self._slight = np.log1p(strengths * means), np.log1p(-strengths * (1 - means))
        shrunk = boundary.moves * np.exp(self._slight[0] + self._slight[1])
        self._tie_rate = -np.log1p(-shrunk * (1 - 1 / np.cosh(boundary.log_odds / 2)))
        # log factor of the wealth per failure: that per success is the log of `part`
        self._lower = [(part, np.log1p(-part * means) - np.log1p(-means)) for part in LOWER_MEANS]
        self._held_pulls: FloatArray = np.zeros(means.size)  # (level,) of each arm, when it rested
        self._held_total: FloatArray = np.zeros(means.size)

    def see(self, pulls: int, total: float) -> None:
        """Take in how often each arm was pulled, and the sum of all their rewards."""
        betting = self.pulls < self._rests_at  # settled before these rewards came
        self._held_pulls[betting] = pulls
        self._held_total[betting] = total
        self.pulls, self.total = pulls, total

    def short(self, lead: float) -> float:
        """How much larger the lead must be to choose an arm; 0 or less: it is chosen."""
        odds = 1 / (self.boundary.errors * self.wealth(lead)) - 1  # (side, level) at least
        needed = np.log(np.maximum(odds, 1e-100)) / self.boundary.log_odds
        return float(needed.max()) - lead

    def worth(self, lead: float) -> float:
        """Pulls of each arm before the next look: the nearer to the end, the fewer."""
        mean = (self.total + 1) / (2 * self.pulls + 2)
        return (self.short(lead) / 2.0) ** 2 / (2 * mean * (1 - mean))  # half a standard deviation

    def wealth(self, lead: float) -> FloatArray:
        """W if the average mean is of a level, and if one minus it is: (side, level)."""
        half = self.boundary.log_odds * lead / 2  # (level,)
        log_cosh = half + np.log1p(np.exp(-2 * half)) - math.log(2)
        tied = self.pulls * self._tie_rate - log_cosh  # (level,)
        here = NO_BET + (1 - NO_BET) * _exp(self._slight_bets())  # (side, level)
        bets = (1 - LOWER - BEYOND) * here * (1 - TIE_WEIGHT + TIE_WEIGHT * _exp(tied))
        bets += self._other_levels()
        floors = self.boundary.floors
        return floors + (1 - floors) * bets

    def _slight_bets(self) -> FloatArray:
        """Log wealth of the bets that the average is slightly lower: (side, level)."""
        twice, ones = 2 * self._held_pulls, self._held_total
        won = np.stack([ones, twice - ones])
        result: FloatArray = (twice - won) * self._slight[0] + won * self._slight[1]
        return result

    def _other_levels(self) -> FloatArray:
        """Wealth of the bets that it is much lower, or on the other side of 1/2: (side, level)."""
        won = np.array([[self.total], [2 * self.pulls - self.total]])
        lost = 2 * self.pulls - won  # (side, 1)
        lower = [_exp(won * math.log(part) + lost * odds) for part, odds in self._lower]
        beyond = [_exp(won * math.log(2 * at) + lost * math.log(2 - 2 * at)) for at in AT]
        result: FloatArray = LOWER * np.mean(lower, axis=0) + BEYOND * np.mean(beyond, axis=0)
        return result


def _exp(exponent: FloatArray) -> FloatArray:
    """exp, cut where it is large: a smaller wealth proves less."""
    return np.exp(np.minimum(exponent, LARGEST_LOG_ODDS))
