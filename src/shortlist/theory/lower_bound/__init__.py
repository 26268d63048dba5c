"""The lower bound of Section 4 as running code.

To tell a coin of value 0.5 + eta from one of 0.5 - eta takes of the order of ln(1/epsilon) tosses
(`least_tosses`). Whoever finds the K = n/2 best of n such coins tells one coin by the way, hidden
among the others (`Reduction`). So a search must pay n ln(1/epsilon), though H^(t, epsilon) does not
grow with 1/epsilon; `demonstrate` measures it."""

from shortlist.theory.lower_bound.coins import Coin, least_pulls, least_tosses, optimal_error
from shortlist.theory.lower_bound.demonstration import (
    Growth,
    NeededBudget,
    demonstrate,
    least_budget,
)
from shortlist.theory.lower_bound.reduction import (
    Reduction,
    Tally,
    Verdict,
    measured_cost,
    tally,
)

__all__ = [
    "Coin",
    "Growth",
    "NeededBudget",
    "Reduction",
    "Tally",
    "Verdict",
    "demonstrate",
    "least_budget",
    "least_pulls",
    "least_tosses",
    "measured_cost",
    "optimal_error",
    "tally",
]
