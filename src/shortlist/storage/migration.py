"""From version 1 of the schema, which had no links, to version 2: every log is chained as it is."""

import sqlite3

from shortlist.errors import StoreDamaged
from shortlist.storage.chain import NOBODY, beginning, enlisted, event_record, follow, reward_record
from shortlist.storage.store import Event, Kind

REWARDS = """SELECT seq, ticket, arm, reward, time FROM unlinked_rewards
             WHERE experiment = ? ORDER BY seq"""
EVENTS = """SELECT seq, kind, ticket, span, text, time FROM unlinked_events
            WHERE experiment = ? ORDER BY seq"""


def move_away(database: sqlite3.Connection) -> None:
    """Keep the logs under other names while new tables are made."""
    triggers = database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall()
    for (name,) in triggers:
        database.execute(f'DROP TRIGGER "{name}"')
    database.execute("DROP INDEX one_reward_a_ticket")
    for table in ("rewards", "events"):
        database.execute(f"ALTER TABLE {table} RENAME TO unlinked_{table}")


def link_all(database: sqlite3.Connection) -> None:
    """Copy every log with its links, and write down where it begins and ends."""
    roll = NOBODY
    experiments = database.execute("SELECT id, name, settings FROM experiments ORDER BY id")
    for identity, name, settings in experiments.fetchall():
        roll = enlisted(roll, identity, name)
        _link_log(database, identity, name, beginning(name, settings).link)
    database.execute("INSERT INTO heads VALUES (0, ?, ?, ?)", (NOBODY.link, *roll))


def throw_away(database: sqlite3.Connection) -> None:
    """Drop the logs without links."""
    for table in ("rewards", "events"):
        database.execute(f"DROP TABLE unlinked_{table}")


def _link_log(database: sqlite3.Connection, identity: int, name: str, first: int) -> None:
    rewards = {row[0]: row[1:] for row in database.execute(REWARDS, (identity,))}
    events = {
        position: Event(Kind(kind), *rest)
        for position, kind, *rest in database.execute(EVENTS, (identity,))
    }
    records = {position: reward_record(row) for position, row in rewards.items()}
    records |= {position: event_record(event) for position, event in events.items()}
    last = len(rewards) + len(events)
    if records.keys() != set(range(1, last + 1)):
        missing = min(set(range(1, last + 1)) - records.keys())
        raise StoreDamaged(f"row {missing} of experiment {name!r} is missing, or there twice")
    links = [first, *follow(first, (records[position] for position in range(1, last + 1)))]
    database.executemany(
        "INSERT INTO rewards VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(identity, position, *row, links[position]) for position, row in rewards.items()],
    )
    database.executemany(
        "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [(identity, position, *row, links[position]) for position, row in events.items()],
    )
    database.execute("INSERT INTO heads VALUES (?, ?, ?, ?)", (identity, first, last, links[-1]))
