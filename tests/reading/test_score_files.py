"""Scores in files and data frames: CSV and Parquet, by name or by place, through every door."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas  # type: ignore[import-untyped]
import polars
import pytest
from click.testing import CliRunner

import shortlist
from shortlist import instances
from shortlist.cli import main
from shortlist.errors import Doubtful, InvalidInput
from shortlist.reading import files as parquet
from shortlist.reading.scores import read_scores

ARMS = ["a", "b", "c", "d"]
ITEMS = [f"q{item}" for item in range(30)]
SCORES = instances.item_response(4, 30, np.random.default_rng(5))
KNOWN = np.where(np.arange(30) % 3 == 0, SCORES, np.nan)


def wide(scores: np.ndarray) -> polars.DataFrame:
    rows = [[None if np.isnan(each) else each for each in row] for row in scores]
    columns = dict(zip(ITEMS, map(list, zip(*rows, strict=True)), strict=True))
    return polars.DataFrame({"arm": ARMS, **columns})


def long(scores: np.ndarray) -> polars.DataFrame:
    cells = [
        (arm, item, scores[i, j]) for i, arm in enumerate(ARMS) for j, item in enumerate(ITEMS)
    ]
    seen = [cell for cell in reversed(cells) if not np.isnan(cell[2])]
    return polars.DataFrame(seen, schema=["arm", "item", "score"], orient="row")


def indexed(path: Path) -> None:
    """As pandas has it: arms are the index, which it stores as the last column."""
    pandas.DataFrame(KNOWN, index=ARMS, columns=ITEMS).to_parquet(path)


WRITERS: dict[str, Callable[[Path], object]] = {
    "wide": lambda path: wide(KNOWN).write_parquet(path),
    "long": lambda path: long(KNOWN).write_parquet(path),
    "index": indexed,
}


@pytest.fixture(params=["pyarrow", "polars"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    name = str(request.param)
    monkeypatch.setattr(parquet, "READERS", {name: parquet.READERS[name]})
    return name


@pytest.mark.parametrize("writer", WRITERS)
def test_a_parquet_file_says_what_is_known(tmp_path: Path, reader: str, writer: str) -> None:
    path = tmp_path / "scores.parquet"
    WRITERS[writer](path)
    placed = read_scores(str(path)).placed(ARMS, ITEMS)
    assert np.array_equal(placed, KNOWN, equal_nan=True)


def test_a_file_may_know_fewer_arms_and_items_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "scores.PARQUET"
    wide(SCORES)[::-1].select("q7", "arm", "q2").head(2).write_parquet(path)
    placed = read_scores(str(path)).placed(ARMS, ITEMS)
    expected = np.full((4, 30), np.nan)
    expected[2:, [2, 7]] = SCORES[2:, [2, 7]]
    assert np.array_equal(placed, expected, equal_nan=True)


def test_a_matrix_without_names_is_read_by_place(tmp_path: Path) -> None:
    path = tmp_path / "scores.csv"
    np.savetxt(path, SCORES, fmt="%g", delimiter=",")
    assert np.array_equal(read_scores(str(path)).placed(ARMS, ITEMS), SCORES)
    with pytest.raises(InvalidInput, match="has 4 arms without names, but there are 3"):
        read_scores(str(path)).placed(ARMS[:3], ITEMS)
    with pytest.raises(InvalidInput, match="has 30 items without names, but there are 29"):
        read_scores(str(path)).placed(ARMS, ITEMS[1:])


def selected(scores: Any) -> tuple[int, list[Any]]:
    asked: list[Any] = []

    def score(arm: str, item: str) -> float:
        asked.append((arm, item))
        return float(SCORES[ARMS.index(arm), ITEMS.index(item)])

    result = shortlist.select(
        score, arms=ARMS, k=1, epsilon=0.05, items=ITEMS, scores=scores, progress=False
    )
    return result.pulls, asked


@pytest.mark.parametrize("frame", ["polars", "pandas", "long"])
def test_files_frames_and_arrays_say_the_same_to_select(tmp_path: Path, frame: str) -> None:
    path = tmp_path / "scores.pq"
    wide(KNOWN).write_parquet(path)
    text = tmp_path / "scores.csv"
    wide(KNOWN).write_csv(text)
    made = {
        "polars": wide(KNOWN),
        "pandas": pandas.DataFrame(KNOWN, columns=ITEMS).assign(arm=ARMS),
        "long": long(KNOWN),
    }[frame]
    pulls, asked = selected(KNOWN)

    assert len(asked) == len(set(asked)) == pulls
    assert all(ITEMS.index(item) % 3 for _, item in asked)  # what is known is not asked for
    for scores in (path, str(path), text, made):
        assert selected(scores) == (pulls, asked)


@pytest.mark.parametrize("name", [None, "arm", "model"])
def test_the_index_of_pandas_names_the_arms_in_any_order(name: str | None) -> None:
    frame = pandas.DataFrame(KNOWN, index=ARMS, columns=ITEMS).rename_axis(index=name)
    other = frame.iloc[::-1, ::-1]
    cells = long(KNOWN).to_pandas().set_index(["arm", "item"])

    assert not np.array_equal(frame.to_numpy(), other.to_numpy(), equal_nan=True)
    for scores in (frame, other, cells):
        assert selected(scores) == selected(KNOWN)
    assert set(shortlist.assess(scores=other, k=1).top) <= set(ARMS)
    with pytest.raises(
        InvalidInput, match=r"arm 'e', but there is none .* are 'a', 'b', 'c', \.\.\."
    ):
        selected(frame.rename(index={"a": "e"}))


def test_cells_of_a_search_are_no_random_sample_for_assess(tmp_path: Path) -> None:
    kept = shortlist.select(
        lambda arm, item: SCORES[arm, item], arms=4, k=1, items=30, budget=40, progress=False
    ).cells
    assert kept is not None
    for name in ("cells.csv", "cells.parquet"):
        kept.write(tmp_path / name)
        with pytest.warns(Doubtful, match="has the cells of a search.* may be wrong"):
            shortlist.assess(scores=tmp_path / name, k=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shortlist.assess(scores=long(KNOWN), k=1)


def test_an_item_without_scores_counts_if_a_line_names_it(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("arm,item,score\na,q1,1\nb,q1,0\n")
    few = shortlist.assess(scores=path, k=1)
    path.write_text("arm,item,score\na,q1,1\nb,q1,0\na,q2,\na,q3,\n")
    more = shortlist.assess(scores=path, k=1)

    assert (few.items, few.regret_bound) == (1, 0)
    assert more.items == 3
    assert more.regret_bound == pytest.approx(1 / 3)  # b right on the other two, and a wrong


def test_a_known_score_that_is_refused_is_named_by_arm_and_item() -> None:
    frame = wide(KNOWN).with_columns(q3=polars.Series([0.0, 1.0, 1.3, 0.0]))
    message = "the known score of arm 'c' on item 'q3' is 1.3, but must be"
    with pytest.raises(InvalidInput, match=message):
        selected(frame)
    with pytest.raises(InvalidInput, match=message):
        shortlist.assess(scores=frame, k=1)


def test_columns_of_a_frame_name_the_items_in_any_order_though_arms_have_no_names() -> None:
    frame = pandas.DataFrame(KNOWN, columns=ITEMS)
    plain = pandas.DataFrame(KNOWN)

    for scores in (frame, frame[ITEMS[::-1]], polars.from_pandas(frame[ITEMS[::-1]]), plain):
        assert selected(scores) == selected(KNOWN)
    assert selected(polars.from_numpy(KNOWN)) == selected(KNOWN)


@pytest.mark.parametrize("door", [pandas.DataFrame, polars.DataFrame, "csv"])
def test_a_column_of_names_that_is_not_called_arm_is_named(door: Any, tmp_path: Path) -> None:
    columns = {"model": ["x", "y"], "q1": [1.0, 0.0], "q2": [1.0, 1.0]}
    scores = tmp_path / "scores.csv" if door == "csv" else door(columns)
    if door == "csv":
        polars.DataFrame(columns).write_csv(scores)
    with pytest.raises(InvalidInput, match=r"says 'x' in column 'model'.* must be called 'arm'"):
        shortlist.assess(scores=scores, k=1)


def test_an_experiment_keeps_the_scores_of_a_file_not_its_name(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    wide(KNOWN).write_parquet(path)
    store = tmp_path / "experiments.db"
    given: dict[str, Any] = {"k": 1, "epsilon": 0.05, "items": ITEMS}
    shortlist.Experiment.create(ARMS, store=store, scores=path, **given).close()
    path.unlink()
    with shortlist.Experiment.open(store) as experiment:
        items = {ticket.item for ticket in experiment.ask(500)}
    assert items
    assert all(ITEMS.index(str(item)) % 3 for item in items)


def test_simulate_reads_a_matrix_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "scores.parquet"
    wide(SCORES).write_parquet(path)
    runs = [
        shortlist.simulate("certified", scores=scores, k=1, epsilon=0.05, runs=3)
        for scores in (SCORES, path, wide(SCORES))
    ]
    assert all(np.array_equal(each.pulls, runs[0].pulls) for each in runs)
    wide(KNOWN).write_parquet(path)
    with pytest.raises(InvalidInput, match="the score of arm 0 on item 1 is nan, but must be"):
        shortlist.simulate("certified", scores=path, k=1, epsilon=0.05)


def test_the_command_line_takes_parquet_too(tmp_path: Path) -> None:
    path, arms, items = (tmp_path / name for name in ("scores.parquet", "arms.csv", "items.csv"))
    wide(SCORES).write_parquet(path)
    settings = ["-k", "1", "--epsilon", "0.05", "--format", "json"]
    ran = CliRunner().invoke(main, ["simulate", "--scores", str(path), *settings])
    assert ran.exit_code == 0, ran.output
    assert 0 < json.loads(ran.stdout)["cells"]["share"] <= 1
    arms.write_text("\n".join(ARMS))
    items.write_text("\n".join(ITEMS))
    everything = ["--items", str(items), "--scores", str(path), "--pull", "false {arm} {item}"]
    ran = CliRunner().invoke(main, ["run", str(arms), *everything, *settings])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["pulls"] == 0


def written(frame: polars.DataFrame) -> Callable[[Path], None]:
    return lambda path: frame.write_parquet(path)


CELL = {"arm": ["a", "a"], "item": ["x", "x"]}


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (lambda path: path.write_text("arm,x\na,1\n"), "cannot be read as a Parquet file"),
        (lambda path: path.write_bytes(b""), "cannot be read as a Parquet file"),
        (
            written(polars.DataFrame({**CELL, "score": [1, 0]})),
            "row 2 says that 'a' scores 0 on item 'x', but a line before says 1",
        ),
        (written(polars.DataFrame({"arm": ["a"], "x": [np.nan]})), "row 1 says nan, but a score"),
        (written(polars.DataFrame({"arm": ["a"], "x": [np.inf]})), "row 1 says inf, but a score"),
        (written(polars.DataFrame({"arm": ["a"], "x": ["good"]})), "row 1 says 'good', but a sc"),
        (written(polars.DataFrame({"arm": ["a"], "x": [[1.0]]})), "row 1 says .1.0., but a score"),
        (
            written(polars.DataFrame({"arm": ["a", "a"], "x": [1, 0]})),
            "has two arms 'a', but names must differ unless every line is a cell, in columns arm,",
        ),
        (written(polars.DataFrame({"arm": ["z"], "q1": [1]})), "has scores of arm 'z', but there"),
        (written(polars.DataFrame({"arm": ["a"], "q99": [1]})), "has scores of item 'q99', but"),
        (written(polars.DataFrame({"arm": [], "q1": []})), "has no scores, but must have a line"),
    ],
)
def test_bad_parquet_is_refused_in_words(
    tmp_path: Path, reader: str, write: Callable[[Path], object], said: str
) -> None:
    path = tmp_path / "scores.parquet"
    write(path)
    with pytest.raises(InvalidInput, match=said):
        selected(path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "none.csv", "-", "", "/dev/zero", tmp_path, "\ud800"):
        with pytest.raises(InvalidInput, match=r"`scores` is .*, but there is no such file"):
            selected(path)


def test_without_a_parquet_reader_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores.parquet"
    wide(SCORES).write_parquet(path)
    monkeypatch.setattr(parquet, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"pip install 'shortlist\[parquet\]'"):
        read_scores(str(path))


def test_more_values_than_memory_should_hold_are_refused(
    tmp_path: Path, reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "scores.parquet"
    wide(SCORES).write_parquet(path)
    monkeypatch.setattr(parquet, "MOST_VALUES", 100)
    with pytest.raises(InvalidInput, match="has 4 rows of 31 values, but must have at most 100"):
        read_scores(str(path))
