"""What a user asks in plain arguments: labels, goal, rewards and the algorithm, or why they make no
sense."""

import json
from enum import Enum, IntEnum, StrEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import own_searches
import pytest

import shortlist
from shortlist.algorithms import ALGORITHMS, Algorithm
from shortlist.arms import labels_of, plain_label, shown_label
from shortlist.errors import CannotReplay, Doubtful, InvalidInput, UnknownName, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem, goal_of
from shortlist.reward_models import Binary, Bounded, RewardModel, SubGaussian, model_of
from shortlist.search import Answer, Search
from shortlist.settings import Settings
from shortlist.stores.base import MemoryStore


def nothing(problem: Problem, rng: np.random.Generator) -> Search:
    yield from ()
    return Answer(np.arange(problem.k))


@pytest.fixture(autouse=True)
def _the_two_defaults_are_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, goal, capped in (
        ("certified", FixedConfidence, True),
        ("expected-loss", FixedBudget, False),
    ):
        monkeypatch.setitem(
            ALGORITHMS, name, Algorithm(name, nothing, (goal,), "", "", capped=capped)
        )


def ask(**changes: Any) -> Settings:
    return Settings.of({"arms": 9, "k": 2, "rewards": (0, 1), **changes}, stored=False)


@pytest.mark.parametrize(
    ("goal", "name"),
    [
        ({"epsilon": 0.1}, "certified"),
        ({"epsilon": 0.1, "budget": 900}, "certified"),
        ({"budget": 900}, "expected-loss"),
    ],
)
def test_the_goal_decides_the_algorithm(goal: dict[str, Any], name: str) -> None:
    asked = ask(**goal)
    assert asked.algorithm == name
    assert asked.problem.goal.budget == goal.get("budget")


def test_the_algorithm_may_be_a_function_a_reference_or_a_record() -> None:
    even = own_searches.even
    assert ask(budget=90, algorithm=even).searched_by().search is even
    assert ask(budget=90, algorithm="own_searches:even").searched_by().search is even
    assert ask(budget=90, algorithm=own_searches.BUDGETED).search is own_searches.BUDGETED
    with pytest.raises(UnsupportedGoal, match="even takes either epsilon and delta or a budget"):
        ask(epsilon=0.1, budget=90, algorithm=even)
    with pytest.raises(UnknownName, match="option 'depth' is unknown to even; it takes share"):
        ask(budget=90, algorithm=even, options={"depth": 3})


def pull(arm: int) -> float:
    return arm / 9


def test_select_takes_a_search_of_the_users_own() -> None:
    settings: dict[str, Any] = {"arms": 9, "k": 2, "budget": 90, "progress": False}
    own: Any = own_searches.even
    ours = shortlist.select(pull, **settings, algorithm=own)
    assert (ours.top, ours.pulls, ours.algorithm) == ((8, 7), 90, "even")
    half = shortlist.select(pull, **settings, algorithm="own_searches:even", options={"share": 0.5})
    assert (half.top, half.pulls, half.algorithm) == ((8, 7), 45, "own_searches:even")


