"""The 15 panels of Section 5: five datasets with three K each, epsilon = delta = 0.01."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from shortlist import instances
from shortlist.arrays import FloatArray
from shortlist.errors import UnknownName
from shortlist.theory.hardness import Hardness, hardness


@dataclass(frozen=True, slots=True)
class Dataset:
    """A family of instances: its name in the paper, its size, the K that are tried, its means."""

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
