"""The result of a selection: what it promises, and how it is printed and written down."""

import doctest
import json
import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import shortlist
from shortlist import errors
from shortlist.driver import Outcome
from shortlist.problem import FixedBudget, FixedConfidence, Goal, Problem
from shortlist.result import Result
from shortlist.result.plots import frame_of
from shortlist.reward_models import SubGaussian
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
    return Result.of(outcome, LABELS, Problem(4, 2, goal), "certified", 3, 0.5)


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
    assert data["arms"][3] == {
        "label": "unseen",
        "pulls": 0,
        "mean": None,
        "low": 0.0,
        "high": 1.0,
        "chosen": False,
        "cost": 1.0,
        "spent": 0.0,
        "retired": False,
        "limit": None,
        "waiting": 0,
        "known": 0,
    }
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
    rows = [line.split()[:3] for line in lines if line.split()[1:2] in (["20"], ["10"], ["0"])]
    assert rows == [
        ["<b>fast</b>", "20", "0.800"],
        ["[red]new[/red]", "10", "0.700"],
        ["slow", "10", "0.100"],
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
    found = Result.of(outcome, range(n), Problem(n, 100, FixedBudget(n)), "uniform", 0, 0.1)
    assert len(str(found).splitlines()) < 50
    assert "... 70 more" in str(found)
    assert "... 895 more" in found._repr_html_()
    assert len(repr(found)) < 1000
    assert len(found.to_dict()["arms"]) == n  # type: ignore[arg-type]


def test_an_arm_that_looks_better_but_was_left_out_is_explained() -> None:
    assert "looks better" not in str(result())
    answer = Answer(np.array([0, 2]), 0.08, 0.95)
    outcome = Outcome(answer, np.array([10, 20, 10, 0]), np.array([1.0, 16.0, 7.0, 0.0]))
    found = Result.of(outcome, LABELS, Problem(4, 2, EPSILON), "certified", 3, 0.5)
    words = " ".join(str(found).split())
    assert "<b>fast</b> has a better mean than slow, but is not chosen" in words


def test_where_small_rewards_are_good_the_smallest_come_first() -> None:
    answer = Answer(np.array([2, 0]), 0.08, 0.95)
    outcome = Outcome(answer, np.array([10, 20, 10, 0]), np.array([1.0, 16.0, 7.0, 0.0]))
    problem = Problem(4, 2, EPSILON, minimize=True)
    found = Result.of(outcome, LABELS, problem, "certified", 3, 0.5)
    assert found.top == ("slow", "[red]new[/red]")
    assert found.to_dict()["minimize"] is True
    assert "looks better" not in str(found)


def test_the_lift_of_every_arm_is_against_the_control_and_prints() -> None:
    lift = result().lift(control="slow")
    assert [arm.label for arm in lift.arms] == ["<b>fast</b>", "[red]new[/red]", "unseen"]
    fast = lift.arms[0]
    assert fast.difference == pytest.approx(0.7)
    assert fast.ratio == pytest.approx(8)
    assert fast.difference_low < 0.7 < fast.difference_high
    assert fast.ratio_low is not None
    assert fast.ratio_low > 0.9
    assert lift.arms[2].difference is None
    assert lift.confidence == 0.95
    assert "+0.7" in str(lift)
    assert "Every arm against slow" in lift._repr_html_()


def test_a_lift_of_rewards_that_may_be_negative_has_no_ratio() -> None:
    outcome = Outcome(Answer(np.array([1])), np.array([10, 10]), np.array([1.0, 5.0]))
    problem = Problem(2, 1, FixedBudget(20), SubGaussian(1))
    lift = Result.of(outcome, ("a", "b"), problem, "sar", 0, 0.1).lift("a")
    assert (lift.arms[0].ratio, lift.arms[0].ratio_low, lift.arms[0].ratio_high) == (None,) * 3
    assert "-" in str(lift)


def test_a_long_lift_is_cut_short() -> None:
    outcome = Outcome(Answer(np.array([1])), np.full(60, 5), np.arange(60.0) / 20)
    problem = Problem(60, 1, FixedBudget(300))
    lift = Result.of(outcome, range(60), problem, "sar", 0, 0.1).lift(3)
    assert "... 19 more" in str(lift)


def test_a_control_must_be_an_arm() -> None:
    with pytest.raises(errors.UnknownName, match="`control` is 'x', but must be one of the arms"):
        result().lift(control="x")
    with pytest.raises(errors.UnknownName, match="`control` is None, but must be one of the arms"):
        result().lift()


def test_a_result_that_has_a_control_shows_and_writes_the_lift() -> None:
    without, compared = result(), replace(result(), control="slow")
    assert compared.lift() == without.lift("slow")
    assert compared.lift("unseen") == without.lift("unseen")
    assert "Every arm against slow" in str(compared)
    assert "Every arm against" not in str(without)
    written = json.loads(compared.to_json())
    lift = written.pop("lift")
    assert written == json.loads(without.to_json())
    assert (lift["control"], lift["confidence"]) == ("slow", 0.95)
    assert [arm["label"] for arm in lift["arms"]] == ["<b>fast</b>", "[red]new[/red]", "unseen"]
    assert lift["arms"][2]["difference"] is None


@pytest.mark.parametrize("library", ["pandas", "polars", None])
def test_a_result_is_a_data_frame_of_any_library(library: str | None) -> None:
    frame = result().to_frame(library)
    assert type(frame).__module__.startswith(library or "pandas")
    named = ["arm", "pulls", "mean", "low", "high", "chosen", "limit", "cost", "spent", "retired"]
    named += ["waiting", "known"]
    assert list(frame.columns) == named
    assert frame["chosen"].to_list() == [False, True, True, False]


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("labels", "column"),
    [
        ((1, 2), [1, 2]),
        (("a", 2), ["a", "2"]),
        ((2**63, 1), [str(2**63), "1"]),
        ((1, 10**400), ["1", str(10**400)]),
    ],
)
def test_labels_in_a_data_frame_are_of_one_kind(
    library: str, labels: tuple[Any, ...], column: list[Any]
) -> None:
    arms = [replace(result().arms[0], label=label) for label in labels]
    assert frame_of(arms, library)["arm"].to_list() == column


