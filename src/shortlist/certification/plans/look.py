"""One look: plans for all arms, declared; their fresh rewards; and what these prove."""

import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
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
LOG_STEP = 2.0  # by which ln(threshold) changes at most
MIDDLE = (0.15, 0.85)  # of a bracket, so that it shrinks
LEAST_CHARGES = 1e-9
INNER = (1e-3, 1 - 1e-3)  # where boundaries are


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
        """A set whose bound is within the reach, at one of some boundaries; None if none is."""
        for band in range(len(tuning.FREE_BANDS)):
            labels, scores = self._labels(band)
            inside = (labels == IN).sum(axis=0)
            free = (labels == FREE).sum(axis=0)
            possible = np.flatnonzero((inside <= k) & (k <= inside + free))  # the T exist
            for j in self._likeliest(possible, np.abs(inside + free / 2 - k)):
                bound = self._bound(band, int(j))
                if bound <= self.reach:
                    chosen = _chosen(labels[:, j], scores[:, j], k, rng)
                    return Proof(chosen, bound, float(self.boundaries.values[j]))
        return None

    def _draft(self) -> Draft:
        """The plans whose charges are expected to come nearest to what is aimed at."""
        stakes = Stakes(self.belief.boundary, self.strength, self.reach)
        policies = [Policy(group, self.belief, stakes) for group in self.belief.groups()]
        aim = math.log((tuning.AIM - 1 / tuning.STRENGTH) * self.reach)
        at = tuning.THRESHOLD
        tried: list[tuple[float, float, Draft]] = []
        for _ in range(tuning.TRIES):
            draft = self._drafted(policies, math.exp(at))
            found = math.log(max(draft.charges, LEAST_CHARGES))
            tried.append((at, found, draft))
            if abs(found - aim) < tuning.NEAR_AIM:
                break
            at = _next_threshold([(at, found) for at, found, _ in tried], aim)
        enough = [draft for _, found, draft in tried if found < aim + tuning.NEAR_AIM]
        if not enough:
            return min((draft for _, _, draft in tried), key=lambda each: each.charges)
        return min(enough, key=lambda each: each.pulls)

    def _drafted(self, policies: list[Policy], threshold: float) -> Draft:
        plans = [Plan(policy, threshold) for policy in policies]
        shift = self._shift(plans)
        charges = float(np.mean([self._expected_charges(plans, shift, z) for z in tuning.HEDGE]))
        return Draft(plans, shift, sum(plan.expected_pulls for plan in plans), charges)

    def _expected_charges(self, plans: list[Plan], shift: float, errors: float) -> float:
        """Of all arms, if the boundary is so many errors from where it is believed to be."""
        boundary = float(np.clip(self.belief.boundary + errors * self.belief.error, *INNER))
        stakes = Stakes(boundary, self.strength, self.reach)
        gap = tuning.ROUGH * self.gap
        at = boundary - shift
        return sum(plan.expected_charges(plan.labels(at), stakes, gap) for plan in plans)

    def _shift(self, plans: list[Plan]) -> float:
        """How far below the boundary labels must change for k arms to be expected inside."""
        boundary = self.belief.boundary
        thresholds = np.clip(boundary + SHIFTS * self.belief.error, 0.0, 1.0)
        inside = np.sum([plan.expected_inside(thresholds) for plan in plans], axis=0)
        return boundary - float(np.interp(-self.belief.k, -inside, thresholds))

    def _stopped(self, arms: IntArray, level: int) -> BoolArray:
        """Which of the arms stop at this level."""
        stopped = np.zeros(arms.size, dtype=np.bool_)
        for number in np.unique(self.plan_of[arms]):
            mine = self.plan_of[arms] == number
            stops = self.draft.plans[number].levels[level].stops
            stopped[mine] = stops[self.successes[arms[mine]]]
        return stopped

    def _labels(self, band: int) -> tuple[IntArray, FloatArray]:
        """Labels of all arms at all boundaries, and by how much IN is better."""
        width, _ = tuning.FREE_BANDS[band]
        at = self.boundaries.values - self.draft.shift
        labels = np.zeros((self.pulls.size, at.size), dtype=np.int64)
        scores = np.zeros((self.pulls.size, at.size))
        for plan in self.draft.plans:
            arms = plan.policy.group.arms
            pulls = self.pulls[arms].astype(np.float64)
            successes = self.successes[arms].astype(np.float64)
            labels[arms], scores[arms] = plan.policy.labels(pulls, successes, at, width)
        return labels, scores

    def _likeliest(self, possible: IntArray, mismatch: FloatArray) -> IntArray:
        """Boundaries to settle: few arms to move, and near the middle one."""
        errors = np.abs(self.boundaries.values - self.belief.boundary) / self.belief.error
        order = np.argsort((mismatch + errors)[possible], kind="stable")
        return possible[order[: tuning.CANDIDATES]]

    def _bound(self, band: int, j: int) -> float:
        """The charges of all arms and ln(1/delta_j) / strength, at boundary number j."""
        boundary = float(self.boundaries.values[j])
        stakes = Stakes(boundary, self.strength, self.reach)
        bound = float(self.boundaries.thresholds[band, j]) / self.strength
        for plan in self.draft.plans:
            arms = plan.policy.group.arms
            labels = plan.labels(boundary - self.draft.shift, band)
            charges = plan.charges(labels, stakes, tuning.EXACT * self.gap)
            ended = plan.states.find(self.pulls[arms], self.successes[arms])
            if (ended == NOT_THERE).any():
                return math.inf
            bound += float(charges[ended].sum())
        return bound

    def _progress(self, round_: int, running: int) -> Progress:
        return Progress(round=round_, undecided=running)


def _next_threshold(tried: list[tuple[float, float]], aim: float) -> float:
    """Where ln(charges), rising in ln(threshold), may meet the aim: regula falsi once bracketed."""
    below = max((each for each in tried if each[1] < aim), default=None)
    above = min((each for each in tried if each[1] >= aim), default=None)
    if below is None or above is None:
        at, found = tried[-1]
        return at + float(np.clip((aim - found) / tuning.SLOPE, -LOG_STEP, LOG_STEP))
    share = (aim - below[1]) / (above[1] - below[1])
    return below[0] + float(np.clip(share, *MIDDLE)) * (above[0] - below[0])


def _chosen(labels: IntArray, scores: FloatArray, k: int, rng: np.random.Generator) -> IntArray:
    """All arms that are in, and the best of the free ones."""
    inside = np.flatnonzero(labels == IN)
    free = np.flatnonzero(labels == FREE)
    best = free[descending(scores[free], rng)]
    return np.sort(np.concatenate([inside, best[: k - inside.size]]))
