"""The fallback: a fixed design, at a share of delta, behind a race.

The first N rewards of each arm are its fixed sample, whatever the race does. Once all samples are
complete, the ranking by them misplaces no swap of more than K*epsilon, at the cost of a share of
delta. No arm is ever pulled beyond its sample, so a race asks for at most n N pulls.

Rewards in [0, 1] that all happen to be 0 or 1 are judged by the design for 0/1 rewards: a 0/1
sequence is at most as probable as if the arm were Bernoulli with the same mean. If other rewards
turn up in the pilot, which is no part of the samples and so is independent of them, the share goes
to the design for [0, 1]. If they turn up later, that design gets the share LATE, and is larger.

With two arms and 0/1 rewards, an arm is chosen as soon as it is far enough ahead:
two_arm_boundary.py. Arms whose means lie within NEAR_END of 0, or of 1, have a small variance, and
small samples suffice for them. That an arm lies there is shown by a bet: for rewards x in [0, 1]
with mean theta >= e = NEAR_END and any m < e,

    E[(m / e)^x ((1 - m) / (1 - e))^(1 - x)] <= theta m / e + (1 - theta) (1 - m) / (1 - e),

as a power lies below its chord; that falls with theta and is 1 at e. So the product over the
rewards is a supermartingale, and so is a mean over a few m. It needs counts and sums only."""

import math

import numpy as np
from scipy.special import logsumexp

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.exchange import log_swaps_of
from shortlist.certificates.frame import (
    SLACK,
    UNREACHABLE,
    edge_failure,
    fixed_design,
    limited_pulls,
    share_for,
    swap_failure,
)
from shortlist.certificates.pairs.two_arm_boundary import LeadEvidence, boundary
from shortlist.problem import Problem
from shortlist.reward_models import Binary, Bounded, RewardModel

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
