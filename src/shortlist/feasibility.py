"""Warn of an epsilon that any choice reaches, or that a budget or limits hardly reach."""

import math

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.algorithms.certified import MOST_LIMITED
from shortlist.arrays import FloatArray
from shortlist.certificates.frame import fixed_design
from shortlist.driver import counted, finish
from shortlist.errors import caution
from shortlist.formatting import bound_text, given_text
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Pulls, Rewards, total_before

MOST_REQUESTS = 200  # of a search within limits that is tried out: limits of a few hundred pulls
MANY_PAIRS = 300  # arms with limits from which on trying takes long
MOST_TRIED = 10_000  # arms for which a search is tried out before it starts: part of a second


def caution_about(problem: Problem, algorithm: Algorithm, options: dict[str, object]) -> None:
    """Warn of an epsilon that is too large or too small to mean anything."""
    goal, model = problem.goal, problem.rewards
    if not isinstance(goal, FixedConfidence):
        return
    most = model.widest_gap * model.scale * min(problem.k, problem.n_arms - problem.k) / problem.k
    if goal.epsilon >= most:
        caution(
            f"`epsilon` is {given_text(goal.epsilon)}, but no choice of {problem.k} of"
            f" {problem.n_arms} arms can lose more than {bound_text(most)}: any will do"
        )
    elif (goal.budget is not None or _may_bind(problem)) and _can_try(problem, algorithm):
        _caution_about_end(problem, goal, algorithm, options)


def _may_bind(problem: Problem) -> bool:
    """Whether limits may end a search: not if all of them allow for a fixed design."""
    if problem.limits is None or not problem.rewards.has_range:
        return False
    unit = problem.unit()
    try:
        design = fixed_design(unit.n_arms, unit.k, unit.sharp_epsilon, unit.delta, unit.rewards)
    except OverflowError:
        return True
    return bool((problem.most_pulls < design).any())


def _can_try(problem: Problem, algorithm: Algorithm) -> bool:
    """Whether the search can be tried out on simulated arms."""
    usual = problem.rewards.has_range and problem.items is None
    # between these every pair of arms is compared, which takes seconds
    usual &= problem.limits is None or not MANY_PAIRS <= problem.n_arms <= MOST_LIMITED
    return usual and algorithm.name == "certified" and problem.n_arms <= MOST_TRIED


def _caution_about_end(
    problem: Problem, goal: FixedConfidence, algorithm: Algorithm, options: dict[str, object]
) -> None:
    """Try the search on evenly spread arms, and warn if it ends before epsilon is proved."""
    run = counted(algorithm, problem, np.random.default_rng(0), **options)
    try:
        bound = finish(run, EvenlySpread(problem).pull).answer.regret_bound
    except TooLong:
        return
    if bound is not None and bound <= goal.epsilon:
        return
    proved = "nothing" if bound is None else f"a regret of {bound_text(bound, 2)}"
    usual = "on 0/1 rewards whose means are spread evenly over the range"
    missed = f"{proved}, and not `epsilon` = {given_text(goal.epsilon)}"
    if goal.budget is None:
        most = sum(limit or 0 for limit in problem.limits or ())
        whole = f"{most:,} pulls in all" if None not in (problem.limits or ()) else "their pulls"
        caution(
            f"limits of arms allow {whole}, but {usual} these prove {missed}: raise the limits or"
            " `epsilon`; `shortlist forecast --limit` says what they prove on arms like yours"
        )
        return
    much = "these pulls prove" if problem.costs is None else "pulls for that prove"
    much = much if problem.limits is None else much.replace(" prove", " within the limits prove")
    caution(
        f"`budget` is {goal.budget:,}, but {usual} {much} {missed};"
        " `shortlist forecast` says how many it takes"
    )


class TooLong(Exception):
    """A search within limits takes too many batches to be tried out to its end."""


class EvenlySpread:
    """Arms with means spread evenly over the range and rewards at its ends, without noise."""

    def __init__(self, problem: Problem) -> None:
        self.low, self.high = problem.rewards.support
        self.means: FloatArray = (np.arange(problem.n_arms) + 0.5) / problem.n_arms  # (arms,)
        if problem.limits is not None:  # limits may be sorted
            self.means = np.random.default_rng(0).permutation(self.means)
        self.pulls = np.zeros(problem.n_arms, dtype=np.int64)
        self._requests = 0
        self._most = math.inf if problem.limits is None else MOST_REQUESTS

    def pull(self, request: Pulls) -> Rewards:
        """The rewards of a batch."""
        self._requests += 1
        if self._requests > self._most:
            raise TooLong
        arms, times = request.arms, request.times
        before = self.pulls[arms] + total_before(arms, times)
        best = np.rint((before + times) * self.means[arms]) - np.rint(before * self.means[arms])
        np.add.at(self.pulls, arms, times)
        worst = times - best
        squares = best * self.high**2 + worst * self.low**2
        return Rewards(best * self.high + worst * self.low, squares)
