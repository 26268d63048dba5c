"""The tables of a store in SQLite, and the version of the schema that a file is made with.

Version 0 is an empty file. To change the tables once a version is released, raise `VERSION` and
write what brings a file of the version before up to date."""

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path

from shortlist.errors import StoreDamaged, StoreError

APPLICATION_ID = 0x73686F72  # "shor": tells a store from any other SQLite file
VERSION = 1


def append_only(*tables: str) -> tuple[str, ...]:
    """Triggers that refuse to change or remove what is in these tables."""
    return tuple(
        f"""CREATE TRIGGER {table}_refuse_{action} BEFORE {action} ON {table}
            BEGIN SELECT RAISE (ABORT, 'the log is append-only'); END"""
        for table in tables
        for action in ("UPDATE", "DELETE")
    )


TABLES: tuple[str, ...] = (
    """CREATE TABLE experiments (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        settings TEXT NOT NULL      -- JSON
    ) STRICT""",
    """CREATE TABLE rewards (
        experiment INTEGER NOT NULL REFERENCES experiments (id),
        seq INTEGER NOT NULL,       -- position in the log, shared with events
        ticket INTEGER NOT NULL,
        arm INTEGER NOT NULL,       -- from 0
        reward REAL NOT NULL,
        time REAL NOT NULL,         -- seconds since 1970, when it was told
        link INTEGER NOT NULL,      -- checksum of this row and of the link before it
        PRIMARY KEY (experiment, seq)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE events (
        experiment INTEGER NOT NULL REFERENCES experiments (id),
        seq INTEGER NOT NULL,
        kind TEXT NOT NULL,
        ticket INTEGER NOT NULL,    -- the first it is about
        span INTEGER NOT NULL,      -- how many
        text TEXT NOT NULL,         -- step: digest, lease: worker, fail: reason
        time REAL NOT NULL,         -- lease: when it ends
        link INTEGER NOT NULL,
        PRIMARY KEY (experiment, seq)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE heads (
        experiment INTEGER PRIMARY KEY,  -- 0: the list of experiments itself
        first INTEGER NOT NULL,          -- link that its log begins with
        last INTEGER NOT NULL,           -- position of the last entry
        link INTEGER NOT NULL            -- and its link
    ) STRICT""",
    "INSERT INTO heads VALUES (0, 0, 0, 0)",
    "CREATE UNIQUE INDEX one_reward_a_ticket ON rewards (experiment, ticket)",
    *append_only("rewards", "events", "experiments"),
    """CREATE TABLE tokens (
        name TEXT PRIMARY KEY,
        scope TEXT NOT NULL,
        digest TEXT NOT NULL,       -- SHA-256 of the secret
        created REAL NOT NULL,      -- seconds since 1970
        revoked REAL                -- null as long as it is not
    ) STRICT""",
    """CREATE TRIGGER tokens_refuse_DELETE BEFORE DELETE ON tokens
        BEGIN SELECT RAISE (ABORT, 'tokens are revoked, never removed'); END""",
    """CREATE TRIGGER tokens_refuse_UPDATE BEFORE UPDATE ON tokens
        WHEN old.revoked IS NOT NULL OR (old.name, old.scope, old.digest, old.created)
            IS NOT (new.name, new.scope, new.digest, new.created)
        BEGIN SELECT RAISE (ABORT, 'a token is only ever revoked'); END""",
)


def version_of(database: sqlite3.Connection, path: Path) -> int:
    """The version of a file, if it is a store or empty; inside a transaction of the caller."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreDamaged(
            f"{path} is a database of another program, but must be a store of shortlist"
        )
    if version > VERSION:
        raise StoreError(
            f"{path} has schema version {version}, but this shortlist knows {VERSION} at most:"
            " upgrade shortlist"
        )
    if version == VERSION:
        _check_schema(database, path)
    return int(version)


def make_tables(database: sqlite3.Connection) -> None:
    """Make a store of an empty file, inside a transaction of the caller."""
    for statement in TABLES:
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {VERSION}")


def check_integrity(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a file in which SQLite finds a page, an index or a type that is wrong."""
    (found, *_) = database.execute("PRAGMA integrity_check(1)").fetchone()
    if found != "ok":
        raise StoreDamaged(f"{path} is damaged: {' '.join(str(found).split())}")


def _check_schema(database: sqlite3.Connection, path: Path) -> None:
    """Refuse a file in which a table, an index or a trigger of a store is missing or another."""
    for kind, name, text in sorted(_schema() - _schema_of(database)):
        raise StoreDamaged(
            f"{path} is damaged: its {kind} {name} is not as it was made ({' '.join(text.split())})"
        )


@cache
def _schema() -> frozenset[tuple[str, str, str]]:
    """What a new file says of itself."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as database:
        make_tables(database)
        return _schema_of(database)


def _schema_of(database: sqlite3.Connection) -> frozenset[tuple[str, str, str]]:
    rows = database.execute("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL")
    return frozenset(rows)