def test_a_data_frame_of_an_unknown_or_missing_library_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(errors.UnknownName, match="must be one of pandas, polars"):
        result().to_frame("excel")
    monkeypatch.setattr("shortlist.result.plots.find_spec", lambda name: None)
    with pytest.raises(errors.InvalidInput, match="neither pandas nor polars is installed"):
        result().to_frame()
    with pytest.raises(errors.InvalidInput, match="but no polars is installed"):
        result().to_frame("polars")


def test_a_picture_shows_every_arm_and_its_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = result().plot()
    (ax,) = figure.axes
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["<b>fast</b>", "[red]new[/red]", "slow", "unseen"]
    assert ax.get_legend_handles_labels()[1] == ["chosen", "not chosen"]
    again = result().plot(ax=figure.subplots())
    with pytest.raises(errors.InvalidInput, match=r"`ax` is 'a.png', but must be axes .*savefig"):
        result().plot("a.png")  # type: ignore[arg-type]
    assert again is figure
    monkeypatch.setattr("shortlist.result.plots.find_spec", lambda name: None)
    with pytest.raises(errors.InvalidInput, match="needs matplotlib, which is not installed"):
        result().plot()


@pytest.mark.parametrize(("k", "named"), [(1, ["1"]), (3, ["2", "1", "0"]), (50, [])])
def test_a_picture_of_many_arms_names_the_chosen_ones(k: int, named: list[str]) -> None:
    chosen = np.arange(k) if k > 1 else np.array([1])
    outcome = Outcome(Answer(chosen), np.full(60, 5), np.arange(60.0) / 20)
    problem = Problem(60, k, FixedBudget(300))
    figure = Result.of(outcome, range(60), problem, "sar", 0, 0.1).plot()
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == named
    assert "60 arms" in figure.axes[0].get_ylabel()
    assert figure.get_size_inches()[1] < 20


