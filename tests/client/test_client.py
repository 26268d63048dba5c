"""An experiment at a service is used like one that is here, whatever happens on the way."""

import doctest
import inspect
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from services import serving

import shortlist
from shortlist import Client
from shortlist import client as connection
from shortlist.engine import Experiment, State
from shortlist.errors import (
    InvalidInput,
    InvalidReward,
    LimitExceeded,
    StoreError,
    StoreExists,
    Unfinished,
    Unreachable,
)
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore
from shortlist.wire import error_of, result_of

NOT_FROM_AFAR = {
    "history",
    "of",
    "opened_blocks",
    "pace",
    "pulls_counted",
    "store",
    "told_blocks",
    "transaction",
    "vitals",
}  # for the service itself
NOT_SAID = ("store", "clock", "readonly", "cls")

ANY: Any = Client  # to be called with anything


@pytest.fixture
def url() -> Iterator[str]:
    with serving(MemoryStore()) as url:
        yield url


def public(kind: type) -> dict[str, Any]:
    return {name: each for name, each in inspect.getmembers(kind) if not name.startswith("_")}


def test_a_client_has_the_methods_of_an_experiment_with_the_same_arguments() -> None:
    assert public(Experiment).keys() - public(Client).keys() == NOT_FROM_AFAR
    methods = {name: each for name, each in public(Experiment).items() if callable(each)}
    for name in methods.keys() - NOT_FROM_AFAR:
        mine = inspect.signature(getattr(Client, name)).parameters
        theirs = inspect.signature(methods[name]).parameters
        wanted = {each for each in theirs if each not in NOT_SAID}
        assert wanted <= set(mine), name
        for each in wanted - {"self"}:
            assert mine[each].default == theirs[each].default, (name, each)


def reward(arm: int, seed: int) -> float:
    return (seed % 100) / 100


async def async_reward(arm: int, seed: int) -> float:
    return reward(arm, seed)


@pytest.mark.parametrize("function", [reward, async_reward])
def test_run_gives_the_result_that_it_gives_here(url: str, function: Callable[..., Any]) -> None:
    settings: dict[str, Any] = {"budget": 200, "algorithm": "clucb-pac", "seed": 5}
    there = Client(url).create(6, 2, **settings)
    here = Experiment.create(6, 2, **settings)
    assert there.run(function, workers=3, progress=False) == here.run(reward, progress=False)
    assert there.standing()[0] == 200
    assert (there.state(), there.held()[0]) == (State.BUDGET, 0)
    assert there.position() > 200


