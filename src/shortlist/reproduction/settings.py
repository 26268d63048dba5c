"""What is run: which panels, how often, from which seed."""

import platform
from dataclasses import dataclass
from importlib.metadata import version

from shortlist.algorithms import ALGORITHMS
from shortlist.reproduction import theory
from shortlist.reproduction.panels import PANELS, Panel
from shortlist.validation import whole

RUNS, QUICK_RUNS = 200, 10


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that the results depend on, but for the versions of what computes them."""

    panels: tuple[Panel, ...]
    runs: int = RUNS
    seed: int = 0
    quick: bool = False

    def __post_init__(self) -> None:
        whole("runs", self.runs, at_least=1)
        whole("seed", self.seed, at_least=0)

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
        return theory.sweep_over_n(2 if self.quick else 1) if self.complete else ()

    @property
    def sweep_over_epsilon(self) -> tuple[Panel, ...]:
        """The epsilons at which the theorems are tried: none unless all panels are."""
        return theory.sweep_over_epsilon(3 if self.quick else 1) if self.complete else ()

    def record(self) -> dict[str, object]:
        """The settings and the versions, for people and for comparison."""
        return {
            "seed": self.seed,
            "runs": self.runs,
            "quick": self.quick,
            "panels": [panel.name for panel in self.panels],
            "versions": {name: version(name) for name in ("shortlist", "numpy", "scipy")},
            "python": platform.python_version(),
            "algorithms": {name: ALGORITHMS[name].version for name in sorted(ALGORITHMS)},
        }
