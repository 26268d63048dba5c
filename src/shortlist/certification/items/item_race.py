"""The race on items: score arms on a shared random order of items until the choice is proved.

docs/items.md has the theorem and its proof. It holds for any sampling, so where to go next is a
matter of cells only: of the pairs that keep the bound up, the arms that are behind."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certification.items.matching import EXACT, largest_matching
from shortlist.certification.items.standing import Standing
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search


def item_race(problem: Problem, rng: np.random.Generator) -> Search:
    """Score arms on shared items until no matching of doubts exceeds K epsilon.

    R_T <= its bound with probability >= 1 - delta over the order of the items, whenever it ends;
    R_T is about means over these items. When all cells that matter are seen it is exact."""
    if problem.k > problem.n_arms / 2:
        return (yield from _mirrored(problem, rng))
    standing = Standing(problem, rng)
    requests = 1
    first = min(standing.evidence.first, standing.cells.size)
    yield from _score(standing, np.full(problem.n_arms, first), Progress(round=requests))
    while True:
        standing.choose()
        bound = largest_matching(standing.bounds)
        if bound <= standing.allowed + EXACT or standing.finished:
            return _answer(standing, bound)
        targets = standing.targets()
        progress = Progress(requests, undecided=int((targets > standing.cells.reached).sum()))
        if not (yield from _score(standing, targets, progress)):
            return _answer(standing, min(bound, largest_matching(standing.refined())))
        requests += 1


def _score(
    standing: Standing, targets: IntArray, progress: Progress
) -> Generator[Pulls, Rewards, bool]:
    """Score arms on further items, as far as the budget goes; whether it went anywhere."""
    targets = _affordable(standing, targets)
    times = standing.cells.missing(targets)
    if not (targets > standing.cells.reached).any():
        return False
    arms = np.flatnonzero(times)
    scores = np.empty(0)
    if arms.size:
        pulls = Pulls(arms, times[arms], progress)
        reply = yield pulls
        assert reply.each is not None
        scores = reply.each
        standing.purse.pay(pulls, reply)
    standing.take(targets, scores)
    return True


def _affordable(standing: Standing, targets: IntArray) -> IntArray:
    """The same targets, or lower ones for which the budget is enough."""
    purse = standing.purse
    if purse.budget is None:
        return targets
    if not standing.cells.reached.any():  # all arms alike
        every, first = np.arange(targets.size), int(targets[0])
        while (
            first > 1 and not purse.affords(every, standing.cells.missing(every * 0 + first)).all()
        ):
            first -= 1
        return every * 0 + first
    order = np.lexsort((standing.ties, standing.cells.reached))
    beyond = order[~purse.affords(order, standing.cells.missing(targets)[order])]
    allowed = targets.copy()
    allowed[beyond] = standing.cells.reached[beyond]
    return allowed


def _answer(standing: Standing, bound: float) -> Answer:
    problem = standing.problem
    exact = standing.finished
    evidence = {
        "certificate": "items",
        "exact": exact,
        "items": standing.cells.reached.tolist(),
        "out": int(standing.evidence.out.sum()),
    }
    regret = bound / problem.k
    return Answer(np.sort(standing.top), regret, 1 - problem.delta, evidence)


def _mirrored(problem: Problem, rng: np.random.Generator) -> Search:
    """Choose the arms to leave out instead: there are fewer of them, and the loss is the same."""
    rest = problem.complement()
    search = item_race(rest.mirrored(), rng)
    request = next(search)
    while True:
        reply = yield request
        assert reply.each is not None
        squares = request.times - 2 * reply.sums + reply.squares
        mirrored = Rewards(request.times - reply.sums, squares, 1 - reply.each, reply.costs)
        try:
            request = search.send(mirrored)
        except StopIteration as stop:
            answer: Answer = stop.value
            break
    top = np.setdiff1d(np.arange(problem.n_arms), answer.top)
    regret = answer.regret_bound
    assert regret is not None
    return Answer(top, regret * rest.k / problem.k, answer.confidence, answer.evidence)
