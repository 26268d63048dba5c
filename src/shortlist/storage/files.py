"""The file of a store: made for its owner only, recognised, and copied where it cannot be shared.

SQLite keeps two files beside it while it is open, `-wal` with what was written last and `-shm`
with what all programs share. Whoever removes or replaces one of the three takes away what will be
written."""

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from threading import Lock

from shortlist.errors import StoreReadOnly, StoreReplaced

TRIES = 5  # to copy a file that is being written to
WAL, ROLLBACK = b"\2\2", b"\1\1"  # bytes 18 and 19: how the file is written and read

# A file that is closed loses all locks that this process has on it: nobody may take one meanwhile.
opening = Lock()


def make(path: Path) -> None:
    """Make an empty file that only its owner may read and write, unless there is one.

    SQLite gives the files beside it the same rights."""
    with suppress(OSError):  # SQLite will say why it cannot be made
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


class Identity:
    """Which files a store was opened with, whatever they are called now."""

    def __init__(self, path: Path) -> None:
        real = os.path.realpath(path)  # SQLite puts the others beside what a link points to
        self._name = path.name
        self._files = {file: _number(file) for file in (str(path), f"{real}-wal", f"{real}-shm")}

    def check(self) -> None:
        """Refuse to go on if they are not those that were opened."""
        for file, opened in self._files.items():
            found = _number(file)
            if found != opened:
                happened = "deleted or moved" if found is None else "replaced by another file"
                raise StoreReplaced(
                    f"{file} was {happened} while {self._name} was open; nothing of this step was"
                    " written, and what was told before can be exported as long as it stays open"
                )


def is_out_of_reach(path: Path) -> bool:
    """Whether even a reader of the file, which nobody has open, could not make the files that
    SQLite shares with writers."""
    real = Path(os.path.realpath(path))
    return not os.access(real.parent, os.W_OK) and not Path(f"{real}-wal").exists()


def copy_to_memory(path: Path) -> sqlite3.Connection:
    """The file as it is now, in memory, unless somebody opens or changes it meanwhile."""
    for _ in range(TRIES):
        before = _state(path)
        content = _content(path)
        if _state(path) == before and is_out_of_reach(path):
            return in_memory(content)
        time.sleep(0.05)
    raise StoreReadOnly(f"{path} is being written to, and its directory may only be read")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StoreReadOnly(f"{path} cannot be opened: {error.strerror}") from error


def _state(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def in_memory(content: bytes) -> sqlite3.Connection:
    """A database of which these are the bytes."""
    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if content[18:20] == WAL:
        content = content[:18] + ROLLBACK + content[20:]  # there is no -wal in memory
    if content:
        memory.deserialize(content)
    return memory


def _number(file: str) -> tuple[int, int] | None:
    """What the system knows a file by; it is given to no other while somebody has it open."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_dev, status.st_ino
