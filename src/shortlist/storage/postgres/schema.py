"""The tables of a store in PostgreSQL, in a schema of their own, and the version of that schema.

Version 0 is a database without these tables. To change them once a version is released, raise
`VERSION` and write what brings tables of the version before up to date."""

from typing import Any

from psycopg import Connection

from shortlist.errors import StoreDamaged, StoreError, StoreMissing
from shortlist.storage.connection import Mode

SCHEMA = "shortlist"
LOCK = 0x73686F72  # "shor": who makes the tables holds it
VERSION = 1


def append_only(*tables: str) -> tuple[str, ...]:
    """Triggers that refuse to change or remove what is in these tables."""
    return tuple(
        f"""CREATE TRIGGER {table}_refuse BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
            EXECUTE FUNCTION refuse('the log is append-only')"""
        for table in tables
    )


TABLES: tuple[str, ...] = (
    "CREATE TABLE version (version bigint NOT NULL)",
    f"INSERT INTO version VALUES ({VERSION})",
    """CREATE TABLE experiments (
        id bigint PRIMARY KEY,
        name text NOT NULL,
        settings text NOT NULL              -- JSON
    )""",
    # a name may be longer than an entry of an index
    "CREATE UNIQUE INDEX one_experiment_a_name ON experiments (md5(name))",
    """CREATE TABLE rewards (
        experiment bigint NOT NULL,
        seq bigint NOT NULL,                -- position in the log, shared with events
        ticket bigint NOT NULL,
        arm bigint NOT NULL,                -- from 0
        reward double precision NOT NULL,
        time double precision NOT NULL,     -- seconds since 1970, when it was told
        link bigint NOT NULL,               -- checksum of this row and of the link before it
        PRIMARY KEY (experiment, seq)
    )""",
    "CREATE UNIQUE INDEX one_reward_a_ticket ON rewards (experiment, ticket)",
    """CREATE TABLE events (
        experiment bigint NOT NULL,
        seq bigint NOT NULL,
        kind text NOT NULL,
        ticket bigint NOT NULL,             -- the first it is about
        span bigint NOT NULL,               -- how many
        text text NOT NULL,                 -- step: digest, lease: worker, fail: reason
        time double precision NOT NULL,     -- lease: when it ends
        link bigint NOT NULL,
        PRIMARY KEY (experiment, seq)
    )""",
    """CREATE TABLE heads (
        experiment bigint PRIMARY KEY,      -- 0: the list of experiments itself
        first bigint NOT NULL,              -- link that its log begins with
        last bigint NOT NULL,               -- position of the last entry
        link bigint NOT NULL                -- and its link
    ) WITH (fillfactor = 50)                -- its rows change with every step""",
    "INSERT INTO heads VALUES (0, 0, 0, 0)",
    """CREATE TABLE tokens (
        number bigint GENERATED ALWAYS AS IDENTITY,
        name text PRIMARY KEY,
        scope text NOT NULL,
        digest text NOT NULL,               -- SHA-256 of the secret
        created double precision NOT NULL,  -- seconds since 1970
        revoked double precision            -- null as long as it is not
    )""",
    """CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '%', TG_ARGV[0]; END $$""",
    *append_only("rewards", "events", "experiments"),
    """CREATE TRIGGER tokens_refuse BEFORE DELETE OR TRUNCATE ON tokens
        EXECUTE FUNCTION refuse('tokens are revoked, never removed')""",
    """CREATE TRIGGER tokens_refuse_update BEFORE UPDATE ON tokens FOR EACH ROW
        WHEN (old.revoked IS NOT NULL OR (old.name, old.scope, old.digest, old.created)
            IS DISTINCT FROM (new.name, new.scope, new.digest, new.created))
        EXECUTE FUNCTION refuse('a token is only ever revoked')""",
)


def prepare(connection: Connection[Any], mode: Mode, place: str) -> None:
    """See to it that there is a store."""
    version = version_of(connection, place)
    if version == 0 and mode != "rwc":
        raise StoreMissing(f"there is no store in {place}, and only a new experiment makes one")
    if version == 0:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            if version_of(connection, place) == 0:  # no other program made them meanwhile
                _make_tables(connection, place)


def version_of(connection: Connection[Any], place: str) -> int:
    """The version of the tables that are there; 0 if there are none."""
    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
    (count,) = _one(connection, tables, SCHEMA)
    if not count:
        return 0
    (there,) = _one(connection, "SELECT to_regclass(%s)::text", f"{SCHEMA}.version")
    if there is None:
        raise StoreDamaged(
            f"{place} has tables of another program in its schema {SCHEMA}, which must be that of a"
            " store"
        )
    (version,) = _one(connection, f"SELECT max(version) FROM {SCHEMA}.version")
    if version is None or version > VERSION:
        raise StoreError(
            f"{place} has schema version {version}, but this shortlist knows {VERSION} at most:"
            " upgrade shortlist"
        )
    return int(version)


def _make_tables(connection: Connection[Any], place: str) -> None:
    _make_schema(connection, place)
    connection.execute(f"SET LOCAL search_path = {SCHEMA}")
    for statement in TABLES:
        connection.execute(statement.encode())


def _make_schema(connection: Connection[Any], place: str) -> None:
    (encoding,) = _one(connection, "SELECT current_setting('server_encoding')")
    if encoding != "UTF8":
        raise StoreError(f"{place} has the encoding {encoding}, but must be a database in UTF8")
    (there,) = _one(connection, "SELECT count(*) FROM pg_namespace WHERE nspname = %s", SCHEMA)
    if not there:  # an administrator may have made it, for whoever may not
        connection.execute(f"CREATE SCHEMA {SCHEMA}")


def _one(connection: Connection[Any], statement: str, *values: object) -> tuple[Any, ...]:
    row: tuple[Any, ...] | None = connection.execute(statement.encode(), values or None).fetchone()
    assert row is not None
    return row
