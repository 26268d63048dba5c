"""What all certificates share: shares of delta, retired arms, limits, mirroring and the answer.

A reply names all arms that have retired so far. `informed` keeps them in one place for all parts of
a search; `continued` lets a search continue with the remaining arms, numbered from 0 in it.
docs/experiments.md says what is proved then. Where more than half of the arms are to be chosen,
`mirrored` finds the bottom arms on mirrored rewards."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.certificates.fixed_design import fixed_design
from shortlist.problem import Problem
from shortlist.search import Answer, Pulls, Rewards, Search, advance

UNREACHABLE = 2**61  # pulls of an arm that no run can make: they are refused before
FAR_BEYOND = 4  # times the fixed design that an arm is pulled where others are at their limits
FIRST_LOOK = 0.75  # share of delta of the first look; later ones get this share of the rest
MOST_LOOKS = 100  # so that the share of the last one is still a number


def share_of(delta: float, look: int) -> float:
    """Alpha spending: the share of delta for look number `look`, from 0.

    By the union bound the probability that any look certifies wrongly is at most the sum of all
    shares, which is delta, however the looks are timed."""
    return delta * FIRST_LOOK * (1 - FIRST_LOOK) ** look


def share_after(delta: float, looks: int) -> float:
    """The rest of delta after this many looks."""
    return delta * (1 - FIRST_LOOK) ** looks


def answered(
    problem: Problem, top: IntArray, bound: float, evidence: Mapping[str, object]
) -> Answer:
    """The answer with a bound on K R_T; without any bound if it is infinite."""
    if not math.isfinite(bound):
        return Answer(top, evidence=evidence)
    regret = bound / problem.k
    if bound <= problem.k * problem.epsilon:  # dividing may have rounded up
        regret = min(regret, problem.epsilon)
    return Answer(top, regret, 1 - problem.delta, evidence)


class Retired:
    """The arms that have retired so far."""

    def __init__(self, n_arms: int) -> None:
        self.arms: BoolArray = np.zeros(n_arms, dtype=np.bool_)

    def any(self) -> bool:
        """Whether any arm has retired."""
        return bool(self.arms.any())

    @property
    def count(self) -> int:
        """The number of arms that have retired."""
        return int(self.arms.sum())

    @property
    def staying(self) -> IntArray:
        """The arms that have not retired."""
        return np.flatnonzero(~self.arms)

    def see(self, reply: Rewards) -> None:
        """Read from a reply which arms have retired."""
        if reply.retired is not None:
            self.arms[reply.retired] = True


def informed(search: Search, retired: Retired) -> Search:
    """The same search; `retired` is up to date whenever the search is sent a reply."""
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        reply = yield turn
        if turn.more:
            turn = advance(search, None)
        else:
            retired.see(reply)
            turn = advance(search, reply)
    return turn


def continued(stay: IntArray, search_of: Callable[[Retired], Search]) -> Search:
    """Continue with the remaining arms: a search of these, informed of later retirements."""
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
    """Run `search` for the bottom arms on rewards 1 - x and return all other arms.

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
