"""The design of a reproduction: everything that its results depend on."""

import platform
from dataclasses import dataclass
from importlib.metadata import version

from shortlist.algorithms import AlgorithmLike
from shortlist.problem import FixedBudget, FixedConfidence
from shortlist.reproduction.design import sweeps
from shortlist.reproduction.design.methods import (
    ON_BUDGET,
    TO_CONFIDENCE,
    Method,
    joined,
    methods_of,
)
from shortlist.reproduction.design.panels import PANELS, Panel
from shortlist.validation import plain, whole

RUNS = 200
QUICK_RUNS = 10


@dataclass(frozen=True, slots=True)
class Design:
    """Panels, runs, seed and methods; with the versions of what computes them, all of it.

    `algorithms` are compared beside the standard methods, each by the goals that it takes: within
    budgets, to a confidence, or both. They change neither the budgets nor the others' rows."""

    panels: tuple[Panel, ...]
    runs: int = RUNS
    seed: int = 0
    quick: bool = False
    algorithms: tuple[AlgorithmLike, ...] = ()

    def __post_init__(self) -> None:
        plain(self, runs=whole("runs", self.runs, at_least=1))
        plain(self, seed=whole("seed", self.seed, at_least=0))
        methods_of(self.algorithms)

    @property
    def on_budget(self) -> tuple[Method, ...]:
        """The methods whose failures are counted within budgets."""
        return joined(ON_BUDGET, self._that_take(FixedBudget))

    @property
    def to_confidence(self) -> tuple[Method, ...]:
        """The methods whose pulls are counted until they are sure."""
        return joined(TO_CONFIDENCE, self._that_take(FixedConfidence))

    def _that_take(self, goal: type) -> list[Method]:
        return [method for method in methods_of(self.algorithms) if goal in method.found.goals]

    @property
    def anytime(self) -> frozenset[str]:
        """The names of the methods that give all points of a curve from the same runs."""
        return frozenset(method.name for method in self.on_budget if method.anytime)

    @property
    def n_budgets(self) -> int:
        """Points on a curve."""
        return 6 if self.quick else 12

    @property
    def pilot_runs(self) -> int:
        """Runs to find where the curves fall."""
        return max(4, self.runs // 20)

    @property
    def confidence_runs(self) -> int:
        """Runs to a confidence: they are long, and their pulls vary little."""
        return max(1, self.runs // 10)

    @property
    def sweep_runs(self) -> int:
        """Runs of the sweeps, whose pulls vary least."""
        return max(1, self.runs // 40)

    @property
    def complete(self) -> bool:
        """Whether all panels are in it."""
        return len(self.panels) == len(PANELS)

    @property
    def sweep_over_n(self) -> tuple[Panel, ...]:
        """The sizes at which the theorems are tried: none unless all panels are."""
        return sweeps.sweep_over_n(2 if self.quick else 1) if self.complete else ()

    @property
    def sweep_over_epsilon(self) -> tuple[Panel, ...]:
        """The epsilons at which the theorems are tried: none unless all panels are."""
        return sweeps.sweep_over_epsilon(3 if self.quick else 1) if self.complete else ()

    def record(self) -> dict[str, object]:
        """The design and the versions, for people and for comparison."""
        found = {method.found for method in (*self.on_budget, *self.to_confidence)}
        record = {
            "seed": self.seed,
            "runs": self.runs,
            "quick": self.quick,
            "panels": [panel.name for panel in self.panels],
            "versions": {name: version(name) for name in ("shortlist", "numpy", "scipy")},
            "python": platform.python_version(),
            "algorithms": dict(sorted((each.name, each.version) for each in found)),
        }
        if self.algorithms:
            record["compared"] = [method.name for method in methods_of(self.algorithms)]
        return record
