"""Work of one kind does not hold up the others: queues are bounded, and slow callers cut off."""

import asyncio
import json
import socket
import threading
import time
from typing import Any

import pytest
from services import GENEROUS, MAKE, Call, caller, serving
from waiting import until

from shortlist import Client
from shortlist.engine import Experiment, export, import_lines
from shortlist.engine.export import export_lines
from shortlist.errors import StoreError
from shortlist.service import service as service_module
from shortlist.service.experiments import OpenExperiments
from shortlist.service.replies import Limits, Refusal
from shortlist.service.work import Lane
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]

ONE = "/v1/experiments/experiment"


def test_a_full_queue_refuses_and_work_without_a_caller_is_not_done() -> None:
    done: list[int] = []
    over = threading.Event()

    def work(number: int) -> int:
        over.wait(60)
        done.append(number)
        return number

    async def all_of_it() -> None:
        lane = Lane("tests", 1, 2)
        first, gone, last = (asyncio.create_task(lane.run(work, each)) for each in range(3))
        await asyncio.sleep(0)
        assert lane.waiting == 2
        with pytest.raises(Refusal, match="3 requests are in the queue for tests"):
            await lane.run(work, 3)
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone  # then its work has left the queue
        over.set()
        assert [await first, await last] == [0, 2]
        lane.close()

    asyncio.run(all_of_it())
    assert done == [0, 2]


