"""How quick `ask` stays while others strain the service: `python benchmarks/service_load.py`.

On loopback, with one SQLite file: two readers reload the page of an experiment with a million
rewards, a hundred callers request its export and do not read it, bodies of 8 MB arrive one after
the other, and the list of 200 experiments is reloaded. Meanwhile one client asks for tickets of a
small experiment. Memory is that of the process of the service, sampled all the time: it grows while
caches fill (experiments and pages that are kept, a page cache per thread), then must not grow, so
the second half of the time is compared with the first. At the end the service gets SIGTERM."""

import argparse
import http.client
import json
import multiprocessing
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from urllib.parse import urlsplit

import numpy as np
import psutil  # type: ignore[import-untyped]
from rich.console import Console
from rich.table import Table

from shortlist import Client
from shortlist.engine import Experiment

LARGE, LISTED, EXPORTS, READERS = 1_000_000, 200, 100, 2
BODY = 8 * 10**6  # bytes
PAUSE = 0.02  # seconds between two asks
WARM = 20.0  # seconds until all others are at work and caches are full
SAMPLE = 0.2  # seconds between two looks at the memory
GROWTH = 1.1  # most that memory may grow from the first half to the second, on average
LIMIT = 120.0  # seconds for anything


def make_store(path: Path, rewards: int) -> None:
    """A large experiment without a bound of its own, many small ones, and the one that is asked."""
    rng = np.random.default_rng(0)
    sizes = {"large": rewards, "asked": 0} | {f"small {n}": 200 for n in range(LISTED - 2)}
    for name, size in sizes.items():
        with Experiment.create(
            1000 if name == "large" else 20,
            10,
            store=path,
            name=name,
            budget=10_000_000,
            algorithm="adaptive-top-k",
        ) as experiment:
            while (told := experiment.standing()[0]) < size:
                block = experiment.ask_block(min(20_000, size - told), "w", seeded=False)
                experiment.tell_block(block.ids, rng.random(len(block.ids)).tolist())
                experiment.position()


@contextmanager
def serving(path: Path, log: Path) -> Iterator["tuple[subprocess.Popen[bytes], str]"]:
    """A service in its own process, and its address."""
    command = [sys.executable, "-m", "shortlist", "serve", "--port", "0", "--store", str(path)]
    with log.open("w") as output:
        process = subprocess.Popen([*command, "--rate", "100000"], stderr=output)
    deadline = time.monotonic() + LIMIT
    while "http://" not in log.read_text():
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    try:
        yield process, "http://" + log.read_text().split("http://")[1].split()[0]
    finally:
        process.kill()
        process.wait()


def request(url: str, method: str, path: str, body: bytes | None = None) -> int:
    """The status of one request on a new connection."""
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT)
    headers = {} if body is None else {"content-type": "application/json"}
    try:
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def gently(work: Callable[..., None], *given: object) -> None:
    """Work at a low priority: on a real network the others are on other machines."""
    os.nice(10)
    work(*given)


def reload_page(url: str, path: str, pause: float) -> None:
    while True:
        with suppress(OSError, http.client.HTTPException):
            request(url, "GET", path)
        time.sleep(pause)


