"""Every number that an experiment prints is wrong with probability delta at most.

Real experiments, in memory, at delta = .3 so that errors are seen. Results are late because of
their values, arms retire because of their rewards, limits end the search, scores are those of a
test set. In every batch the experiment is looked at while results are missing, and once it is over.
A run counts against a claim that is wrong at any of its looks, and the number of such runs is
compared with delta by the exact binomial distribution: 2,000 runs in `make attack`."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from attack_scale import AGAIN, SEED, number_of_runs
from scipy.stats import binom

import shortlist
from shortlist.arrays import BoolArray, FloatArray
from shortlist.engine import Experiment, Ticket
from shortlist.engine.status import DECIDING, ArmsTold
from shortlist.regret import aggregate_regret
from shortlist.service.pages.view import regret_bound

pytestmark = pytest.mark.rates

DELTA = 0.3
RUNS = number_of_runs(8, 2000)
UNBELIEVABLE = 1e-4  # chance of this many errors below which a claim is taken for false
ROUNDED = 1e-12
Early = Callable[[float, np.random.Generator], bool]
Retires = Callable[[FloatArray, FloatArray, int], int | None]  # estimates, means, k


def good_is_quick(reward: float, rng: np.random.Generator) -> bool:
    """Successes are told at once, failures mostly later."""
    return reward == 1 or rng.random() < 0.1


def bad_is_quick(reward: float, rng: np.random.Generator) -> bool:
    """Failures are told at once, successes mostly later."""
    return good_is_quick(1 - reward, rng)


def most_misleading(estimates: FloatArray, means: FloatArray, _: int) -> int | None:
    """The arm retires whose rewards mislead most, as soon as they do."""
    off = np.abs(estimates - means)
    return int(off.argmax()) if off.max() > 0.15 else None


def leader_of_misleading_others(estimates: FloatArray, means: FloatArray, k: int) -> int | None:
    """The arm that looks best retires when the best of the others are not those that look so."""
    leader, *rest = np.argsort(-estimates).tolist()
    lost = np.sort(means[rest])[-k:].sum() - means[rest[:k]].sum()
    return int(leader) if lost > 0 else None


@dataclass(frozen=True)
class Case:
    """An experiment, and what happens to it."""

    means: tuple[float, ...]
    early: Early
    epsilon: float = 0.2
    k: int = 1
    retires: Retires | None = None
    limits: tuple[int | None, ...] = ()
    items: int | None = None
    asked: dict[str, Any] = field(default_factory=lambda: {"min_batch": 40})


CASES = {
    "late, good is quick": Case((0.1, 0.1, 0.4), good_is_quick),
    "late, bad is quick": Case((0.9, 0.6, 0.6), bad_is_quick),
    "late, two of four": Case((0.7, 0.6, 0.45, 0.4), good_is_quick, 0.1, k=2),
    "late, three rounds": Case((0.6, 0.5, 0.35), bad_is_quick, asked={"max_rounds": 3}),
    "late, split": Case((0.7, 0.7, 0.4, 0.4), good_is_quick, k=2, asked={"certificate": "split"}),
    "limits": Case((0.6, 0.5, 0.4), good_is_quick, 0.05, limits=(15,) * 3, asked={"min_batch": 9}),
    "limits that differ": Case(
        (0.8, 0.7, 0.2), bad_is_quick, 0.05, limits=(None, 6, 30), asked={"min_batch": 9}
    ),
    "an arm retires because of its rewards": Case(
        (0.6, 0.5, 0.4, 0.4), good_is_quick, retires=most_misleading, asked={"min_batch": 24}
    ),
    "the leader retires": Case(
        (0.8, 0.55, 0.35, 0.35), bad_is_quick, retires=leader_of_misleading_others
    ),
    "the leader retires, few rounds": Case(
        (0.8, 0.55, 0.35),
        good_is_quick,
        retires=leader_of_misleading_others,
        asked={"max_rounds": 3},
    ),
    "a test set": Case((0.7, 0.6, 0.4), good_is_quick, 0.05, items=12, asked={}),
    "a test set, an arm retires": Case(
        (0.8, 0.6, 0.5, 0.3), bad_is_quick, 0.05, retires=most_misleading, items=10, asked={}
    ),
}


class Run:
    """One run of a case, and which claims were wrong at any look."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case, self.rng = case, np.random.default_rng([seed, 7])
        self.means = self.rng.permutation(case.means)
        self.scores = self._scores()
        self.experiment = self._experiment(seed)
        self.retired: int | None = None
        self.wrong: set[str] = set()

    def _scores(self) -> FloatArray | None:
        """0/1 scores on a test set, whose means are then the truth: (arms, items)."""
        if self.case.items is None:
            return None
        shape = self.means.size, self.case.items
        scores = (self.rng.random(shape) < self.means[:, None]).astype(np.float64)
        self.means = scores.mean(axis=1)
        return scores

    def _experiment(self, seed: int) -> Experiment:
        case = self.case
        limited = [shortlist.Arm(arm, limit=each) for arm, each in enumerate(case.limits)]
        arms: Any = limited or self.means.size
        asked: dict[str, Any] = {"items": case.items} if case.items else {}
        goal: dict[str, Any] = {"epsilon": case.epsilon, "delta": DELTA, "rewards": "binary"}
        return Experiment.create(arms, case.k, seed=seed, **goal, **asked, **case.asked)

    def played(self) -> set[str]:
        """Play until it is over; the claims that were wrong."""
        while tickets := self.experiment.ask(10_000):
            results = [(ticket, self.reward(ticket)) for ticket in tickets]
            soon = [self.case.early(reward, self.rng) for _, reward in results]
            early = [result for result, now in zip(results, soon, strict=True) if now]
            self.experiment.tell_many(early)
            self.look()
            if self.case.retires is not None and self.retired is None:
                self.retire(self.case.retires)
            late = [result for result, now in zip(results, soon, strict=True) if not now]
            self.experiment.tell_many(late)
        self.look()
        return self.wrong

    def reward(self, ticket: Ticket) -> float:
        arm = int(ticket.arm)
        if self.scores is not None:
            return float(self.scores[arm, int(ticket.item or 0)])
        return float(self.rng.random() < self.means[arm])

    def retire(self, choose: Retires) -> None:
        estimates = np.nan_to_num(self.experiment.status().arms.means, nan=0.5)
        self.retired = choose(estimates, self.means, self.case.k)
        if self.retired is not None:
            self.experiment.retire(self.retired)

    def look(self) -> None:
        """Compare all that is printed now with the truth."""
        status, result = self.experiment.status(), self.experiment.result(partial=True)
        stay = np.arange(self.means.size) != self.retired
        if missed(status.arms.low, status.arms.high, self.means):
            self.wrong.add("interval")
        if status.state not in DECIDING and misplaced(status.arms, self.means, stay, self.case.k):
            self.wrong.add("place")
        for bound in (status.bound, result.regret_bound):
            if bound is not None and self.lost(result.top, stay) > bound + ROUNDED:
                self.wrong.add("bound")
        if self.page_is_wrong(status.arms, stay):
            self.wrong.add("bound of the page")
        if self.case.items is None and wrong_lift(result, self.means):
            self.wrong.add("lift")

    def lost(self, top: tuple[Any, ...], stay: BoolArray) -> float:
        """Regret of these arms among those that stay."""
        places = np.cumsum(stay) - 1
        return aggregate_regret(self.means[stay], [int(places[int(arm)]) for arm in top])

    def page_is_wrong(self, arms: ArmsTold, stay: BoolArray) -> bool:
        """Whether the arms that look best lose more than the page of an experiment says."""
        estimates, low, high = (each[stay] for each in (arms.means, arms.low, arms.high))
        order = np.argsort(-np.nan_to_num(estimates, nan=-np.inf), kind="stable")
        lost = aggregate_regret(self.means[stay], order[: self.case.k].tolist())
        return lost > regret_bound(estimates, low, high, self.experiment.settings.problem) + ROUNDED


