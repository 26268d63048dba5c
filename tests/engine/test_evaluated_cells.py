"""The cells of a test set belong to the user: with item, cost, seconds and info, and as a file."""

import json
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist
from shortlist import instances
from shortlist.cli import main
from shortlist.engine.experiment import Experiment
from shortlist.engine.export import export_lines, import_lines
from shortlist.errors import InvalidInput, StoreDamaged
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

SCORES = instances.item_response(6, 50, np.random.default_rng(2))
ARMS = [f"model {number}" for number in range(6)]
ITEMS = [f"q{number}" for number in range(50)]
ASKED: dict[str, Any] = {"arms": ARMS, "k": 1, "epsilon": 0.12, "items": ITEMS, "seed": 1}


def value(arm: str, item: str) -> float:
    return float(SCORES[ARMS.index(arm), ITEMS.index(item)])


def answered(arm: str, item: str) -> shortlist.Score:
    return shortlist.Score(value(arm, item), cost=0.5, info={"answer": f"{arm} on {item}"})


def choose(pull: Any = answered, **more: Any) -> Any:
    return shortlist.select(pull, **{**ASKED, "progress": False, **more})


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_of_cells_given_as_scores_asks_for_none_of_them_again(
    tmp_path: Path, ending: str
) -> None:
    if ending == "parquet":
        pytest.importorskip("pyarrow")
    path = tmp_path / f"cells.{ending}"
    first = choose(budget=40)
    assert not first.reached
    first.cells.write(path)
    known = {(cell.arm, cell.item) for cell in first.cells}
    assert len(known) == len(first.cells) > 70
    asked: list[tuple[str, str]] = []

    def ask(arm: str, item: str) -> float:
        asked.append((arm, item))
        return value(arm, item)

    again = choose(ask, scores=path)
    assert asked
    assert not known.intersection(asked)
    assert again.reached
    assert again.regret_bound <= 0.12


def test_every_cell_has_its_item_cost_seconds_and_info(tmp_path: Path) -> None:
    for more in ({}, {"store": tmp_path / "a.db"}, {"workers": 4, "executor": "threads"}):
        result = choose(**more)
        assert len(result.cells) >= result.pulls
        for cell in result.cells:
            assert cell.score == value(cell.arm, cell.item)
            assert cell.info == {"answer": f"{cell.arm} on {cell.item}"}
            assert cell.cost == 0.5
            assert cell.seconds >= 0
        assert len(set(map(str, result.cells))) == len(result.cells)
        assert pickle.loads(pickle.dumps(result)).cells.rows == result.cells.rows
    frame = result.cells.to_frame("pandas")
    assert list(frame.columns) == ["arm", "item", "score", "cost", "seconds", "info"]
    assert json.loads(frame["info"][0]) == result.cells[0].info
    assert "cells" in repr(result.cells)


def test_a_function_of_many_items_may_return_scores() -> None:
    def many(arm: str, items: list[str]) -> list[Any]:
        return [answered(arm, items[0]), *(value(arm, item) for item in items[1:])]

    result = shortlist.select(pull_many=many, batch=5, **ASKED, progress=False)
    assert result.cells is not None
    noted = [cell for cell in result.cells if cell.info is not None]
    assert 0 < len(noted) < len(result.cells)
    assert all(cell.info["answer"] == f"{cell.arm} on {cell.item}" for cell in noted)


def test_a_search_never_uses_an_info() -> None:
    plain = choose(value)
    noted = choose(lambda arm, item: shortlist.Score(value(arm, item), info=item))
    assert plain == noted
    assert {cell.info for cell in plain.cells} == {None}


def told(place: Any) -> Experiment:
    """An experiment with some cells told in several ways."""
    experiment = Experiment.create(store=place, **ASKED)
    tickets = experiment.ask(4)
    experiment.tell(tickets[0], 1.0, info={"a": 1})
    experiment.tell(tickets[1], 0.0, 2.5, ["b"])
    experiment.tell_many([(tickets[2], 1.0), (tickets[3], shortlist.Score(0.0, 3.0, "c"))])
    return experiment


def test_infos_are_stored_exported_and_imported(tmp_path: Path) -> None:
    place = tmp_path / "e.db"
    with told(place) as experiment:
        cells = experiment.cells().rows
        partial = experiment.result(partial=True)
    assert [cell.info for cell in cells] == [{"a": 1}, ["b"], None, "c"]
    assert [cell.cost for cell in cells] == [1.0, 2.5, 1.0, 3.0]
    assert partial.cells is not None
    other = MemoryStore()
    import_lines(export_lines(place), other)
    assert Experiment.open(other).cells().rows == cells
    for ending in ("csv", "parquet"):
        out = tmp_path / f"x.{ending}"
        result = CliRunner().invoke(main, ["export", "--store", str(place), "--cells", str(out)])
        assert result.exit_code == 0, result.output
        assert "4 cells" in result.output
        again = Experiment.create(store=tmp_path / f"{ending}.db", **ASKED, scores=out)
        assert again.settings.cells is not None
        assert int(np.isfinite(again.settings.cells.known).sum()) == 4  # type: ignore[arg-type]


def test_telling_again_keeps_the_first_info() -> None:
    with told(MemoryStore()) as experiment:
        experiment.tell(0, 1.0, info="another")
        assert experiment.cells()[0].info == {"a": 1}


