"""Test sets on the command line: `simulate --scores`, `run --items`, `create --items`."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from shortlist import Experiment, instances
from shortlist.cells import Drawn
from shortlist.cli import main
from shortlist.errors import InvalidInput
from shortlist.reading.scores import read_scores

SCORES = instances.item_response(8, 60, np.random.default_rng(1))


def invoked(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def matrix_file(folder: Path, *, header: bool = True, named: bool = True) -> Path:
    lines = []
    if header:
        lines.append(",".join([*(["arm"] * named), *(f"q{item}" for item in range(60))]))
    for arm, row in enumerate(SCORES):
        lines.append(",".join([*([f"m{arm}"] * named), *(f"{score:g}" for score in row)]))
    path = folder / "scores.csv"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize(("header", "named"), [(True, True), (True, False), (False, False)])
def test_a_matrix_is_read_with_names_or_without(tmp_path: Path, header: bool, named: bool) -> None:
    read = read_scores(str(matrix_file(tmp_path, header=header, named=named)))

    assert np.array_equal(read.scores, SCORES)
    assert (read.arms is None) == (not named)
    assert read.arms is None or read.arms[1] == "m1"
    assert (read.items is None) == (not header)
    assert read.items is None or read.items[2] == "q2"


def test_cells_are_read_in_any_order_and_missing_ones_are_nan(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("item,arm,score\ny,b,1\nx,a,0.5\ny,b,1\nx,b,\n")
    read = read_scores(str(path))

    assert (read.arms, read.items) == (("b", "a"), ("y", "x"))
    assert np.array_equal(read.scores, [[1, np.nan], [np.nan, 0.5]], equal_nan=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arm,item,score\na,x,1\na,x,0\n", "line 3 says that 'a' scores 0 on item 'x', but a line"),
        ("arm,x,y\na,1,0\nb,1\n", "line 3 has 2 values, but must have 3"),
        ("arm,x,y\na,1,nan\nb,1,1\n", "line 2 says 'nan', but a score must be a finite number"),
        ("arm,x,x\na,1,0\n", "two items 'x'"),
        ("arm,x,y\na,1,0\na,1,1\n", "two arms 'a'"),
        ("arm,x,y\n", "has no scores"),
        ("", "is empty, but must have a line per arm"),
        ("arm,x,y\na,50%,1\nb,1,1\n", "line 2 says '50%'.*write 0.5 for 50%"),
        ("arm;x;y\na;0,5;1\nb;1;1\n", "line 2 says '0,5'.*write decimals with a point"),
    ],
)
def test_bad_files_of_scores_are_refused_in_words(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "scores.csv"
    path.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        read_scores(str(path))


def test_true_and_false_are_scores_of_1_and_0(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    path.write_text("arm,x,y\na,True,FALSE\nb,false,1\n")
    assert np.array_equal(read_scores(str(path)).scores, [[1, 0], [0, 1]])


def test_simulate_on_scores_says_which_share_of_cells_was_asked_for(tmp_path: Path) -> None:
    ran = invoked(
        *("simulate", "--scores", matrix_file(tmp_path), "-k", 2, "--epsilon", 0.1),
        *("--delta", 0.05, "--runs", 3, "--format", "json"),
    )
    summary = json.loads(ran.stdout)

    assert ran.exit_code == 0
    assert summary["algorithm"] == "certified"
    assert summary["cells"]["share"] == pytest.approx(summary["cells"]["mean"] / 480)
    assert summary["failures"] == 0


def test_simulate_on_scores_with_a_budget(tmp_path: Path) -> None:
    ran = invoked(
        *("simulate", "--scores", matrix_file(tmp_path), "-k", 2, "--budget", 200),
        *("--order", "independent", "--format", "json"),
    )
    assert json.loads(ran.stdout)["algorithm"] == "expected-loss"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["-n", "5"], "`n` and --scores are given"),
        (["--instance", "uniform"], "`instance` and --scores are given"),
    ],
)
def test_only_one_thing_names_the_arms(tmp_path: Path, more: list[str], message: str) -> None:
    ran = invoked("simulate", "--scores", matrix_file(tmp_path), "-k", 2, "--epsilon", 0.1, *more)

    assert ran.exit_code == 2
    assert message in ran.stderr


def test_simulate_needs_an_algorithm_without_scores() -> None:
    ran = invoked("simulate", "--instance", "uniform", "-n", 5, "-k", 2, "--epsilon", 0.1)

    assert ran.exit_code == 2
    assert "`algorithm` is not given" in ran.stderr


def files(folder: Path) -> tuple[Path, Path, str]:
    """Three arms, 20 items, and a program that scores an arm on an item."""
    arms, items = folder / "arms.csv", folder / "items.csv"
    arms.write_text("arm\ngood\nbad\nworse\n")
    items.write_text("item\n" + "\n".join(f"q {item}" for item in range(20)))
    script = folder / "score.py"
    script.write_text(
        "import sys\n"
        "arm, item = sys.argv[1], int(sys.argv[2].split()[1])\n"
        "print({'good': 1, 'bad': item % 2, 'worse': 0}[arm])\n"
    )
    return arms, items, f"{sys.executable} {script} {{arm}} {{item}}"


def test_run_scores_arms_on_items_with_a_program(tmp_path: Path) -> None:
    arms, items, command = files(tmp_path)
    known = tmp_path / "known.csv"
    known.write_text("arm,item,score\ngood,q 0,1\nbad,q 0,0\nworse,q 0,0\n")
    ran = invoked(
        *("run", arms, "--items", items, "--scores", known, "--pull", command, "-k", 1),
        *("--epsilon", 0.2, "--delta", 0.3, "--workers", 2, "--format", "json"),
    )
    result = json.loads(ran.stdout)

    assert ran.exit_code == 0
    assert result["top"] == ["good"]
    assert result["pulls"] <= 57
    assert result["evidence"]["certificate"] == "items"


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ("arm,item,score\nbest,q 0,1\n", "has scores of arm 'best', but there is none"),
        ("arm,item,score\ngood,q 99,1\n", "has scores of item 'q 99', but there is none"),
        ("arm,item,score\ngood,q 0,7\n", "is 7, but must be a number between 0 and 1"),
    ],
)
def test_scores_of_nobody_are_refused(tmp_path: Path, scores: str, message: str) -> None:
    arms, items, _ = files(tmp_path)
    known = tmp_path / "known.csv"
    known.write_text(scores)
    ran = invoked(
        *("create", arms, "--items", items, "--scores", known, "-k", 1, "--epsilon", 0.2),
        *("--store", tmp_path / "x.db"),
    )

    assert ran.exit_code == 2
    assert message in ran.stderr
    assert not (tmp_path / "x.db").exists()


def test_a_command_and_items_go_together(tmp_path: Path) -> None:
    arms, items, command = files(tmp_path)
    without = invoked("run", arms, "--pull", command, "-k", 1, "--epsilon", 0.2)
    unsaid = command.replace(" {item}", "")
    forgotten = invoked("run", arms, "--items", items, "--pull", unsaid, "-k", 1, "--epsilon", 0.2)
    alone = invoked("run", arms, "--scores", items, "--pull", command, "-k", 1, "--epsilon", 0.2)

    assert "{item} needs --items" in without.stderr
    assert "must contain {item}" in forgotten.stderr
    assert "`scores` is given without --items" in alone.stderr


def test_ask_prints_the_item(tmp_path: Path) -> None:
    arms, items, _ = files(tmp_path)
    store = tmp_path / "x.db"
    invoked("create", arms, "--items", items, "-k", 1, "--epsilon", 0.2, "--store", store)
    asked = invoked("ask", "--store", store, "--limit", 2, "--format", "json")

    assert all(row["item"].startswith("q ") for row in json.loads(asked.stdout))


def test_a_file_without_items_is_refused(tmp_path: Path) -> None:
    arms, items, command = files(tmp_path)
    items.write_text("item\n")
    ran = invoked("run", arms, "--items", items, "--pull", command, "-k", 1, "--epsilon", 0.2)

    assert ran.exit_code == 2
    assert "is empty, but must hold one item a line" in ran.stderr


def test_repeats_clusters_and_the_population_are_options(tmp_path: Path) -> None:
    (tmp_path / "models.csv").write_text("arm\na\nb\nc\n")
    (tmp_path / "items.csv").write_text("item\nx\ny\nz\nw\n")
    groups = tmp_path / "clusters.csv"
    groups.write_text("item,cluster\nw,2\nx,1\ny,1\nz,2\n")
    store = tmp_path / "runs.db"
    given = (
        "create", tmp_path / "models.csv", "-k", 1, "--epsilon", 0.1,
        "--items", tmp_path / "items.csv", "--store", store, "--repeats", 2,
        "--population", "like these", "--clusters", groups,
    )  # fmt: skip
    done = invoked(*given)
    assert done.exit_code == 0, done.output
    cells = Experiment.open(store).settings.cells
    assert cells is not None
    assert cells.drawn == Drawn(2, ("1", "1", "2", "2"), "like these")
    groups.write_text("item,cluster\nw,2\nx,1\ny,1\n")
    assert "has no cluster of item 'z'" in invoked(*given).output
    groups.write_text("item,document\nw,2\nx,1\ny,1\n")
    assert "has no column `cluster`" in invoked(*given).output
    without = [each for each in given if each not in ("--items", tmp_path / "items.csv")]
    assert "`clusters` is given without --items" in invoked(*without).output


def test_simulate_draws_repetitions_and_clusters_of_named_items(tmp_path: Path) -> None:
    scores, clusters = tmp_path / "scores.csv", tmp_path / "clusters.csv"
    lines = [f"{arm},q{item},{arm == 'a':d}" for arm in "abc" for item in range(4)] * 2
    scores.write_text("arm,item,score\n" + "\n".join(sorted(lines)) + "\n")
    clusters.write_text("item,cluster\nq0,x\nq1,x\nq2,y\nq3,y\n")
    base = ("simulate", "--scores", scores, "-k", 1, "--epsilon", 0.1, "--format", "json")
    ran = invoked(*base, "--repeats", 2, "--clusters", clusters)
    assert ran.exit_code == 0, ran.stderr
    assert json.loads(ran.stdout)["pulls"]["mean"] % 4 == 0

    assert "without --scores" in invoked(*base[:1], *base[3:], "--clusters", clusters).stderr
    bare = tmp_path / "bare.csv"
    bare.write_text("1,0\n0,0\n")
    unnamed = ("simulate", "--scores", bare, "-k", 1, "--epsilon", 0.1)
    assert "does not name its items" in invoked(*unnamed, "--clusters", clusters).stderr
    wide = tmp_path / "wide.csv"
    wide.write_text("arm,x,y\na,1,0\nb,0,0\n")
    ran = invoked("simulate", "--scores", wide, "-k", 1, "--epsilon", 0.1, "--repeats", 2)
    assert "wide.csv has one score per item, but `repeats` is 2" in ran.stderr
