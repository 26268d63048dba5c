"""Arms that retire while a search is under way: what the search is told, and how it continues.

A reply names all arms that have retired so far. `informed` keeps that in one place for all parts of
a search, so that none of them has to pass it on; `continued` lets a search go on with the arms that
stay, which have numbers of their own in it. docs/experiments.md says what is proved then."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.search import Pulls, Rewards, Search, advance


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
