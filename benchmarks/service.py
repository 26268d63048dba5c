"""How fast the service is on loopback, with 8 clients: `python benchmarks/service.py`.

Bounded: so many requests and no more, a limit of time on everything, nothing but 127.0.0.1."""

import argparse
import multiprocessing
import re
import select
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from rich.console import Console
from rich.table import Table

from shortlist import Client, Ticket

N_ARMS, K, PULLS = 10_000, 100, 10_000_000
CLIENTS, SIZE = 8, 50
READERS = 500
LIMIT = 300.0  # seconds for any step


def reward(ticket: Ticket) -> float:
    """Cheap, since what is measured is everything around it."""
    return ((ticket.seed % 9973) / 9973 + int(ticket.arm) / N_ARMS) / 2


@contextmanager
def serving(store: str) -> Iterator[str]:
    """A service in a process of its own."""
    command = [sys.executable, "-m", "shortlist", "serve", "--port", "0", "--rate", "100000"]
    process = subprocess.Popen([*command, "--store", store], stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://\S+", line)
        assert found, line
        yield found.group()
    finally:
        process.terminate()
        process.wait(30)


def work(url: str, number: int, rounds: int, barrier: Any, results: Any) -> None:
    """One client: asks first, then tells, with all others at the same time."""
    client = Client(url)
    client.status  # noqa: B018
    barrier.wait(LIMIT)
    asked: list[float] = []
    batches: list[list[Ticket]] = []
    for _ in range(rounds):
        begun = time.perf_counter()
        batches.append(client.ask(SIZE, worker=f"client {number}-{len(batches)}"))
        asked.append(time.perf_counter() - begun)
    told = [[(ticket, reward(ticket)) for ticket in batch] for batch in batches]
    barrier.wait(LIMIT)
    begun = time.perf_counter()
    for batch in told:
        client.tell_many(batch)
    results.put((asked, begun, time.perf_counter()))


def measured(url: str, rounds: int) -> tuple[np.ndarray[Any, Any], float]:
    """How long every ask took, and how many rewards were told a second."""
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(CLIENTS), context.Queue()
    clients = [
        context.Process(target=work, args=(url, number, rounds, barrier, results))
        for number in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    replies = [results.get(timeout=LIMIT) for _ in clients]
    for client in clients:
        client.join(LIMIT)
    seconds = max(end for *_, end in replies) - min(begun for _, begun, _ in replies)
    return np.concatenate([asked for asked, *_ in replies]), CLIENTS * rounds * SIZE / seconds


@contextmanager
def reading(url: str, readers: int) -> Iterator[list[int]]:
    """So many readers of the event stream; what they read so far, in bytes."""
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
            received = len(by_number[number].recv(1 << 20))
            count[0] += received
            if not received:
                poll.unregister(number)


def rows(url: str, rounds: int) -> Iterator[tuple[str, str, str, bool]]:
    """What is measured, the value, its limit, and whether it is met."""
    Client(url).create(N_ARMS, K, budget=PULLS, algorithm="adaptive-top-k")
    asked, alone = measured(url, rounds)
    p50, p99 = 1000 * np.quantile(asked, [0.5, 0.99])
    yield f"ask for {SIZE}, {N_ARMS:,} arms, median", f"{p50:.1f} ms", "", True
    yield "the same, 99 %", f"{p99:.1f} ms", "< 50 ms", bool(p99 < 50)
    yield f"tell {SIZE} at a time", f"{alone:,.0f} /s", ">= 10,000 /s", alone >= 10_000
    with reading(url, READERS) as count:
        time.sleep(3)
        before = count[0]
        _, watched = measured(url, rounds)
        read = count[0] - before
    _, again = measured(url, rounds)
    calm = (alone + again) / 2
    loss = 1 - watched / calm
    yield (
        f"the same with {READERS} readers of the stream",
        f"{watched:,.0f} /s ({loss:.0%} less than {calm:,.0f})",
        "<= 20 % less",
        loss <= 0.2,
    )
    yield "read by them meanwhile", f"{read / 1e6:.1f} MB", "> 0", read > 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100, help="batches of 50 a client")
    rounds = parser.parse_args().rounds
    table = Table("what", "measured", "limit", "met")
    # the system's folder may be in memory, which would flatter
    with (
        TemporaryDirectory(dir=Path.cwd()) as folder,
        serving(str(Path(folder, "store.db"))) as url,
    ):
        for what, value, limit, met in rows(url, rounds):
            table.add_row(what, value, limit, "[green]yes" if met else "[red]no")


Console().print(table)


if __name__ == "__main__":
    main()
