"""An algorithm: a search with its name, goals and guarantee; and the checks around any search.

A search of the user's own may be given as "package.module:function". Its options are the keyword
arguments after (problem, rng); their types are checked, and a range where the type has one:
`growth: Growth = 0.02`. Batches and answers of such a search are checked, too, and every search is
kept within the limits of its arms."""

from collections.abc import Callable, Generator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from inspect import Parameter, Signature, signature
from math import inf
from numbers import Integral
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import numpy as np
import numpy.typing as npt

from shortlist.arrays import IntArray
from shortlist.budget import ROUNDED, Budget
from shortlist.constraints import check_feasible
from shortlist.errors import InvalidInput, ShortlistError, UnknownName, UnsupportedGoal
from shortlist.formatting import bound_text, given_text
from shortlist.interim import Tally, present_answer
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.reward_models import check_spread
from shortlist.search import Answer, Pulls, Rewards, RunUpTo, Search, advance, total_before
from shortlist.validation import COUNTABLE, listed, named, number, real, shown, text

FORM = "must be of the form 'package.module:function'"


def imported(reference: str) -> object:
    """The object that a reference names. Its module is imported, and so runs."""
    module, _, path = reference.partition(":")
    parts = [*module.split("."), *path.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise InvalidInput(f"algorithm {reference!r} cannot be imported: it {FORM}")
    if module == "__main__":
        raise InvalidInput(
            f"algorithm {reference!r} cannot be imported: it is in the script that runs, but must"
            " be in a module of its own"
        )
    home = _module(module, reference)
    try:
        return attrgetter(path)(home)
    except AttributeError as error:
        raise UnknownName(
            f"algorithm {reference!r} cannot be imported: there is no {path!r} in {module}"
        ) from error


def _module(name: str, reference: str) -> object:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        asked_for = name == missing or name.startswith(f"{missing}.")
        why = f"there is no module {missing!r}" if asked_for else f"its module says: {error}"
        raise UnknownName(f"algorithm {reference!r} cannot be imported: {why}") from error
    except Exception as error:
        raise InvalidInput(
            f"algorithm {reference!r} cannot be imported: its module fails with"
            f" {type(error).__name__}: {error}"
        ) from error


NAMED = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
UNCHECKED = (Parameter.empty, Any)


@dataclass(frozen=True, slots=True)
class Within:
    """A range of numbers, with both ends or, `strictly`, without them."""

    low: float
    high: float
    strictly: bool = False

    def check(self, name: str, value: object) -> None:
        """Refuse a value outside."""
        low, high = (self.low, self.high) if self.strictly else (-inf, inf)
        result = number(name, value, above=low, below=high)
        if result < self.low:
            raise InvalidInput(
                f"`{name}` is {shown(value)}, but must be at least {given_text(self.low)}"
            )
        if result > self.high:
            raise InvalidInput(
                f"`{name}` is {shown(value)}, but must be at most {given_text(self.high)}"
            )


Growth = Annotated[float, Within(0, 100)]  # size of a batch, as a share of all pulls so far
Delta = Annotated[float, Within(0, 1, strictly=True)]  # probability of a failure
Scale = Annotated[float, Within(1e-9, 1e9)]  # factor
Count = Annotated[int, Within(1, COUNTABLE)]
CountFrom0 = Annotated[int, Within(0, COUNTABLE)]  # a number that may be 0
CountFrom2 = Annotated[int, Within(2, COUNTABLE)]  # of pulls that have a variance


def options_of(search: Callable[..., Search]) -> Mapping[str, Parameter]:
    """Every option by name, with its default and type: the parameters after (problem, rng)."""
    parameters = list(_signature(search).parameters.values())
    by_place = [each.name for each in parameters if each.kind is not Parameter.KEYWORD_ONLY]
    return {
        each.name: each
        for each in parameters
        if each.kind in NAMED and each.name not in by_place[:2]
    }


def check_options(
    algorithm: str, search: Callable[..., Search], options: Mapping[str, object]
) -> None:
    """Refuse an option that the search does not take, and a value that is not of its type."""
    given = named("options", options)
    known = options_of(search) if given else {}
    for name, value in given.items():
        if name in known:
            _check_value(name, value, known[name].annotation)
        elif not _takes_any(search):
            raise UnknownName(
                f"option {name!r} is unknown to {algorithm}; it takes {', '.join(known) or 'none'}"
            )


def check_takes_problem(algorithm: str, search: Callable[..., Search]) -> None:
    """Refuse a function that cannot be called as search(problem, rng)."""
    if not callable(search):
        raise InvalidInput(f"`search` is {shown(search)}, but must be a function")
    try:
        signature(search).bind("problem", "rng")
    except ValueError:  # some built-in functions have no signature
        return
    except TypeError as error:
        raise InvalidInput(
            f"{algorithm} takes {signature(search)}, but a search must take (problem, rng) and may"
            " take options by name"
        ) from error


def _signature(search: Callable[..., Search]) -> Signature:
    """The signature, with types where annotations can be evaluated."""
    with suppress(Exception):
        return signature(search, eval_str=True)
    with suppress(TypeError, ValueError):  # some built-in functions have no signature
        return signature(search)
    return Signature()


def _takes_any(search: Callable[..., Search]) -> bool:
    kinds = [each.kind for each in _signature(search).parameters.values()]
    return Parameter.VAR_KEYWORD in kinds


def _check_value(name: str, value: object, annotation: object) -> None:
    """Check the type, and the range that comes with it."""
    choice = get_args(annotation) if _is_union(annotation) else (annotation,)
    ranges = [rule for kind in choice for rule in getattr(kind, "__metadata__", ())]
    _check_type(name, value, choice)
    for each in ranges:
        if isinstance(each, Within) and value is not None:
            each.check(name, value)


def _is_union(annotation: object) -> bool:
    return isinstance(annotation, UnionType) or get_origin(annotation) is Union


def _check_type(name: str, value: object, choice: tuple[object, ...]) -> None:
    kinds = _kinds(choice)
    if kinds and not any(_fits(value, kind) for kind in kinds):
        allowed = " or ".join(kind.__name__ for kind in kinds)
        raise InvalidInput(f"option `{name}` is {shown(value)}, but must be of type {allowed}")


def _kinds(choice: tuple[object, ...]) -> tuple[type, ...]:
    """The classes that are allowed; none where the annotation is more than a choice of classes."""
    parts: tuple[Any, ...] = tuple(map(_without_range, choice))
    plain = all(isinstance(part, type) and part not in UNCHECKED for part in parts)
    return parts if plain else ()


def _without_range(kind: Any) -> object:
    return kind.__origin__ if get_origin(kind) is Annotated else kind


def _fits(value: object, kind: type) -> bool:
    if isinstance(value, bool):  # which Python counts as an int
        return kind in (bool, object)
    return isinstance(value, (int, float) if kind is float else kind)


def guarded_search(name: str, search: Search, problem: Problem) -> Search:
    """The same search; batches and answer are checked, and lists in them become arrays."""
    reply: Rewards | None = None
    budget = Budget(problem)
    while True:
        turn = _next(name, search, reply)
        if not isinstance(turn, Pulls):
            return _answer(name, turn, problem)
        request = _request(name, turn, problem)
        _check_budget(name, budget, request)
        if request.more:
            raise InvalidInput(f"{name} asks for a batch ahead (`more`), but must wait for rewards")
        reply = yield request
        budget.pay(request, Rewards(reply.sums, reply.squares))  # actual costs are not its concern


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
    return Pulls(arms, times, turn.progress, bool(turn.more))


def _check_budget(name: str, budget: Budget, request: Pulls) -> None:
    if budget.affords(request.arms, request.times).all():
        return
    spent = budget.spent + budget.price(request.arms, request.times).sum().item()
    what = f"{spent:,} pulls" if budget.costs is None else f"pulls that cost {spent:,}"
    raise InvalidInput(f"{name} asks for {what}, but the budget is {budget.total:,}")


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
    if problem.constraint is not None:
        check_feasible(problem.constraint, np.isin(np.arange(problem.n_arms), top))
    return Answer(top, *_claim(name, turn), named("evidence", turn.evidence))


def _whole(name: str, field: str, values: npt.ArrayLike) -> IntArray:
    rule = f"{name} gave `{field}` as {shown(values)}, but must give a list of whole numbers"
    try:
        array = listed(field, [values] if isinstance(values, Integral) else values)
    except InvalidInput as error:
        raise InvalidInput(rule) from error
    if array.size and array.dtype.kind == "f":
        raise InvalidInput(f"{rule}, of a dtype such as int instead of {array.dtype}")
    if array.size and (array.dtype.kind not in "iu" or array.max() > COUNTABLE):
        raise InvalidInput(rule)
    return array.astype(np.int64)


def _claim(name: str, answer: Answer) -> tuple[float | None, float | None]:
    """The regret bound of an answer and its confidence: numbers, or None."""
    bound, confidence = answer.regret_bound, answer.confidence
    sure = 0.0 if confidence is None else real(confidence)
    if not (bound is None or real(bound) >= 0) or not 0 <= sure <= 1:
        raise InvalidInput(
            f"{name} claims to lose at most {shown(bound)} with confidence {shown(confidence)}, but"
            " must name a number of at least 0 and a probability, or None"
        )
    return None if bound is None else real(bound), None if confidence is None else sure


def within_limits(search: Search, problem: Problem, rng: np.random.Generator) -> Search:
    """The same search within the limits of its arms; then its present choice is the answer.

    The batch that goes beyond a limit is cut to the rest, and is the last one. The bound of the
    answer is the one that the search had before, if it has one at any time."""
    tally, most = Tally(problem.n_arms), problem.most_pulls
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        left = (most - tally.pulls)[turn.arms] - total_before(turn.arms, turn.times)  # (entries,)
        kept = np.clip(left, 0, turn.times)
        cut = bool((kept < turn.times).any())
        request = _only(turn, kept) if cut else turn
        if request.total or not cut:
            tally.add(request.arms, request.times, reply := (yield request))
        if cut:
            search.close()
            return present_answer(problem, tally, turn.progress, rng)
        turn = advance(search, reply)
    return turn


def _only(request: Pulls, times: IntArray) -> Pulls:
    """The entries of a batch that have pulls, with these numbers of them."""
    some = times > 0
    return Pulls(request.arms[some], times[some], request.progress)


SearchFunction = Callable[..., Search]  # (problem, rng, *, option=...)
BOTH: tuple[type[Goal], ...] = (FixedConfidence, FixedBudget)
GUIDED = "certified and expected-loss do"
CONSTRAINED = "certified, expected-loss, clucb-pac and uniform do"
# why an algorithm does not support an option that others do
CANNOT_CUT = "cannot set the size or number of its batches; certified and expected-loss can"
CANNOT = {
    "max_rounds": CANNOT_CUT,
    "min_batch": CANNOT_CUT,
    "window": "does not plan batches ahead; certified does",
    "certificate": "has no certificates to choose from; certified has",
}


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A search with its name, goals and guarantee; `find` and `register` return it.

    Example:
        >>> import shortlist
        >>> shortlist.find("uniform").capped
        False"""

    name: str
    search: SearchFunction
    goals: tuple[type[Goal], ...] = BOTH
    guarantee: str = "none"
    source: str = ""
    capped: bool = False  # takes epsilon, delta and a budget at once
    # raise it with any change of its batches, so that no stored experiment continues differently
    version: int = 1
    # check every batch and the answer: no contract test has seen this search
    guarded: bool = False
    items: bool = False  # supports a test set
    normal: bool = False  # supports normal rewards of unknown variances
    only_normal: bool = False  # rests on them, and on as many pulls as it asks for
    shared: bool = False  # supports arms that depend on each other, on shared seeds
    keeps_money: bool = False  # supports costs; others count every pull at the highest cost
    features: bool = False  # is guided by features of the arms
    constraints: bool = False  # supports families of sets; others choose any k arms
    # for an answer at any time: one run gives the answers at many budgets
    anytime: Callable[[Problem, np.random.Generator], RunUpTo] | None = None

    def told(
        self,
        options: Mapping[str, object] | None,
        max_rounds: int | None,
        min_batch: int | None,
        certificate: str = "auto",
        window: int | None = None,
    ) -> dict[str, object]:
        """The options with those on batches and the certificate; "auto" leaves it to the search.

        Args:
            options: Options of the algorithm, by name.
            max_rounds: As in `select`.
            min_batch: As in `select`.
            window: As in `select`.
            certificate: As in `select`.

        Returns:
            All options by name."""
        given = named("options", options)
        wanted = text("certificate", certificate)
        proof = None if wanted == "auto" else wanted
        for name, value in (
            ("max_rounds", max_rounds),
            ("min_batch", min_batch),
            ("certificate", proof),
            ("window", window),
        ):
            if value is None:
                continue
            if name in given:
                raise InvalidInput(f"`{name}` is {shown(value)}, but is among the options, too")
            if name not in options_of(self.search):
                raise InvalidInput(f"`{name}` is {shown(value)}, but {self.name} {CANNOT[name]}")
            given[name] = value
        return given

    def start(self, problem: Problem, rng: np.random.Generator, **options: Any) -> Search:
        """Start the search on the unit scale, or raise an error that says why it cannot start.

        Args:
            problem: The problem.
            rng: The only source of randomness.
            options: Options of the algorithm, by name.

        Returns:
            The search: a generator that yields its first batch when it is advanced."""
        self.check(problem, options)
        unit = problem.unit()
        search = self._begun(unit, rng, options)
        if not isinstance(search, Generator):
            raise InvalidInput(
                f"{self.name} returned {shown(search)}, but a search must be a generator: it yields"
                " Pulls, is sent Rewards, and returns an Answer"
            )
        search = guarded_search(self.name, search, unit) if self.guarded else search
        return search if unit.limits is None else within_limits(search, unit, rng)

    def _begun(
        self, problem: Problem, rng: np.random.Generator, options: Mapping[str, object]
    ) -> object:
        try:
            return self.search(problem, rng, **options)
        except Exception as error:
            if isinstance(error, ShortlistError) or not self.guarded:
                raise
            raise InvalidInput(
                f"{self.name} cannot start: it fails with {type(error).__name__}: {error}"
            ) from error

    def check(self, problem: Problem, options: Mapping[str, object] | None = None) -> None:
        """Refuse a goal this algorithm does not serve, a budget too small, and unknown options.

        Args:
            problem: The problem.
            options: Options of the algorithm, by name."""
        check_options(self.name, self.search, {} if options is None else options)
        self._check_goal(problem.goal)
        if problem.items is not None and not (self.items or self.guarded):
            raise UnsupportedGoal(
                f"{self.name} does not support items, but certified and expected-loss do"
            )
        if problem.shared_seeds and not (self.shared or self.guarded):
            raise UnsupportedGoal(
                f"`seeds` is 'shared', but {self.name} needs arms that are independent of each"
                " other; certified does not"
            )
        if not (self.normal or self.guarded):
            check_spread(problem.rewards, self.name)
        if problem.constraint is not None and not (self.constraints or self.guarded):
            raise UnsupportedGoal(f"{self.name} does not support constraints, but {CONSTRAINED}")
        if problem.features is not None and not (self.features or self.guarded):
            raise UnsupportedGoal(f"{self.name} does not use `features`, but {GUIDED}")
        if self.only_normal:
            self._check_normal(problem)
        self._check_declared(problem)
        self._check_budget(problem)

    def _check_normal(self, problem: Problem) -> None:
        """Refuse rewards that are not declared normal, and limits of arms."""
        if problem.rewards.knows_spread:
            raise InvalidInput(
                f"`rewards` are {problem.rewards.kind}, but {self.name} rests on normal rewards of"
                " unknown variances: say rewards='normal'"
            )
        if problem.limits is not None:
            raise InvalidInput(f"arms have limits, but {self.name} does not support them")

    def _check_declared(self, problem: Problem) -> None:
        """Refuse a declaration that nothing would be proved from."""
        declared = problem.features is not None and problem.features.declared
        if declared and "certificate" not in options_of(self.search) and not self.guarded:
            raise UnsupportedGoal(
                f"means are declared linear in the features, but {self.name} has no certificate"
                " that rests on it; certified has"
            )

    def _check_budget(self, problem: Problem) -> None:
        """Refuse a budget that does not pay for a pull of every arm, as this algorithm counts."""
        budget = problem.goal.budget
        if budget is None:
            return
        needed: float = problem.n_arms
        if problem.costs is not None:
            highest = max(problem.costs) * problem.n_arms
            counts_cells = problem.items is not None and isinstance(problem.goal, FixedBudget)
            in_money = self.guarded or (self.keeps_money and not counts_cells)
            needed = sum(problem.costs) if in_money else highest
        if budget * (1 + ROUNDED) < needed:
            costs = "" if problem.costs is None else f", which takes {bound_text(needed, 6)}"
            raise InvalidInput(
                f"`budget` is {budget}, but {self.name} must pull each of the {problem.n_arms}"
                f" arms once{costs}"
            )

    def _check_goal(self, goal: Goal) -> None:
        fixed_confidence = isinstance(goal, FixedConfidence)
        if not isinstance(goal, self.goals):
            stopping = "a budget; it has no stopping rule"
            raise UnsupportedGoal(
                f"{self.name} needs {stopping if fixed_confidence else 'epsilon and delta'}"
            )
        if fixed_confidence and goal.budget is not None and not self.capped:
            raise UnsupportedGoal(
                f"{self.name} takes either epsilon and delta or a budget, not both"
            )


AlgorithmLike = str | SearchFunction | Algorithm  # resolved by `find`