def test_a_pull_that_fails_too_often_stops_it_there_as_here(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(arm: int, ticket: int) -> float:
        if ticket:
            raise ValueError("no luck")
        return 1.0

    monkeypatch.setattr("shortlist.engine.calls.FIRST_PAUSE", 0.001)
    experiment = Client(url).create(3, 1, budget=30, retries=1)
    with pytest.raises(Unfinished, match="ticket 1 failed 2 times, the last time: no luck"):
        experiment.run(failing, progress=False)
    experiment.resume()
    assert experiment.run(reward, progress=False).pulls == 30


@pytest.mark.parametrize("algorithm", ["certified", "lucb", "uniform", "expected-loss"])
def test_a_result_goes_there_and_back(algorithm: str) -> None:
    goal: dict[str, Any] = {"budget": 300} if algorithm == "expected-loss" else {"epsilon": 0.5}
    experiment = Experiment.create(["a", "b", "c", "d"], 2, algorithm=algorithm, **goal)
    result = experiment.run(lambda arm, seed: reward(0, seed), progress=False)
    back = result_of(result.to_dict(), result.rewards)
    assert back.to_dict() == result.to_dict()
    assert (back.top, back.goal, back.arms) == (result.top, result.goal, result.arms)


def test_the_only_experiment_needs_no_name_and_several_do(url: str) -> None:
    client = Client(url)
    with pytest.raises(InvalidInput, match="the store holds no experiment"):
        client.status()
    client.create(3, 1, budget=30, name="a/b ü")
    assert client.name == "a/b ü"
    client.create(3, 1, budget=30, name="second")
    assert client.names() == ["a/b ü", "second"]
    with pytest.raises(InvalidInput, match="several experiments: 'a/b ü', 'second'"):
        Client(url).ask()
    assert Client(url, name="second").ask(2).state is State.READY
    assert client.open("second").status().held == 2
    assert "a/b ü" in repr(client)


def test_settings_are_what_the_experiment_was_made_with(url: str) -> None:
    made = Client(url).create(
        ["x", "y", "z"], int(np.int64(2)), epsilon=np.float64(0.3), rewards=shortlist.SubGaussian(2)
    )
    assert made.settings.labels == ("x", "y", "z")
    assert made.settings.problem.rewards == shortlist.SubGaussian(2)
    assert made.settings.problem.k == 2


def test_rounds_are_said_there_and_what_to_serve_meanwhile_comes_back(url: str) -> None:
    told: dict[str, Any] = {"max_rounds": 3, "min_batch": 40}
    made = Client(url).create(["x", "y", "z"], 1, epsilon=0.3, **told, certificate="pairs")
    assert made.settings.options == {**told, "certificate": "pairs"}
    held = made.ask(10_000, "first")
    assert len(held) >= 40
    made.tell_many((each, each.arm == "y") for each in held[:-1])
    rest = made.ask(1, "second")
    assert (rest.state, rest.meanwhile) == (State.PENDING, "y")


def test_what_json_cannot_say_is_refused_here_in_the_same_words(url: str) -> None:
    experiment = Client(url).create(["x", "y"], 1, budget=30)
    (ticket,) = experiment.ask()
    with pytest.raises(InvalidReward, match=r"the reward of ticket 0 \(arm 'x'\) is nan, but must"):
        experiment.tell(ticket, float("nan"))
    with pytest.raises(InvalidReward, match="is inf, but must be a number at most"):
        experiment.tell(ticket.id, float("inf"))
    with pytest.raises(InvalidInput, match="`epsilon` is nan, but must be a finite number"):
        Client(url).create(3, 1, epsilon=float("nan"), name="other")
    with pytest.raises(InvalidInput, match="must have a JSON type"):
        Client(url).create(3, 1, budget=30, options={"x": object()}, name="other")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda url: ANY(3), "`url` is 3, but must be a text"),
        (lambda url: ANY(url, "a\nb"), "`token` must consist of printable ASCII characters"),
        (lambda url: ANY(url).create(3, 1, budget=9, options=[1]), "but must be a mapping"),
        (lambda url: ANY(url).create(3, 1, budget=9, exist_ok=np.zeros(2)), "True or False"),
        (lambda url: ANY(url).create(3, 1, epsilon=np.longdouble("1e400")), "`epsilon` is inf"),
        (lambda url: ANY(url).create(3, 1, budget=np.zeros(2)), "but must be a whole number"),
        (lambda url: ANY(url, name="x").release(tickets=3), "but must be a list of tickets"),
        (lambda url: ANY(url, name="x").release(tickets=count()), "has more entries than"),
    ],
)
def test_what_makes_no_sense_is_refused_before_it_is_sent(
    url: str, call: Callable[[str], object], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        call(url)


def test_a_wait_may_be_as_long_as_one_likes_and_a_reason_anything(url: str) -> None:
    client = ANY(url, timeout=1e300).create(3, 1, epsilon=np.longdouble(0.5), delta=0.2)
    (ticket,) = client.ask()
    reason: Any = 10**5000
    client.fail(ticket, reason)
    assert client.status().failures == 1


def test_more_than_a_service_takes_at_once_is_said_to_be_so(url: str) -> None:
    experiment = Client(url).create(3, 1, budget=30)
    with pytest.raises(LimitExceeded, match="hands out at most 10,000 at a time"):
        experiment.ask(10_001)


def test_a_status_that_did_not_change_is_not_sent_again(url: str) -> None:
    experiment = Client(url).create(3, 1, budget=30)
    first = experiment.status()
    assert experiment.status() is first
    experiment.ask()
    assert experiment.status().held == 1


def test_an_export_comes_line_by_line(url: str) -> None:
    experiment = Client(url).create(3, 1, budget=30)
    experiment.tell_many((ticket, 1) for ticket in experiment.ask(6))
    lines = list(experiment.export_lines())
    copy = MemoryStore()
    shortlist.engine.import_lines(lines, copy)
    assert Experiment.open(copy).status().told == 6
    with pytest.raises(shortlist.errors.StoreMissing):
        list(Client(url, name="none").export_lines())


def test_a_service_that_is_away_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Experiment.create(3, 1, store=path, budget=30).close()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    answers: list[Any] = []
    client = Client(f"http://127.0.0.1:{port}", patience=120)
    waiting = threading.Thread(target=lambda: answers.append(client.ask(3, worker="w")))
    waiting.start()
    waiting.join(0.3)
    assert waiting.is_alive()
    store = SQLiteStore(path)
    with serving(store, port=port):
        waiting.join(120)
        assert [ticket.id for ticket in answers[0]] == [0, 1, 2]
    store.close()


def test_a_service_that_stays_away_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Unreachable, match=r"no service answers at http://127.0.0.1:9: .*refused"):
        Client("http://127.0.0.1:9", patience=0).names()


