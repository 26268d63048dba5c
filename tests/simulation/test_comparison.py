"""Several algorithms on the same arms: what they spend and lose, and how it is shown."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from scipy.stats import binomtest

import shortlist
from shortlist import compare, simulate
from shortlist.errors import InvalidInput, UnsupportedGoal

MEANS = np.linspace(0.3, 0.7, 9)


def test_every_point_is_a_simulation_of_its_own_with_the_same_seed() -> None:
    found = compare(["sar", "uniform"], MEANS, k=2, budgets=[90, 45], epsilon=0.1, runs=6, seed=4)
    assert [(each.runs.algorithm, each.budget) for each in found.points] == [
        ("sar", 45),
        ("uniform", 45),
        ("sar", 90),
        ("uniform", 90),
        ("uniform", None),
    ]
    for point in found.points:
        how: dict[str, Any] = {"budget": point.budget, "epsilon": 0.1, "runs": 6, "seed": 4}
        alone = simulate(point.runs.algorithm, MEANS, k=2, **how)
        assert alone.regret.tolist() == point.runs.regret.tolist()
        assert alone.pulls.tolist() == point.runs.pulls.tolist()


def test_the_data_frame_has_the_figures_of_the_runs() -> None:
    found = compare(["uniform"], MEANS, k=2, budgets=30, epsilon=0.02, runs=15)
    frame = found.to_frame("polars")
    (runs,) = (point.runs for point in found.points if point.budget == 30)
    (row,) = frame.filter(frame["budget"] == 30).to_dicts()
    assert row["regret"] == runs.regret.mean()
    assert (runs.regret <= row["regret_p10"]).mean() >= 0.1
    assert (runs.regret <= row["regret_p90"]).mean() >= 0.9
    interval = binomtest(row["failures"], 15).proportion_ci(0.95, method="exact")
    assert (row["failure_low"], row["failure_high"]) == (interval.low, interval.high)
    assert row["failures"] == runs.failed.sum() > 0


def test_without_an_epsilon_nothing_is_called_a_failure() -> None:
    found = compare(["sar"], MEANS, k=2, budgets=[50], runs=3)
    assert "failures" not in found.to_frame("pandas").columns
    assert "failure" not in str(found)
    assert len(found.plot().axes) == 1


def halving(problem: shortlist.Problem, rng: np.random.Generator) -> shortlist.Search:
    """A search of one's own: the better half continues."""
    arms = rng.permutation(problem.n_arms)
    rewards = yield shortlist.Pulls(arms, np.full(arms.size, problem.budget // arms.size))
    return shortlist.Answer(arms[np.argsort(-rewards.sums)][: problem.k])


def test_a_function_is_compared_like_an_algorithm_with_a_name() -> None:
    found = compare([halving, "sar"], MEANS, k=2, budgets=[45, 90], runs=3)
    assert [point.runs.algorithm for point in found.points][:2] == ["halving", "sar"]


def test_a_function_that_takes_a_budget_only_has_no_point_until_epsilon() -> None:
    found = compare([halving, "uniform"], MEANS, k=2, budgets=45, epsilon=0.2, runs=3)
    goals = [(point.runs.algorithm, point.budget) for point in found.points]
    assert goals == [("halving", 45), ("uniform", 45), ("uniform", None)]
    with pytest.raises(UnsupportedGoal, match="halving cannot serve this goal"):
        compare([halving, "uniform"], MEANS, k=2, epsilon=0.2, runs=3)


def test_scores_of_a_test_set_can_be_compared_on() -> None:
    scores = np.random.default_rng(0).random((6, 20)) < 0.5
    found = compare(["certified"], scores=scores.astype(float), k=2, epsilon=0.2, runs=3)
    assert found.points[0].runs.n_items == 20


def test_the_picture_has_a_curve_per_algorithm_and_a_panel_of_failures() -> None:
    found = compare(["sar", "uniform"], MEANS, k=2, budgets=[45, 90], epsilon=0.2, runs=4)
    regret, failures = found.plot().axes
    legend = regret.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "sar",
        "uniform",
        "uniform, until epsilon",
    ]
    assert failures.get_ylabel() == "failure rate"
    drawn = np.asarray(regret.lines[0].get_xydata()).tolist()
    own = [each.runs for each in found.points if each.runs.algorithm == "sar"]
    assert drawn == [[runs.pulls.mean(), runs.regret.mean()] for runs in own]


def test_when_the_time_is_over_what_is_not_complete_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0

    def slow(problem: shortlist.Problem, rng: np.random.Generator) -> shortlist.Search:
        nonlocal now
        now += 1  # second
        return (yield from halving(problem, rng))

    monkeypatch.setattr("shortlist.simulation.comparison.time.perf_counter", lambda: now)
    found = compare(["uniform", slow, "sar"], MEANS, k=2, budgets=18, runs=20, seconds=10)
    assert found.left_out == ("slow with a budget of 18", "sar with a budget of 18")
    assert [point.runs.algorithm for point in found.points] == ["uniform"]
    assert "Left out, since the time was over: slow with" in str(found)


def test_if_the_time_is_over_at_once_there_is_an_empty_table() -> None:
    found = compare(["uniform"], MEANS, k=2, budgets=18, seconds=1e-9)
    assert found.points == ()
    assert "Left out" in str(found)
    assert found.to_frame("pandas").empty
    assert len(found.plot().axes) == 1  # empty, and no warning


def test_progress_rises_to_the_whole() -> None:
    shares: list[float] = []
    compare(["sar", "uniform"], MEANS, k=2, budgets=45, runs=5, on_progress=shares.append)
    assert shares == [done / 10 for done in range(1, 11)]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"algorithms": "sar"}, "`algorithms` is 'sar', but must be a list of them"),
        ({"algorithms": [], "budgets": 9}, "`algorithms` is empty, but a comparison needs"),
        ({"budgets": None}, "neither `epsilon` nor `budgets` is given, but"),
        ({"budgets": None, "epsilon": 0.1}, "has 'sar', but it does not stop on its own"),
        ({"budgets": [0]}, "`budget` is 0, but must be"),
        ({"budgets": 9, "seconds": 0}, "`seconds` is 0, but must be"),
        ({"budgets": 9, "runs": 0}, "`runs` is 0, but must be"),
        ({"budgets": 9, "rng": 1, "seed": 1}, "`rng` and `seed`"),
        ({"budgets": 9, "k": 9}, "`k` is 9, but must be"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        compare(**{"algorithms": ["sar"], "means": MEANS, "k": 2, "budgets": 45, **given})


@pytest.fixture
def means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("means.csv").write_text("mean\n" + "".join(f"{mean}\n" for mean in MEANS))
    return "means.csv"


def test_the_command_prints_rows_and_saves_a_picture(means: str) -> None:
    algorithms = ["--algorithm", "sar", "--algorithm", "uniform"]
    goals = ["--budget", "45", "--budget", "90", "--epsilon", "0.2", "--runs", "4"]
    words = ["compare", "--means", means, "-k", "2", *algorithms, *goals]
    printed = invoke([*words, "--format", "json", "--plot", "a.png"])
    assert printed.exit_code == 0, printed.stderr
    rows = json.loads(printed.stdout)
    own = compare(["sar", "uniform"], MEANS, k=2, budgets=[45, 90], epsilon=0.2, runs=4)
    assert rows == own.rows()
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    table = invoke(words)
    assert "until epsilon" in table.stdout
    assert "of 4" in table.stdout
    assert invoke([*words, "--plot", "a.txt"]).exit_code == 2


def test_the_command_says_what_is_left_out(means: str) -> None:
    words = ["compare", "--means", means, "-k", "2", "--algorithm", "sar", "--budget", "45"]
    done = invoke([*words, "--seconds", "1e-9", "--format", "csv"])
    assert (done.exit_code, done.stdout.strip()) == (0, "")
    assert done.stderr == "Left out after 1e-09 s: sar with a budget of 45\n"
