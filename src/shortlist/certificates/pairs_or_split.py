"""Pairs or split, by the variance of the scores in a pilot of two pulls per arm.

A bet on one arm may stake no more than its wealth, so a pair of arms is told apart no sooner
however small the variance of their scores is; the split certificate has one wealth for all arms.
Where the variance is small it needs fewer pulls, down to a quarter (docs/pairs.md, "Scores").

Only this choice depends on the rewards of the pilot: given them, each certificate keeps its
promise with the rewards that follow, and so does the one that is used."""

import math

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates.frame import Retired
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace, run
from shortlist.certificates.split.fallback import FixedSamples
from shortlist.certificates.split.search import split_search
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Search, advance

LEAST_PAIRS = 16  # pairs of an arm inside and one outside from which a pilot is worth its pulls
SMALL_DEVIATION = 0.01  # times the root of the pairs: below, the split certificate is used


def worth_a_pilot(problem: Problem) -> bool:
    """Whether the variance of scores may favour the split certificate."""
    inside, outside = problem.k, problem.n_arms - problem.k
    may_be_scores = problem.rewards.has_range and not problem.rewards.is_binary
    free = problem.goal.budget is None and problem.limits is None
    return may_be_scores and free and min(inside, outside) > 1 and inside * outside >= LEAST_PAIRS


def search_by_spread(
    problem: Problem,
    rng: np.random.Generator,
    fallback: FixedSamples | None,
    retired: Retired | None = None,
) -> Search:
    """The race of pairs, unless its first rewards are scores of small variance.

    R_T <= epsilon with probability >= 1 - delta. One pull per arm is not bet on where rewards are
    0/1, two where they are scores."""
    race = PairsRace(problem, rng, BatchSizes(), retired, pilot_apart=True)
    raced = run(race)
    first = advance(raced, None)
    # Where all of delta belongs to the fixed design, or epsilon asks for nothing, no pilot is made.
    if not race.racing or isinstance(first, Answer):
        return (yield from _rest_of(raced, first))
    given = yield first
    if (given.sums == given.squares).all():
        return (yield from _rest_of(raced, advance(raced, given)))
    again = yield Pulls(first.arms, first.times, Progress(2, undecided=problem.n_arms))
    pairs = problem.k * (problem.n_arms - problem.k)
    if _deviation(given.sums, again.sums) < SMALL_DEVIATION * math.sqrt(pairs):
        raced.close()
        return (yield from split_search(problem, rng, fallback, retired))
    return (yield from _rest_of(raced, advance(raced, given)))


def _deviation(one: FloatArray, other: FloatArray) -> float:
    """The deviation within arms, from two rewards of each: (arm,) both."""
    return float(np.sqrt(((one - other) ** 2).mean() / 2))


def _rest_of(raced: Search, turn: Pulls | Answer) -> Search:
    """The rest of a race whose next turn is known."""
    while isinstance(turn, Pulls):
        turn = advance(raced, (yield turn))
    return turn
