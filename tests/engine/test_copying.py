"""Copies of experiments in other stores: the same, all or none, never in the place of another."""

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from places import STORES, opening

from shortlist.cli import main
from shortlist.engine import Copied, Experiment, copy, verify
from shortlist.engine import export as module
from shortlist.errors import InvalidInput, StoreDamaged, StoreExists, StoreMissing
from shortlist.stores import Store
from shortlist.stores.base import MemoryStore

NAMES = ("colours", "sizes")
MOVES = [(old, new) for old in STORES for new in STORES if "memory" not in (old, new)]
MOVES += [("memory", "postgres"), ("sqlite", "memory")]


def fill(store: Store) -> None:
    """Two experiments that are under way."""
    for name in NAMES:
        experiment = Experiment.create(
            list("abcd"), 1, budget=200, algorithm="uniform", retries=9, store=store, name=name
        )
        for _ in range(3):
            tickets = experiment.ask(9, worker="ann")
            experiment.tell_many((each, 0.1 * (each.seed % 10)) for each in tickets[1:])
            experiment.fail(tickets[0], "no\nluck")


def ended(store: Store, name: str) -> Any:
    """What comes out when the experiment goes on to its end."""
    experiment = Experiment.open(store, name)
    while tickets := experiment.ask(7, worker="ann"):
        experiment.tell_many((each, 0.1 * (each.seed % 10)) for each in tickets)
    return experiment.result()


@pytest.fixture(params=MOVES, ids=" to ".join)
def move(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """A store with experiments, and another without."""
    with ExitStack() as stack:
        stores = []
        for each, kind in zip(("old", "new"), request.param, strict=True):
            (tmp_path / each).mkdir()
            stores.append(opening(kind, tmp_path / each)())
            stack.callback(stores[-1].close)
        fill(stores[0])
        yield stores[0], stores[1]


def test_a_copy_says_the_same_and_goes_on_to_the_same_answer(move: tuple[Store, Store]) -> None:
    old, new = move
    rows = [old.read(name).last for name in NAMES]
    assert copy(old, new) == [Copied(*each) for each in zip(NAMES, rows, strict=True)]
    assert new.names() == list(NAMES)
    assert [verdict.damage + verdict.replay for verdict in verify(new)] == ["", ""]
    for name in NAMES:
        assert new.settings(name) == old.settings(name)
        assert list(new.read(name).told.rows()) == list(old.read(name).told.rows())
        assert list(new.read(name).events) == list(old.read(name).events)
        assert ended(new, name).top == ended(old, name).top


def test_one_can_be_copied_and_nothing_is_overwritten(move: tuple[Store, Store]) -> None:
    old, new = move
    copy(old, new, "sizes")
    before = list(new.read("sizes").told.rows())
    with pytest.raises(StoreExists, match="there is 'sizes' in the target already"):
        copy(old, new)
    assert new.names() == ["sizes"]
    assert list(new.read("sizes").told.rows()) == before
    with pytest.raises(StoreMissing, match="there is no experiment 'shapes' in the source"):
        copy(old, new, "shapes")


def test_a_source_without_experiments_is_refused() -> None:
    with pytest.raises(InvalidInput, match="there is no experiment in the source"):
        copy(MemoryStore(), MemoryStore())


def test_a_copy_that_is_not_what_was_copied_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def forgetful(old: Store, new: Store, name: str, wanted: str) -> Copied:
        news = old.read(name)
        new.create(wanted, old.settings(name))
        new.append(wanted, list(news.told.rows())[:-1], news.events)
        return Copied(name, news.last - 1)

    old = MemoryStore()
    fill(old)
    assert copy(old, MemoryStore())
    monkeypatch.setattr(module, "_put_copy", forgetful)
    copy(old, MemoryStore())  # the source may have grown by one
    monkeypatch.setattr(module, "_put_copy", lambda *each: Copied(forgetful(*each).name, 1))
    with pytest.raises(StoreDamaged, match="is not what was copied"):
        copy(old, MemoryStore())


def test_a_damaged_log_is_refused_before_there_is_a_file(tmp_path: Path) -> None:
    old = opening("sqlite", tmp_path)()
    fill(old)
    old.close()
    with closing(sqlite3.connect(tmp_path / "store.db", isolation_level=None)) as file:
        file.execute("DROP TRIGGER rewards_refuse_UPDATE")
        file.execute("UPDATE rewards SET reward = 0.7 WHERE ticket = 3")
        file.execute(
            """CREATE TRIGGER rewards_refuse_UPDATE BEFORE UPDATE ON rewards
            BEGIN SELECT RAISE (ABORT, 'the log is append-only'); END"""
        )
    with pytest.raises(StoreDamaged):
        copy(tmp_path / "store.db", tmp_path / "new.db")
    assert not (tmp_path / "new.db").exists()


def test_the_command_line_copies_and_says_what(tmp_path: Path) -> None:
    old = opening("sqlite", tmp_path)()
    fill(old)
    old.close()
    given = ["copy", str(tmp_path / "store.db"), str(tmp_path / "new.db")]
    result = CliRunner().invoke(main, given)
    assert result.exit_code == 0, result.output
    assert "new.db: experiment 'colours' with" in result.output
    again = CliRunner().invoke(main, given)
    assert again.exit_code == 2
    assert "nothing was copied" in again.output
    from_service = CliRunner().invoke(main, ["copy", "http://127.0.0.1:1", str(tmp_path / "x.db")])
    assert from_service.exit_code == 2
    assert "a service, but must be a file or a store" in from_service.output
