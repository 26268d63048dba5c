"""The answer among the arms that stay."""

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np

from shortlist.driver import Outcome
from shortlist.problem import Problem
from shortlist.search import Answer

PROVED = ("certified",)  # whose bound is about the arms that stay: docs/experiments.md


def promised(top: Iterable[int], retired: Collection[int], algorithm: str) -> bool:
    """Whether the bound of this choice holds among the arms that stay."""
    return not retired or (algorithm in PROVED and not set(retired).intersection(top))


def staying(
    outcome: Outcome, retired: Collection[int], problem: Problem, algorithm: str, seed: int
) -> Outcome:
    """The outcome as it is, if no arm that it chose has left and its bound is known to hold then.

    Otherwise nothing is promised, and the best of the others take the places of those that left,
    ties broken by lot."""
    top = outcome.answer.top
    if promised(top.tolist(), retired, algorithm):
        return outcome
    kept = np.setdiff1d(top, list(retired))
    others = np.setdiff1d(np.arange(problem.n_arms), [*retired, *kept])
    worth = np.nan_to_num(problem.sign * outcome.means(problem)[others], nan=-np.inf)
    lots = np.random.default_rng(seed).random(problem.n_arms)[others]
    best_first = others[np.lexsort((lots, -worth))]
    joined = np.concatenate([kept, best_first[: top.size - kept.size]])
    return replace(outcome, answer=Answer(np.sort(joined)))
