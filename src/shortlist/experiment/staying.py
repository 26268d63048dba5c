"""The answer among the arms that stay."""

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from shortlist.driver import Outcome
from shortlist.problem import Problem
from shortlist.search import Answer


def staying(outcome: Outcome, retired: Collection[int], problem: Problem) -> Outcome:
    """The outcome as it is, if no arm that it chose has left.

    Its bound then also holds among those that stay, whose k best are no better. Otherwise the best
    of the others take the places of those that left, and nothing is promised."""
    top = outcome.answer.top
    kept = np.setdiff1d(top, list(retired))
    if kept.size == top.size:
        return outcome
    others = np.setdiff1d(np.arange(problem.n_arms), [*retired, *kept])
    worth = np.nan_to_num(problem.sign * outcome.means[others], nan=-np.inf)
    best_first = others[np.argsort(-worth, kind="stable")]
    joined = np.concatenate([kept, best_first[: top.size - kept.size]])
    return replace(outcome, answer=Answer(np.sort(joined)))
