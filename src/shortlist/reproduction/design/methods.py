"""Which methods are compared: the paper's three, their yardsticks, ours, and the user's own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shortlist.algorithms import ALGORITHMS, Algorithm, AlgorithmLike, find
from shortlist.errors import InvalidInput

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
