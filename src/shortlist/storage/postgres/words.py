"""What PostgreSQL says, as errors of this package."""

import re

import psycopg
from psycopg import errors as pg
from psycopg_pool import PoolClosed, PoolTimeout

from shortlist.errors import (
    NotAllowed,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreInterrupted,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
    Unreachable,
)
from shortlist.storage.address import shown_place, without_secrets
from shortlist.storage.in_words import InWords

# others were quicker, or the server ended the transaction: nothing of it was written
UNDONE = (pg.SerializationFailure, pg.DeadlockDetected, pg.IdleInTransactionSessionTimeout)
WAITED = (pg.LockNotAvailable, pg.QueryCanceled)
REFUSED = (pg.ReadOnlySqlTransaction, pg.InsufficientPrivilege)
FULL = (pg.DiskFull, pg.OutOfMemory, pg.ConfigurationLimitExceeded)
DAMAGED = (pg.DataCorrupted, pg.IndexCorrupted, pg.UndefinedTable, pg.UndefinedColumn)
# a server that says so at the door says it again; where it says so in another language, it is asked
# again for a while
FINAL = re.compile(
    r"authentication|password|pg_hba|role |does not exist|translate host|certificate"
)


class PostgresInWords(InWords):
    """A block in which errors of PostgreSQL become errors of this package."""

    quotable = False  # what psycopg says itself may quote the password

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._timeout = timeout

    def told(self, error: BaseException) -> StoreError | NotAllowed | None:
        """What PostgreSQL says, in words."""
        if not isinstance(error, psycopg.Error):
            return None
        place = shown_place(self._url)
        said = without_secrets(" ".join(str(error).split()), self._url)
        if isinstance(error, PoolClosed):
            return StoreError(f"{place} cannot be used: it was closed")
        if isinstance(error, PoolTimeout):
            return Unreachable(f"{place} did not answer within {self._timeout:g} s")
        if isinstance(error, UNDONE) or is_lost(error):
            return StoreInterrupted(
                f"the connection to {place} was lost, and nothing of this step was written ({said})"
            )
        if isinstance(error, WAITED):
            return StoreLocked(
                f"{place} was locked by another program for more than {self._timeout:g} s"
            )
        if isinstance(error, REFUSED):
            return StoreReadOnly(f"{place} can be read, but not written ({said})")
        if isinstance(error, FULL):
            return StoreFull(
                f"there is no room left for {place}; nothing of this step was written, and nothing"
                f" is lost ({said})"
            )
        if isinstance(error, DAMAGED):
            return StoreDamaged(f"{place} is not a store of shortlist, or is damaged ({said})")
        return StoreError(f"{place} cannot be used: {said}")


def is_lost(error: psycopg.Error) -> bool:
    """Whether there is no connection any more: the server ended it, or nobody knows why."""
    state = error.sqlstate or ""
    unknown = isinstance(error, psycopg.OperationalError) and not state
    return unknown or state.startswith("08") or state in ("57P01", "57P02", "57P03", "53300")


def refused_at_the_door(error: psycopg.OperationalError, url: str) -> StoreError | None:
    """What no further try would change; None if the server may be about to start."""
    said = without_secrets(" ".join(str(error).split()), url)
    if not FINAL.search(said):
        return None
    kind = StoreMissing if "does not exist" in said else StoreError
    return kind(f"{shown_place(url)} cannot be opened: {said}")
