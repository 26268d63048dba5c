"""A search that keeps to the limits of its arms, whatever it asks for."""

import numpy as np

from shortlist.arrays import IntArray
from shortlist.grouping import total_before
from shortlist.present import Tally, present_answer
from shortlist.problem import Problem
from shortlist.search import Pulls, Search, advance


def within_limits(search: Search, problem: Problem, rng: np.random.Generator) -> Search:
    """The same search as far as the limits allow; then its present choice is the answer.

    The request that goes beyond a limit is cut to what is left, and is the last one. The bound of
    the answer is the one that the search had earned before, if it knows one at any time."""
    tally, most = Tally(problem.n_arms), problem.most_pulls
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        left = (most - tally.pulls)[turn.arms] - total_before(turn.arms, turn.times)  # (entries,)
        kept = np.clip(left, 0, turn.times)
        cut = bool((kept < turn.times).any())
        request = _only(turn, kept) if cut else turn
        if request.total or not cut:
            tally.add(request.arms, request.times, reply := (yield request))
        if cut:
            search.close()
            return present_answer(problem, tally, turn.progress, rng)
        turn = advance(search, reply)
    return turn


def _only(request: Pulls, times: IntArray) -> Pulls:
    """The entries of a request that have pulls, with so many."""
    some = times > 0
    return Pulls(request.arms[some], times[some], request.progress)
