"""Pairs or split, by the spread of the scores: what a pilot of two pulls an arm decides.

A bet on one arm may stake no more than its capital, so a pair of arms is told no sooner however
little their scores scatter; the split certificate has one capital for all arms together. Where
scores scatter little it needs fewer pulls, down to a quarter (docs/pairs.md, "Scores").

Nothing rests on the rewards of the pilot but this choice: given them, each certificate keeps its
promise with the rewards that follow, and so does the one that is taken."""

import math

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.certificates.frame import Retired
from shortlist.certificates.pairs.planning import Pace
from shortlist.certificates.pairs.search import Race, run
from shortlist.certificates.split.fallback import FixedSamples
from shortlist.certificates.split.search import split_search
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Search, advance

LEAST_PAIRS = 16  # pairs of an arm inside and one outside from which a pilot is worth its pulls
SMALL = 0.01  # deviation times the root of the pairs below which the split certificate is taken


def worth_a_pilot(problem: Problem) -> bool:
    """Whether the spread of scores may speak for the split certificate."""
    inside, outside = problem.k, problem.n_arms - problem.k
    may_be_scores = problem.rewards.has_range and not problem.rewards.is_binary
    free = problem.goal.budget is None and problem.limits is None
    return may_be_scores and free and min(inside, outside) > 1 and inside * outside >= LEAST_PAIRS


def search_by_spread(
    problem: Problem,
    rng: np.random.Generator,
    net: FixedSamples | None,
    retired: Retired | None = None,
) -> Search:
    """The swap race, unless its first rewards are scores that scatter little.

    R_T <= epsilon with probability >= 1 - delta. 0/1 rewards cost one pull an arm that is not bet
    on, scores two."""
    race = Race(problem, rng, Pace(), retired, pilot_apart=True)
    raced = run(race)
    first = advance(raced, None)
    # Where all of delta belongs to the fixed design, or epsilon asks for nothing, no pilot is made.
    if not race.racing or isinstance(first, Answer):
        return (yield from _going_on(raced, first))
    given = yield first
    if (given.sums == given.squares).all():
        return (yield from _going_on(raced, advance(raced, given)))
    again = yield Pulls(first.arms, first.times, Progress(2, undecided=problem.n_arms))
    pairs = problem.k * (problem.n_arms - problem.k)
    if _deviation(given.sums, again.sums) < SMALL * math.sqrt(pairs):
        raced.close()
        return (yield from split_search(problem, rng, net, retired))
    return (yield from _going_on(raced, advance(raced, given)))


def _deviation(one: FloatArray, other: FloatArray) -> float:
    """The deviation within arms, from two rewards of each: (arm,) both."""
    return float(np.sqrt(((one - other) ** 2).mean() / 2))


def _going_on(raced: Search, turn: Pulls | Answer) -> Search:
    """The rest of a race whose next turn is known."""
    while isinstance(turn, Pulls):
        turn = advance(raced, (yield turn))
    return turn
