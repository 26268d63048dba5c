"""One look: plans for all arms, declared; their fresh rewards; and what these prove."""

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.boundaries import Boundaries
from shortlist.certification.plans.losses import FREE, IN, Stakes
from shortlist.certification.plans.plan import Plan
from shortlist.certification.plans.policies import Policy
from shortlist.certification.plans.stop_states import NOT_THERE
from shortlist.exploration.sharing import descending
from shortlist.search import Progress, Pulls, Rewards

SHIFTS = np.linspace(-10, 6, 33)  # of the label threshold from the boundary, in errors
LOG_STEP = 3.0  # by which ln(threshold) changes at most
SLOPES = (0.2, 1.5)  # of ln(charges) in ln(threshold)
LEAST_CHARGES = 1e-9


@dataclass(frozen=True, slots=True)
class Draft:
    """Plans for one threshold, the shift of their labels and what is expected of them."""

    plans: list[Plan]
    shift: float  # boundary less the threshold of labels
    pulls: float
    charges: float


@dataclass(frozen=True, slots=True)
class Proof:
    """A set and the bound on K R_T that holds for it."""

    chosen: IntArray
    bound: float
    boundary: float


class Look:
    """What is declared before the fresh rewards: it depends on those before alone."""

    def __init__(self, belief: Belief, reach: float, delta: float) -> None:
        self.belief = belief
        self.reach = reach
        self.boundaries = Boundaries.around(belief.boundary, belief.error, delta)
        threshold = float(self.boundaries.thresholds.min())
        self.strength = tuning.STRENGTH * threshold / reach
        self.gap = self.strength * reach / belief.row.size  # per arm, if it all were charged
        self.draft = self._draft()
        self.plan_of: IntArray = np.zeros(belief.row.size, dtype=np.int64)  # (arms,)
        for number, plan in enumerate(self.draft.plans):
            self.plan_of[plan.policy.group.arms] = number
        self.pulls: IntArray = np.zeros(belief.row.size, dtype=np.int64)
        self.successes: IntArray = np.zeros(belief.row.size, dtype=np.int64)
        self.binary = True  # no reward was anything but 0 or 1

    @property
    def promising(self) -> bool:
        """Whether it is expected to succeed at all."""
        return self.draft.charges + self.reach / tuning.STRENGTH <= self.reach

    def draw(self, round_: int) -> Generator[Pulls, Rewards, list[tuple[Pulls, Rewards]]]:
        """Let every arm follow its plan; arms wait for nobody, requests only are made together."""
        running = np.arange(self.pulls.size)
        record = []
        level = 0
        while running.size and self.binary:
            targets = [each.levels[min(level, len(each.levels) - 1)] for each in self.draft.plans]
            wanted = np.array([each.pulls for each in targets])
            times = wanted[self.plan_of[running]] - self.pulls[running]
            pulls = Pulls(running, times, self._progress(round_ + level, running.size))
            rewards = yield pulls
            record.append((pulls, rewards))
            self.binary = bool((rewards.sums == rewards.squares).all())
            self.pulls[running] += times
            self.successes[running] += rewards.sums.astype(np.int64)
            running = running[~self._stopped(running, level)]
            level += 1
        return record

    def proof(self, k: int, rng: np.random.Generator) -> Proof | None:
        """The set with the least bound among some boundaries; None if none is within the reach."""
        labels, scores = self._labels()
        inside = (labels == IN).sum(axis=0)
        free = (labels == FREE).sum(axis=0)
        possible = np.flatnonzero((inside <= k) & (k <= inside + free))  # the theorem's T exists
        for j in self._likeliest(possible, np.abs(inside + free / 2 - k)):
            bound = self._bound(int(j))
            if bound <= self.reach:
                chosen = _chosen(labels[:, j], scores[:, j], k, rng)
                return Proof(chosen, bound, float(self.boundaries.values[j]))
        return None

    def _draft(self) -> Draft:
        """The plans whose charges are expected to come nearest to what is aimed at."""
        stakes = Stakes(self.belief.boundary, self.strength, self.reach)
        policies = [Policy(group, self.belief, stakes) for group in self.belief.groups()]
        aim = math.log((tuning.AIM - 1 / tuning.STRENGTH) * self.reach)
        at, slope = tuning.THRESHOLD, tuning.SLOPE
        tried: list[tuple[float, float, Draft]] = []
        for _ in range(tuning.TRIES):
            draft = self._drafted(policies, math.exp(at))
            found = math.log(max(draft.charges, LEAST_CHARGES))
            tried.append((at, found, draft))
            if abs(found - aim) < tuning.NEAR_AIM:
                break
            if len(tried) > 1:  # secant
                slope = (found - tried[-2][1]) / (at - tried[-2][0])
                slope = float(np.clip(slope, *SLOPES))
            at += float(np.clip((aim - found) / slope, -LOG_STEP, LOG_STEP))
        return min(tried, key=lambda each: abs(each[1] - aim))[2]

    def _drafted(self, policies: list[Policy], threshold: float) -> Draft:
        plans = [Plan(policy, threshold) for policy in policies]
        shift = self._shift(plans)
        stakes = policies[0].stakes
        at = stakes.boundary - shift
        gap = tuning.ROUGH * self.gap
        charges = sum(plan.expected_charges(plan.labels(at), stakes, gap) for plan in plans)
        return Draft(plans, shift, sum(plan.expected_pulls for plan in plans), charges)

    def _shift(self, plans: list[Plan]) -> float:
        """How far below the boundary labels must change for k arms to be expected inside."""
        boundary = self.belief.boundary
        thresholds = np.clip(boundary + SHIFTS * self.belief.error, 0.0, 1.0)
        inside = np.sum([plan.expected_inside(thresholds) for plan in plans], axis=0)
        return boundary - float(np.interp(-self.belief.k, -inside, thresholds))

    def _stopped(self, arms: IntArray, level: int) -> FloatArray:
        """Which of the arms stop at this level."""
        stopped = np.zeros(arms.size, dtype=np.bool_)
        for number in np.unique(self.plan_of[arms]):
            mine = self.plan_of[arms] == number
            stops = self.draft.plans[number].levels[level].stops
            stopped[mine] = stops[self.successes[arms[mine]]]
        return stopped

    def _labels(self) -> tuple[IntArray, FloatArray]:
        """Labels of all arms at all boundaries, and by how much IN is better."""
        at = self.boundaries.values - self.draft.shift
        labels = np.zeros((self.pulls.size, at.size), dtype=np.int64)
        scores = np.zeros((self.pulls.size, at.size))
        for plan in self.draft.plans:
            arms = plan.policy.group.arms
            pulls, successes = self.pulls[arms] * 1.0, self.successes[arms] * 1.0
            labels[arms], scores[arms] = plan.policy.labels(pulls, successes, at)
        return labels, scores

    def _likeliest(self, possible: IntArray, mismatch: FloatArray) -> IntArray:
        """Boundaries to settle: few arms to move, and near the middle one."""
        errors = np.abs(self.boundaries.values - self.belief.boundary) / self.belief.error
        order = np.argsort((mismatch + errors)[possible], kind="stable")
        return possible[order[: tuning.CANDIDATES]]

    def _bound(self, j: int) -> float:
        """The charges of all arms and ln(1/delta_j) / strength, at boundary number j."""
        boundary = float(self.boundaries.values[j])
        stakes = Stakes(boundary, self.strength, self.reach)
        bound = float(self.boundaries.thresholds[j]) / self.strength
        for plan in self.draft.plans:
            arms = plan.policy.group.arms
            labels = plan.labels(boundary - self.draft.shift)
            charges = plan.charges(labels, stakes, tuning.EXACT * self.gap)
            ended = plan.states.find(self.pulls[arms], self.successes[arms])
            if (ended == NOT_THERE).any():
                return math.inf
            bound += float(charges[ended].sum())
        return bound

    def _progress(self, round_: int, running: int) -> Progress:
        return Progress(round=round_, undecided=running)


def _chosen(labels: IntArray, scores: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """All arms that are in, and the best of the free ones."""
    inside = np.flatnonzero(labels == IN)
    free = np.flatnonzero(labels == FREE)
    best = free[descending(scores[free], rng)]
    return np.sort(np.concatenate([inside, best[: k - inside.size]]))
