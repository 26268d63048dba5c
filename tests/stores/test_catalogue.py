"""Experiments are renamed, archived, restored and deleted, in every store and through a service."""

import sqlite3
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from places import PLACES, STORES, log_of, opening, place, reopen
from places import create as made

from shortlist import Arm
from shortlist.cli import main
from shortlist.engine import Experiment, archive, copy, delete, rename, verify
from shortlist.errors import InvalidInput, StoreDamaged, StoreExists, StoreMissing, StoreReadOnly
from shortlist.stores import Kind
from shortlist.stores.sqlite import SQLiteStore


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    store = opening(request.param, tmp_path)()
    yield store
    store.close()


def begun(store: Any, name: str = "colours") -> Experiment:
    experiment = Experiment.create(
        ["red", "green", "blue"], 1, store=store, name=name, budget=30, algorithm="uniform"
    )
    experiment.tell_many((ticket, 0.5) for ticket in experiment.ask(5, "ann"))
    return experiment


def test_a_list_comes_without_opening_anything(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = begun(store)
    begun(store, "sizes")
    while tickets := experiment.ask(10):
        experiment.tell_many((ticket, 0.5) for ticket in tickets)
    monkeypatch.setattr(type(store), "read", None)
    listed = store.listed()
    assert [tuple(each) for each in listed] == [
        ("colours", 3, 1, "uniform", 30, "budget", False),
        ("sizes", 3, 1, "uniform", 5, "ready", False),
    ]


@pytest.mark.parametrize("kind", PLACES)
def test_a_renamed_experiment_keeps_its_tickets(kind: str, tmp_path: Path) -> None:
    with place(kind, tmp_path) as there:
        experiment = made(3, 1, store=there, name="old", budget=30)
        ticket = experiment.ask(1, "ann")[0]
        if kind == "http":
            experiment.rename("new")
        else:
            rename(there, "old", "new")
        again = reopen(there, "new")
        again.tell(ticket, 0.5)
        assert again.status().told == 1
        assert log_of(there).names() == ["new"]
        with pytest.raises(StoreExists, match="names stay taken"):
            made(3, 1, store=there, name="old", budget=30)
        with pytest.raises(StoreMissing):
            reopen(there, "old")


@pytest.mark.parametrize("kind", PLACES)
def test_an_archived_experiment_is_read_only_and_not_in_lists(kind: str, tmp_path: Path) -> None:
    with place(kind, tmp_path) as there:
        experiment = made(3, 1, store=there, name="old", budget=30)
        ticket = experiment.ask(1, "ann")[0]
        act: Any = partial(archive, there, "old")
        if kind == "http":
            act = experiment.archive
        act()
        assert log_of(there).names() == []
        assert [each.archived for each in log_of(there).listed()] == [True]
        again = reopen(there, "old")
        assert again.status().held == 1
        with pytest.raises(StoreReadOnly, match="is archived and read-only: restore it"):
            again.tell(ticket, 0.5)
        with pytest.raises(StoreReadOnly, match="is archived and read-only: restore it"):
            again.ask(1, "ben")
        act(restore=True)
        again.tell(ticket, 0.5)
        assert reopen(there, "old").status().told == 1


@pytest.mark.parametrize("kind", PLACES)
def test_a_deleted_experiment_is_gone_and_its_name_stays_taken(kind: str, tmp_path: Path) -> None:
    with place(kind, tmp_path) as there:
        made(["x", "y"], 1, store=there, name="other", budget=30)
        experiment = made(["secret", "b"], 1, store=there, name="old", budget=30)
        tickets = experiment.ask(2, "ann")
        experiment.tell(tickets[0], 0.5)
        experiment.delete() if kind == "http" else delete(there, "old")
        with pytest.raises(StoreMissing):
            experiment.tell(tickets[1], 0.5)
        with pytest.raises(StoreMissing):
            reopen(there, "old")
        with pytest.raises(StoreExists):
            made(3, 1, store=there, name="old", budget=30)
        assert log_of(there).names() == ["other"]
        assert reopen(there, "other").status().told == 0


def test_the_file_of_a_deleted_experiment_holds_none_of_its_labels(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    labels = [f"secret person {number:05d}" for number in range(3000)]
    Experiment.create(labels, 1, store=path, name="old", budget=30_000).close()
    begun(str(path), "other").close()
    assert b"secret person 01234" in path.read_bytes()
    delete(path, "old")
    assert b"secret person" not in path.read_bytes()
    assert not Path(f"{path}-wal").exists() or b"secret" not in Path(f"{path}-wal").read_bytes()
    assert [verdict.damage for verdict in verify(path)] == [""]


def test_the_list_names_who_changed_what(store: Any) -> None:
    begun(store)
    store.change("colours", Kind.RENAME, "hues", "ann")
    store.change("hues", Kind.DELETE, "", "ben")
    if hasattr(store, "_database"):
        rows = store._database.query(
            "SELECT kind, text, author FROM events WHERE experiment = 0 ORDER BY seq"
        )
        assert rows == [("create", "colours", ""), ("rename", "hues", "ann"), ("delete", "", "ben")]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM events WHERE experiment = 0",
        "UPDATE events SET text = 'x' WHERE experiment = 0",
        "UPDATE experiments SET name = 'x'",
        "UPDATE heads SET kept = 'archived' WHERE experiment = 1",
        "UPDATE heads SET kept = 'lost' WHERE experiment = 1",
    ],
)
def test_a_changed_list_is_detected(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "a.db"
    begun(str(path)).close()
    with sqlite3.connect(path) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_schema WHERE type='trigger'"):
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute(damage)
    store = SQLiteStore.__new__(SQLiteStore)
    from shortlist.stores import sqlite

    check, sqlite._check_schema = sqlite._check_schema, lambda *_: None
    try:
        store.__init__(path, "rw")  # type: ignore[misc]
        with pytest.raises(StoreDamaged):
            store.names()
        store.close()
    finally:
        sqlite._check_schema = check
    database.close()


def test_readers_do_not_wait_for_a_writer(tmp_path: Path) -> None:
    from threading import Thread

    store = SQLiteStore(tmp_path / "a.db", "rwc")
    begun(store)
    seen: list[Any] = []

    def look() -> None:
        seen.append((store.names(), len(store.read("colours").told)))

    with store.exclusive():
        store.append("colours", [(7, 0, 0.5, 1.0)])
        reader = Thread(target=look)
        begin = time.monotonic()
        reader.start()
        reader.join(60)
        assert time.monotonic() - begin < 30
        assert seen == [(["colours"], 5)]
        assert len(store.read("colours").told) == 6
    store.close()


def test_a_copy_may_have_another_name(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    begun(path).close()
    (copied,) = copy(path, path, "colours", as_name="again")
    assert (copied.name, Experiment.open(path, "again").status().told) == ("again", 5)
    with pytest.raises(InvalidInput, match="2 experiments would be copied: name one"):
        copy(path, str(tmp_path / "b.db"), as_name="x")


def run(*words: str, **more: Any) -> tuple[int, str]:
    result = CliRunner().invoke(main, list(words), **more)
    return result.exit_code, result.output


def test_the_commands_rename_archive_copy_and_delete(tmp_path: Path) -> None:
    path = str(tmp_path / "a.db")
    begun(path).close()
    assert run("rename", "colours", "hues", "--store", path) == (0, "'colours' is now 'hues'\n")
    assert run("archive", "hues", "--store", path) == (0, "'hues' is archived\n")
    assert run("list", path)[1] == ""
    assert "told" in run("status", "--name", "hues", "--store", path)[1]
    assert run("archive", "hues", "--undo", "--store", path)[1] == "'hues' is active again\n"
    assert "'again'" in run("copy", path, path, "--name", "hues", "--as", "again")[1]
    assert run("delete", "hues", "--store", path, input="n\n")[0] == 1
    assert "hues" in run("list", path)[1]
    assert "is deleted" in run("delete", "hues", "--yes", "--store", path)[1]
    assert run("delete", "hues", "--yes", "--store", path)[0] == 2
    (tmp_path / "rewards.csv").write_text("ticket,reward\n5,0.5\n6,0.25\n")
    assert run("ask", "--limit", "5", "--store", path)[0] == 0
    told = run("tell", "--file", str(tmp_path / "rewards.csv"), "--store", path)
    assert told == (0, "told 2 of 2 rewards\n")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_views_have_labels_and_names(kind: str, tmp_path: Path) -> None:
    store: Any = opening(kind, tmp_path)()
    labels: list[Any] = [["red", "green"], [Arm("red", cost=2.0), Arm("green")], 2]
    for number, arms in enumerate(labels):
        name = f"experiment {number}"
        experiment = Experiment.create(
            arms, 1, store=store, name=name, budget=30, algorithm="uniform"
        )
        experiment.tell_many((ticket, 0.5) for ticket in experiment.ask(2))
    rows = store._database.query(
        "SELECT experiment, arm, reward FROM reward_list ORDER BY experiment, ticket"
    )
    assert {(name, str(arm)) for name, arm, _ in rows} == {
        *((f"experiment {number}", arm) for number in (0, 1) for arm in ("red", "green")),
        *(("experiment 2", arm) for arm in ("0", "1")),
    }
    kinds = store._database.query("SELECT DISTINCT experiment, kind FROM event_list")
    assert ("experiment 0", "lease") in kinds
    assert ("", "create") in kinds
    store.close()
