"""The fallback: a fixed design, at a share of delta, behind a race.

The first N rewards of each arm are its fixed sample, whatever the race does. Once all samples are
complete, the ranking by them misplaces no swap of more than K*epsilon, at the cost of a share of
delta. No arm is ever pulled beyond its sample, so a race asks for at most n N pulls.

Rewards in [0, 1] that all happen to be 0 or 1 are judged by the design for 0/1 rewards: a 0/1
sequence is at most as probable as if the arm were Bernoulli with the same mean. If other rewards
turn up in the pilot, which is no part of the samples and so is independent of them, the share goes
to the design for [0, 1]. If they turn up later, that design gets the share LATE, and is larger.

With two arms and 0/1 rewards, an arm is chosen as soon as it is far enough ahead:
`TwoArmBoundary`. Arms whose means lie within NEAR_END of 0, or of 1, have a small variance, and
small samples suffice for them. That an arm lies there is shown by a bet: for rewards x in [0, 1]
with mean theta >= e = NEAR_END and any m < e,

    E[(m / e)^x ((1 - m) / (1 - e))^(1 - x)] <= theta m / e + (1 - theta) (1 - m) / (1 - e),

as a power lies below its chord; that falls with theta and is 1 at e. So the product over the
rewards is a supermartingale, and so is a mean over a few m. It needs counts and sums only.

Two arms with 0/1 rewards: how many successes one must lead by to be chosen.

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
from scipy.special import logsumexp

from shortlist.arrays import ROUNDED, FloatArray, IntArray
from shortlist.certificates.frame import (
    ROUNDING,
    SLACK,
    UNREACHABLE,
    edge_failure,
    fixed_design,
    limited_pulls,
    log_swaps_of,
    share_for,
    swap_failure,
)
from shortlist.problem import Problem
from shortlist.reward_models import Binary, Bounded, RewardModel

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


NEAR_END = 0.12  # arms whose means lie within this of 0, or of 1, are near an end of the range
END_MEANS = NEAR_END * np.array([0.6, 0.3, 0.1])  # means that are bet on, with equal weights
# shares of delta:
MOST_FALLBACK = 0.8  # of the fallback; if it needs more, there is no race
LATE = 0.02  # for rewards other than 0 and 1 that turn up after the pilot
PLACING = 0.01  # for finding out which arms lie near 0 or near 1
RACE = 0.04  # of a race where the lead of one of two arms decides ...
RACE_IN_DOUBT = 0.17  # ... if no pilot shows whether rewards are 0/1
WORTH_PLACING = 0.2  # of the fallback, from which on placing pays
LIKELIHOOD = 0.7  # of likelihood ratios, in what the fallback leaves, if they are used:
MANY_RIVALS = 7  # there are more arms than this, one is to be chosen or rejected,
HIGH_MEAN = 0.7  # and the mean of the pilot is at least this


class Fallback:
    """Sizes and ranks of the fixed samples, and the rest of delta.

    Two arms near 0, or two near 1, are hardly ever misplaced by their samples. So where the share
    of the fallback is large, the race has more of delta for pairs of arms known to lie there."""

    def __init__(
        self, problem: Problem, pilot: int, rng: np.random.Generator, *, apart: bool = False
    ) -> None:
        n = problem.n_arms
        self.problem, self.pilot = problem, pilot
        self.swaps = log_swaps_of(problem)
        self.compares = pilot > 0 and may_compare(problem)  # likelihoods; until the pilot is seen
        # the pilot decides more than the size of the samples
        self.apart = apart or self.compares
        self.ties: IntArray = rng.permutation(n)  # equal sums rank by it
        self.skipped: IntArray = np.zeros(n, dtype=np.int64)  # pulls of the pilot
        self.skipped_sums: FloatArray = np.zeros(n)
        self.only_binary = False  # samples are judged as 0/1 rewards, without a declaration
        self.share, self.late, self.placing = 1.0, 0.0, 0.0
        self.alone = False  # there is no race: the run is the fixed design
        self.size, self.edge_share = UNREACHABLE, 0.0
        self.lead: LeadEvidence | None = None  # of two arms: when it decides
        self.leads = False  # for sure, so that the race is for large gaps only
        self.share_of_bounded = 0.0  # if the pilot shows that rewards are not 0/1
        self._most: IntArray | None = None  # (arm,) pulls, where arms have limits
        if problem.limits is not None:  # samples that may not be completed are no fallback
            self._most = limited_pulls(problem)
            self.share, self.size = 0.0, int(self._most.max())
            return
        try:
            self._set_up()
        except OverflowError:  # an epsilon so small that no run will ever need the fallback
            self.share, self.late, self.only_binary = 0.0, 0.0, False

    def _set_up(self) -> None:
        judged = self._choose_model()
        self.share_of_bounded = self.share
        if judged.is_binary and self._bound_lead():
            return
        if self.share + self.late > MOST_FALLBACK:
            self.share, self.alone = 1 - self.late, True
        self.size = self._design(judged, self.share)
        self.edge_share = self.share
        if judged.is_binary and WORTH_PLACING < self.share < MOST_FALLBACK:
            self._place()
        self.share_of_bounded = self.share

    def _choose_model(self) -> RewardModel:
        """Judge rewards in [0, 1] as 0/1 rewards if that leaves the race more of delta."""
        declared = self.problem.rewards
        judged = Binary() if declared.has_range else declared
        most = int(SLACK * self._design(judged, 1.0))
        self.share = self._share(declared, most - self.pilot * self.apart)
        undeclared = self._share(judged, most - self.pilot)
        enough = undeclared + LATE >= self.share and self.share <= MOST_FALLBACK
        if judged == declared or enough:
            return declared
        self.share, self.late, self.only_binary = undeclared, LATE, True
        return judged

    @property
    def holds(self) -> bool:
        """Whether complete samples prove anything."""
        return self.share > 0

    @property
    def placed(self) -> bool:
        """Whether arms near 0 and near 1 are told apart from the others."""
        return self.placing > 0

    @property
    def pilot_apart(self) -> bool:
        """Whether no bets may be made on the pilot: it decides what the race may spend."""
        decides = self.only_binary and (self.placed or self.lead is not None)
        return self.pilot > 0 and (self.apart or decides)

    @property
    def delta_left(self) -> float:
        """The share of delta of bets on pairs of any arms, times delta."""
        return self._left(self.share) - self.delta_compared

    @property
    def delta_left_at_edge(self) -> float:
        """The same of bets on pairs of arms that are known to lie near 0, or near 1."""
        return self._left(self.edge_share) - self.delta_compared

    @property
    def delta_compared(self) -> float:
        """The same of likelihood ratios."""
        return LIKELIHOOD * self._left(self.share) if self.compares else 0.0

    def _left(self, share: float) -> float:
        """The rest of delta if the samples need this share."""
        if self.alone:
            return 0.0
        return self.problem.delta * max(0.0, 1 - share - self.late - self.placing)

    @property
    def caps(self) -> IntArray:
        """Pulls of every arm at which its sample is complete, or its limit is reached."""
        return self.skipped + self.size if self._most is None else self._most

    def look(self, pulls: IntArray, sums: FloatArray, squares: FloatArray, *, first: bool) -> None:
        """Check after every reply whether all rewards are still 0 or 1."""
        in_pilot = first and self.pilot > 0
        if in_pilot and (self.apart or self.only_binary):
            self.skipped, self.skipped_sums = pulls.copy(), sums.copy()
        if in_pilot:
            binary = bool((sums == squares).all())  # bets know of a small variance
            self.compares &= binary and self.near_end(float(sums.sum() / pulls.sum()))
        if self.only_binary and (sums != squares).any():
            self.only_binary, self.lead = False, None
            if in_pilot:  # all of the fallback's share is needed at the edge, too
                self.leads = False
                self.share = self.edge_share = self.share_of_bounded
            self.size = self._design(Bounded(), self.late + self.share * in_pilot)
        if self.lead is not None:
            first_pulls, second_pulls = pulls - self.skipped
            assert first_pulls == second_pulls  # two arms are pulled equally often
            self.lead.see(int(first_pulls), float((sums - self.skipped_sums).sum()))

    def near_end(self, mean: float) -> bool:
        """Whether arms of this mean lie towards that end of the range where one stands out."""
        return mean >= HIGH_MEAN if self.problem.k == 1 else 1 - mean >= HIGH_MEAN

    def order(self, sums: FloatArray) -> IntArray:
        """Arms by their samples, best first; of use only for arms whose sample is complete."""
        return np.lexsort((self.ties, self.skipped_sums - sums))

    def leader(self, sums: FloatArray) -> int | None:
        """The one of two arms that is far enough ahead in the samples to be chosen, if any."""
        if self.lead is None or not self.lead.short(self._ahead(sums)) <= 0:  # NaN is not enough
            return None
        return int(self.order(sums)[0])  # a tie is broken at random

    def worth(self, sums: FloatArray) -> float:
        """Pulls of an arm that are worth making before the next look at the lead."""
        return math.inf if self.lead is None else self.lead.worth(self._ahead(sums))

    def _ahead(self, sums: FloatArray) -> float:
        first, second = sums - self.skipped_sums
        return float(abs(first - second))

    def _bound_lead(self) -> bool:
        """Let the lead of one of two arms decide, if that leaves the race enough of delta."""
        problem = self.problem
        if problem.n_arms > 2 or problem.goal.budget is not None or problem.constraint is not None:
            return False
        most = int(SLACK * self._design(Binary(), 1.0)) - self.pilot
        sure = self.pilot > 0 or not self.only_binary
        share = 1 - (RACE if sure else RACE_IN_DOUBT) - self.late
        found = boundary(problem.sharp_epsilon, most, share * problem.delta)
        if found is None:
            return False
        self.lead, self.size, self.leads = LeadEvidence(found), found.pulls, sure
        self.share = self.edge_share = share
        return True

    def _place(self) -> None:
        """Find the share of delta that the samples need if only pairs near an end matter."""
        problem = self.problem
        if min(problem.k, problem.n_arms - problem.k) > 1:  # then the share is small anyway
            return
        if problem.constraint is not None:  # not every arm has a swap with the same one
            return
        swaps = problem.n_arms - 1
        gap = problem.k * problem.sharp_epsilon
        fails = swaps * edge_failure(gap, self.size, NEAR_END) / problem.delta
        tails = swaps * swap_failure(gap, self.size) / problem.delta
        if fails < tails < MOST_FALLBACK:
            self.placing, self.share, self.edge_share = PLACING, tails, fails

    def _design(self, rewards: RewardModel, share: float) -> int:
        problem = self.problem
        delta = problem.delta * share
        n_arms, k, epsilon = problem.n_arms, problem.k, problem.sharp_epsilon
        return fixed_design(n_arms, k, epsilon, delta, rewards, self.swaps)

    def _share(self, rewards: RewardModel, pulls: int) -> float:
        problem = self.problem
        n_arms, k, epsilon = problem.n_arms, problem.k, problem.sharp_epsilon
        return share_for(n_arms, k, epsilon, problem.delta, pulls, rewards, self.swaps)


def may_compare(problem: Problem) -> bool:
    """Whether likelihood ratios may be used: one arm against many, no end but the proof."""
    single = min(problem.k, problem.n_arms - problem.k) == 1
    free = problem.goal.budget is None and problem.limits is None and problem.constraint is None
    return single and free and problem.n_arms > MANY_RIVALS and problem.rewards.has_range


def log_wealth(pulls: IntArray, sums: FloatArray) -> FloatArray:
    """Log wealth of bets against means of at least NEAR_END: (arm,)."""
    odds = np.log(END_MEANS / NEAR_END), np.log1p(-END_MEANS) - np.log1p(-NEAR_END)
    logs = np.outer(sums, odds[0]) + np.outer(pulls - sums, odds[1])  # (arm, mean)
    result: FloatArray = logsumexp(logs, axis=1) - np.log(END_MEANS.size)
    return result
