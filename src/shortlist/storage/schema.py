"""The tables of a store in SQLite, and how a file made by an earlier version is brought up to date.

Every version is a tuple of statements that lead to it from the one before; version 0 is an empty
file. To change the schema, add a version: never change one that is out."""

import sqlite3
from contextlib import closing
from pathlib import Path

from shortlist.errors import StoreDamaged, StoreError

APPLICATION_ID = 0x73686F72  # "shor": tells a store from any other SQLite file

VERSIONS: tuple[tuple[str, ...], ...] = (
    (
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
            PRIMARY KEY (experiment, seq)
        ) STRICT, WITHOUT ROWID""",
        "CREATE UNIQUE INDEX one_reward_a_ticket ON rewards (experiment, ticket)",
        """CREATE TABLE events (
            experiment INTEGER NOT NULL REFERENCES experiments (id),
            seq INTEGER NOT NULL,
            kind TEXT NOT NULL CHECK (kind IN ('step', 'lease', 'fail', 'resume')),
            ticket INTEGER NOT NULL,    -- the first it is about
            span INTEGER NOT NULL,      -- how many
            text TEXT NOT NULL,         -- step: digest, lease: worker, fail: reason
            time REAL NOT NULL,         -- lease: when it ends
            PRIMARY KEY (experiment, seq)
        ) STRICT, WITHOUT ROWID""",
        *(
            f"""CREATE TRIGGER {table}_refuse_{action} BEFORE {action} ON {table}
            BEGIN SELECT RAISE (ABORT, 'the log is append-only'); END"""
            for table in ("rewards", "events")
            for action in ("UPDATE", "DELETE")
        ),
    ),
)


def version_of(database: sqlite3.Connection, path: Path) -> int:
    """The version of a file, if it is a store or empty."""
    (version,) = database.execute("PRAGMA user_version").fetchone()
    (application,) = database.execute("PRAGMA application_id").fetchone()
    (tables,) = database.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if application != APPLICATION_ID and (application or version or tables):
        raise StoreDamaged(
            f"{path} is a database of another program, but must be a store of shortlist"
        )
    if version > len(VERSIONS):
        raise StoreError(
            f"{path} has schema version {version}, but this shortlist knows {len(VERSIONS)} at"
            " most: upgrade shortlist"
        )
    return int(version)


def upgrade(database: sqlite3.Connection, path: Path) -> None:
    """Bring a store to the last version, inside a transaction of the caller; what was in the file
    is kept beside it."""
    version = version_of(database, path)
    if 0 < version < len(VERSIONS):
        _back_up(path, version)
    for statements in VERSIONS[version:]:
        for statement in statements:
            database.execute(statement)
    database.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    database.execute(f"PRAGMA user_version = {len(VERSIONS)}")


def _back_up(path: Path, version: int) -> None:
    """Copy what is committed to `<name>.v<version>.bak`."""
    with (
        closing(sqlite3.connect(path)) as original,
        closing(sqlite3.connect(path.with_name(f"{path.name}.v{version}.bak"))) as copy,
    ):
        original.backup(copy)
