"""Certified selection: explore freely, then prove the choice on fresh rewards with the split
certificate."""

import math
from dataclasses import replace

import numpy as np

from shortlist.certification.split.holdout import Holdout
from shortlist.certification.split.looks import (
    FIRST_LOOK,
    Planner,
    _answer,
    _cost,
    prove_what_can_be_proved,
)
from shortlist.exploration.explore import explore_once
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Progress, Search

EARLY = 0.25  # a batch of exploration as a share of what has been spent, until it has a pull an arm
EAGER = 1.2  # certify as soon as that costs at most this many times what was explored ...
SLOW = 2.0  # ... or this many times, once exploring further saves less than it costs
LOOKS = 100  # at most, so that the share of delta for one of them stays a number
# pulls, where no budget is given: more than can be counted, which is an error on the way
UNLIMITED = 2**64


def certified(problem: Problem, rng: np.random.Generator) -> Search:
    """Explore where the expected loss is largest, then certify the choice on fresh rewards; look
    again if it fails.

    Exploration may do as it likes. When a certificate planned on what it found costs little more
    than the exploration did, that many fresh pulls are drawn and the bound U of certificate.py is
    computed: if U <= epsilon, R_T <= U with probability >= 1 - delta. Otherwise exploration goes on
    and a later look, with its own share of delta, adds to the fresh pulls. With a budget, at most
    half of it is explored and the rest proves what can be proved.

    docs/certificate.md has the theorem and its proof."""
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)
    holdout = Holdout(problem.n_arms)
    planner = Planner(problem, posterior)
    budget = problem.goal.budget or UNLIMITED
    enough = UNLIMITED if problem.goal.budget is None else max(problem.n_arms, budget // 2)
    spent, cost = 0, math.inf
    while spent < (most := min(enough, budget - holdout.spent)):
        yield from explore_once(posterior, most - spent, rng, early=EARLY)
        last = int(posterior.pulls.sum()) >= most
        found = planner.promising(holdout.pulls, rng, last=last)
        saved, further = cost - _cost(found), int(posterior.pulls.sum()) - spent
        spent, cost = spent + further, _cost(found)
        worth = cost <= EAGER * spent or (cost <= SLOW * spent and saved < further)
        if (
            found is None
            or not worth
            or spent + holdout.spent + cost > budget
            or planner.look == LOOKS
        ):
            continue
        found = planner.refined(found)
        yield from holdout.fill_up(found.pulls, _progress(planner))
        certificate = found.declare(planner.delta, planner.reach, problem.rewards)
        bound = certificate.bound(holdout.sums)
        if bound <= problem.epsilon:
            return _answer(found, bound, problem.delta, spent, holdout, planner.look + 1)
        planner.look += 1
    rest = problem.delta * (1 - FIRST_LOOK) ** planner.look
    left = budget - spent - holdout.spent
    answer = yield from prove_what_can_be_proved(
        posterior, holdout, left, rest, rng, looks=planner.look + 1
    )
    return replace(answer, confidence=None if answer.confidence is None else 1 - problem.delta)


def _progress(planner: Planner) -> Progress:
    return Progress(round=planner.look + 1, undecided=planner.problem.n_arms)
