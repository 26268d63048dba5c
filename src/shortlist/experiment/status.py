"""Where an experiment stands, as a record."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from shortlist.arms import Label
from shortlist.arrays import FloatArray, IntArray
from shortlist.experiment.ledger import Ledger
from shortlist.experiment.replay import Course
from shortlist.experiment.settings import Settings
from shortlist.experiment.ticket import State
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Progress

DELTA = 0.05  # of the intervals, where the goal names none


@dataclass(frozen=True, slots=True)
class ArmsTold:
    """What was told of every arm, in the order of the labels.

    With probability 1 - delta all means lie between `low` and `high`, of all arms and whenever one
    looks."""

    labels: tuple[Label, ...]
    pulls: IntArray
    means: FloatArray  # NaN for an arm of which nothing was told
    low: FloatArray
    high: FloatArray
    places: tuple[str, ...]  # "in", "out" or "undecided"
    to_go: IntArray  # pulls that the search waits for


@dataclass(frozen=True, slots=True)
class Status:
    """How far an experiment is."""

    name: str
    state: State
    trouble: str  # why it is stopped, in words; empty if it is not
    told: int
    held: int  # tickets that somebody works on
    wanted: int  # tickets that the search waits for and nobody works on
    failures: int  # evaluations that failed since the experiment was resumed last
    workers: Mapping[str, int]  # tickets held by everybody who gave a name
    progress: Progress  # as the search sees it
    arms: ArmsTold


def arms_told(ledger: Ledger, settings: Settings, course: Course) -> ArmsTold:
    """What the ledger says of every arm."""
    problem, labels = settings.problem, settings.labels
    told = np.flatnonzero(~np.isnan(ledger.rewards))
    pulls = np.bincount(ledger.arms[told], minlength=problem.n_arms)
    sums = np.bincount(ledger.arms[told], ledger.rewards[told], problem.n_arms)
    means = np.divide(sums, pulls, out=np.full(problem.n_arms, np.nan), where=pulls > 0)
    low, high = intervals(problem, pulls, means)
    where = places(low, high, problem.k)
    if course.outcome is not None:
        chosen = set(course.outcome.answer.top.tolist())
        where = tuple("in" if arm in chosen else "out" for arm in range(problem.n_arms))
    return ArmsTold(labels, pulls, means, low, high, where, course.asked - pulls)


def intervals(
    problem: Problem, pulls: IntArray, means: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Ends of an interval for every mean, valid for all arms and at all times at once.

    After t pulls, N of them of an arm, it is missed with probability at most delta / (2 n t^3) if
    the radius is sqrt(ln(4 n t^3 / delta) / (2 N)) on the unit scale; over arms, N <= t and t that
    sums to less than delta."""
    goal = problem.goal
    delta = goal.delta if isinstance(goal, FixedConfidence) else DELTA
    term = log(4 * problem.n_arms / delta) + 3 * log(max(1, int(pulls.sum())))
    with np.errstate(divide="ignore"):
        radii = problem.rewards.scale * np.sqrt(term / (2 * pulls))
    centres = np.nan_to_num(means)
    least, most = problem.rewards.support
    return np.maximum(centres - radii, least), np.minimum(centres + radii, most)


def places(low: FloatArray, high: FloatArray, k: int) -> tuple[str, ...]:
    """Which arms the intervals put among the k best, or not: fewer than k others can be above, or k
    others must be."""
    # without the arm itself
    may_be_above = low.size - np.searchsorted(np.sort(high), low, side="right") - 1
    must_be_above = low.size - np.searchsorted(np.sort(low), high, side="right")
    inside, outside = may_be_above < k, must_be_above >= k
    return tuple(np.where(inside, "in", np.where(outside, "out", "undecided")).tolist())
