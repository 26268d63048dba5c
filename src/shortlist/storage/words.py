"""What SQLite says, as errors of this package."""

import sqlite3
from pathlib import Path

from shortlist.errors import StoreDamaged, StoreError, StoreFull, StoreLocked, StoreReadOnly
from shortlist.storage.in_words import InWords

BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
REFUSED = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH)
DAMAGED = (
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_FORMAT,
    sqlite3.SQLITE_TOOBIG,
)


class SQLiteInWords(InWords):
    """A block in which errors of SQLite about a file become errors of this package."""

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout

    def told(self, error: BaseException) -> StoreError | None:
        """What SQLite says, in words."""
        if isinstance(error, sqlite3.Error):
            return _error(error, self._path, self._timeout)
        # Python could not even read what SQLite says of the damage
        if isinstance(error, UnicodeDecodeError):
            return StoreDamaged(
                f"{self._path} is not a store of shortlist, or is damaged ({error.object!r})"
            )
        return None


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else was in the way, and may be gone soon."""
    return _code(error) in BUSY


def _code(error: sqlite3.Error) -> int:
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    return code & 0xFF  # the rest is detail


def _error(error: sqlite3.Error, path: Path, timeout: float) -> StoreError:
    code = _code(error)
    if code in BUSY:
        return StoreLocked(f"{path} was locked by another program for more than {timeout:g} s")
    if code in REFUSED:
        return StoreReadOnly(f"{path} can be read, but not written ({error})")
    if code == sqlite3.SQLITE_FULL:
        return StoreFull(
            f"there is no room left for {path}; nothing of this step was written, and nothing"
            " is lost"
        )
    if code in DAMAGED or _undecodable(error):
        return StoreDamaged(f"{path} is not a store of shortlist, or is damaged ({error})")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreReadOnly(
            f"{path} cannot be opened; both it and its directory must be accessible ({error})"
        )
    return StoreError(f"{path} cannot be used: {error}")


def _undecodable(error: sqlite3.Error) -> bool:
    """Whether Python refused the bytes of a text, of which SQLite has no code."""
    return not hasattr(error, "sqlite_errorcode") and "decode" in str(error)
