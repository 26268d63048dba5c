"""A `select` with a store is killed at random moments, and the same call goes on.

Nothing that was told is lost, no pull is made twice but the one under way, and the answer is that
of an undisturbed run. Six moments by default; thirty by

    SHORTLIST_ATTACK_SCALE=5 pytest tests/attack/test_select_killed.py"""

import multiprocessing
import os
import random
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attack_scale import AGAIN, SCALE, SEED

import shortlist
from shortlist.engine import Experiment
from shortlist.errors import StoreMissing

KILLS = 6 * SCALE
MEANS = {"a": 0.2, "b": 0.8, "c": 0.5, "d": 0.7, "e": 0.45}
ASKED: dict[str, Any] = {"arms": list(MEANS), "k": 2, "rewards": "binary", "progress": False}
ASKED |= {"budget": 60 * KILLS, "seed": 3}
PROCESSES = multiprocessing.get_context("fork")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def pull(arm: str, seed: int) -> float:
    return float(random.Random(seed).random() < MEANS[arm])


def selected(store: Path, journal: Path, workers: int) -> None:
    """Select, and note every pull that is made."""
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def slow(arm: str, seed: int) -> float:
        os.write(notes, b"%d\n" % seed)
        time.sleep(0.001)
        return pull(arm, seed)

    shortlist.select(slow, **ASKED, store=store, workers=workers)


def told(store: Path) -> dict[int, float]:
    """What is in the store; nothing if there is none yet, or no experiment in it."""
    if store.exists() and not store.stat().st_size:
        return {}  # killed before anything was written
    with suppress(StoreMissing), Experiment.open(store, "experiment", readonly=True) as experiment:
        rewards = experiment.store.read("experiment").told
        return dict(zip(rewards.tickets.tolist(), rewards.rewards.tolist(), strict=True))
    return {}


@pytest.mark.parametrize("workers", [1, 3])
def test_a_killed_selection_resumes_and_returns_the_same_answer(
    tmp_path: Path, workers: int
) -> None:
    chance, store, journal = random.Random(SEED), tmp_path / "store.db", tmp_path / "journal"
    before: dict[int, float] = {}
    for _ in range(KILLS):
        program = PROCESSES.Process(target=selected, args=(store, journal, workers))
        program.start()
        time.sleep(0.02 + 0.15 * chance.random())
        os.kill(program.pid or 0, signal.SIGKILL)
        program.join(30)
        after = told(store)
        assert before.items() <= after.items(), AGAIN
        before = after
    kept = shortlist.select(pull, **ASKED, store=store)
    assert kept == shortlist.select(pull, **ASKED), AGAIN
    made = journal.read_text().split("\n")[:-1]
    assert len(made) - len(set(made)) <= KILLS * 2 * workers, AGAIN
