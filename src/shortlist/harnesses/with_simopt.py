"""SimOpt: solutions of a problem as arms, its streams of random numbers as seeds.

from shortlist.harnesses.with_simopt import Replications

designs = Replications(CntNVMaxProfit(), {f"order {x}": (x,) for x in (0.1, 0.2, 0.3)})
shortlist.select(designs, arms=designs.labels, minimize=designs.minimize, k=1, epsilon=0.1,
                 rewards="normal", seeds="shared")
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

from shortlist.errors import InvalidInput
from shortlist.validation import shown

BITS = 16  # of a seed choose the substreams, the others the stream: there are 2^50 streams
GENERATORS = 2**20  # substreams of one seed; a stream has 2^47


class Replications:
    """One replication of a solution per call, as a function of its label and a seed.

    A seed fixes the stream and the substreams of all generators of the model, and two seeds have
    none in common. So solutions with the same seed have common random numbers.

    Args:
        problem: A problem of simopt, with one objective and without stochastic constraints.
        solutions: Solutions by label: values of the decision variables, in the problem's order.

    Raises:
        InvalidInput: The problem has several objectives or stochastic constraints, or a solution
            breaks a deterministic constraint."""

    def __init__(self, problem: Any, solutions: Mapping[Any, Sequence[float]]) -> None:
        for name in ("n_objectives", "n_stochastic_constraints"):
            most = int(name == "n_objectives")
            if getattr(problem, name) > most:
                raise InvalidInput(
                    f"`problem.{name}` is {getattr(problem, name)}, but must be {most}"
                )
        for label, values in solutions.items():
            if not problem.check_deterministic_constraints(tuple(values)):
                raise InvalidInput(
                    f"solution {shown(label)} is {shown(tuple(values))}, but must keep to the"
                    " constraints of the problem"
                )
        self.problem = problem
        self.solutions = {label: tuple(values) for label, values in solutions.items()}

    @property
    def labels(self) -> list[Any]:
        """Labels of the solutions."""
        return list(self.solutions)

    @property
    def minimize(self) -> bool:
        """Whether the problem is to be minimized."""
        return bool(self.problem.minmax[0] < 0)

    def __call__(self, label: Any, seed: int) -> float:
        """The objective of one replication."""
        from mrg32k3a.mrg32k3a import MRG32k3a
        from simopt.base import Solution

        problem = deepcopy(self.problem)  # a replication changes its factors
        stream, first = seed >> BITS, seed % 2**BITS * GENERATORS
        places = range(first, first + problem.model.n_rngs)
        solution = Solution(self.solutions[label], problem)
        solution.attach_rngs([MRG32k3a(s_ss_sss_index=[stream, each, 0]) for each in places])
        problem.simulate(solution, 1)
        return float(solution.objectives[0][0])