@pytest.mark.parametrize(
    ("info", "message"),
    [
        ({1, 2}, "the info of ticket 0 is .*, but must be JSON"),
        (float("nan"), "must be JSON"),
        ("x" * 70_000, "has 70,002 bytes as JSON, but must have at most 65,536"),
    ],
)
def test_what_is_no_info_is_refused_and_nothing_is_told(info: object, message: str) -> None:
    experiment = Experiment.create(store=MemoryStore(), **ASKED)
    ticket = experiment.ask()[0]
    with pytest.raises(InvalidInput, match=message):
        experiment.tell(ticket, 1.0, info=info)
    assert not experiment.cells().rows
    with pytest.raises(InvalidInput, match="the info of arm"):
        choose(lambda arm, item: shortlist.Score(value(arm, item), info=info))


def test_cells_need_a_test_set_and_damage_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="there are no items"):
        Experiment.create(3, 1, epsilon=0.2).cells()
    with pytest.raises(InvalidInput, match="cannot be written"):
        choose().cells.write(tmp_path / "missing" / "x.csv")
    store = MemoryStore()
    with told(store) as experiment:
        with store.exclusive():
            store.append("experiment", events=[Event(Kind.INFO, 2, 1, "{", 0.0)])
        with pytest.raises(StoreDamaged, match="the info of ticket 2 is no JSON object"):
            experiment.cells().rows  # noqa: B018
        with store.exclusive():
            store.append("experiment", events=[Event(Kind.INFO, 77, 1, "{}", 0.0)])
        with pytest.raises(StoreDamaged, match="the info of ticket 77 is in"):
            experiment.status()


KILLED = """
import os, signal, sys, shortlist
experiment = shortlist.Experiment.create(
    3, 1, store=sys.argv[1], epsilon=0.3, items=40, exist_ok=True
)
for number in range(int(sys.argv[2])):
    (ticket,) = experiment.ask(1, "me")
    experiment.tell(ticket, float(ticket.arm == 1), info={"cell": [ticket.arm, ticket.item]})
    print(ticket.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def killed_after(place: Path, tells: int) -> Iterable[str]:
    command = [sys.executable, "-c", KILLED, str(place), str(tells)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return done.stdout.split()


def test_a_killed_program_loses_no_info(tmp_path: Path) -> None:
    place = tmp_path / "k.db"
    acknowledged = [*killed_after(place, 7), *killed_after(place, 5)]
    assert len(acknowledged) == 12
    with Experiment.open(place) as experiment:
        cells = experiment.cells()
        assert len(cells) == 12
        assert all(cell.info == {"cell": [cell.arm, cell.item]} for cell in cells)


QUESTIONS = [{"id": each, "text": f"what about {each}?"} for each in ITEMS]


def asked_in_full(arm: str, item: dict[str, str]) -> float:
    return value(arm, item["text"].removeprefix("what about ").removesuffix("?"))


@pytest.mark.parametrize("how", [{}, {"workers": 3}, {"executor": "processes", "workers": 2}])
def test_items_with_an_id_are_given_whole_and_kept_by_id(
    how: dict[str, Any], tmp_path: Path
) -> None:
    by_label = choose(value, **how)
    store = tmp_path / "cells.db"
    given = {"items": QUESTIONS, "store": store, "budget": 60, **how}
    cut = choose(asked_in_full, **given)
    assert {cell.item for cell in cut.cells} <= set(ITEMS)
    assert choose(asked_in_full, **given) == cut  # read from the store
    whole = choose(asked_in_full, items=iter(QUESTIONS), **how)
    assert (whole.top, whole.regret_bound) == (by_label.top, by_label.regret_bound)


def test_many_items_with_an_id_are_given_at_once() -> None:
    def many(arm: str, items: list[dict[str, str]]) -> list[float]:
        return [asked_in_full(arm, each) for each in items]

    found = choose(None, pull_many=many, batch=8, items=QUESTIONS)
    assert found == choose(
        None, pull_many=lambda arm, items: [value(arm, each) for each in items], batch=8
    )


def test_an_error_names_the_id() -> None:
    def broken(arm: str, item: dict[str, str]) -> float:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        choose(broken, items=QUESTIONS)
    assert "item 'q" in caught.value.__notes__[0]
    assert "what about" not in caught.value.__notes__[0]


@pytest.mark.parametrize(
    ("items", "rule"),
    [
        ([{"id": "a"}, {"id": "a"}], "two items are called 'a'"),
        ([{"id": "a"}, {"text": "b"}], r"items\[1\] is .*, but others are mappings with an 'id'"),
        ([{"id": "a"}, "b"], r"items\[1\] is 'b', but others are mappings with an 'id'"),
        (["b", {"id": "a"}], r"items\[0\] is 'b', but others are mappings with an 'id'"),
        ([{"id": "a"}, {"id": 1.5}], r"the id of items\[1\] is 1.5, but an id must be a text"),
        ([{"id": "a"}, {"id": []}], r"the id of items\[1\] is \[\], but an id must be a text"),
        ([{"text": "a"}, {"text": "b"}], "give every item an 'id'"),
    ],
)
def test_ids_that_make_no_sense_are_refused(items: list[Any], rule: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rule):
        choose(value, items=items, store=tmp_path / "cells.db")
    assert not (tmp_path / "cells.db").exists()


@pytest.mark.parametrize("name", ["cells.tsv", "cells", "cells.csv.gz"])
def test_a_file_of_another_kind_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"`path` is .*, but must end in .csv or .parquet"):
        choose().cells.write(tmp_path / name)
    assert not list(tmp_path.iterdir())
