"""Find the bottom arms on mirrored rewards, where more than half of the arms are to be chosen."""

import numpy as np

from shortlist.search import Answer, Pulls, Rewards, Search, advance


def mirrored(search: Search, n_arms: int) -> Search:
    """Run `search` for the bottom arms on rewards 1 - x and return the arms it leaves.

    A loss summed over the bottom n - k is the same loss summed over the top k, so the bound is
    rescaled."""
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        given = yield turn
        # the sums of 1 - x and of (1 - x)^2
        sums = turn.times - given.sums
        squares = turn.times - 2 * given.sums + given.squares
        turn = advance(search, Rewards(sums, squares))
    return _complement(turn, n_arms)


def _complement(answer: Answer, n_arms: int) -> Answer:
    rest = np.setdiff1d(np.arange(n_arms), answer.top)
    bound = answer.regret_bound
    bound = None if bound is None else bound * answer.top.size / rest.size
    return Answer(rest, bound, answer.confidence, answer.evidence)
