"""Which methods are compared: the paper's three, their yardsticks and ours."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from shortlist.algorithms import ALGORITHMS
from shortlist.problem import FixedConfidence

SCALE = 0.02  # of the rounds of the scaled AdaptiveTopK


@dataclass(frozen=True, slots=True)
class Method:
    """An algorithm with its settings, under the name it has in the results."""

    algorithm: str
    options: Mapping[str, float] = field(default_factory=dict)


SCALED = "adaptive-top-k-scaled"
METHODS = {name: Method(name) for name in ALGORITHMS} | {
    SCALED: Method("adaptive-top-k", {"scale": SCALE})
}
ON_BUDGET = ("adaptive-top-k", SCALED, "opt-mai", "clucb-pac", "uniform", "sar", "expected-loss")
TO_CONFIDENCE = tuple(
    name for name, algorithm in ALGORITHMS.items() if FixedConfidence in algorithm.goals
)
PAPERS_OWN = ("adaptive-top-k", "opt-mai", "clucb-pac")
