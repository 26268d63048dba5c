"""Many programs begin the same experiment in a file that is not there yet, all at the same moment.

SHORTLIST_ATTACK_SCALE=40 pytest tests/attack/test_first_start.py"""

import multiprocessing
import sys
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest
from attack_scale import SCALE

from shortlist.engine import Experiment
from shortlist.errors import ShortlistError

PROGRAMS, STARTS = 8, 10 * SCALE
PROCESSES = multiprocessing.get_context("fork")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no fork there")


def begin(folder: Path, together: Barrier, said: Any) -> None:
    """Begin one experiment after the other, each in a new file, with all others at once."""
    for start in range(STARTS):
        together.wait(60)
        try:
            path = folder / f"{start}.db"
            with Experiment.create(6, 2, budget=60, store=path, exist_ok=True) as experiment:
                (ticket,) = experiment.ask()
                experiment.tell(ticket, 0.5)
        except ShortlistError as error:
            said.put(f"start {start}: {error!r}")
    said.put(None)


def test_programs_that_create_the_same_experiment_at_once_share_it(
    tmp_path: Path,
) -> None:
    together, said = PROCESSES.Barrier(PROGRAMS), PROCESSES.Queue()
    programs = [
        PROCESSES.Process(target=begin, args=(tmp_path, together, said)) for _ in range(PROGRAMS)
    ]
    for program in programs:
        program.start()
    errors, over = [], 0
    while over < PROGRAMS:
        word = said.get(timeout=120)
        over += word is None
        errors += [word] if word else []
    for program in programs:
        program.join(60)
        assert program.exitcode == 0
    assert errors == []
    for start in range(STARTS):
        with Experiment.open(tmp_path / f"{start}.db", readonly=True) as experiment:
            assert experiment.status().told == PROGRAMS