def missed(low: FloatArray, high: FloatArray, means: FloatArray) -> bool:
    return bool(((means < low - ROUNDED) | (means > high + ROUNDED)).any())


def misplaced(arms: ArmsTold, means: FloatArray, stay: BoolArray, k: int) -> bool:
    """Whether an arm that is "in" is not one of the k best of those that stay, or one is "out"
    that is better than the next."""
    ordered = np.sort(means[stay])[::-1]
    inside, outside = (np.array([each == name for each in arms.places]) for name in ("in", "out"))
    return bool((means[inside] < ordered[k - 1]).any() or (means[outside] > ordered[k]).any())


def wrong_lift(result: shortlist.Result, means: FloatArray) -> bool:
    """Whether any arm's difference to the first one, or its ratio, is outside its interval."""
    control = means[0]
    for arm in result.lift(0).arms:
        mean = means[int(arm.label)]
        difference, ratio = mean - control, mean / control
        if not arm.difference_low - ROUNDED <= difference <= arm.difference_high + ROUNDED:
            return True
        low, high = arm.ratio_low, arm.ratio_high
        if low is not None and high is not None and not low - 1e-9 <= ratio <= high + 1e-9:
            return True
    return False


def errors(case: Case, runs: int = RUNS) -> Counter[str]:
    """In how many runs each claim is wrong."""
    wrong: Counter[str] = Counter()
    for seed in range(SEED, SEED + runs):
        wrong.update(Run(case, seed).played())
    print(f"{dict(wrong)} of {runs}")
    return wrong


def believable(wrong: int, runs: int = RUNS) -> bool:
    return bool(wrong <= binom.ppf(1 - UNBELIEVABLE, runs, DELTA))


@pytest.mark.parametrize("name", CASES)
def test_no_printed_number_is_wrong_in_more_than_delta_of_the_runs(name: str) -> None:
    wrong = errors(CASES[name])
    assert all(map(believable, wrong.values())), (wrong, AGAIN)


def test_counting_all_that_came_in_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault: rewards that came early count although earlier pulls of their arm are missing."""

    def all_told(arms: Any, told: BoolArray, n_arms: int) -> BoolArray:
        return told

    monkeypatch.setattr("shortlist.engine.ledger.counted_pulls", all_told)
    wrong = errors(Case((0.1, 0.1, 0.4), good_is_quick, asked={"min_batch": 120}), 8)
    assert not believable(wrong["interval"], 8), wrong
