"""A service from afar: `client.py` is an experiment there, `connection.py` the way to it."""

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from math import isfinite
from numbers import Integral, Real
from threading import local
from types import TracebackType
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, Label, OwnLabel, labels_to_keep
from shortlist.cells import ItemsGiven
from shortlist.engine import Handout, Receipt, State, Status, Ticket
from shortlist.engine.experiment import Runnable
from shortlist.engine.handout import Asking, named_tickets
from shortlist.engine.locate import checked_name, the_only
from shortlist.engine.rewards import checked_cost
from shortlist.engine.telling import Report, report, told_reward, triples
from shortlist.errors import InvalidInput, Unreachable
from shortlist.problem import ScoresGiven
from shortlist.result import Result
from shortlist.reward_models import RewardsDeclared
from shortlist.search import Progress
from shortlist.settings import Settings, arguments, body_of
from shortlist.spec import Certificate, Json, OnFailure, OnLate, Order
from shortlist.validation import flag, number, real, seconds, shown, text, whole, words
from shortlist.wire import (
    error_of,
    handout_of,
    receipt_of,
    result_of,
    status_of,
)


def held(ticket: Ticket | int) -> Json:
    """The same with when it is due: then it is that lease which is meant, and no later one."""
    more = {"expires": ticket.expires} if isinstance(ticket, Ticket) else {}
    return {**said(ticket), **more}


def said(ticket: Ticket | int) -> Json:
    """What a ticket says of itself; who names the arm learns if the ticket is of another one."""
    if isinstance(ticket, Ticket):
        item = {} if ticket.item is None else {"item": ticket.item}
        return {"ticket": ticket.id, "arm": ticket.arm, "experiment": ticket.experiment, **item}
    return {"ticket": whole("ticket", ticket, at_least=0)}


FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds before a request is made again: doubled each time
BUSY = (429, 502, 503, 504)  # statuses that may be better the next time
UNCHANGED = 304
logger = logging.getLogger("shortlist.client")


