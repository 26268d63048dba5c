"""Callers that are slow, cut off or many, streams, and an end that loses nothing."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest
from services import GENEROUS, MAKE, Call, caller, port_of, serving
from sockets import connected, read_all, read_events
from waiting import until

from shortlist import Client
from shortlist.engine import Experiment, Receipt
from shortlist.errors import StoreFull
from shortlist.service.app import application
from shortlist.service.experiments import OpenExperiments
from shortlist.service.pages import stream, view
from shortlist.service.replies import Limits
from shortlist.service.server import server
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]

ONE = "/v1/experiments/experiment"
STREAM = b"GET /experiments/experiment/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
TELL = b"POST /v1/experiments/experiment/tell HTTP/1.1\r\nHost: localhost\r\n"


def test_a_body_that_takes_too_long_is_not_waited_for(store: MemoryStore) -> None:
    with serving(store, limits=Limits(body_seconds=0.2)) as url, connected(url) as slow:
        slow.sendall(TELL + b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
        assert b"408 Request Timeout" in read_all(slow)


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long_is_not_read(store: MemoryStore, chunked: bool) -> None:
    with serving(store, limits=Limits(body=1000)) as url, connected(url) as large:
        how = b"Transfer-Encoding: chunked" if chunked else b"Content-Length: 5000"
        large.sendall(TELL + b"Content-Type: application/json\r\n" + how + b"\r\n\r\n")
        large.sendall(b"1388\r\n" * chunked + b"x" * 5000)
        assert b"413 " in large.recv(1 << 16)


def test_a_caller_that_is_cut_off_costs_nobody_anything(made: Call, url: str) -> None:
    for cut in (
        b"GET",
        TELL,
        TELL + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{",
    ):
        with connected(url) as gone:
            gone.sendall(cut)
    assert made("GET", f"{ONE}/status").status == 200


def test_too_many_connections_are_refused(store: MemoryStore) -> None:
    with serving(store, limits=Limits(connections=5)) as url:
        held = [socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) for _ in range(8)]
        until(lambda: caller(url)("GET", "/ready").status == 503)
        for each in held:
            each.close()
        until(lambda: caller(url)("GET", "/ready").status == 200)


def test_an_answer_that_takes_too_long_is_not_waited_for(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()
    with serving(store, limits=Limits(seconds=0.3)) as url:
        call = caller(url)
        call("POST", "/v1/experiments", MAKE)
        monkeypatch.setattr(Experiment, "result", lambda self, partial: over.wait(60))
        reply = call("GET", f"{ONE}/result")
        over.set()
    assert (reply.status, reply.headers["retry-after"]) == (503, "1")
    assert reply.error[1] == "no answer within 0.3 s: it is safe to repeat the request"


def test_a_stream_says_what_happens_and_only_that(made: Call, url: str) -> None:
    with connected(url) as reader:
        reader.sendall(STREAM)
        first = read_events(reader, "parts")
        assert "Pulls told" in first[-1]
        made("POST", f"{ONE}/ask", {"limit": 4, "worker": "ann <i>"})
        (second,) = read_events(reader, "parts")
        assert "ann \\u003ci\\u003e" in second or "ann &lt;i&gt;" in second
        reader.settimeout(2.5)
        with pytest.raises(TimeoutError):
            reader.recv(1)
        readers = made("GET", "/metrics").raw.decode()
        assert "shortlist_stream_readers 1" in readers
    until(lambda: "shortlist_stream_readers 0" in made("GET", "/metrics").raw.decode())


def test_a_stream_that_nothing_happens_to_says_that_it_is_there(
    made: Call, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "HEARTBEAT", 0.1)
    with connected(url) as reader:
        reader.sendall(STREAM)
        text = b""
        while text.count(b": still here") < 3:
            more = reader.recv(1 << 20)
            assert more, f"the stream ended after {text!r}"
            text += more


def test_one_look_serves_everybody_who_watches(
    made: Call, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    look = view.view_experiment

    def counted(opened: Any, name: str, course: Any) -> Any:
        looks.append(name)
        return look(opened, name, course)

    monkeypatch.setattr(stream, "view_experiment", counted)
    readers = [socket.create_connection(("127.0.0.1", urlsplit(url).port or 0)) for _ in range(20)]
    for reader in readers:
        reader.sendall(STREAM)
    for reader in readers:
        read_events(reader, "parts")
    for reader in readers:  # not earlier: when the last one leaves, the look is forgotten
        reader.close()
    assert len(looks) == 1


def test_only_so_many_streams_are_open(store: MemoryStore) -> None:
    Experiment.create(3, 1, store=store, budget=30)
    with serving(store, limits=Limits(readers=1)) as url, connected(url) as first:
        first.sendall(STREAM)
        read_events(first, "parts")
        late = caller(url)("GET", "/experiments/experiment/stream")
        assert (late.status, late.error[0]) == (429, "LimitExceeded")
        head = caller(url)("HEAD", "/experiments/experiment/stream")
        assert (head.status, head.raw) == (200, b"")


def test_a_service_that_is_told_to_end_ends_its_streams_and_finishes_what_is_under_way(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    listening = server(application(store, limits=GENEROUS), "127.0.0.1", 0, GENEROUS)
    thread = threading.Thread(target=listening.run)
    thread.start()
    url = f"http://127.0.0.1:{port_of(listening)}"
    client = Client(url, patience=0).create(3, 1, budget=30)
    (ticket,) = client.ask()
    begun = threading.Event()
    tell_many = Experiment.tell_many

    def slowly(self: Experiment, results: Any) -> Receipt:
        begun.set()
        time.sleep(0.5)
        return tell_many(self, results)

    monkeypatch.setattr(Experiment, "tell_many", slowly)
    telling = threading.Thread(target=client.tell, args=(ticket, 1))
    with connected(url) as reader:
        reader.sendall(STREAM)
        read_events(reader, "parts")
        telling.start()
        assert begun.wait(60)
        listening.end()
        assert read_all(reader).endswith(b"0\r\n\r\n")  # the whole of it
    telling.join(60)
    thread.join(60)
    assert not thread.is_alive()
    assert Experiment.open(store).status().told == 1


def test_readers_and_writers_do_not_wait_for_each_other_for_ever(made: Call) -> None:
    """A writer that held the store while it waited for the experiment would."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            assert made("GET", f"{ONE}/status").status == 200

    readers = [threading.Thread(target=look) for _ in range(3)]
    for each in readers:
        each.start()
    for _ in range(40):
        assert made("POST", f"{ONE}/ask", {"worker": "w"}).status == 200
        assert made("POST", f"{ONE}/release", {"worker": "w"}).status == 200
    over.set()
    for each in readers:
        each.join(60)
        assert not each.is_alive()


