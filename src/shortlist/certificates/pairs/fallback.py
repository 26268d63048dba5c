"""The safety net: a fixed design, at a share of delta, behind a race.

Each arm has a fixed sample, the first N of its rewards, whatever the race does. With the share of
delta the ranking by these samples, once all of them are complete, misplaces no swap of more than
K*epsilon. No arm is ever pulled beyond its sample, so a race asks for at most n N pulls.

Rewards in [0, 1] that all happen to be 0 or 1 are judged by the design for 0/1 rewards: a 0/1
sequence is at most as probable as if the arm were Bernoulli with the same mean. If other rewards
turn up in the pilot, which is no part of the samples and so is independent of them, the share goes
to the design for [0, 1]; if they turn up later, that design gets the share LATE, and is larger.

Of two arms with 0/1 rewards one is chosen as soon as it is far enough ahead: lead.py."""

import math

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.fixed_design import (
    SLACK,
    edge_failure,
    fixed_design,
    share_for,
    swap_failure,
)
from shortlist.certificates.frame import UNREACHABLE, limited_pulls
from shortlist.certificates.pairs.bound import EDGE
from shortlist.certificates.pairs.two_arm_boundary import Lead, boundary
from shortlist.problem import Problem
from shortlist.reward_models import Binary, Bounded, RewardModel

MOST = 0.8  # share of delta for the net beyond which a race is not worth while
LATE = 0.02  # share of delta for rewards that are not 0 or 1 and turn up after the pilot
PLACING = 0.01  # share of delta for telling which arms lie near 0 or near 1
RACE = 0.04  # share of delta of a race where the lead of one of two arms decides ...
RACE_IN_DOUBT = 0.17  # ... and the same if no pilot tells whether rewards are 0/1
LIKELIHOOD = 0.7  # share of what is left that likelihood ratios have beside bets ...
MANY_RIVALS = 7  # ... where so many arms are to be told from one,
HIGH = 0.7  # and the pilot has this mean at least
WORTH_PLACING = 0.2  # share of delta for the net from which on that pays