class Connection:
    """Requests to one service. Threads may share it.

    A service that does not answer is asked again, more and more seldom, for `patience` seconds: it
    may be about to start again."""

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        self._address = _address(url)
        self._token = None if token is None else _sendable(token)
        self._timeout = timeout
        self._patience = patience
        self._own = local()  # this thread's
        self._made: list[HTTPConnection] = []  # everybody's
        if token is not None and not _is_private(self._address):
            logger.warning("The token is sent to %s in plain text: use https.", url)

    @property
    def url(self) -> str:
        """Where the service is."""
        return self._address.geturl()

    def call(
        self, method: str, path: str, body: Json | None = None, *, repeatable: bool = True
    ) -> Json:
        """What a service answers.

        What is not `repeatable` is sent again only if it cannot have arrived."""
        _, data = self.conditional(method, path, body, None, repeatable)
        assert data is not None
        return data

    def conditional(
        self,
        method: str,
        path: str,
        body: Json | None = None,
        etag: str | None = None,
        repeatable: bool = True,
    ) -> tuple[str | None, Json | None]:
        """What a service answers and its ETag; no data if it still is that of `etag`."""
        headers = {} if etag is None else {"If-None-Match": etag}
        response, raw = self._insist(method, path, body, headers, repeatable)
        known = response.headers.get("ETag")
        return (known, None) if response.status == UNCHANGED else (known, _parsed(response, raw))

    def lines(self, path: str) -> Iterator[str]:
        """What a service answers, line by line as it comes in."""
        response = self._send("GET", path, None, {}, True)
        if response.status >= 400:
            raise error_of(_loaded(response.read()), response.status)
        for line in response:
            yield line.decode().rstrip("\n")

    def close(self) -> None:
        """Let go of all connections, of whatever thread."""
        while self._made:
            self._made.pop().close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # of an address that was refused
            self.close()

    def _drop(self) -> None:
        """Let go of this thread's connection."""
        connection = self._own.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()
        if connection in self._made:
            self._made.remove(connection)

    def _insist(
        self, method: str, path: str, body: Json | None, headers: dict[str, str], repeatable: bool
    ) -> tuple[HTTPResponse, bytes]:
        deadline = time.monotonic() + self._patience
        pause = FIRST_PAUSE
        while True:
            late = time.monotonic() + pause > deadline
            try:
                response = self._send(method, path, body, headers, repeatable)
                raw = response.read()
                if response.status not in BUSY or late:
                    return response, raw
            except Unreachable:
                self._drop()
                if late:
                    raise
            except (OSError, HTTPException) as error:
                self._drop()
                if late or not repeatable:
                    raise Unreachable(f"{self.url} did not answer: {error!r}") from error
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _send(
        self, method: str, path: str, body: Json | None, headers: dict[str, str], repeatable: bool
    ) -> HTTPResponse:
        if not repeatable:  # a connection that was idle may be closed already: no way to know
            self._drop()
        connection = self._connected()
        sent = dict(headers)
        if self._token is not None:
            sent["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            sent["Content-Type"] = "application/json"
        raw = None if body is None else _written(body)
        connection.request(method, self._address.path.rstrip("/") + path, raw, sent)
        return connection.getresponse()

    def _connected(self) -> HTTPConnection:
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is not None and connection.sock is not None:
            return connection
        secure = self._address.scheme == "https"
        made = HTTPSConnection if secure else HTTPConnection
        connection = made(self._address.netloc, timeout=self._timeout)
        try:
            connection.connect()
        except OSError as error:
            raise Unreachable(f"no service answers at {self.url}: {error}") from error
        self._own.connection = connection
        self._made.append(connection)
        return connection


def _address(url: str) -> SplitResult:
    url = text("url", url)
    with suppress(ValueError):
        address = urlsplit(url)
        if address.scheme in ("http", "https") and address.hostname and address.port != 0:
            return address
    raise InvalidInput(f"`url` is {url!r}, but must be the address of a service, as http://host:80")


def _sendable(token: str) -> str:
    """A token as the head of a request has it."""
    if not (text("token", token).isascii() and token.isprintable()):
        raise InvalidInput("`token` has characters that none has, but must be as it was made")
    return token


def _written(body: Json) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a value is to be sent that JSON has no word for: {error}") from error


def _plain(value: Any) -> Any:
    """Numbers of other kinds as plain ones."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else real(value)
    raise InvalidInput(f"{shown(value)} is to be sent, but JSON has no word for it")


def _is_private(address: SplitResult) -> bool:
    """Whether what is sent there is nobody else's to read."""
    try:
        here = ip_address(address.hostname or "").is_loopback
    except ValueError:
        here = address.hostname == "localhost"
    return here or address.scheme == "https"


def _parsed(response: HTTPResponse, raw: bytes) -> Json:
    data = _loaded(raw)
    if response.status >= 400 or not isinstance(data, dict):
        raise error_of(data, response.status)
    return data


def _loaded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


class Client(Runnable):
    """An experiment at the service at `url`: the one of that name, or the only one there is.

    `token` is one that `shortlist tokens` made there. An answer is waited for `timeout` seconds; a
    service that is away is asked again for `patience` seconds, which is safe: a ticket is told
    once, however often that is said. Threads may share a client."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        name: str | None = None,
        *,
        timeout: float = 60.0,
        patience: float = 30.0,
    ) -> None:
        waiting = seconds("timeout", timeout), number("patience", patience)
        self._connection = Connection(url, token, *waiting)
        self._name = None if name is None else checked_name(name)
        self._settings: Settings | None = None
        self._standing = (0, Progress())
        self._seen: tuple[str, Status] | None = None  # the last status and its ETag

    def names(self) -> list[str]:
        """The experiments there are, in the order in which they were made."""
        return [row["name"] for row in self.experiments()]

    def experiments(self) -> Iterator[Json]:
        """Every experiment as a row of `shortlist list`."""
        offset: int | None = 0
        while offset is not None:
            page = self._connection.call("GET", f"/v1/experiments?offset={offset}")
            yield from page["experiments"]
            offset = page["next"]

    def open(self, name: str | None = None) -> "Client":
        """Go on with an experiment; the name may be left out where there is only one."""
        other = object.__new__(Client)
        other.__dict__.update(self.__dict__)
        other._name = the_only(self.names()) if name is None else checked_name(name)
        other._settings = other._seen = None
        other._describe()
        return other

    def create(
        self,
        arms: Arms,
        k: int,
        *,
        name: str = "experiment",
        epsilon: float | None = None,
        delta: float = 0.05,
        budget: float | None = None,
        rewards: RewardsDeclared | None = None,
        minimize: bool = False,
        items: ItemsGiven | None = None,
        scores: ScoresGiven | None = None,
        order: Order = "shared",
        algorithm: AlgorithmLike = "auto",
        options: Mapping[str, object] | None = None,
        max_rounds: int | None = None,
        min_batch: int | None = None,
        certificate: Certificate = "auto",
        control: OwnLabel | None = None,
        seed: int = 0,
        lease: float | None = None,
        on_late: OnLate = "wait",
        retries: int = 2,
        on_failure: OnFailure = "stop",
        exist_ok: bool = False,
    ) -> "Client":
        """Make an experiment there, as `Experiment.create` does here."""
        body = body_of(arguments(locals(), "create"))
        body |= {"name": checked_name(name), "exist_ok": flag("exist_ok", exist_ok)}
        self._connection.call("POST", "/v1/experiments", body, repeatable=exist_ok)
        return self.open(name)

    @property
    def name(self) -> str:
        """The experiment's name."""
        if self._name is None:
            self._name = the_only(self.names())
        return self._name

    @property
    def settings(self) -> Settings:
        """What the experiment was made with."""
        return self._describe() if self._settings is None else self._settings

    def _describe(self) -> Settings:
        written = json.dumps(self._call("GET", "")["settings"])
        self._settings = Settings.read(written, f"experiment {self.name!r}")
        return self._settings

    def ask(
        self,
        limit: int = 1,
        worker: str | None = None,
        *,
        lease: float | None = None,
        alive: float | None = None,
    ) -> Handout:
        """Up to `limit` tickets: pulls that the search wants next; 10,000 at a time at most.

        If an answer is lost on the way, a worker with a name gets the same tickets again; those of
        a worker without one wait until their lease ends."""
        reply = self._call("POST", "/ask", Asking.of(limit, worker, lease, alive)._asdict())
        self._note(reply)
        return handout_of(reply)

    def tell(self, ticket: Ticket | int, reward: float, cost: float | None = None) -> Receipt:
        """Record the reward of a ticket, for good: it is in the store when this returns.

        `cost` is what the pull did cost, if that is not what was declared. Telling the same again
        changes nothing; another reward for the same ticket is an error, and the first stays. A
        late reward is discarded where `on_late` is a reward, by the clock of the service; the
        receipt and a warning in the log say so."""
        return self.tell_many([(ticket, reward, cost)])

    def tell_many(self, results: Iterable[Report]) -> Receipt:
        """Record the rewards of many tickets at once: all of them, or after an error none.

        The receipt names the tickets whose reward is discarded."""
        given = [self._told(*each) for each in triples(results)]
        if not given:
            return Receipt()
        receipt = receipt_of(self._call("POST", "/tell", {"results": given}))
        report(receipt, "`on_late`")
        return receipt

    def _told(self, ticket: Ticket | int, reward: float, cost: float | None) -> Json:
        """A reward as JSON; what JSON has no word for is refused here, as it would be there."""
        spoken = said(ticket)
        paid = checked_cost(cost, f"the cost of ticket {spoken['ticket']}")
        if paid is not None:
            spoken["cost"] = paid
        value = real(reward)
        if not isfinite(value):
            model = self.settings.problem.rewards
            told_reward(reward, spoken["ticket"], spoken.get("arm", "?"), model)
        return {**spoken, "reward": value}

    def fail(self, ticket: Ticket | int, reason: str) -> None:
        """Say that a pull could not be made.

        It is handed out again, up to the limit, and then the experiment stops, or with `on_failure`
        "retire" the arm leaves. Of a ticket that is told, or is not its holder's any more, this
        changes nothing."""
        self._call("POST", "/fail", {**held(ticket), "reason": words(reason)})

    def retire(self, arm: Label, reason: str = "") -> None:
        """Let an arm leave that cannot be pulled any more; `reason` is for the log.

        The guarantee is then about the arms that stay, if the arm did not leave because of its
        rewards."""
        said = text("reason", reason)
        (label,) = labels_to_keep((arm,))
        self._call("POST", "/retire", {"arm": label, "reason": said})

    def release(
        self,
        worker: str | None = None,
        *,
        tickets: Iterable[Ticket | int] | None = None,
        overdue: float | None = None,
    ) -> int:
        """Take back tickets of which no result will come; they are handed out again at once.

        Those of a worker, some by number, those overdue by so many seconds, or what fits all that
        is said; returns how many."""
        several = named_tickets(tickets)
        meant = None if several is None else [held(ticket) for ticket in several]
        body: Json = {"worker": worker, "tickets": meant, "overdue": overdue}
        return int(self._call("POST", "/release", body)["released"])

    def resume(self) -> None:
        """Let an experiment that stopped go on: the failures so far are forgiven."""
        self._call("POST", "/resume", {})

    def status(self) -> Status:
        """Where the experiment stands."""
        etag, known = self._seen or (None, None)
        etag, data = self._connection.conditional("GET", f"{self._path}/status", etag=etag)
        if data is None and known is not None:
            return known
        assert data is not None
        status = status_of(data)
        if etag is not None:
            self._seen = (etag, status)
        return status

    def standing(self) -> tuple[int, Progress]:
        """How many pulls were told, and how far the search is, as of the last `ask`."""
        return self._standing

    def position(self) -> int:
        """How many entries the log has: whatever happens to the experiment adds one."""
        return int(self._look()["position"])

    def version(self) -> str:
        """What changes whenever `status` does: with the log, and as time goes by."""
        return str(self._look()["version"])

    def state(self) -> State:
        """Whether there are tickets, an answer, or trouble."""
        return State(self._look()["state"])

    def held(self) -> tuple[int, float]:
        """How many tickets somebody works on, and when the last of their leases ends."""
        reply = self._look()
        return reply["held"], reply["held_until"]

    def result(self, *, partial: bool = False) -> Result:
        """The answer, once there is one; with `partial` also before that, as it would be now."""
        what = "/result?partial=true" if flag("partial", partial) else "/result"
        result = result_of(self._call("GET", what), self.settings.problem.rewards)
        return replace(result, control=self.settings.control)

    def export_lines(self) -> Iterator[str]:
        """The experiment as lines of JSON, which `import_lines` takes."""
        return self._connection.lines(f"{self._path}/export")

    def close(self) -> None:
        """Let go of the connections. Nothing needs saving: what was told is in the store."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<Client {self._name or 'of the only experiment'!r} at {self._connection.url}>"

    def __enter__(self) -> "Client":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def _path(self) -> str:
        return f"/v1/experiments/{quote(self.name, safe='')}"

    def _call(self, method: str, what: str, body: Json | None = None) -> Json:
        return self._connection.call(method, self._path + what, body)

    def _look(self) -> Json:
        reply = self._call("GET", "/standing")
        self._note(reply)
        return reply

    def _note(self, reply: Json) -> None:
        self._standing = (reply["told"], Progress(**reply["progress"]))