def test_a_notebook_shows_a_picture_without_pyplot() -> None:
    png = result().plot()._repr_png_()  # type: ignore[attr-defined]
    assert png.startswith(b"\x89PNG")


def test_a_notebook_marks_the_chosen_arms() -> None:
    chosen, others = result()._repr_html_().split("<tbody")[1:]
    assert chosen.startswith(' style="font-weight: bold">')
    assert others.startswith(">")


@pytest.mark.parametrize("delta", [1e-5, 1e-12, 1e-40])
def test_a_confidence_is_never_1_however_small_delta_is(delta: float) -> None:
    found = shortlist.select(
        lambda arm: float(arm), arms=2, k=1, epsilon=0.9, delta=delta, rewards="binary"
    )
    assert found.confidence is not None
    assert 1 - 1.2 * delta - 2e-16 <= found.confidence < 1
    said = re.search(r"with (\S+) confidence", found.verdict)
    assert said is not None
    assert float(said[1]) <= found.confidence
    assert json.loads(found.to_json())["confidence"] == found.confidence
    assert found.lift(0).confidence < 1


@pytest.mark.parametrize(
    ("low", "high"), [(1000.0, 1001.0), (1e-9, 2e-9), (-1e6, 1e6), (-1001.0, -1000.0)]
)
@pytest.mark.parametrize("minimize", [False, True])
def test_tables_tell_the_ends_of_intervals_apart_in_any_range(
    low: float, high: float, minimize: bool
) -> None:
    rng = np.random.default_rng(5)
    found = shortlist.select(
        lambda arm: low + (high - low) * float(rng.random() < 0.2 + 0.15 * arm),
        arms=4,
        k=2,
        epsilon=0.2 * (high - low),
        rewards=(low, high),
        minimize=minimize,
        progress=False,
    )
    rows = [line.split() for line in str(found).splitlines() if "…" in line]
    assert len(rows) == 4
    for label, _, mean, below, _, above in rows:
        arm = found.arms[int(label)]
        printed = [float(text.replace(",", "")) for text in (below, mean, above)]
        assert printed[0] <= arm.low < arm.high <= printed[2]
        assert printed[0] < printed[1] < printed[2]
    bound = re.search(r"At most (\S+) of mean", found.verdict)
    assert bound is not None
    assert found.regret_bound is not None
    assert float(bound[1].replace(",", "")) >= found.regret_bound


@pytest.mark.parametrize("module", ["result", "arm_results"])
def test_the_examples_of_the_docstrings_run(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # one of them saves a figure
    found = doctest.testmod(import_module(f"shortlist.result.{module}"))
    assert found.attempted > 0
    assert found.failed == 0


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_in_gives_a_data_frame_of_the_same_kind_out(library: str) -> None:
    frames = pytest.importorskip(library)
    arms = frames.DataFrame({"arm": ["a", "b", "c"], "cost": [1.0, 1.0, 2.0]})
    found = shortlist.select(lambda arm: ord(arm), arms=arms, k=1, budget=20)
    assert isinstance(found.to_frame(), frames.DataFrame)
    scores = frames.DataFrame({"0": [0.0, 1.0], "1": [0.0, 1.0], "2": [1.0, 1.0]})
    seen = shortlist.select(lambda arm, item: 1, arms=2, items=3, scores=scores, k=1, budget=2)
    runs = shortlist.simulate("certified", scores=scores, k=1, epsilon=0.1)
    counts = frames.DataFrame({"arm": ["a", "b"], "pulls": [9, 9], "successes": [2, 7]})
    past = shortlist.assess(counts, k=1, fixed=True), shortlist.assess(scores=scores, k=1)
    for made in (seen, seen.cells, runs, *past):
        assert made is not None
        assert isinstance(made.to_frame(), frames.DataFrame)
        other = "pandas" if library == "polars" else "polars"
        assert not isinstance(made.to_frame(other), frames.DataFrame)
