"""The file of a store stays the one that was opened, and is its owner's."""

import os
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shortlist.errors import StoreDamaged, StoreError, StoreReplaced
from shortlist.stores import sqlite as files
from shortlist.stores.sqlite import SQLiteStore

REWARDS = [(ticket, 0, 0.5, 1.0) for ticket in range(30)]
MORE = [(ticket, 0, 0.5, 2.0) for ticket in range(30, 60)]
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="files of POSIX")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with thirty rewards, closed."""
    path = tmp_path / "store.db"
    with closing(SQLiteStore(path, "rwc")) as store:
        store.create("first", "{}")
        with store.exclusive():
            store.append("first", REWARDS)
    return path


@pytest.fixture
def store(path: Path) -> Iterator[SQLiteStore]:
    with closing(SQLiteStore(path)) as store:
        yield store


def delete(path: Path) -> None:
    path.unlink()


def move(path: Path) -> None:
    path.rename(path.with_name("elsewhere.db"))


def replace(path: Path) -> None:
    other = path.with_name("other.db")
    with closing(SQLiteStore(other, "rwc")) as new:
        new.create("first", "{}")
    other.replace(path)


def delete_what_was_written_last(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def delete_what_is_shared(path: Path) -> None:
    Path(f"{path}-shm").unlink()


def delete_directory(path: Path) -> None:
    for file in path.parent.iterdir():
        file.unlink()
    path.parent.rmdir()


@POSIX
@pytest.mark.parametrize(
    "harm",
    [
        delete,
        move,
        replace,
        delete_what_was_written_last,
        delete_what_is_shared,
        delete_directory,
    ],
)
def test_a_file_that_is_gone_takes_no_more_and_what_it_had_can_be_read(
    store: SQLiteStore, path: Path, harm: Callable[[Path], None]
) -> None:
    with store.exclusive():
        store.append("first", MORE)
    harm(path)
    for _ in range(2):
        with (
            pytest.raises(StoreReplaced, match=r"store\.db.* was (deleted|moved|replaced)"),
            store.exclusive(),
        ):
            store.append("first", [(60, 0, 0.5, 3.0)])
        assert list(store.read("first").told.rows()) == [*REWARDS, *MORE]


def test_a_log_that_lost_what_was_read_before_is_damaged(path: Path) -> None:
    with (
        closing(SQLiteStore(path)) as store,
        pytest.raises(StoreDamaged, match="had 31 rows before"),
    ):
        store.read("first", 31)


# Rights


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@POSIX
def test_a_new_store_and_the_files_beside_it_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with closing(SQLiteStore(tmp_path / "store.db", "rwc")) as store:
            store.create("first", "{}")
            modes = {file.name: mode(file) for file in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm"), 0o600)


@POSIX
def test_rights_that_were_given_stay(path: Path) -> None:
    path.chmod(0o640)
    with closing(SQLiteStore(path, "rwc")) as store:
        store.create("second", "{}")
        assert mode(Path(f"{path}-wal")) == 0o640
    assert mode(path) == 0o640


# Readers where nothing may be written


@POSIX
def test_a_reader_through_a_link_in_another_directory_sees_what_was_written_last(
    store: SQLiteStore, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "links" / "store.db"
    link.parent.mkdir()
    link.symlink_to(path)
    with store.exclusive():
        store.append("first", MORE)
    # root may write everywhere, so the system is not asked
    monkeypatch.setattr(os, "access", lambda place, _: Path(place) != link.parent)
    with closing(SQLiteStore(link, "ro")) as reader:
        assert reader.read("first").told.tickets.size == 60


@POSIX
def test_a_file_that_changes_while_it_is_copied_is_not_taken(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = files._content

    def written_meanwhile(path: Path) -> bytes:
        found = content(path)
        with path.open("ab") as file:
            file.write(b"more")
        return found

    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(files, "_content", written_meanwhile)
    with pytest.raises(StoreError, match="is being written to"):
        SQLiteStore(path, "ro")


@POSIX
def test_a_reader_that_may_not_write_never_takes_a_file_for_immutable(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it reads stays a state that was committed, however much is written meanwhile."""
    allowed = os.access
    monkeypatch.setattr(os, "access", lambda *_: False)
    reader = SQLiteStore(path, "ro")
    monkeypatch.setattr(os, "access", allowed)
    with closing(SQLiteStore(path)) as writer, writer.exclusive():
        writer.append("first", [(ticket, 0, 0.5, 1.0) for ticket in range(30, 5000)])
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert list(reader.read("first").told.rows()) == REWARDS
    reader.close()
