"""Which algorithm is meant: a name, a function of the user's own, or where it is to be found."""

import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import own_searches
import pytest

import shortlist
from shortlist.algorithms import ALGORITHMS, Algorithm, find, name_to_keep, register
from shortlist.errors import InvalidInput, UnknownName, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.search import Answer, Pulls, Search

BUDGET = Problem(6, 2, FixedBudget(60))


@pytest.fixture(autouse=True)
def _the_registry_is_left_as_it_was() -> Iterator[None]:
    before = dict(ALGORITHMS)
    yield
    ALGORITHMS.clear()
    ALGORITHMS.update(before)


def first(problem: Problem, rng: np.random.Generator) -> Search:
    yield Pulls(np.array([0]), np.array([1]))
    return Answer(np.arange(problem.k))


# find


def test_a_function_serves_both_goals_under_its_own_name_and_is_guarded() -> None:
    found = find(first)
    assert (found.name, found.search, found.guarantee) == ("first", first, "none")
    assert found.goals == (FixedConfidence, FixedBudget)
    assert (found.capped, found.version, found.guarded) == (False, 1, True)


def test_an_algorithm_is_itself_and_a_registered_function_is_its_algorithm() -> None:
    sar = find("sar")
    assert find(sar) is sar
    assert find(sar.search) is sar
    assert find(register("mine", first, goals=FixedBudget).search).name == "mine"


def test_what_has_no_name_is_called_by_its_type() -> None:
    assert find(partial(own_searches.even, share=0.5)).name == "partial"


@pytest.mark.parametrize("wrong", [7, None, ["uniform"]])
def test_what_is_no_algorithm_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="must be a name, a search function or an Algorithm"):
        find(wrong)


@pytest.mark.parametrize("wrong", [lambda: None, lambda problem: None, lambda a, b, c: None])
def test_a_function_that_cannot_take_a_problem_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match=r"takes \(.*but a search must take \(problem, rng\)"):
        find(wrong)


# package.module:function


def test_a_reference_is_imported_and_keeps_its_name() -> None:
    found = find("own_searches:even")
    assert (found.name, found.search) == ("own_searches:even", own_searches.even)
    assert pickle.loads(pickle.dumps(found)) == found


def test_a_reference_may_be_to_an_algorithm_with_facts_of_its_own() -> None:
    found = find("own_searches:BUDGETED")
    assert (found.name, found.goals, found.version) == (
        "own_searches:BUDGETED",
        (FixedBudget,),
        3,
    )
    register("mine", own_searches.even, goals=FixedBudget, version=5)
    assert (find("own_searches:even").name, find("own_searches:even").version) == (
        "own_searches:even",
        5,
    )