class Flaky(threading.Thread):
    """Cuts every connection after what it was sent, and counts them."""

    def __init__(self, reply: bytes = b"") -> None:
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.reply = reply
        self.calls = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.listener.getsockname()[1]}"

    def run(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            with connection:
                if connection.recv(1 << 16):
                    self.calls += 1
                    connection.sendall(self.reply)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def flaky() -> Iterator[Flaky]:
    flaky = Flaky()
    flaky.start()
    yield flaky
    flaky.close()


def test_what_may_be_said_twice_is_and_what_may_not_is_not(flaky: Flaky) -> None:
    client = Client(flaky.url, name="x", patience=0.5)
    with pytest.raises(Unreachable, match="did not answer"):
        client.tell(0, 1)
    assert flaky.calls > 1
    flaky.calls = 0
    with pytest.raises(Unreachable, match="did not answer"):
        client.create(3, 1, budget=30)
    assert flaky.calls == 1
    with pytest.raises(Unreachable, match="did not answer"):
        client.create(3, 1, budget=30, exist_ok=True)
    assert flaky.calls > 2


@pytest.mark.parametrize(
    ("reply", "kind", "message"),
    [
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", StoreError, "status 500, and no reason"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
            StoreError,
            "status 200, and no reason",
        ),
    ],
)
def test_what_is_no_service_of_ours_is_said_to_be_so(
    flaky: Flaky, reply: bytes, kind: type[Exception], message: str
) -> None:
    flaky.reply = reply
    with pytest.raises(kind, match=message):
        Client(flaky.url, name="x", patience=0).status()


def test_errors_come_back_as_what_they_were() -> None:
    def raised(kind: str, words: str) -> BaseException:
        return error_of({"error": {"kind": kind, "message": words}}, 400)

    assert type(raised("StoreExists", "x")) is StoreExists
    assert type(raised("ZeroDivisionError", "x")) is StoreError
    assert type(raised("inspect", "x")) is StoreError
    assert str(raised("StoreExists", "words")) == "words"


@pytest.mark.parametrize("url", ["", "tests.db", "ftp://x", "http://", "http://[", "http://x:0"])
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(InvalidInput, match="but must be the address of a service"):
        Client(url)


def test_a_token_in_plain_text_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "shortlist.client")
    for quiet in ("http://localhost:1", "http://127.0.0.1:1", "https://example.org"):
        Client(quiet, "secret")
    assert caplog.records == []
    Client("http://example.org", "secret")
    assert "The token is sent to http://example.org in plain text" in caplog.text


def test_a_busy_service_is_asked_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = iter([503, 429])
    send = connection.Connection._send

    def busy(self: Any, *given: Any) -> Any:
        response = send(self, *given)
        response.status = next(statuses, response.status)
        return response

    monkeypatch.setattr(connection.Connection, "_send", busy)
    assert Client(url).names() == []


def test_a_service_is_no_store_of_an_experiment_here() -> None:
    with pytest.raises(InvalidInput, match="a service, but must be a file or a store"):
        Experiment.open("http://127.0.0.1:9")


def test_threads_may_share_a_client(url: str) -> None:
    experiment = Client(url).create(5, 2, budget=300, algorithm="uniform")

    def work() -> None:
        while tickets := experiment.ask(7):
            experiment.tell_many((ticket, reward(0, ticket.seed)) for ticket in tickets)

    threads = [threading.Thread(target=work) for _ in range(5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join(30)
    work()
    assert experiment.result().pulls == 300
    experiment.close()
    assert experiment.status().told == 300  # which connects again


def test_an_arm_leaves_from_afar_as_it_does_here(url: str) -> None:
    experiment = Client(url).create(["a", "b", "c"], 1, budget=60, rewards="binary")
    experiment.retire("c", "gone")
    while tickets := experiment.ask(9):
        assert all(ticket.arm != "c" for ticket in tickets)
        experiment.tell_many((ticket, ticket.arm == "b") for ticket in tickets)
    assert experiment.result().top == ("b",)
    assert experiment.status().arms.places[2] == "retired"
    for arm, reason in (("z", ""), ("a", 7), (("a", 1), "")):
        with pytest.raises(InvalidInput):
            experiment.retire(arm, reason)  # type: ignore[arg-type]


def test_a_pull_that_fails_too_often_lets_its_arm_leave_where_that_was_agreed(url: str) -> None:
    asked: dict[str, Any] = {"budget": 60, "rewards": "binary", "retries": 0}
    experiment = Client(url).create(["a", "b", "c"], 1, on_failure="retire", **asked)
    assert experiment.settings.on_failure == "retire"
    (ticket,) = experiment.ask()
    experiment.fail(ticket, "no answer")
    assert experiment.status().arms.places[0] == "retired"
    assert experiment.state() is State.READY
    with pytest.raises(InvalidInput, match="`on_failure` is 'leave'"):
        Client(url).create(3, 1, budget=9, name="other", on_failure="leave")  # type: ignore[arg-type]


def test_the_example_of_the_docstring_runs(url: str) -> None:
    source = (Client.__doc__ or "").replace("http://127.0.0.1:8765", url)
    example = doctest.DocTestParser().get_doctest(source, {}, "Client", None, None)
    assert example.examples
    failures, _ = doctest.DocTestRunner().run(example)
    assert failures == 0
