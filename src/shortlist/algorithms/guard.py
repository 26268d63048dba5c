"""A search of the user's own, watched: what is no request and no answer is refused in words."""

from numbers import Integral

import numpy as np
import numpy.typing as npt

from shortlist.arrays import IntArray
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.problem import Problem
from shortlist.purse import Purse
from shortlist.search import Answer, Pulls, Rewards, Search, advance
from shortlist.validation import COUNTABLE, listed, named, real, shown


def guarded_search(name: str, search: Search, problem: Problem) -> Search:
    """The same search; requests and answer are checked, and lists in them become arrays."""
    reply: Rewards | None = None
    purse = Purse(problem)
    while True:
        turn = _next(name, search, reply)
        if not isinstance(turn, Pulls):
            return _answer(name, turn, problem)
        request = _request(name, turn, problem)
        _check_budget(name, purse, request)
        reply = yield request
        purse.pay(request, Rewards(reply.sums, reply.squares))  # it need not foresee other costs


def _next(name: str, search: Search, reply: Rewards | None) -> object:
    try:
        return advance(search, reply)
    except UnsupportedGoal as error:
        raise UnsupportedGoal(
            f"{name} cannot serve this goal: {error}; `shortlist.register` says which it serves"
        ) from error


def _request(name: str, turn: Pulls, problem: Problem) -> Pulls:
    arms = _whole(name, "arms", turn.arms)
    times = _whole(name, "times", turn.times)
    if arms.shape != times.shape:
        raise InvalidInput(
            f"{name} asks for {arms.size} arms and {times.size} times, but must say for every arm"
            " how many times it is pulled"
        )
    wrong = arms[(arms < 0) | (arms >= problem.n_arms)]
    if wrong.size:
        raise InvalidInput(
            f"{name} asks for arm {wrong[0]}, but arms are numbered from 0 to {problem.n_arms - 1}"
        )
    if (times < 0).any():
        raise InvalidInput(f"{name} asks for {times.min()} pulls, but must ask for at least 0")
    return Pulls(arms, times, turn.progress)


def _check_budget(name: str, purse: Purse, request: Pulls) -> None:
    if purse.affords(request.arms, request.times).all():
        return
    spent = purse.spent + purse.price(request.arms, request.times).sum().item()
    what = f"{spent:,} pulls" if purse.costs is None else f"pulls that cost {spent:,}"
    raise InvalidInput(f"{name} asks for {what}, but the budget is {purse.budget:,}")


def _answer(name: str, turn: object, problem: Problem) -> Answer:
    if not isinstance(turn, Answer):
        raise InvalidInput(
            f"{name} gave {shown(turn)}, but a search must yield Pulls and return an Answer"
        )
    top = _whole(name, "top", turn.top)
    distinct = np.unique(top)
    inside = bool(((distinct >= 0) & (distinct < problem.n_arms)).all())
    if not (inside and distinct.size == top.size == problem.k):
        raise InvalidInput(
            f"{name} chose {top.tolist()}, but must choose {problem.k} distinct arms of those"
            f" numbered from 0 to {problem.n_arms - 1}"
        )
    return Answer(top, *_claim(name, turn), named("evidence", turn.evidence))


def _whole(name: str, field: str, values: npt.ArrayLike) -> IntArray:
    rule = f"{name} gave `{field}` as {shown(values)}, but must give a list of whole numbers"
    try:
        array = listed(field, [values] if isinstance(values, Integral) else values)
    except InvalidInput as error:
        raise InvalidInput(rule) from error
    if array.size and (array.dtype.kind not in "iu" or array.max() > COUNTABLE):
        raise InvalidInput(rule)
    return array.astype(np.int64)


def _claim(name: str, answer: Answer) -> tuple[float | None, float | None]:
    """What the answer says of its regret, and with which confidence: numbers, or nothing."""
    bound, confidence = answer.regret_bound, answer.confidence
    sure = 0.0 if confidence is None else real(confidence)
    if not (bound is None or real(bound) >= 0) or not 0 <= sure <= 1:
        raise InvalidInput(
            f"{name} claims to lose at most {shown(bound)} with confidence {shown(confidence)}, but"
            " must name a number of at least 0 and a probability, or None"
        )
    return None if bound is None else real(bound), None if confidence is None else sure
