"""Find the bottom arms on mirrored rewards, where more than half of the arms are to be chosen."""

import numpy as np

from shortlist.search import Answer, Rewards, Search


def mirrored(search: Search, n_arms: int) -> Search:
    """Run `search` for the bottom arms on rewards 1 - x and return the arms it leaves.

    A loss summed over the bottom n - k is the same loss summed over the top k, so the bound is
    rescaled."""
    rewards: Rewards | None = None
    while True:
        try:
            pulls = next(search) if rewards is None else search.send(rewards)
        except StopIteration as stop:
            return _complement(stop.value, n_arms)
        given = yield pulls
        rewards = Rewards(pulls.times - given.sums, pulls.times - 2 * given.sums + given.squares)


def _complement(answer: Answer, n_arms: int) -> Answer:
    rest = np.setdiff1d(np.arange(n_arms), answer.top)
    bound = answer.regret_bound
    bound = None if bound is None else bound * answer.top.size / rest.size
    return Answer(rest, bound, answer.confidence, answer.evidence)
