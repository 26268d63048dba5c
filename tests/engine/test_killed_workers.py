"""Workers are killed at random moments of a run, and nothing that was told is lost or counted
twice.

A few kills by default; all fifty by

    SHORTLIST_ATTACK_SCALE=17 pytest tests/engine/test_killed_workers.py"""

import random
import sys
from pathlib import Path

import pytest
from attack_scale import SCALE
from killed_workers import MEANS, K, at_work, check_undisturbed, disturb, settings

from shortlist.engine import Experiment

KILLS = min(50, 3 * SCALE)
WORKERS = 8 if SCALE > 1 else 4
PULLS = 400 * KILLS


@pytest.mark.attack
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_workers_killed_at_random_moments_lose_nothing_and_change_nothing(tmp_path: Path) -> None:
    store, chance = tmp_path / "store.db", random.Random(3)
    Experiment.create(len(MEANS), K, store=store, **settings(PULLS)).close()
    with at_work(lambda: Experiment.open(store), tmp_path, WORKERS, chance) as crew:
        deeds = [crew.kill, lambda: crew.kill(everybody=True)]
        disturb(crew, KILLS, PULLS, chance, deeds)
    check_undisturbed(store, crew, PULLS)