def test_an_experiment_is_replayed_by_a_reference_and_refuses_a_mere_function(
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {"arms": 9, "k": 2, "budget": 90, "store": tmp_path / "runs.db"}
    own: Any = own_searches.even
    with pytest.raises(InvalidInput, match="`algorithm` is even, a search without a name"):
        shortlist.Experiment.create(**settings, algorithm=own)
    assert not (tmp_path / "runs.db").exists()
    with shortlist.Experiment.create(**settings, algorithm="own_searches:even") as made:
        told = [(ticket, pull(int(ticket.arm))) for ticket in made.ask(50)]
        made.tell_many(told)
    with shortlist.Experiment.open(tmp_path / "runs.db") as opened:
        assert opened.settings.algorithm == "own_searches:even"
        opened.tell_many([(ticket, pull(int(ticket.arm))) for ticket in opened.ask(40)])
        assert opened.result().top == (8, 7)


def test_an_experiment_whose_search_cannot_be_imported_any_more_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings: dict[str, Any] = {"arms": 9, "k": 2, "budget": 90, "store": tmp_path / "runs.db"}
    shortlist.Experiment.create(**settings, algorithm="own_searches:even").close()
    monkeypatch.delattr(own_searches, "even")
    with pytest.raises(CannotReplay, match=r"does not have: .* there is no 'even' in own_"):
        shortlist.Experiment.open(tmp_path / "runs.db")


def test_an_algorithm_that_takes_no_cap_refuses_epsilon_with_a_budget() -> None:
    with pytest.raises(UnsupportedGoal, match="either epsilon and delta or a budget, not both"):
        ask(epsilon=0.1, budget=900, algorithm="adaptive-top-k")


def test_a_goal_is_needed_and_unknown_names_and_options_are_refused() -> None:
    with pytest.raises(InvalidInput, match="neither `epsilon` nor `budget` is given"):
        goal_of(None, 0.05, None)
    with pytest.raises(InvalidInput, match="`delta` is 2"):
        goal_of(None, 2, 10)
    with pytest.raises(UnknownName, match="'certifed' is unknown"):
        ask(epsilon=0.1, algorithm="certifed")
    with pytest.raises(UnknownName, match="option 'depth' is unknown"):
        ask(budget=90, options={"depth": 3})


@pytest.mark.parametrize(
    ("arms", "labels"),
    [
        (3, (0, 1, 2)),
        (np.int64(2), (0, 1)),
        (["a", "b b", ""], ("a", "b b", "")),
        (("x", 3), ("x", 3)),
        (np.array(["x", "y"]), ("x", "y")),
        (range(5, 8), (5, 6, 7)),
        ((name for name in "ab"), ("a", "b")),
        ({"red": "page one", "blue": "page two"}, ("red", "blue")),
        ({"red": 1, "blue": 2}.keys(), ("red", "blue")),
    ],
)
def test_arms_are_counted_or_named(arms: object, labels: tuple[object, ...]) -> None:
    taken = labels_of(arms)
    assert taken == labels
    assert {type(label) for label in taken} <= {int, str}


class Colour(Enum):
    RED = 1
    BLUE = 2


class Page(StrEnum):
    OLD = "old"
    NEW = "new"


class Size(IntEnum):
    SMALL = 1
    LARGE = 9


class Design(NamedTuple):
    servers: int
    queue: str


OBJECTS: list[list[Any]] = [
    list(Colour),
    list(Page),
    list(Size),
    [("a", 1), ("a", 2)],
    [Design(1, "fifo"), Design(2, "fifo")],
    [(Colour.RED, Page.OLD), (Colour.RED, Page.NEW)],
]


@pytest.mark.parametrize("arms", OBJECTS)
def test_tuples_and_members_of_enums_stay_the_very_objects_they_are(arms: list[Any]) -> None:
    assert all(label is arm for label, arm in zip(labels_of(arms), arms, strict=True))
    assert all(
        label is arm for label, arm in zip(labels_of(dict.fromkeys(arms)), arms, strict=True)
    )


def test_an_enum_is_the_list_of_its_members() -> None:
    assert labels_of(Colour) == (Colour.RED, Colour.BLUE)


@pytest.mark.parametrize("arms", OBJECTS)
def test_select_hands_over_and_gives_back_what_it_was_given(arms: list[Any]) -> None:
    seen: list[Any] = []

    def pull(arm: Any) -> float:
        seen.append(arm)
        return float(arm is arms[1])

    chosen = shortlist.select(pull, arms=arms, k=1, budget=20, algorithm="uniform", progress=False)
    assert chosen.top[0] is arms[1]
    assert {id(arm) for arm in seen} == {id(arm) for arm in arms}
    assert json.loads(chosen.to_json())["top"] == [plain_label(arms[1])]


@pytest.mark.parametrize(
    ("label", "shown", "plain"),
    [
        ("a", "a", "a"),
        (7, "7", 7),
        (("a", 1), "a, 1", "a, 1"),
        (Colour.RED, "Colour.RED", "Colour.RED"),
        (Page.OLD, "old", "old"),
        (Size.LARGE, "9", 9),
        ((Colour.RED, Page.OLD), "Colour.RED, old", "Colour.RED, old"),
    ],
)
def test_labels_are_shown_and_written_down_as_plain_text(
    label: Any, shown: str, plain: str | int
) -> None:
    assert shown_label(label) == shown
    assert (plain_label(label), type(plain_label(label))) == (plain, type(plain))


def test_an_experiment_keeps_labels_that_come_back_equal_and_refuses_others() -> None:
    made = shortlist.Experiment.create(Page, 1, budget=4, store=MemoryStore(), algorithm="sar")
    assert made.settings.labels == ("old", "new") == tuple(Page)
    assert {type(label) for label in made.settings.labels} == {str}
    for arms in (list(Colour), [("a", 1), ("a", 2)]):
        with pytest.raises(InvalidInput, match="but a label that is kept must be a text or a whol"):
            shortlist.Experiment.create(arms, 1, budget=4, store=MemoryStore())


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (1, "`arms` is 1, but must be a whole number of at least 2"),
        (True, "`arms` is True"),
        (2.0, r"`arms` is 2\.0, but must be a number of arms or a list of labels"),
        ("abc", "`arms` is 'abc', but must be a number of arms or a list of labels"),
        ({"a", "b"}, "which has no order, but must be a number of arms or a list of labels"),
        (frozenset("ab"), "which has no order"),
        (b"ab", "but must be a number of arms or a list of labels"),
        (["a"], r"`arms` is \['a'\], but must be at least 2 labels"),
        (["a", "b", "b"], "two arms are called 'b', but labels must differ"),
        (["a", True], "an arm is called True, but a label must be a text or a whole number"),
        (["a", None], "an arm is called None"),
        (["a", 0.5], r"an arm is called 0\.5.*; for other values give each a name"),
        (["a", ("b", 0.5)], r"an arm is called 0\.5, but a label must be .* a tuple of these"),
        (["a", ("b", True)], "an arm is called True"),
        (["a", ()], r"an arm is called \(\)"),
        ([("a", 1), ("a", 1)], r"two arms are called \('a', 1\), but labels must differ"),
    ],
)
def test_arms_that_cannot_be_told_apart_or_written_down_are_refused(
    arms: object, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        labels_of(arms)


@pytest.mark.parametrize(
    ("declared", "model"),
    [
        ((0, 1), Bounded(0, 1)),
        ([-2.5, 4], Bounded(-2.5, 4)),
        ("binary", Binary()),
        (SubGaussian(2), SubGaussian(2)),
        (Bounded(1, 5), Bounded(1, 5)),
    ],
)
def test_rewards_are_declared_by_a_range_a_word_or_a_model(
    declared: object, model: RewardModel
) -> None:
    assert model_of(declared) == model


@pytest.mark.parametrize("declared", ["bernoulli", None, 1, (0, 1, 2), (1, 0), ("a", "b"), Bounded])
def test_rewards_that_declare_nothing_are_refused(declared: object) -> None:
    with pytest.raises(InvalidInput, match=r"`(rewards|high|low)` is "):
        model_of(declared)


def test_a_delta_that_is_a_confidence_is_doubted() -> None:
    with pytest.warns(Doubtful, match=r"`delta` is 0\.95.*for 0\.95 confidence, give 0\.05"):
        shortlist.Experiment.create(2, 1, epsilon=0.1, delta=0.95)
