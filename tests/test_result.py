"""The result of a selection: what it promises, and how it is printed and written down."""

import json
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from shortlist.driver import Outcome
from shortlist.problem import FixedBudget, FixedConfidence, Goal
from shortlist.result import Result
from shortlist.search import Answer

LABELS = ("slow", "<b>fast</b>", "[red]new[/red]", "unseen")
EPSILON = FixedConfidence(0.1, 0.05, 500)


def result(
    bound: float | None = 0.08,
    confidence: float | None = 0.95,
    goal: Goal = EPSILON,
    **evidence: object,
) -> Result:
    answer = Answer(np.array([2, 1]), bound, confidence, evidence)
    outcome = Outcome(answer, np.array([10, 20, 10, 0]), np.array([1.0, 16.0, 7.0, 0.0]))
    return Result.of(outcome, LABELS, goal, "certified", 3, 0.5)


def test_the_top_is_listed_best_first() -> None:
    assert result().top == ("<b>fast</b>", "[red]new[/red]")
    assert result().pulls == 40
    assert [arm.mean for arm in result().arms] == [0.1, 0.8, 0.7, None]
    assert [arm.chosen for arm in result().arms] == [False, True, True, False]


@pytest.mark.parametrize(
    ("found", "reached", "verdict"),
    [
        (result(), True, "At most 0.08 of mean reward is lost, with 0.95 confidence."),
        (
            result(bound=0.3),
            False,
            (
                "The budget ended before epsilon = 0.1 was reached. "
                "At most 0.3 of mean reward is lost, with 0.95 confidence."
            ),
        ),
        (
            result(bound=None, confidence=None),
            False,
            (
                "The budget ended before epsilon = 0.1 was reached. Nothing is guaranteed about"
                " what this choice loses."
            ),
        ),
        (
            result(bound=None, confidence=None, goal=FixedBudget(500)),
            None,
            "Nothing is guaranteed about what this choice loses.",
        ),
        (
            result(goal=FixedBudget(500)),
            None,
            "At most 0.08 of mean reward is lost, with 0.95 confidence.",
        ),
    ],
)
def test_reaching_epsilon_is_never_confused_with_the_end_of_the_budget(
    found: Result, reached: bool | None, verdict: str
) -> None:
    assert found.reached is reached
    assert found.verdict == verdict
    assert verdict in str(found).replace("\n", " ")
    assert json.loads(found.to_json())["reached"] is reached


def test_rounding_between_units_does_not_make_a_bound_exceed_epsilon() -> None:
    found = result(bound=0.1 * (1 + 1e-15))
    assert found.reached
    assert found.regret_bound == 0.1


def test_json_says_everything_in_plain_numbers() -> None:
    found = result(
        looks=np.int64(2),
        lost=np.array([0.5, np.inf]),
        deep={"x": (float("nan"), None)},
        kind=EPSILON,
        word="yes",
    )
    data = json.loads(found.to_json())
    assert data == found.to_dict()
    assert data["top"] == ["<b>fast</b>", "[red]new[/red]"]
    assert (data["n_arms"], data["k"], data["pulls"], data["seed"]) == (4, 2, 40, 3)
    assert (data["epsilon"], data["delta"], data["budget"]) == (0.1, 0.05, 500)
    assert data["arms"][3] == {"label": "unseen", "pulls": 0, "mean": None, "chosen": False}
    assert data["evidence"] == {
        "looks": 2,
        "lost": [0.5, None],
        "deep": {"x": [None, None]},
        "kind": str(EPSILON),
        "word": "yes",
    }
    assert json.loads(result(goal=FixedBudget(500)).to_json())["epsilon"] is None


def test_equal_runs_are_equal_however_long_they_took() -> None:
    assert replace(result(), seconds=9.0) == result()
    assert replace(result(), seed=9) != result()


def test_it_prints_as_a_table_with_labels_as_they_are() -> None:
    lines = str(result()).splitlines()
    assert lines[0] == "2 of 4 arms, chosen by certified with 40 pulls"
    rows = [line.split() for line in lines if line.split()[1:2] in (["20"], ["10"], ["0"])]
    assert rows == [
        ["<b>fast</b>", "20", "0.8"],
        ["[red]new[/red]", "10", "0.7"],
        ["slow", "10", "0.1"],
        ["unseen", "0", "-"],
    ]
    console = Console()
    with console.capture() as printed:
        console.print(result().table)
    assert "[red]new[/red]" in printed.get()


def test_html_escapes_labels() -> None:
    html = result()._repr_html_()
    assert "&lt;b&gt;fast&lt;/b&gt;" in html
    assert "<b>" not in html
    assert "At most 0.08 of mean reward is lost" in html


def test_many_arms_are_cut_short_in_print_but_not_in_json() -> None:
    n = 1000
    outcome = Outcome(Answer(np.arange(100)), np.ones(n, dtype=np.int64), np.linspace(1, 0, n))
    found = Result.of(outcome, range(n), FixedBudget(n), "uniform", 0, 0.1)
    assert len(str(found).splitlines()) < 50
    assert "... 70 more" in str(found)
    assert "... 895 more" in found._repr_html_()
    assert len(repr(found)) < 1000
    assert len(found.to_dict()["arms"]) == n  # type: ignore[arg-type]