class Net:
    """Sizes and ranks of the fixed samples, and what they leave of delta.

    Two arms near 0, or two near 1, are hardly ever misplaced by their samples. So where the net's
    share is large, the race has more of delta for pairs of arms that are known to lie there."""

    def __init__(
        self, problem: Problem, pilot: int, rng: np.random.Generator, *, apart: bool = False
    ) -> None:
        n = problem.n_arms
        self.problem, self.pilot = problem, pilot
        self.compares = pilot > 0 and may_compare(problem)  # likelihoods; until the pilot is seen
        # the pilot decides more than the size of the samples
        self.apart = apart or self.compares
        self.ties: IntArray = rng.permutation(n)  # equal sums rank by it
        self.skipped: IntArray = np.zeros(n, dtype=np.int64)  # pulls of the pilot
        self.skipped_sums: FloatArray = np.zeros(n)
        self.only_binary = False  # samples are judged as 0/1 rewards, without a declaration
        self.share, self.late, self.placing = 1.0, 0.0, 0.0
        self.alone = False  # a race is not worth while: the run is the fixed design
        self.size, self.edge_share = UNREACHABLE, 0.0
        self.lead: Lead | None = None  # of two arms: when it decides
        self.leads = False  # for sure, so that the race is for large gaps only
        self.share_of_bounded = 0.0  # if the pilot shows that rewards are not 0/1
        self._most: IntArray | None = None  # (arm,) pulls, where arms have limits
        if problem.limits is not None:  # samples that may not be completed are no net
            self._most = limited_pulls(problem)
            self.share, self.size = 0.0, int(self._most.max())
            return
        try:
            self._set_up()
        except OverflowError:  # an epsilon so small that no run will ever need the net
            self.share, self.late, self.only_binary = 0.0, 0.0, False

    def _set_up(self) -> None:
        judged = self._choose_model()
        self.share_of_bounded = self.share
        if judged.is_binary and self._bound_lead():
            return
        if self.share + self.late > MOST:
            self.share, self.alone = 1 - self.late, True
        self.size = self._design(judged, self.share)
        self.edge_share = self.share
        if judged.is_binary and WORTH_PLACING < self.share < MOST:
            self._place()
        self.share_of_bounded = self.share

    def _choose_model(self) -> RewardModel:
        """Judge rewards in [0, 1] as 0/1 rewards if that leaves the race more of delta."""
        declared = self.problem.rewards
        judged = Binary() if declared.has_range else declared
        most = int(SLACK * self._design(judged, 1.0))
        self.share = self._share(declared, most - self.pilot * self.apart)
        undeclared = self._share(judged, most - self.pilot)
        enough = undeclared + LATE >= self.share and self.share <= MOST
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
        """Whether arms near 0 and near 1 are told from the others."""
        return self.placing > 0

    @property
    def pilot_apart(self) -> bool:
        """Whether no bets may be made on the pilot: it decides what the race may spend."""
        decides = self.only_binary and (self.placed or self.lead is not None)
        return self.pilot > 0 and (self.apart or decides)

    @property
    def delta_left(self) -> float:
        """What bets may spend on pairs of any arms."""
        return self._left(self.share) - self.delta_compared

    @property
    def delta_left_at_edge(self) -> float:
        """What bets may spend on pairs of arms that are known to lie near 0, or near 1."""
        return self._left(self.edge_share) - self.delta_compared

    @property
    def delta_compared(self) -> float:
        """What likelihood ratios may spend."""
        return LIKELIHOOD * self._left(self.share) if self.compares else 0.0

    def _left(self, share: float) -> float:
        """What samples leave of delta if they need this share."""
        if self.alone:
            return 0.0
        return self.problem.delta * max(0.0, 1 - share - self.late - self.placing)

    @property
    def caps(self) -> IntArray:
        """Pulls of every arm at which its sample is complete, or its limit is reached."""
        return self.skipped + self.size if self._most is None else self._most

    def look(self, pulls: IntArray, sums: FloatArray, squares: FloatArray, *, first: bool) -> None:
        """See after every reply whether rewards are still 0 or 1."""
        in_pilot = first and self.pilot > 0
        if in_pilot and (self.apart or self.only_binary):
            self.skipped, self.skipped_sums = pulls.copy(), sums.copy()
        if in_pilot:
            binary = bool((sums == squares).all())  # bets know of a small variance
            self.compares &= binary and self.near_end(float(sums.sum() / pulls.sum()))
        if self.only_binary and (sums != squares).any():
            self.only_binary, self.lead = False, None
            if in_pilot:  # all of the net's share is needed at the edge, too
                self.leads = False
                self.share = self.edge_share = self.share_of_bounded
            self.size = self._design(Bounded(), self.late + self.share * in_pilot)
        if self.lead is not None:
            first_pulls, second_pulls = pulls - self.skipped
            assert first_pulls == second_pulls  # two arms are pulled equally often
            self.lead.see(int(first_pulls), float((sums - self.skipped_sums).sum()))

    def near_end(self, mean: float) -> bool:
        """Whether arms of this mean lie towards that end of the range where one stands out."""
        return mean >= HIGH if self.problem.k == 1 else 1 - mean >= HIGH

    def order(self, sums: FloatArray) -> IntArray:
        """Arms by their samples, best first; of use only for arms whose sample is complete."""
        return np.lexsort((self.ties, self.skipped_sums - sums))

    def leader(self, sums: FloatArray) -> int | None:
        """That one of two arms which is so far ahead in the samples that it is chosen."""
        if self.lead is None or not self.lead.short(self._ahead(sums)) <= 0:  # NaN is not enough
            return None
        return int(self.order(sums)[0])  # if neither is ahead, by lot

    def worth(self, sums: FloatArray) -> float:
        """Pulls of an arm that are worth making before it is looked who is ahead."""
        return math.inf if self.lead is None else self.lead.worth(self._ahead(sums))

    def _ahead(self, sums: FloatArray) -> float:
        first, second = sums - self.skipped_sums
        return float(abs(first - second))

    def _bound_lead(self) -> bool:
        """Let two arms end as soon as one is far ahead, if that leaves the race enough of delta."""
        problem = self.problem
        if problem.n_arms > 2 or problem.goal.budget is not None:
            return False
        most = int(SLACK * self._design(Binary(), 1.0)) - self.pilot
        sure = self.pilot > 0 or not self.only_binary
        share = 1 - (RACE if sure else RACE_IN_DOUBT) - self.late
        found = boundary(problem.sharp_epsilon, most, share * problem.delta)
        if found is None:
            return False
        self.lead, self.size, self.leads = Lead(found), found.pulls, sure
        self.share = self.edge_share = share
        return True

    def _place(self) -> None:
        """Share of delta that the samples need if only pairs at the edge matter, one by one."""
        problem = self.problem
        if min(problem.k, problem.n_arms - problem.k) > 1:  # then the share is small anyway
            return
        swaps = problem.n_arms - 1
        gap = problem.k * problem.sharp_epsilon
        fails = swaps * edge_failure(gap, self.size, EDGE) / problem.delta
        tails = swaps * swap_failure(gap, self.size) / problem.delta
        if fails < tails < MOST:
            self.placing, self.share, self.edge_share = PLACING, tails, fails

    def _design(self, rewards: RewardModel, share: float) -> int:
        problem = self.problem
        delta = problem.delta * share
        return fixed_design(problem.n_arms, problem.k, problem.sharp_epsilon, delta, rewards)

    def _share(self, rewards: RewardModel, pulls: int) -> float:
        problem = self.problem
        n_arms, k, epsilon = problem.n_arms, problem.k, problem.sharp_epsilon
        return share_for(n_arms, k, epsilon, problem.delta, pulls, rewards)


def may_compare(problem: Problem) -> bool:
    """Whether likelihood ratios are worth while: one arm against many, no end but the proof."""
    single = min(problem.k, problem.n_arms - problem.k) == 1
    free = problem.goal.budget is None and problem.limits is None
    return single and free and problem.n_arms > MANY_RIVALS and problem.rewards.has_range
