"""The registry: every algorithm by name, with the goals it serves, what it guarantees and where it
is from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from shortlist.algorithms.adaptive_top_k import adaptive_top_k, adaptive_top_k_tight
from shortlist.algorithms.certified import certified
from shortlist.algorithms.clucb_pac import clucb_pac, clucb_pac_anytime
from shortlist.algorithms.expected_loss import expected_loss, expected_loss_anytime
from shortlist.algorithms.improved_top_k import improved_top_k
from shortlist.algorithms.lucb import lucb
from shortlist.algorithms.median_elimination import median_elimination
from shortlist.algorithms.opt_mai import opt_mai
from shortlist.algorithms.options import check_options
from shortlist.algorithms.sar import sar
from shortlist.algorithms.uniform import uniform
from shortlist.errors import InvalidInput, UnknownName, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.search import RunUpTo, Search


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A search with the facts a user chooses it by."""

    name: str
    search: Callable[..., Search]
    goals: tuple[type[Goal], ...]
    guarantee: str
    source: str
    capped: bool = False  # takes epsilon, delta and a budget at once
    # raise it with any change of what it asks for, so that no stored experiment goes on differently
    version: int = 1
    # for an algorithm with an answer at any time: one run gives its answers at many budgets
    anytime: Callable[[Problem, np.random.Generator], RunUpTo] | None = None

    def start(self, problem: Problem, rng: np.random.Generator, **options: Any) -> Search:
        """Begin the search on the unit scale, or say why it cannot be begun."""
        self.check(problem, options)
        return self.search(problem.unit(), rng, **options)

    def check(self, problem: Problem, options: Mapping[str, object] | None = None) -> None:
        """Refuse a goal this algorithm does not serve, a budget it cannot work with, and options it
        does not take."""
        check_options(self.name, self.search, options or {})
        goal = problem.goal
        if not isinstance(goal, self.goals):
            need = (
                "a budget; it has no stopping rule"
                if isinstance(goal, FixedConfidence)
                else "epsilon and delta"
            )
            raise UnsupportedGoal(f"{self.name} needs {need}")
        if isinstance(goal, FixedConfidence) and goal.budget is not None and not self.capped:
            raise UnsupportedGoal(
                f"{self.name} takes either epsilon and delta or a budget, not both"
            )
        if goal.budget is not None and goal.budget < problem.n_arms:
            raise InvalidInput(
                f"`budget` is {goal.budget}, but {self.name} must pull each of the {problem.n_arms}"
                " arms once"
            )


BOTH = (FixedConfidence, FixedBudget)
PAPER = "Chen, Chen, Zhang, Zhou 2017"
REGRET = "R_T <= epsilon with probability 1 - delta"
ELEMENTWISE = (
    "every j-th best chosen mean >= theta_j - epsilon, hence R_T <= epsilon, with probability 1 -"
    " delta"
)

ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("adaptive-top-k", adaptive_top_k, BOTH, REGRET, f"{PAPER}, Algorithm 1"),
        Algorithm(
            "adaptive-top-k-tight",
            adaptive_top_k_tight,
            (FixedConfidence,),
            REGRET,
            f"{PAPER}, Algorithm 1 with pooled samples and the constants its proof allows",
        ),
        Algorithm(
            "improved-top-k", improved_top_k, (FixedConfidence,), REGRET, f"{PAPER}, Algorithm 5"
        ),
        Algorithm("opt-mai", opt_mai, (FixedBudget,), "none", "Zhou, Chen, Li 2014, Algorithm 1"),
        Algorithm(
            "clucb-pac",
            clucb_pac,
            BOTH,
            REGRET,
            "Chen, Lin, King, Lyu, Chen 2014, Appendix B.2",
            anytime=clucb_pac_anytime,
        ),
        Algorithm(
            "lucb", lucb, BOTH, ELEMENTWISE, "Kalyanakrishnan, Tewari, Auer, Stone 2012, LUCB1"
        ),
        Algorithm("sar", sar, (FixedBudget,), "none", "Bubeck, Wang, Viswanathan 2013, SAR"),
        Algorithm(
            "median-elimination",
            median_elimination,
            (FixedConfidence,),
            ELEMENTWISE,
            "Even-Dar, Mannor, Mansour 2006, Median Elimination; Kalyanakrishnan, Stone 2010,"
            " Halving",
        ),
        Algorithm(
            "certified",
            certified,
            (FixedConfidence,),
            REGRET,
            "split certificate, docs/certificate.md",
            capped=True,
            version=2,
        ),
        Algorithm(
            "expected-loss",
            expected_loss,
            (FixedBudget,),
            "none",
            "empirical Bayes, docs/certificate.md",
            version=2,
            anytime=expected_loss_anytime,
        ),
        Algorithm("uniform", uniform, BOTH, REGRET, "union bound over the sets that lose too much"),
    )
}


def find(name: str) -> Algorithm:
    """The algorithm of that name."""
    if name not in ALGORITHMS:
        close = get_close_matches(name, ALGORITHMS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UnknownName(f"algorithm {name!r} is unknown; there are {', '.join(ALGORITHMS)}{hint}")
    return ALGORITHMS[name]