def test_reads_that_hang_delay_neither_writes_nor_health_checks(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    with serving(store, limits=Limits(rate=1e6, seconds=60)) as url:
        call = caller(url)
        call("POST", "/v1/experiments", MAKE)
        monkeypatch.setattr(Experiment, "result", lambda self, partial: over.wait(60))
        hanging = [threading.Thread(target=call, args=("GET", f"{ONE}/result")) for _ in range(20)]
        for each in hanging:
            each.start()
        assert call("GET", "/live").status == call("GET", "/ready").status == 200
        assert call("POST", f"{ONE}/ask", {"worker": "w"}).status == 200
        assert call("GET", "/").status == 200
        over.set()
        for each in hanging:
            each.join(60)


def test_a_write_whose_caller_is_gone_before_its_turn_is_not_made() -> None:
    store = MemoryStore()
    Experiment.create(3, 1, store=store, budget=300, algorithm="uniform")
    experiments = OpenExperiments(store, Limits(writes=2))
    begun, over = threading.Event(), threading.Event()

    def slowly(each: Experiment) -> Any:
        begun.set()
        over.wait(60)
        return each.ask(1, "first")

    async def all_of_it() -> None:
        first = asyncio.create_task(experiments.write("experiment", slowly))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        gone = asyncio.create_task(
            experiments.write("experiment", lambda each: each.ask(1, "gone"))
        )
        last = asyncio.create_task(
            experiments.write("experiment", lambda each: each.ask(1, "last"))
        )
        while experiments.waiting() < 2:
            await asyncio.sleep(0.01)
        with pytest.raises(Refusal, match="2 writes wait"):
            await experiments.write("experiment", lambda each: each.ask(1, "more"))
        gone.cancel()
        with pytest.raises(asyncio.CancelledError):
            await gone
        over.set()
        await asyncio.gather(first, last)

    asyncio.run(all_of_it())
    assert set(Experiment.open(store).status().workers) == {"first", "last"}


def test_a_caller_that_does_not_read_its_export_is_cut_off(store: MemoryStore) -> None:
    experiment = Experiment.create(3, 1, store=store, budget=60_000, algorithm="uniform")
    tickets = [ticket.id for ticket in experiment.ask(50_000, "w")]
    experiment.tell_block(tickets, [0.5] * len(tickets))
    with serving(store, limits=Limits(rate=1e6, send_seconds=0.5, exports=3)) as url:
        port = int(url.rpartition(":")[2])
        held = []
        for _ in range(3):
            each = socket.socket()
            each.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            each.connect(("127.0.0.1", port))
            each.sendall(f"GET {ONE}/export HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
            assert each.recv(15).startswith(b"HTTP/1.1 200")
            held.append(each)
        busy = caller(url)("GET", f"{ONE}/export")
        assert (busy.status, busy.headers["retry-after"]) == (503, "1")
        assert busy.error[1] == "3 exports are under way: try again in a second"
        until(lambda: caller(url)("GET", f"{ONE}/export").status == 200)
        for each in held:
            each.close()


def test_an_export_is_read_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStore()
    experiment = Experiment.create(["a", "b"], 1, store=store, budget=60, algorithm="uniform")
    for _ in range(12):
        experiment.tell_many((ticket, 0.5) for ticket in experiment.ask(5, "w"))
    whole = list(export_lines(store))
    sizes: list[int] = []
    read = MemoryStore.read

    def counted(self: MemoryStore, *given: Any, **more: Any) -> Any:
        news = read(self, *given, **more)
        sizes.append(len(news.told) + len(news.events))
        return news

    monkeypatch.setattr(MemoryStore, "read", counted)
    monkeypatch.setattr(export, "STRETCH", 7)
    assert list(export_lines(store)) == whole
    assert max(sizes) == 7
    copy = MemoryStore()
    monkeypatch.undo()
    import_lines(whole, copy)
    assert list(export_lines(copy)) == whole


def test_long_bodies_are_parsed_elsewhere_and_must_not_have_too_many_values(made: Call) -> None:
    text = json.dumps({"worker": "w" * 9000, "limit": 1})
    padded = text[:-1] + " " * 200_000 + "}"
    assert made("POST", f"{ONE}/ask", padded.encode()).status == 200
    many = made("POST", f"{ONE}/tell", {"results": [0] * 200_000})
    assert (many.status, many.error[0]) == (413, "LimitExceeded")
    assert many.error[1] == "the body has more than 150,000 values, the maximum here"
    several = made("POST", f"{ONE}/tell", {"results": [{"ticket": 0, "reward": 0}] * 20_001})
    assert several.status == 413
    assert several.error[1] == ("20,001 `results` are given, but a request may have at most 20,000")


def test_all_bodies_together_have_a_limit(store: MemoryStore) -> None:
    head = b"POST /v1/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with serving(store, limits=Limits(rate=1e6, bodies=10_000)) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port)) as slow:
            slow.sendall(head + b"Content-Length: 9900\r\n\r\n" + b" " * 9000)
            padded = json.dumps(MAKE).encode() + b" " * 2000
            until(lambda: caller(url)("POST", "/v1/experiments", padded).status == 503)
        until(lambda: caller(url)("POST", "/v1/experiments", padded).status in (201, 409))


def test_a_client_learns_that_its_body_is_too_long(store: MemoryStore) -> None:
    Experiment.create(3, 1, store=store, budget=30)
    with serving(store, limits=Limits(rate=1e6, body=10_000)) as url:
        begun = time.monotonic()
        with pytest.raises(Exception, match="longer than 10,000 bytes") as refused:
            Client(url, patience=300).tell_many([(number, 0.5) for number in range(100_000)])
        assert type(refused.value).__name__ == "LimitExceeded"
        assert time.monotonic() - begun < 200  # it is not tried again


class Unreadable(MemoryStore):
    """Can be made unreadable, or slow."""

    broken = False
    slow = False

    def tokens(self) -> Any:
        if self.slow:
            time.sleep(0.5)
        if self.broken:
            raise StoreError("the disk is gone")
        return super().tokens()


def test_a_service_without_its_store_is_live_but_not_ready(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Unreadable()
    with serving(store, limits=GENEROUS) as url:
        call = caller(url)
        assert call("GET", "/ready").data["status"] == "ok"
        store.broken = True
        until(lambda: call("GET", "/ready").status == 503)
        assert call("GET", "/live").status == 200
        store.broken = False
        until(lambda: call("GET", "/ready").status == 200)
        monkeypatch.setattr(service_module, "READY", 0.05)
        store.slow = True
        until(lambda: "did not answer within" in call("GET", "/ready").raw.decode())
