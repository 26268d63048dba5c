"""The service and its workers are killed at random moments, and nothing that was told is lost or
counted twice.

A few kills by default; sixty by

    SHORTLIST_KILLS=60 pytest tests/service/test_killed_service.py"""

import multiprocessing
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("uvicorn")

from shortlist import Client
from shortlist.experiment import Experiment, State, Ticket
from shortlist.storage.memory import MemoryStore
from shortlist.storage.sqlite import SQLiteStore

KILLS = int(os.environ.get("SHORTLIST_KILLS", "4"))
WORKERS = 8 if KILLS > 10 else 3
PULLS = 150 * KILLS
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


def work(url: str, journal: Path, name: str, seed: int) -> None:
    """Ask and tell until the experiment is over, and note in the journal what was acknowledged."""
    moods = random.Random(seed)
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    experiment = Client(url, name="experiment", patience=60)
    while True:
        tickets = experiment.ask(moods.randint(1, 9), worker=name)
        if not tickets and tickets.state is not State.PENDING:
            break
        results = [(ticket, reward_of(ticket)) for ticket in tickets]
        experiment.tell_many(results)
        for ticket, reward in results:
            os.write(notes, f"{ticket.id} {reward!r}\n".encode())
        if not tickets:
            time.sleep(0.01)  # others have all that is wanted now


class Site:
    """A service and its workers, each replaced by another when it is killed."""

    def __init__(self, store: Path, folder: Path) -> None:
        self.store, self.folder = store, folder
        self.chance = random.Random(3)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.service = self.serve()
        self.workers = [self.hire(number) for number in range(WORKERS)]

    def serve(self) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "shortlist", "serve", "--store", str(self.store)]
        service = subprocess.Popen(
            [*command, "--port", str(self.port)], stderr=subprocess.PIPE, text=True
        )
        assert service.stderr is not None
        assert re.search(r"http://\S+", service.stderr.readline())
        return service

    def hire(self, number: int) -> Any:
        url = f"http://127.0.0.1:{self.port}"
        journal, name = self.folder / f"journal{number}", f"worker {number}"
        worker = PROCESSES.Process(
            target=work, args=(url, journal, name, self.chance.getrandbits(32))
        )
        worker.start()
        return worker

    def kill(self) -> None:
        """Kill the service, or a worker."""
        if self.chance.random() < 0.5:
            self.service.kill()
            self.service.communicate()
            self.service = self.serve()
            return
        number = self.chance.randrange(WORKERS)
        os.kill(self.workers[number].pid, signal.SIGKILL)
        self.workers[number].join()
        self.workers[number] = self.hire(number)

    def acknowledged(self) -> list[tuple[int, float]]:
        """What the workers noted; a note that was cut in two does not count."""
        lines = [
            line
            for journal in self.folder.glob("journal*")
            for line in journal.read_text().split("\n")[:-1]
        ]
        return [(int(ticket), float(reward)) for ticket, reward in map(str.split, lines)]

    def wait_until(self, pulls: int) -> None:
        deadline = time.monotonic() + 120
        while len(self.acknowledged()) < pulls:
            assert time.monotonic() < deadline
            time.sleep(0.005)
        time.sleep(0.02 * self.chance.random())


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_service_and_workers_killed_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    Experiment.create(len(MEANS), 4, store=store, **SETTINGS).close()
    site = Site(store, tmp_path)
    try:
        for moment in sorted(site.chance.randrange(int(0.9 * PULLS)) for _ in range(KILLS)):
            site.wait_until(moment)
            site.kill()
        for worker in site.workers:
            worker.join(120)
            assert worker.exitcode == 0
        site.service.terminate()
        site.service.communicate(timeout=30)
        assert site.service.returncode == 0
    finally:
        site.service.kill()
        for worker in site.workers:
            worker.kill()

    calm = Experiment.create(len(MEANS), 4, store=MemoryStore(), **SETTINGS)
    while tickets := calm.ask(1000):
        calm.tell_many((ticket, reward_of(ticket)) for ticket in tickets)
    kept = SQLiteStore(store)
    told = kept.read("experiment").told
    by_ticket = dict(zip(told.tickets.tolist(), told.rewards.tolist(), strict=True))
    assert sorted(told.tickets.tolist()) == list(range(PULLS))
    assert all(by_ticket[ticket] == reward for ticket, reward in site.acknowledged())
    assert Experiment.open(kept).result() == calm.result()
    kept.close()