def send_bodies(url: str) -> None:
    one = json.dumps({"ticket": 123456, "reward": 0.5})
    many = f'{{"results": [{",".join([one] * (BODY // (len(one) + 1)))}]}}'.encode()
    labels = json.dumps({"arms": [f"{n:0100d}" for n in range(BODY // 104)], "k": 0}).encode()
    while True:
        for path, body in (("/v1/experiments/asked/tell", many), ("/v1/experiments", labels)):
            with suppress(OSError, http.client.HTTPException):
                request(url, "POST", path, body)
        time.sleep(0.2)


def hold_exports(url: str) -> None:
    """Request exports and do not read them; those that are refused or cut off are requested
    again."""
    address = urlsplit(url)
    held: list[socket.socket] = []
    text = b"GET /v1/experiments/large/export HTTP/1.1\r\nHost: localhost\r\n\r\n"
    while True:
        for each in held:
            if is_closed(each):
                each.close()
        held = [each for each in held if each.fileno() >= 0]
        while len(held) < EXPORTS:
            with suppress(OSError):
                held.append(socket.create_connection((address.hostname, address.port)))
                held[-1].sendall(text)
        time.sleep(2)


def is_closed(connection: socket.socket) -> bool:
    """Whether the service closed a connection, though not all of its reply was read."""
    poll = select.poll()
    poll.register(connection, select.POLLRDHUP)
    return bool(poll.poll(0))


def ask_for(url: str, seconds: float) -> np.ndarray:
    """How long every ask took."""
    client, times = Client(url, name="asked"), []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        begun = time.perf_counter()
        client.ask(1, worker="w")
        times.append(time.perf_counter() - begun)
        time.sleep(PAUSE)
    return 1000 * np.array(times)


@contextmanager
def watched(process: int) -> Iterator[list[tuple[float, float]]]:
    """The memory of a process in MB, sampled meanwhile, each with its time."""
    memory, over = psutil.Process(process).memory_info, Event()
    sizes: list[tuple[float, float]] = []

    def sample() -> None:
        while not over.wait(SAMPLE):
            sizes.append((time.monotonic(), memory().rss / 2**20))

    thread = Thread(target=sample)
    thread.start()
    try:
        yield sizes
    finally:
        over.set()
        thread.join()


def halves(sizes: list[tuple[float, float]]) -> tuple[np.ndarray, np.ndarray]:
    """The sizes of the first half of the time, and of the second."""
    times, values = np.array(sizes).T
    late = times > (times[0] + times[-1]) / 2
    return values[~late], values[late]


@contextmanager
def strained(url: str) -> Iterator[None]:
    """All the others, each in its own process."""
    context = multiprocessing.get_context("spawn")
    work: list[tuple[Callable[..., None], tuple[object, ...]]] = [
        *[(reload_page, (url, "/experiments/large", 0.0))] * READERS,
        (reload_page, (url, "/", 0.5)),
        (send_bodies, (url,)),
        (hold_exports, (url,)),
    ]
    processes = [
        context.Process(target=gently, args=(each, *given), daemon=True) for each, given in work
    ]
    for each in processes:
        each.start()
    try:
        yield
    finally:
        for each in processes:
            each.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="to measure under load")
    parser.add_argument("--rewards", type=int, default=LARGE, help="of the large experiment")
    given = parser.parse_args()
    table = Table("what", "measured", "limit", "met")

    def row(what: str, value: str, limit: str, met: bool) -> None:
        print(f"{what}: {value}", file=sys.stderr)
        table.add_row(what, value, limit, "[green]yes" if met else "[red]no")

    with TemporaryDirectory(dir=Path.cwd()) as folder:
        path = Path(folder) / "store.db"
        make_store(path, given.rewards)
        with serving(path, Path(folder) / "log") as (process, url):
            calm = ask_for(url, 5)
            row("ask, nothing else", _quantiles(calm), "", True)
            with strained(url):
                time.sleep(WARM)
                with watched(process.pid) as sizes:
                    under = ask_for(url, given.seconds)
                begun = time.perf_counter()
                alive = request(url, "GET", "/live") == 200
                row("/live under load", f"{1000 * (time.perf_counter() - begun):.0f} ms", "", alive)
                p99 = float(np.quantile(under, 0.99))
                row("ask under load", _quantiles(under), "99 % < 50 ms", p99 < 50)
                first, second = halves(sizes)
                grown = second.mean() / first.mean()
                value = f"{first.mean():.0f}, {second.mean():.0f}; at most {second.max():.0f} MB"
                limit = f"second < {GROWTH} first"
                row("memory of both halves, on average", value, limit, bool(grown < GROWTH))
                begun = time.perf_counter()
                process.send_signal(signal.SIGTERM)
                process.wait(LIMIT)
                ended = time.perf_counter() - begun
                row("end after SIGTERM", f"{ended:.1f} s", "<= 5 s", ended <= 5)
    Console().print(table)
    Console().print(f"{os.cpu_count()} processors, load {os.getloadavg()[0]:.1f} at the end")


def _quantiles(times: np.ndarray) -> str:
    p50, p99, most = np.quantile(times, [0.5, 0.99, 1])
    return f"50 % {p50:.1f}, 99 % {p99:.1f}, longest {most:.0f} ms of {times.size}"


if __name__ == "__main__":
    main()
