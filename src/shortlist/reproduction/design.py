"""The design of a reproduction: panels, methods, budgets, number of runs, seed."""

import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version

import numpy as np

from shortlist import instances
from shortlist.algorithms import ALGORITHMS, Algorithm, AlgorithmLike, find
from shortlist.arrays import FloatArray
from shortlist.errors import InvalidInput, UnknownName
from shortlist.problem import FixedBudget, FixedConfidence
from shortlist.theory import Hardness, hardness
from shortlist.validation import plain, whole

FIRST = 2  # pulls per arm at the first rung: below that, some methods cannot start
STEP = 1.4  # from rung to rung
RUNGS = 18  # at most: by then an arm has been pulled more than 600 times

Rates = Mapping[int, float]  # budget -> share of runs that failed


def ladder(n_arms: int) -> list[int]:
    """The rungs: budgets in geometric progression."""
    return [int(FIRST * n_arms * STEP**rung) for rung in range(RUNGS)]


def budgets(pilot: Mapping[str, Rates], count: int) -> tuple[int, ...]:
    """At most `count` budgets where the failure rates of the methods fall, to three digits.

    Between two rungs the steepest curve falls by max over methods of (rate before - rate after).
    Budgets stand at equal steps of the sum of these, from the last rung at which every run of every
    method fails to the first at which none does: so every curve has its points while it falls, and
    none is spent where nothing changes. The last budget is one rung further, as a pilot of few runs
    may miss a rare failure."""
    rungs = sorted({rung for rates in pilot.values() for rung in rates})
    curves = np.array([_falling(rates, rungs) for rates in pilot.values()])  # (methods, rungs)
    steepest = np.max(curves[:, :-1] - curves[:, 1:], axis=0)
    fallen = np.concatenate([[0.0], np.cumsum(steepest)])  # (rungs,)
    end = np.flatnonzero(fallen == fallen[-1])[0]
    start = min(np.flatnonzero(fallen == 0)[-1], end)
    steps = np.linspace(0, fallen[-1], count - 1)
    logs = np.interp(steps, fallen[start : end + 1], np.log(rungs[start : end + 1]))
    return tuple(sorted({_round(budget) for budget in (*np.exp(logs), STEP * rungs[end])}))


def _falling(rates: Rates, rungs: Sequence[int]) -> FloatArray:
    """The rate at every rung, never rising; beyond a method's last rung it stays as it was."""
    return np.fmin.accumulate([rates.get(rung, np.nan) for rung in rungs])


def _round(budget: float) -> int:
    """To three significant digits."""
    unit = 10 ** max(0, len(str(int(budget))) - 3)
    return int(round(budget / unit) * unit)


SCALE = 0.02  # of the rounds of the scaled AdaptiveTopK
ADAPTIVE = "adaptive-top-k"
SCALED = "adaptive-top-k-scaled"


@dataclass(frozen=True, slots=True)
class Method:
    """What `find` finds an algorithm by, with its options, under its name in the results."""

    name: str
    algorithm: AlgorithmLike
    options: Mapping[str, float] = field(default_factory=dict)

    @property
    def found(self) -> Algorithm:
        """The algorithm."""
        return find(self.algorithm)

    @property
    def anytime(self) -> bool:
        """Whether one run gives its answers at many budgets."""
        return self.found.anytime is not None and not self.options


METHODS = {name: Method(name, name) for name in ALGORITHMS} | {
    SCALED: Method(SCALED, ADAPTIVE, {"scale": SCALE})
}
ON_BUDGET = tuple(
    METHODS[name]
    for name in (ADAPTIVE, SCALED, "opt-mai", "clucb-pac", "uniform", "sar", "expected-loss")
)
TO_CONFIDENCE = tuple(
    METHODS[name]
    for name in (
        ADAPTIVE,
        "adaptive-top-k-tight",
        "improved-top-k",
        "clucb-pac",
        "lucb",
        "median-elimination",
        "certified",
        "uniform",
    )
)
BOTH_FORMS = (METHODS[ADAPTIVE], METHODS[SCALED])  # of AdaptiveTopK: as printed, and scaled


def methods_of(algorithms: Iterable[AlgorithmLike]) -> tuple[Method, ...]:
    """A method for each of these algorithms; names in the results must tell methods apart."""
    methods: dict[str, Method] = {}
    for algorithm in algorithms:
        method = Method(find(algorithm).name, algorithm)
        known = (METHODS | methods).get(method.name, method)
        if known.found != method.found:
            raise InvalidInput(
                f"two methods are named {method.name!r}, but every method must have its own name"
            )
        methods[method.name] = method
    return tuple(methods.values())