class Counting(MemoryStore):
    """Counts its transactions, and may fail at the end of one."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = 0
        self.broken = False

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        outermost = self._undo is None
        with super().exclusive():
            yield
            if outermost and self.broken:
                raise StoreFull("there is no room left for memory; nothing is lost")
        self.blocks += outermost


def together(experiment: Experiment, store: Counting, wanted: list[Any]) -> list[Any]:
    """The replies to callers who come while the first is being served, then the transactions."""
    experiments = OpenExperiments(store)
    before = store.blocks

    async def all_at_once() -> list[Any]:
        writes = (
            experiments.write(experiment.name, each)
            if callable(each)
            else experiments.write(experiment.name, results=each)
            for each in wanted
        )
        return await asyncio.gather(*writes, return_exceptions=True)

    answers = asyncio.run(all_at_once())
    answers.append(store.blocks - before)
    return answers


def test_what_comes_in_together_is_written_in_one_transaction() -> None:
    store = Counting()
    experiment = Experiment.create(3, 1, store=store, budget=300, algorithm="uniform")
    tickets = experiment.ask(30)
    wanted: list[Any] = [[(ticket, 0.5)] for ticket in tickets]
    wanted += [lambda each: each.ask(2, "ann"), lambda each: each.ask(2, "ben")]
    *answers, ann, ben, blocks = together(experiment, store, wanted)
    assert answers == [Receipt()] * 30
    assert [ticket.id for ticket in (*ann, *ben)] == [30, 31, 32, 33]
    assert blocks <= 2
    assert experiment.status().told == 30


def test_who_may_not_tell_is_refused_alone() -> None:
    store = Counting()
    experiment = Experiment.create(3, 1, store=store, budget=300, algorithm="uniform")
    tickets = experiment.ask(6)
    wanted: list[Any] = [[(ticket, 0.5)] for ticket in tickets]
    wanted[2] = [(tickets[2], 7e99)]
    wanted[4] = [(tickets[3], 0.25)]  # told otherwise by another in the same moment
    *answers, _ = together(experiment, store, wanted)
    kinds = [type(each).__name__ for each in answers]
    told = "Receipt"
    assert kinds == [told, told, "InvalidReward", told, "ConflictingReward", told]
    assert experiment.status().told == 4


def test_a_transaction_that_fails_wrote_nothing_and_nobody_believes_it() -> None:
    store = Counting()
    experiment = Experiment.create(3, 1, store=store, budget=300, algorithm="uniform")
    tickets = experiment.ask(3)
    store.broken = True
    wanted: list[Any] = [[(ticket, 0.5)] for ticket in tickets] + [lambda each: each.ask(2)]
    *answers, _ = together(experiment, store, wanted)
    assert {type(each) for each in answers} == {StoreFull}
    store.broken = False
    assert (experiment.status().told, experiment.status().held) == (0, 3)
    with pytest.raises(StoreFull), experiment.transaction():  # noqa: PT012
        experiment.tell(tickets[0], 0.5)
        assert experiment.status().told == 1
        raise StoreFull("the end")
    assert (experiment.status().told, experiment.status().held) == (0, 3)
    experiment.tell(tickets[0], 0.25)
    assert Experiment.open(store).status().told == 1


def test_errors_of_the_store_do_not_say_where_it_is(store: MemoryStore) -> None:
    from shortlist.service.replies import error_reply

    reply = error_reply(StoreFull("there is no room left for /srv/a.db; nothing"), "/srv/a.db")
    assert reply.status_code == 503
    assert json.loads(bytes(reply.body))["error"]["message"] == (
        "there is no room left for the store; nothing"
    )


def test_small_replies_do_not_wait_for_acknowledgements(made: Call, url: str) -> None:
    """Of a head and a body the second packet would wait 40 ms, were it not sent at once."""
    client = Client(url)

    def seconds() -> float:
        begun = time.perf_counter()
        client.held()
        return time.perf_counter() - begun

    assert any(seconds() < 0.03 for _ in range(300))  # a busy machine delays many, not all
