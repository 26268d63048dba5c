"""Workers are killed at random moments of a run, and nothing that was told is lost or counted
twice.

A few kills by default; all fifty, with eight workers, by

    SHORTLIST_KILLS=50 pytest tests/experiment/test_killed.py"""

import multiprocessing
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shortlist.experiment import Experiment, State, Ticket
from shortlist.storage.memory import MemoryStore

KILLS = int(os.environ.get("SHORTLIST_KILLS", "5"))
WORKERS = 8
PULLS = 400 * KILLS
MEANS = np.linspace(0.1, 0.9, 12)
SETTINGS: dict[str, Any] = {
    "budget": PULLS,
    "algorithm": "clucb-pac",
    "options": {"growth": 0.2},
    "seed": 7,
}
PROCESSES = multiprocessing.get_context("fork")


def reward_of(ticket: Ticket) -> float:
    mean = MEANS[int(ticket.arm)]
    return float(np.random.default_rng(ticket.seed).beta(2 * mean, 2 - 2 * mean))


def work(store: Path, journal: Path, name: str, seed: int) -> None:
    """Ask and tell until the experiment is over, and note in the journal what was acknowledged."""
    moods = random.Random(seed)
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    experiment = Experiment.open(store)
    while True:
        tickets = experiment.ask(moods.randint(1, 9), worker=name)
        if not tickets and tickets.state is not State.PENDING:
            break
        results = [(ticket, reward_of(ticket)) for ticket in tickets]
        if moods.random() < 0.5:
            experiment.tell_many(results)
        else:
            for ticket, reward in results:
                experiment.tell(ticket, reward)
        for ticket, reward in results:
            os.write(notes, f"{ticket.id} {reward!r}\n".encode())
        if not tickets:
            time.sleep(0.002)  # others have all that is wanted now
    experiment.close()


class Crew:
    """Eight workers, each replaced by one of the same name when it is killed."""

    def __init__(self, store: Path, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.chance = random.Random(3)
        self.workers = [self.hire(number) for number in range(WORKERS)]

    def hire(self, number: int) -> Any:
        arguments = (
            self.store,
            self.folder / f"journal{number}",
            f"worker {number}",
            self.chance.getrandbits(32),
        )
        worker = PROCESSES.Process(target=work, args=arguments)
        worker.start()
        return worker

    def kill(self, everybody: bool) -> None:
        victims = range(WORKERS) if everybody else [self.chance.randrange(WORKERS)]
        for number in victims:
            os.kill(self.workers[number].pid, signal.SIGKILL)
        for number in victims:
            self.workers[number].join()
            self.workers[number] = self.hire(number)

    def acknowledged(self) -> list[tuple[int, float]]:
        """What the workers noted. A note that was cut in two, the last of a worker, does not
        count."""
        lines = [
            line
            for journal in self.folder.glob("journal*")
            for line in journal.read_text().split("\n")[:-1]
        ]
        return [(int(ticket), float(reward)) for ticket, reward in map(str.split, lines)]

    def wait_until(self, pulls: int) -> None:
        while (
            sum(journal.read_bytes().count(b"\n") for journal in self.folder.glob("journal*"))
            < pulls
        ):
            assert any(worker.is_alive() for worker in self.workers), (
                "the run was over before it was disturbed"
            )
            time.sleep(0.002)
        time.sleep(0.01 * self.chance.random())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_workers_killed_at_random_moments_lose_nothing_and_change_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    Experiment.create(len(MEANS), 4, store=store, **SETTINGS).close()
    crew = Crew(store, tmp_path)
    moments = sorted(crew.chance.randrange(int(0.95 * PULLS)) for _ in range(KILLS))
    for kill, moment in enumerate(moments):
        crew.wait_until(moment)
        crew.kill(everybody=kill % 5 == 4)
    for worker in crew.workers:
        worker.join(60)
        assert worker.exitcode == 0

    calm = Experiment.create(len(MEANS), 4, store=MemoryStore(), **SETTINGS)
    while tickets := calm.ask(1000):
        calm.tell_many((ticket, reward_of(ticket)) for ticket in tickets)
    with Experiment.open(store) as disturbed:
        told = disturbed._store.read("experiment").told
        by_ticket = dict(zip(told.tickets.tolist(), told.rewards.tolist(), strict=True))
        assert sorted(told.tickets.tolist()) == list(range(PULLS))
        assert all(by_ticket[ticket] == reward for ticket, reward in crew.acknowledged())
        assert disturbed.result() == calm.result()