def joined(methods: Iterable[Method], others: Iterable[Method]) -> tuple[Method, ...]:
    """All of `methods`, then what is new among `others`."""
    methods = tuple(methods)
    names = {method.name for method in methods}
    return (*methods, *(other for other in others if other.name not in names))


@dataclass(frozen=True, slots=True)
class Dataset:
    """A family of instances: name in the paper, size, values of K, means."""

    title: str
    n: int
    ks: tuple[int, ...]
    means: Callable[[int, int], FloatArray]  # of n and K


def _uniform(n: int, k: int) -> FloatArray:  # noqa: ARG001
    return instances.uniform(n)


def _rte(n: int, k: int) -> FloatArray:  # noqa: ARG001
    return instances.rte()


def _synthetic(p: float) -> Callable[[int, int], FloatArray]:
    return lambda n, k: instances.synthetic(p, n, k)


KS = (100, 250, 500)
DATASETS = {
    "two-group": Dataset("TwoGroup", 1000, KS, instances.two_group),
    "synthetic-0.5": Dataset("Synthetic-.5", 1000, KS, _synthetic(0.5)),
    "uniform": Dataset("Uniform", 1000, KS, _uniform),
    "synthetic-6": Dataset("Synthetic-6", 1000, KS, _synthetic(6)),
    "rte": Dataset("RTE", 164, (30, 50, 80), _rte),
}


@dataclass(frozen=True, slots=True)
class Panel:
    """One instance and what is asked of it."""

    dataset: str
    n: int
    k: int
    epsilon: float = 0.01
    delta: float = 0.01

    @property
    def name(self) -> str:
        """The dataset and K, as in "uniform-500"."""
        return f"{self.dataset}-{self.k}"

    @property
    def title(self) -> str:
        """The name for people."""
        return f"{DATASETS[self.dataset].title}, K = {self.k}"

    def means(self) -> FloatArray:
        """The mean of every arm, best first."""
        return DATASETS[self.dataset].means(self.n, self.k)

    def hardness(self) -> Hardness:
        """H^(t, epsilon) and its relatives."""
        return hardness(self.means(), self.k, self.epsilon)


PANELS = {
    panel.name: panel
    for name, dataset in DATASETS.items()
    for k in dataset.ks
    for panel in [Panel(name, dataset.n, k)]
}


def choose(names: Iterable[str]) -> tuple[Panel, ...]:
    """The panels of these names, in the paper's order.

    The name of a dataset stands for its three panels, and no name at all for all panels."""
    wanted = set(names)
    unknown = wanted - set(PANELS) - set(DATASETS)
    if unknown:
        known = f"{', '.join(DATASETS)}, or one of them with K, such as uniform-500"
        raise UnknownName(f"panel {min(unknown)!r} is unknown; there are {known}")
    return tuple(
        panel for panel in PANELS.values() if not wanted or {panel.name, panel.dataset} & wanted
    )


SWEPT = tuple(
    METHODS[name] for name in ("adaptive-top-k", "improved-top-k", "clucb-pac", "certified")
)
SIZES = (125, 250, 500, 1000, 2000, 4000)
EPSILONS = tuple(round(0.08 * 2 ** (-step / 2), 6) for step in range(13))  # down to 0.00125


def half_of_uniform(n: int, epsilon: float) -> Panel:
    """Uniform with K = n/2."""
    return Panel("uniform", n, n // 2, epsilon)


def sweep_over_n(every: int = 1) -> tuple[Panel, ...]:
    """From small to large, epsilon as in Section 5."""
    return tuple(half_of_uniform(n, 0.01) for n in SIZES[::every])


def sweep_over_epsilon(every: int = 1) -> tuple[Panel, ...]:
    """From coarse to fine, n as in Section 5."""
    return tuple(half_of_uniform(1000, epsilon) for epsilon in EPSILONS[::every])


RUNS = 200
QUICK_RUNS = 10


@dataclass(frozen=True, slots=True)
class Design:
    """Panels, runs, seed and methods.

    `algorithms` are compared with the standard methods, each by the goals that it takes: within
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
        return sweep_over_n(2 if self.quick else 1) if self.complete else ()

    @property
    def sweep_over_epsilon(self) -> tuple[Panel, ...]:
        """The epsilons at which the theorems are tried: none unless all panels are."""
        return sweep_over_epsilon(3 if self.quick else 1) if self.complete else ()

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
