"""What is asked of every method: which arms, how many of them, and what is promised or spent.

All methods get the same arms: the same means, in an order of their own in every run, with rewards 0
or 1."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from shortlist import instances
from shortlist.algorithms import find
from shortlist.arrays import FloatArray
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Binary
from shortlist.simulation.simulate import drive
from shortlist.simulation.worlds import BernoulliBandit


@dataclass(frozen=True)
class Arms:
    """The arms of a contest, and how many are to be chosen."""

    name: str
    what: str
    means: FloatArray
    k: int
    epsilon: float

    def shuffled(self, run: int) -> FloatArray:
        """Their means in the order of that run."""
        return np.random.default_rng([run, 1]).permutation(self.means)


@dataclass(frozen=True)
class Own:
    """A method of ours: an algorithm with its options."""

    algorithm: str
    options: dict[str, object] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """Its name in the tables, with the values of its options."""
        return ", ".join([self.algorithm, *(str(value) for value in self.options.values())])


@dataclass(frozen=True)
class Outcome:
    """One run of one method."""

    run: int
    pulls: int
    seconds: float
    regret: float
    stopped: bool  # by its own rule, not because a limit on pulls was reached


@dataclass
class Entry:
    """A method in a contest and what came of it; `error` says why some of its runs have no
    outcome."""

    method: str
    arms: Arms
    promised: float | None = None  # confidence
    outcomes: list[Outcome] = field(default_factory=list)
    crashed: int = 0
    error: str = ""


BEST_ARM = (
    Arms("pair", "Best of 2: 0.55 and 0.45", np.array([0.55, 0.45]), 1, 0.09),
    Arms("level", "Best of 5: 0.6 and four of 0.5", np.append(0.6, np.full(4, 0.5)), 1, 0.09),
    Arms("ladder", "Best of 10: 0.95, 0.85, ..., 0.05", np.linspace(0.95, 0.05, 10), 1, 0.09),
    Arms("high", "Best of 10: 0.98 and nine of 0.88", np.append(0.98, np.full(9, 0.88)), 1, 0.09),
)
KEEP = Arms("keep", "Best 10 of 100: 0.99, 0.98, ..., 0", instances.uniform(100), 10, 0.01)
DELTA = 0.05
BEST_ARM_OWN = (
    Own("certified"),  # all others are compared with the first
    Own("uniform"),
    Own("kl-lucb", {"threshold": "proven"}),
    Own("kl-lucb", {"threshold": "customary"}),
    Own("track-and-stop", {"threshold": "proven"}),
    Own("track-and-stop", {"threshold": "iterated-logarithm"}),
    Own("track-and-stop", {"threshold": "customary"}),
)
KEEP_OWN = (Own("expected-loss"), Own("uniform"))


def ours(method: Own, arms: Arms, goals: Sequence[Goal], seconds: float) -> Entry:
    """Run one of our methods with one goal a run, until they are done or the time is up."""
    promised = 1 - DELTA if isinstance(goals[0], FixedConfidence) else None
    entry = Entry(method.label, arms, promised)
    end = time.perf_counter() + seconds
    for run, goal in enumerate(goals):
        if time.perf_counter() > end:
            break
        means = arms.shuffled(run)
        problem = Problem(means.size, arms.k, goal, Binary())
        started = time.perf_counter()
        rng = np.random.default_rng([run, 2])
        bandit = BernoulliBandit(means)
        outcome = drive(find(method.algorithm), problem, bandit, rng, **method.options)
        took = time.perf_counter() - started
        regret = aggregate_regret(means, outcome.answer.top)
        entry.outcomes.append(Outcome(run, int(outcome.pulls.sum()), took, regret, stopped=True))
    return entry


def confidence(arms: Arms, runs: int) -> list[Goal]:
    return [FixedConfidence(arms.epsilon, DELTA)] * runs


def same_budgets(entry: Entry) -> list[Goal]:
    """What a peer spent, run by run."""
    return [FixedBudget(outcome.pulls) for outcome in entry.outcomes]


def task(arms: Arms, runs: int, seconds: float, settings: dict[str, object]) -> str:
    """What a peer's own process is told, as JSON."""
    means = [arms.shuffled(run).tolist() for run in range(runs)]
    asked = {
        "means": means,
        "k": arms.k,
        "epsilon": arms.epsilon,
        "delta": DELTA,
        "seconds": seconds,
    }
    return json.dumps({**asked, **settings})


def read(entry: Entry, lines: Sequence[str]) -> None:
    """Take in what a peer's process wrote, a line of JSON for every run."""
    for line in lines:
        said = json.loads(line)
        if "error" in said:
            entry.crashed += 1
            entry.error = said["error"]
            continue
        regret = aggregate_regret(entry.arms.shuffled(said["run"]), np.array(said["chosen"]))
        entry.outcomes.append(
            Outcome(said["run"], said["pulls"], said["seconds"], regret, said["stopped"])
        )