@pytest.mark.parametrize(
    ("reference", "error", "message"),
    [
        ("nowhere:even", UnknownName, "'nowhere:even' cannot be imported: there is no module"),
        ("own_searches.deep:even", UnknownName, "there is no module 'own_searches.deep'"),
        ("own_searches:odd", UnknownName, "there is no 'odd' in own_searches"),
        ("own_searches:NUMBER", InvalidInput, "is 7, but must be a search function"),
        ("own_searches:", InvalidInput, "must be of the form 'package.module:function'"),
        (":even", InvalidInput, "must be of the form"),
        ("own searches:even", InvalidInput, "must be of the form"),
        ("./own_searches.py:even", InvalidInput, "must be of the form"),
        ("__main__:even", InvalidInput, "must be in a module of its own"),
        ("os:getcwd", InvalidInput, r"takes \(\), but a search must take"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_words(
    reference: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        find(reference)


def test_the_error_of_a_module_is_in_the_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "fails_at_once.py").write_text("1 / 0\n")
    (tmp_path / "needs_another.py").write_text("import not_installed\n")
    with pytest.raises(InvalidInput, match="its module fails with ZeroDivisionError: division by"):
        find("fails_at_once:search")
    with pytest.raises(UnknownName, match="its module says: No module named 'not_installed'"):
        find("needs_another:search")


# register


def test_a_registered_name_is_taken_everywhere() -> None:
    made = register("first", first, goals=[FixedBudget], guarantee="luck", source="a dream")
    assert find("first") is made is shortlist.ALGORITHMS["first"]
    assert (made.goals, made.guarantee, made.source) == ((FixedBudget,), "luck", "a dream")
    assert shortlist.simulate("first", [0.9, 0.1], k=1, budget=9).algorithm == "first"
    with pytest.raises(UnsupportedGoal, match="first needs a budget"):
        shortlist.simulate("first", [0.9, 0.1], k=1, epsilon=0.1)


def test_register_decorates_and_leaves_the_function_as_it_is() -> None:
    @register("decorated", capped=True, version=2)
    def search(problem: Problem, rng: np.random.Generator) -> Search:
        return first(problem, rng)

    assert find("decorated").search is search
    assert (find("decorated").capped, find("decorated").version) == (True, 2)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("uniform", {}, "`name` is 'uniform', but that is taken; there are auto, adaptive-top-k"),
        ("auto", {}, "`name` is 'auto', but that is taken"),
        ("mine:first", {}, "a colon is for 'package.module:function'"),
        ("", {}, "`name` is '', but must be a text"),
        (" mine", {}, "`name` is ' mine', but must be a text"),
        ("mi\nne", {}, "but must be a text that can be typed"),
        (7, {}, "`name` is 7, but must be a text"),
        ("mine", {"version": 0}, "`version` is 0, but must be a whole number of at least 1"),
        ("mine", {"goals": ()}, r"`goals` is \(\), but must be FixedConfidence"),
        ("mine", {"goals": FixedBudget(9)}, "`goals` is FixedBudget"),
        ("mine", {"goals": int}, "`goals` is <class 'int'>"),
        ("mine", {"search": lambda: None}, "a search must take"),
    ],
)
def test_a_registration_that_makes_no_sense_changes_nothing(
    name: Any, settings: dict[str, Any], message: str
) -> None:
    before = dict(ALGORITHMS)
    with pytest.raises(InvalidInput, match=message):
        register(name, **{"search": first, **settings})
    assert before == ALGORITHMS


# What is kept


def test_only_what_can_be_found_again_is_kept() -> None:
    assert name_to_keep(find("sar")) == "sar"
    assert name_to_keep(find("own_searches:even")) == "own_searches:even"
    assert name_to_keep(register("mine", first)) == "mine"


def uniform(problem: Problem, rng: np.random.Generator) -> Search:
    """No relation of the registered one."""
    return first(problem, rng)


@pytest.mark.parametrize("unnamed", [first, uniform, Algorithm("sar", first)])
def test_a_search_without_a_name_is_not_kept_not_even_if_its_name_is_that_of_another(
    unnamed: Any,
) -> None:
    with pytest.raises(InvalidInput, match=r"`shortlist\.register` it, or say 'package\.module:"):
        name_to_keep(find(unnamed))


# Guards


def searching(*turns: object, answer: object = None) -> Any:
    def search(problem: Problem, rng: np.random.Generator) -> Any:
        for turn in turns:
            _ = yield turn
        return answer

    return search


@pytest.mark.parametrize(
    ("search", "message"),
    [
        (lambda problem, rng: Answer(np.arange(2)), "but a search must be a generator"),
        (searching(), "gave None, but a search must yield Pulls and return an Answer"),
        (searching([0, 1]), r"gave \[0, 1\], but a search must yield Pulls"),
        (searching(Pulls(np.array([6]), np.array([1]))), "asks for arm 6, but arms are numbered"),
        (searching(Pulls(np.array([-1]), np.array([1]))), "asks for arm -1, but"),
        (searching(Pulls(np.array([0]), np.array([-1]))), "asks for -1 pulls, but"),
        (searching(Pulls(np.array([0]), np.array([1.5]))), r"gave `times` as array\(\[1.5\]\)"),
        (searching(Pulls(np.array([0, 1]), np.array([1]))), "asks for 2 arms and 1 times"),
        (searching(Pulls(np.array([0]), np.array([61]))), "asks for 61 pulls, but the budget is"),
        (searching(answer=Answer(np.array([0, 0]))), r"chose \[0, 0\], but must choose 2 distinct"),
        (searching(answer=Answer(np.array([0]))), r"chose \[0\], but must choose 2 distinct arms"),
        (searching(answer=Answer(np.array([0, 6]))), "of those numbered from 0 to 5"),
        (
            searching(answer=Answer(np.array([0.0, 1.0]))),
            "must give a list of whole numbers, of a dtype such as int instead of float64",
        ),
    ],
)
def test_the_message_names_the_rule_that_a_search_breaks(search: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        shortlist.simulate(search, np.linspace(0, 1, 6), k=2, budget=60)


def test_lists_in_requests_and_answers_are_as_good_as_arrays() -> None:
    plain: Any = Pulls([0, 1, 0], [1, 2, 3])  # type: ignore[arg-type]
    search = searching(plain, answer=Answer([4, 2]))  # type: ignore[arg-type]
    runs = shortlist.simulate(search, np.linspace(0, 1, 6), k=2, budget=60)
    assert runs.pulls.tolist() == [6]


def test_the_message_names_the_function_that_cannot_serve_a_goal() -> None:
    with pytest.raises(UnsupportedGoal, match="even cannot serve this goal: the goal has no"):
        shortlist.simulate(own_searches.even, [0.1, 0.9], k=1, epsilon=0.1)


def test_own_searches_ask_for_what_the_same_search_of_ours_asks_for() -> None:
    ours = find("uniform")
    guarded = Algorithm("mine", ours.search, guarded=True)
    means = shortlist.instances.uniform(9)
    one, other = (
        shortlist.simulate(each, means, k=3, epsilon=0.4, runs=3) for each in (ours, guarded)
    )
    np.testing.assert_array_equal(one.pulls, other.pulls)
    np.testing.assert_array_equal(one.bound, other.bound)


def test_a_function_that_fails_when_it_is_called_as_a_search_is_refused_in_words() -> None:
    with pytest.raises(InvalidInput, match=r"os\.path:join cannot start: it fails with TypeError"):
        shortlist.simulate("os.path:join", [0.1, 0.2], k=1, budget=10)
