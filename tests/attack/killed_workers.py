"""Workers, services and servers that are killed at random moments of a run, and what must be true
afterwards: all that was acknowledged is there, nothing is there twice, and the answer is that of a
run that nobody disturbed."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shortlist.engine import Experiment, State, Ticket, verify
from shortlist.engine.locate import Place
from shortlist.errors import ShortlistError
from shortlist.stores.base import MemoryStore

MEANS = np.linspace(0.1, 0.9, 12)
K = 4
PATIENCE = 180.0  # seconds for any step
PROCESSES = multiprocessing.get_context("fork")


def settings(pulls: int) -> dict[str, Any]:
    """An experiment of so many pulls, in many steps."""
    return {"budget": pulls, "algorithm": "clucb-pac", "options": {"growth": 0.2}, "seed": 7}


def reward_of(ticket: Ticket) -> float:
    mean = MEANS[int(ticket.arm)]
    return float(np.random.default_rng(ticket.seed).beta(2 * mean, 2 - 2 * mean))


def work(open_: Callable[[], Any], journal: Path, name: str, seed: int) -> None:
    """Ask and tell until the experiment is over, and note in the journal what was acknowledged."""
    moods = random.Random(seed)
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    experiment = open_()
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
            time.sleep(0.005)  # others have all that is wanted now
    experiment.close()


STAGES = ("created", "archived", "restored", "renamed", "deleted")


def keep_house(open_: Callable[[], Any], journal: Path, run: int) -> None:
    """Create, archive, restore, rename and delete experiments, and note what was acknowledged."""
    notes = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for number in range(100_000):
        name = f"spare {run}-{number}"

        def note(stage: str, name: str = name) -> None:
            os.write(notes, f"{name}\t{stage}\n".encode())

        try:
            spare = open_().create(3, 1, name=name, budget=9, exist_ok=True)
            note("created")
            spare.tell_many((ticket, 0.5) for ticket in spare.ask(3, "housekeeper"))
            spare.archive()
            note("archived")
            spare.archive(restore=True)
            note("restored")
            spare.rename(f"{name} again")
            note("renamed")
            if number % 2:
                spare.delete()
                note("deleted")
        except ShortlistError:
            continue  # a call that is not repeated was interrupted: it was made, or it was not


class Housekeeper:
    """A process that keeps house; killed, it is replaced."""

    def __init__(self, open_: Callable[[], Any], folder: Path) -> None:
        self._open, self._journal, self._run = open_, folder / "house", 0
        self._hire()

    def _hire(self) -> None:
        self._run += 1
        given = (self._open, self._journal, self._run)
        self._process = PROCESSES.Process(target=keep_house, args=given)
        self._process.start()

    def kill(self) -> None:
        """kill -9, and another one takes over."""
        self.dismiss()
        self._hire()

    def dismiss(self) -> None:
        self._process.kill()
        self._process.join()

    def check(self, store: Any) -> int:
        """All that was acknowledged is so, or one step further; how many experiments there were."""
        kept = {each.name: each for each in store.listed()}
        last: dict[str, str] = {}
        for line in self._journal.read_text().split("\n")[:-1]:
            name, _, stage = line.partition("\t")
            last[name] = stage
        for name, stage in last.items():
            if name in kept:
                now = {"archived"} if kept[name].archived else {"created", "restored"}
            else:
                now = {"renamed"} if f"{name} again" in kept else {"deleted"}
            place = STAGES.index(stage)
            assert now & set(STAGES[place : place + 2]), (name, stage, now)
        return len(last)


class Crew:
    """Workers, each replaced by one of the same name when it is killed."""

    def __init__(
        self, open_: Callable[[], Any], folder: Path, size: int, chance: random.Random
    ) -> None:
        self._open, self._folder, self._chance = open_, folder, chance
        self.workers = [self._hire(number) for number in range(size)]

    def _hire(self, number: int) -> Any:
        journal, name = self._folder / f"journal{number}", f"worker {number}"
        given = (self._open, journal, name, self._chance.getrandbits(32))
        worker = PROCESSES.Process(target=work, args=given)
        worker.start()
        return worker

    def kill(self, everybody: bool = False) -> None:
        """kill -9 of one, or of all."""
        size = len(self.workers)
        victims = range(size) if everybody else [self._chance.randrange(size)]
        for number in victims:
            os.kill(self.workers[number].pid, signal.SIGKILL)
        for number in victims:
            self.workers[number].join()
            self.workers[number] = self._hire(number)

    def acknowledged(self) -> list[tuple[int, float]]:
        """What the workers noted. A note that was cut in two, the last of a worker, does not
        count."""
        lines = [
            line
            for journal in self._folder.glob("journal*")
            for line in journal.read_text().split("\n")[:-1]
        ]
        return [(int(ticket), float(reward)) for ticket, reward in map(str.split, lines)]

    def wait_until(self, pulls: int) -> None:
        """Let them work until this many pulls are acknowledged, and a little longer."""
        deadline = time.monotonic() + PATIENCE
        while self.noted() < pulls and any(each.is_alive() for each in self.workers):
            assert time.monotonic() < deadline, "no worker makes progress"
            time.sleep(0.002)
        time.sleep(0.02 * self._chance.random())

    def noted(self) -> int:
        """Number of acknowledged pulls."""
        journals = self._folder.glob("journal*")
        return sum(journal.read_bytes().count(b"\n") for journal in journals)

    def wait_for_the_end(self) -> None:
        for worker in self.workers:
            worker.join(PATIENCE)
            assert worker.exitcode == 0

    def dismiss(self) -> None:
        for worker in self.workers:
            worker.kill()


class Service:
    """`shortlist serve` in a process of its own, always at the same address."""

    def __init__(self, store: str, port: int, folder: Path) -> None:
        self._store, self._port, self._log = store, port, folder / "service.log"
        self.url = f"http://127.0.0.1:{port}"
        self.start()

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start it."""
        self._before = self._said().count(self.url)
        command = [sys.executable, "-m", "shortlist", "serve", "--port", str(self._port)]
        with self._log.open("ab") as log:  # a pipe that nobody empties would hold it up
            environment = {**os.environ, "SHORTLIST_STORE": self._store}
            self.process = subprocess.Popen(command, stderr=log, env=environment)

    def wait(self) -> None:
        """Wait until it listens."""
        deadline = time.monotonic() + PATIENCE
        while self._said().count(self.url) == self._before:
            assert time.monotonic() < deadline, self._said()[-1000:]
            assert self.process.poll() is None, self._said()[-1000:]
            time.sleep(0.01)

    def _said(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(PATIENCE)

    def end(self) -> None:
        """End it as its owner would."""
        self.process.terminate()
        assert self.process.wait(PATIENCE) == 0


@contextmanager
def at_work(
    open_: Callable[[], Any], folder: Path, size: int, chance: random.Random
) -> Iterator[Crew]:
    """A crew that is gone afterwards, whatever happens."""
    crew = Crew(open_, folder, size, chance)
    try:
        yield crew
    finally:
        crew.dismiss()


def disturb(
    crew: Crew, kills: int, pulls: int, chance: random.Random, deeds: Sequence[Callable[[], None]]
) -> None:
    """Do one of the deeds at this many random moments, every one of them in turn, and let the crew
    end its work. On a busy machine that may be over before the last of them."""
    early = 0
    for kill, moment in enumerate(sorted(chance.randrange(int(0.9 * pulls)) for _ in range(kills))):
        crew.wait_until(moment)
        early += crew.noted() < pulls
        deeds[kill % len(deeds)]()
    crew.wait_for_the_end()
    assert early > kills / 2


def check_undisturbed(store: Place, crew: Crew, pulls: int) -> None:
    """Nothing is lost, nothing is there twice, and the answer is the same."""
    calm = Experiment.create(len(MEANS), K, store=MemoryStore(), **settings(pulls))
    while tickets := calm.ask(1000):
        calm.tell_many((ticket, reward_of(ticket)) for ticket in tickets)
    assert {verdict.damage + verdict.replay for verdict in verify(store)} == {""}
    with Experiment.open(store, "experiment") as disturbed:
        told = disturbed.store.read(disturbed.name).told
        assert sorted(told.tickets.tolist()) == list(range(pulls))
        kept = dict(zip(told.tickets.tolist(), told.rewards.tolist(), strict=True))
        assert all(kept[ticket] == reward for ticket, reward in crew.acknowledged())
        assert disturbed.result() == calm.result()
