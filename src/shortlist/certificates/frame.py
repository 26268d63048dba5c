"""Arms that retire while a search is under way: what the search is told, and how it continues.

A reply names all arms that have retired so far. `informed` keeps that in one place for all parts of
a search, so that none of them has to pass it on; `continued` lets a search go on with the arms that
stay, which have numbers of their own in it. docs/experiments.md says what is proved then.

What limits leave of a search: how often every arm may be pulled at most.

Find the bottom arms on mirrored rewards, where more than half of the arms are to be chosen."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.certificates.fixed_design import fixed_design
from shortlist.problem import Problem
from shortlist.search import Answer, Pulls, Rewards, Search, advance


class Retired:
    """The arms that have retired so far."""

    def __init__(self, n_arms: int) -> None:
        self.arms: BoolArray = np.zeros(n_arms, dtype=np.bool_)

    def any(self) -> bool:
        """Whether any arm has retired."""
        return bool(self.arms.any())

    @property
    def count(self) -> int:
        """How many arms have retired."""
        return int(self.arms.sum())

    @property
    def staying(self) -> IntArray:
        """The arms that have not retired."""
        return np.flatnonzero(~self.arms)

    def see(self, reply: Rewards) -> None:
        """Take in what a reply says of arms that retired."""
        if reply.retired is not None:
            self.arms[reply.retired] = True


def informed(search: Search, retired: Retired) -> Search:
    """The same search; `retired` is up to date whenever the search is sent a reply."""
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        reply = yield turn
        retired.see(reply)
        turn = advance(search, reply)
    return turn


def continued(stay: IntArray, search_of: Callable[[Retired], Search]) -> Search:
    """Continue with the arms that stay: a search of these, which is told who retires later."""
    retired = Retired(stay.size)
    return among(stay, informed(search_of(retired), retired))


def among(arms: IntArray, search: Search) -> Search:
    """A search of these arms, which it knows as 0, 1, ..., as a search of all arms."""
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        reply = yield replace(turn, arms=arms[turn.arms])
        turn = advance(search, _renumbered(reply, arms))
    return replace(turn, top=arms[turn.top])


def _renumbered(reply: Rewards, arms: IntArray) -> Rewards:
    """The same reply, where the arms that retired have the numbers of `arms`."""
    assert reply.retired is not None, "once an arm has retired, every reply names it"
    return replace(reply, retired=np.flatnonzero(np.isin(arms, reply.retired)))


# pulls of an arm that no run can make: they are refused before
UNREACHABLE = 2**61
FAR_BEYOND = 4  # times the fixed design that an arm is pulled where others are at their limits


def limited_pulls(problem: Problem) -> IntArray:
    """The most pulls of every arm where some have limits: (n,).

    Once some arms are at their limits, the bound may not fall any further however often the others
    are pulled: they end at FAR_BEYOND times the fixed design."""
    most = np.minimum(problem.most_pulls, UNREACHABLE)
    n_arms, k, epsilon = problem.n_arms, problem.k, problem.sharp_epsilon
    try:
        design = fixed_design(n_arms, k, epsilon, problem.delta, problem.rewards)
    except OverflowError:  # an epsilon so small that no run could reach it
        return most
    return np.minimum(most, FAR_BEYOND * design)


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
