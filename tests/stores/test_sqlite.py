"""A store in a file: what may go wrong with files is said in words, and the file still opens
afterwards."""

import multiprocessing
import os
import resource
import signal
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shortlist.errors import (
    InvalidInput,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
)
from shortlist.stores import sqlite as schema
from shortlist.stores.sqlite import Mode, SQLiteStore

REWARDS = [(ticket, 0, 0.5, 1.0) for ticket in range(100)]
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with one experiment and a hundred rewards, closed."""
    path = tmp_path / "a #1 & 100%?.db"
    store = SQLiteStore(path, "rwc")
    store.create("first", "{}")
    with store.exclusive():
        store.append("first", REWARDS)
    store.close()
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    store = SQLiteStore(path, timeout=0.05)
    yield store
    store.close()


def check_intact(path: Path) -> None:
    """The file opens, holds what was committed, and takes more."""
    store = SQLiteStore(path)
    assert list(store.read("first").told.rows()) == REWARDS
    with store.exclusive():
        store.append("first", [(1000, 0, 0.5, 1.0)])
    assert store.read("first").told.tickets.size == 101
    store.close()


# Opening


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_missing_file_is_an_error_and_not_a_new_store(tmp_path: Path, mode: Mode) -> None:
    with pytest.raises(StoreMissing, match=r"there is no file .*none\.db"):
        SQLiteStore(tmp_path / "none.db", mode)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_directory_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(StoreMissing, match="there is no directory"):
        SQLiteStore(tmp_path / "nowhere" / "store.db", "rwc")
    with pytest.raises(StoreMissing, match="is a directory"):
        SQLiteStore(tmp_path, "rwc")


def test_commits_are_durable_and_readers_do_not_wait(store: SQLiteStore, path: Path) -> None:
    assert store._file.query("PRAGMA journal_mode") == [("wal",)]
    assert store._file.query("PRAGMA synchronous") == [(2,)]
    reader = SQLiteStore(path, "ro", timeout=0)
    with store.exclusive():
        store.append("first", [(1000, 0, 0.5, 1.0)])
        assert reader.read("first").told.tickets.size == 100
    assert reader.read("first").told.tickets.size == 101
    reader.close()


def test_a_reader_cannot_write(path: Path) -> None:
    reader = SQLiteStore(path, "ro")
    with pytest.raises(StoreReadOnly, match="can be read, but not written"):
        reader.create("second", "{}")
    assert reader.names() == ["first"]
    reader.close()
    check_intact(path)


# What files suffer


def as_nobody(check: Callable[[Path], None], path: Path) -> None:
    """Run `check` in a process without the rights of root, for which permissions do not count."""

    def checked() -> None:
        if os.getuid() == 0:
            os.setuid(NOBODY)
        try:
            check(path)
        except BaseException as error:
            print(repr(error), file=sys.stderr)
            os._exit(1)
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=checked)
    process.start()
    process.join(120)
    assert process.exitcode == 0


@pytest.fixture
def public(tmp_path_factory: pytest.TempPathFactory, path: Path) -> Path:
    """The store in a directory that everybody may look into and nobody may write to."""
    for folder in (path.parent, *path.parent.parents):
        if folder.owner() == path.owner() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_a_read_only_file_can_be_read_and_refuses_writing_in_words(public: Path) -> None:
    def check(path: Path) -> None:
        reader = SQLiteStore(path, "ro")
        assert list(reader.read("first").told.rows()) == REWARDS
        with pytest.raises(StoreReadOnly, match=r"\.db can be read, but not written"):
            SQLiteStore(path).create("second", "{}")

    as_nobody(check, public)
    public.parent.chmod(0o755)
    public.chmod(0o644)
    check_intact(public)


def test_a_full_disk_is_said_and_nothing_of_the_step_is_written(
    store: SQLiteStore, path: Path
) -> None:
    ((pages,),) = store._file.query("PRAGMA page_count")
    with store._file as database:
        database.execute(f"PRAGMA max_page_count = {pages + 1}")
    with (
        pytest.raises(StoreFull, match=r"there is no room left for .*nothing is lost"),
        store.exclusive(),
    ):
        store.append("first", [(ticket, 0, 0.5, 1.0) for ticket in range(1000, 11000)])
    assert list(store.read("first").told.rows()) == REWARDS
    store._file.query("PRAGMA max_page_count = 1000000")
    check_intact(path)


@pytest.mark.skipif(sys.platform == "win32", reason="resource limits of POSIX")
def test_a_file_that_may_not_grow_is_an_error_and_stays_intact(path: Path) -> None:
    def write_too_much(path: Path) -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
        store = SQLiteStore(path)
        with pytest.raises(StoreError, match=r"\.db"), store.exclusive():
            store.append("first", [(ticket, 0, 0.5, 1.0) for ticket in range(1000, 51000)])
        assert list(store.read("first").told.rows()) == REWARDS

    process = multiprocessing.get_context("fork").Process(target=write_too_much, args=[path])
    process.start()
    process.join(120)
    assert process.exitcode == 0
    check_intact(path)


def test_a_locked_file_is_an_error_after_the_time_allowed(store: SQLiteStore, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLocked, match=r"locked by another program for more than 0\.05 s"):
        store.create("second", "{}")
    assert store.names() == ["first"]
    other.execute("ROLLBACK")
    other.close()
    store.create("second", "{}")
    assert store.names() == ["first", "second"]


def cut(content: bytes) -> bytes:
    return content[: len(content) // 2]


def scribbled(content: bytes) -> bytes:
    return content[:4096] + b"\xa5" * (len(content) - 4096)


def replaced(content: bytes) -> bytes:
    return b"arm,mean\n" + b"a,0.5\n" * 1000


@pytest.mark.parametrize("damage", [cut, scribbled, replaced])
def test_a_damaged_file_is_said_to_be_so_and_is_left_as_it_is(
    path: Path, damage: Callable[[bytes], bytes]
) -> None:
    damaged = damage(path.read_bytes())
    path.write_bytes(damaged)
    with pytest.raises(StoreDamaged, match="is not a store of shortlist, or is damaged"):
        SQLiteStore(path).read("first")
    assert path.read_bytes() == damaged


def test_a_database_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE customers (name TEXT)")
    other.close()
    content = path.read_bytes()
    with pytest.raises(StoreDamaged, match="is a database of another program"):
        SQLiteStore(path, "rwc")
    assert path.read_bytes() == content


def test_an_empty_file_becomes_a_store(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    store = SQLiteStore(path, "rwc")
    assert store.names() == []
    store.close()


def test_a_text_that_cannot_be_stored_is_refused(store: SQLiteStore) -> None:
    with pytest.raises(InvalidInput, match="but must be valid Unicode"):
        store.create("\udcff", "{}")
    assert store.names() == ["first"]


# What the file itself enforces


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE rewards SET reward = 1",
        "DELETE FROM rewards",
        "UPDATE experiments SET settings = '[]'",
        "DELETE FROM experiments",
        "INSERT INTO rewards VALUES (1, 5000, 17, 0, 1.0, 1.0, 0)",
        "INSERT INTO rewards VALUES (1, 5000, 5000, 0, 'high', 1.0, 0)",
    ],
    ids=[
        "change",
        "remove",
        "other settings",
        "no experiment",
        "second reward for a ticket",
        "word for a number",
    ],
)
def test_the_file_refuses_to_forget_or_to_count_twice_whoever_asks(
    path: Path, statement: str
) -> None:
    other = sqlite3.connect(path)
    with pytest.raises(sqlite3.IntegrityError):
        other.execute(statement)
    other.close()
    check_intact(path)


# Versions


@pytest.mark.parametrize("mode", ["ro", "rw", "rwc"])
def test_a_file_of_a_later_version_is_refused_and_left_alone(path: Path, mode: Mode) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 2")
    content = path.read_bytes()
    with pytest.raises(
        StoreError,
        match="has schema version 2, but this version of shortlist knows at most 1: upgrade",
    ):
        SQLiteStore(path, mode)
    assert path.read_bytes() == content


def test_a_file_says_its_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("PRAGMA user_version").fetchone() == (1,)


def test_tables_that_cannot_be_made_leave_an_empty_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "new.db"
    monkeypatch.setattr(schema, "TABLES", (*schema.TABLES, "CREATE TABLE nonsense"))
    with pytest.raises(StoreError, match="cannot be used"):
        SQLiteStore(path, "rwc")
    monkeypatch.undo()
    with pytest.raises(StoreError, match="is empty; create an experiment to make a store"):
        SQLiteStore(path, "ro")
    SQLiteStore(path, "rwc").close()


# Processes


@pytest.mark.skipif(sys.platform == "win32", reason="no fork there")
def test_a_store_that_is_carried_into_another_process_is_refused(store: SQLiteStore) -> None:
    def use() -> None:
        with pytest.raises(
            StoreError, match=r"was opened by process .* open the experiment again in every process"
        ):
            store.names()
        store.close()

    process = multiprocessing.get_context("fork").Process(target=use)
    process.start()
    process.join(120)
    assert process.exitcode == 0
    assert store.names() == ["first"]


def count_up(path: Path) -> None:
    store: Any = SQLiteStore(path)
    for _ in range(25):
        with store.exclusive():
            ticket = store.read("first").told.tickets.size
            store.append("first", [(ticket, 0, 1.0, 0.0)])
    store.close()


def test_blocks_of_several_processes_follow_one_another(path: Path) -> None:
    processes = [
        multiprocessing.get_context("fork").Process(target=count_up, args=[path]) for _ in range(3)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    store = SQLiteStore(path, "ro")
    assert store.read("first").told.tickets.tolist() == list(range(175))
    store.close()
