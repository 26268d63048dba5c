"""Writers are killed at random moments, also while a file is made: nothing that was
acknowledged is lost, nothing is there by halves, and every chain holds.

    SHORTLIST_ATTACK_SCALE=40 pytest tests/attack/test_kills.py

Workers of a whole experiment are killed in tests/engine/test_killed_workers.py."""

import multiprocessing
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from attack_scale import SCALE, SEED

from shortlist.engine import verify
from shortlist.errors import StoreMissing
from shortlist.stores.sqlite import SQLiteStore

KILLS = 25 * SCALE
BATCH = 7  # rewards in a transaction
PROCESSES = multiprocessing.get_context("fork")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def kill_after(seconds: float, work: Callable[..., None], *arguments: Any) -> None:
    """Let a program work for so long, and end it as a power failure would."""
    program = PROCESSES.Process(target=work, args=arguments)
    program.start()
    time.sleep(seconds)
    os.kill(program.pid or 0, signal.SIGKILL)
    program.join(30)


def write(path: Path, journal: Path) -> None:
    """Make a store if need be, write batch after batch, and note what was acknowledged."""
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    store = SQLiteStore(path, "rwc")
    with store.exclusive():
        if not store.names():
            store.create("first", "{}")
    while True:
        with store.exclusive():
            ticket = store.read("first").told.tickets.size
            rows = [(each, 0, each / 7, 1.0) for each in range(ticket, ticket + BATCH)]
            store.append("first", rows)
        os.write(notes, b"%d\n" % (ticket + BATCH))


def acknowledged(journal: Path) -> int:
    """The last number that was written down whole."""
    if not journal.exists():
        return 0
    return max((int(line) for line in journal.read_bytes().split(b"\n")[:-1] if line), default=0)


def told(path: Path) -> list[tuple[int, float]]:
    """What a store has, or nothing if there is none yet."""
    with suppress(StoreMissing), closing(SQLiteStore(path, "rwc")) as store:
        rewards = store.read("first").told
        return list(zip(rewards.tickets.tolist(), rewards.rewards.tolist(), strict=True))
    return []


def test_a_killed_writer_loses_no_transaction_and_leaves_none_incomplete(
    tmp_path: Path,
) -> None:
    chance, path, journal = random.Random(SEED + 11), tmp_path / "store.db", tmp_path / "journal"
    most = 0
    for kill in range(KILLS):
        if kill % 5 == 0:  # begin anew, so that the making of a file is hit as well
            path, journal = tmp_path / f"{kill}.db", tmp_path / f"{kill}.journal"
        kill_after(0.25 * chance.random() ** 2, write, path, journal)
        found = told(path)
        assert found == [(ticket, ticket / 7) for ticket in range(len(found))]
        assert len(found) >= acknowledged(journal)
        assert len(found) % BATCH == 0
        most = max(most, acknowledged(journal))
        assert not any(verdict.damage.startswith("row ") for verdict in verify(path))
    assert most > 0  # they did write
