"""An experiment that began on one kind of processor continues on another."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from shortlist.engine import Experiment

CASES = [
    {"arms": 30, "k": 5, "epsilon": 0.2},  # bits of its bound differ without AVX2
    {"arms": 12, "k": 3, "epsilon": 0.15},
    {"arms": 40, "k": 8, "epsilon": 0.15, "rewards": "binary"},
    {"arms": 15, "k": 3, "budget": 1500},
]
LOOK = """
import json, sys
from shortlist.engine import Experiment
for name in sys.argv[2:]:
    experiment = Experiment.open(sys.argv[1], name)
    replay = experiment._known.replay
    tickets = [ticket.id for ticket in experiment.ask(3, "other")]
    result = experiment.result(partial=True)
    print(json.dumps([replay.digests, result.top, tickets, result.regret_bound]))
"""


def dispatched() -> list[str]:
    """The features of this processor that numpy uses beyond its baseline."""
    core = pytest.importorskip("numpy._core._multiarray_umath")
    return [each for each in core.__cpu_dispatch__ if core.__cpu_features__.get(each)]


def half_done(path: Path, name: str, arms: int, k: int, **more: object) -> Experiment:
    experiment = Experiment.create(arms, k, store=path, name=name, **more)  # type: ignore[arg-type]
    for _ in range(6):
        block = experiment.ask_block(300, "w")
        means = [0.2 + 0.6 * int(str(arm)) / arms for arm in block.labels]
        draws = (np.array(block.seeds) % 9973) / 9973
        rewards = (
            draws < means
            if more.get("rewards") == "binary"
            else 0.5 * draws + 0.5 * np.array(means)
        )
        experiment.tell_block(block.ids, rewards.astype(float).tolist())
    return experiment


def test_replay_does_not_depend_on_the_instructions_of_the_processor(tmp_path: Path) -> None:
    features = dispatched()
    if not features:
        pytest.skip("numpy uses no more than its baseline here")
    path = tmp_path / "a.db"
    names = [str(number) for number in range(len(CASES))]
    made = [half_done(path, name, **case) for name, case in zip(names, CASES, strict=True)]  # type: ignore[arg-type]
    steps = [each._known.replay.digests for each in made]
    tops = [list(each.result(partial=True).top) for each in made]
    for each in made:
        each.close()
    plain = {**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(features)}
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOOK, str(path), *names],
        env={**plain, "OPENBLAS_CORETYPE": "Nehalem"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert found.returncode == 0, found.stderr
    looks = [json.loads(line) for line in found.stdout.splitlines()]
    assert [look[0] for look in looks] == steps
    assert [look[1] for look in looks] == tops
