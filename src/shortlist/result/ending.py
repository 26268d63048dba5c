"""Why a search ended."""

from enum import StrEnum


class Ending(StrEnum):
    """Why a search ended."""

    EPSILON = "epsilon"
    """The regret bound is as low as the epsilon asked for."""
    BUDGET = "budget"
    """The budget was spent first."""
    LIMITS = "limits"
    """The limits of arms allow no more pulls."""
    RETIRED = "retired"
    """It ended by itself, but arms left and it proves nothing about the others."""
    REFUTED = "refuted"
    """It reached epsilon, but the rewards refute the declaration that the bound rests on."""
    SEARCH = "search"
    """It ended by itself without a bound as low as epsilon."""
