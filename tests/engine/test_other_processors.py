"""An experiment that began on one kind of processor continues on another."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist import Arm
from shortlist.engine import Experiment

FEATURES = np.random.default_rng(5).random((40, 3)).tolist()


def grouped(count: int) -> list[Arm]:
    return [Arm(f"arm {number}", group="xyz"[number % 3]) for number in range(count)]


QUOTAS = {"quotas": {"x": (1, 2)}}
NORMAL = {"rewards": "normal", "epsilon": 0.2}
CASES: dict[str, dict[str, Any]] = {  # of every certificate, and others
    "split": {"arms": 30, "k": 5, "epsilon": 0.2},  # bits of its bound differ without AVX2
    "pairs": {"arms": 12, "k": 3, "epsilon": 0.15},
    "plans": {"arms": 40, "k": 8, "epsilon": 0.15, "rewards": "binary"},
    "items": {"arms": 12, "k": 2, "epsilon": 0.05, "items": 200},
    "charged": {"arms": 60, "k": 6, "rewards": "normal", "epsilon": 0.05},
    "differences": {"arms": 10, "k": 2, **NORMAL, "seeds": "shared"},
    "linear": {"arms": 40, "k": 4, "epsilon": 0.1, "features": FEATURES, "linear": True},
    "exchange": {"arms": grouped(12), "k": 4, "epsilon": 0.15, **QUOTAS},
    "prices": {"arms": grouped(60), "k": 8, "epsilon": 0.15, **QUOTAS},
    "limits": {"arms": [Arm(f"arm {n}", limit=400) for n in range(20)], "k": 4, "epsilon": 0.15},
    "budget": {"arms": 15, "k": 3, "budget": 1500},
    "budget, features": {"arms": 40, "k": 4, "budget": 3000, "features": FEATURES},
    "drift": {"arms": 6, "k": 1, "epsilon": 0.05, "per_day": 300, "rewards": "binary"},
}
LOOK = """
import json, sys
from shortlist.engine import Experiment
for name in sys.argv[2:]:
    experiment = Experiment.open(sys.argv[1], name)
    replay = experiment._known.replay
    live = experiment.told_blocks()
    tickets = [] if live else [ticket.id for ticket in experiment.ask(3, "other")]
    result = experiment.result(partial=True)
    print(json.dumps([replay.digests, result.top, tickets, result.regret_bound]))
"""


def dispatched() -> list[str]:
    """The features of this processor that numpy uses beyond its baseline."""
    core = pytest.importorskip("numpy._core._multiarray_umath")
    return [each for each in core.__cpu_dispatch__ if core.__cpu_features__.get(each)]


def half_done(path: Path, name: str) -> Experiment:
    """An experiment in which some batches are told."""
    case = CASES[name]
    experiment = Experiment.create(**case, store=path, name=name)
    for number in range(6):
        if name == "drift":
            shares = experiment.shares(f"day {number}").percent.items()
            counts = {arm: (50, 10 + index_of(arm)) for arm, percent in shares if percent}
            experiment.tell_counts(f"day {number}", counts)
            continue
        block = experiment.ask_block(300, "w")
        means = np.array([0.2 + 0.02 * (index_of(arm) % 20) for arm in block.labels])
        draws = (np.array(block.seeds) % 9973) / 9973
        ones = case.get("rewards") == "binary"
        rewards = (draws < means).astype(float) if ones else 0.5 * draws + 0.5 * means
        experiment.tell_block(block.ids, rewards.tolist())
    experiment.position()
    return experiment


def index_of(arm: object) -> int:
    return int(str(arm).removeprefix("arm "))


def test_replay_does_not_depend_on_the_instructions_of_the_processor(tmp_path: Path) -> None:
    features = dispatched()
    if not features:
        pytest.skip("numpy uses no more than its baseline here")
    path = tmp_path / "a.db"
    made = [half_done(path, name) for name in CASES]
    steps = [each._known.replay.digests for each in made]
    assert all(len(each) > 3 for name, each in zip(CASES, steps, strict=True) if name != "drift")
    tops = [list(each.result(partial=True).top) for each in made]
    for each in made:
        each.close()
    plain = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(features)}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOOK, str(path), *CASES],
        env={**plain, "OPENBLAS_CORETYPE": "Nehalem"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    looks = [json.loads(line) for line in found.stdout.splitlines()]
    assert [look[0] for look in looks] == steps
    assert [look[1] for look in looks] == tops
