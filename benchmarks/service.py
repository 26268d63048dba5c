"""How fast the service is on loopback, with 8 clients: `python benchmarks/service.py`.

With `--postgres` its store is a PostgreSQL, started for that with the settings it comes with, but
for its address. Bounded: so many requests and no more, a limit of time on everything, nothing but
127.0.0.1."""

import argparse
import multiprocessing
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from rich.console import Console
from rich.table import Table

from shortlist import Client, Ticket
from shortlist.arrays import FloatArray

N_ARMS, K, PULLS = 10_000, 100, 10_000_000
CLIENTS, SIZE = 8, 50
READERS = 500
TIMES = 3  # that tells are measured with readers, and one time more without; medians are shown
LIMIT = 100.0  # seconds for any step


def reward(ticket: Ticket) -> float:
    """Cheap, since what is measured is everything around it."""
    return ((ticket.seed % 9973) / 9973 + int(ticket.arm) / N_ARMS) / 2


@contextmanager
def in_time(seconds: int) -> Iterator[None]:
    """End whatever takes longer, wherever it stands."""

    def too_late(*_: object) -> None:
        raise TimeoutError(f"not done within {seconds} s")

    signal.signal(signal.SIGALRM, too_late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


@contextmanager
def serving(store: str, folder: Path) -> Iterator[str]:
    """A service in its own process. Its output goes to a file: a pipe that is not read would block
    it."""
    command = [sys.executable, "-m", "shortlist", "serve", "--port", "0", "--rate", "100000"]
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen([*command, "--store", store], stderr=log)
    try:
        yield _address(folder / "log", process)
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(30)
        process.kill()


def _address(log: Path, process: "subprocess.Popen[bytes]") -> str:
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline and process.poll() is None:
        found = re.search(r"http://\S+", log.read_text())
        if found:
            return found.group()
        time.sleep(0.02)
    raise TimeoutError(log.read_text())


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a database that is gone afterwards."""
    sys.path.append(str(Path(__file__).parents[1] / "tests" / "contracts"))
    from postgres import Server

    server = Server()
    try:
        yield server.new_url()
    finally:
        server.stop()


def work(url: str, number: int, rounds: int, barrier: Any, results: Any) -> None:
    """One client: asks, then tells, both with all others at the same time, again and again."""
    client = Client(url)
    while True:
        barrier.wait(LIMIT)  # until it is measured
        asked: list[float] = []
        batches: list[list[Ticket]] = []
        for _ in range(rounds):
            begun = time.perf_counter()
            batches.append(client.ask(SIZE, worker=f"client {number}-{len(batches)}"))
            asked.append(time.perf_counter() - begun)
        told = [[(ticket, reward(ticket)) for ticket in batch] for batch in batches]
        barrier.wait(LIMIT)  # the measuring one waits here, too
        begun = time.perf_counter()
        for batch in told:
            client.tell_many(batch)
        results.put((asked, begun, time.perf_counter()))


def asked_by_one(url: str, times: int) -> FloatArray:
    """How long every ask of one client took."""
    client, seconds = Client(url), []
    for number in range(times):
        begun = time.perf_counter()
        client.ask(SIZE, worker=f"alone {number}")
        seconds.append(time.perf_counter() - begun)
    return np.array(seconds)


def asking(what: str, seconds: FloatArray) -> tuple[str, str, str, bool]:
    """A row of the table: half of the asks, and all but one in a hundred, are quicker."""
    p50, p99 = 1000 * np.quantile(seconds, [0.5, 0.99])
    return f"{what}, 50 % and 99 %", f"{p50:.1f} and {p99:.1f} ms", "99 % < 50 ms", bool(p99 < 50)


Measure = Callable[[], tuple[FloatArray, float]]


@contextmanager
def clients(url: str, rounds: int) -> Iterator[Measure]:
    """Clients in processes of their own, and what measures them: how long every ask took, and how
    many rewards were told a second."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(CLIENTS + 1), context.Queue()
    all_ = [
        context.Process(target=work, args=(url, number, rounds, barrier, results), daemon=True)
        for number in range(CLIENTS)
    ]
    for each in all_:
        each.start()

    def measured() -> tuple[FloatArray, float]:
        barrier.wait(LIMIT)
        barrier.wait(LIMIT)
        replies = [results.get(timeout=LIMIT) for _ in all_]
        seconds = max(end for *_, end in replies) - min(begun for _, begun, _ in replies)
        return np.concatenate([asked for asked, *_ in replies]), CLIENTS * rounds * SIZE / seconds

    try:
        yield measured
    finally:
        for each in all_:
            each.kill()


@contextmanager
def reading(url: str, readers: int) -> Iterator[list[int]]:
    """Readers of the event stream; the number of bytes they have read so far."""
    address = urlsplit(url)
    sockets = [socket.create_connection((address.hostname, address.port)) for _ in range(readers)]
    for each in sockets:
        each.sendall(b"GET /experiments/experiment/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    count, over = [0], Event()
    thread = Thread(target=_read, args=(sockets, count, over))
    thread.start()
    try:
        yield count
    finally:
        over.set()
        thread.join(LIMIT)
        for each in sockets:
            each.close()


def _read(sockets: list[socket.socket], count: list[int], over: Event) -> None:
    poll = select.poll()
    by_number = {each.fileno(): each for each in sockets}
    for number in by_number:
        poll.register(number, select.POLLIN)
    while not over.is_set():
        for number, _ in poll.poll(100):
            received = _received(by_number[number])
            count[0] += received
            if not received:
                poll.unregister(number)


def _received(reader: socket.socket) -> int:
    with suppress(ConnectionError):
        return len(reader.recv(1 << 20))
    return 0


def rows(url: str, rounds: int, least: int) -> Iterator[tuple[str, str, str, bool]]:
    """What is measured, the value, its limit, and whether it is met."""
    Client(url).create(N_ARMS, K, budget=PULLS, algorithm="adaptive-top-k")
    yield asking(f"ask for {SIZE}, {N_ARMS:,} arms", asked_by_one(url, 5 * rounds))
    with clients(url, rounds) as measured:
        asked, first = measured()
        yield asking(f"the same, {CLIENTS} clients without a pause", asked)
        calm, watched, read = [first], [], 0
        for _ in range(TIMES):  # in turn, since other programs come and go
            with reading(url, READERS) as count:
                time.sleep(3)
                before = count[0]
                watched.append(measured()[1])
                read += count[0] - before
            calm.append(measured()[1])
    alone, shared = float(np.median(calm)), float(np.median(watched))
    yield f"tell {SIZE} at a time", f"{alone:,.0f} /s", f">= {least:,} /s", alone >= least
    loss = 1 - shared / alone
    yield (
        f"the same with {READERS} readers of the stream",
        f"{shared:,.0f} /s ({loss:.0%} less)",
        "<= 20 % less",
        loss <= 0.2,
    )
    yield "read by them meanwhile", f"{read / 1e6:.1f} MB", "> 0", read > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="batches of 50 a client")
    parser.add_argument("--postgres", action="store_true", help="with PostgreSQL for a store")
    parser.add_argument("--seconds", type=int, default=300, help="that all may take")
    given = parser.parse_args()
    table = Table("what", "measured", "limit", "met")
    with in_time(given.seconds), ExitStack() as stack:
        # the system's folder may be in memory, which would flatter
        folder = Path(stack.enter_context(TemporaryDirectory(dir=Path.cwd())))
        store = str(folder / "store.db")
        if given.postgres:
            store = stack.enter_context(postgres())
        url = stack.enter_context(serving(store, folder))
        for what, value, limit, met in rows(url, given.rounds, 4_000 if given.postgres else 10_000):
            print(f"{what}: {value}", file=sys.stderr)
            table.add_row(what, value, limit, "[green]yes" if met else "[red]no")
    Console().print(table)
    Console().print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
