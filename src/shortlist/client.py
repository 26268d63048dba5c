"""A client of a service: `Client` has the methods of an experiment and calls the service's API."""

import json
import logging
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from ipaddress import ip_address
from math import isfinite
from numbers import Integral, Real
from threading import local
from typing import Any
from urllib.parse import SplitResult, quote, urlsplit

import numpy as np

from shortlist.algorithms import AlgorithmLike
from shortlist.arms import Arms, Label, OwnLabel, labels_to_keep
from shortlist.cells import ItemsGiven
from shortlist.engine import Experiment, Handout, Receipt, State, Status, Ticket, import_lines
from shortlist.engine.blocks import Assignment, CountsReceipt, Shares, doubt_refused
from shortlist.engine.live import CountsGiven, MetricsGiven, checked_block
from shortlist.engine.locate import checked_name, the_only
from shortlist.engine.log_entries import (
    Asking,
    Report,
    ToldResult,
    named_tickets,
    report,
    told_results,
    told_reward,
)
from shortlist.engine.runnable import Runnable
from shortlist.engine.tickets import Score, checked_cost, checked_info, checked_metrics
from shortlist.errors import InvalidInput, NotAllowed, ShortlistError, Unreachable
from shortlist.features import FeaturesGiven
from shortlist.problem import ScoresGiven
from shortlist.quotas import ConstraintGiven, QuotasGiven
from shortlist.result import Result
from shortlist.result.cells import EvaluatedCells
from shortlist.reward_models import RewardsDeclared
from shortlist.search import Progress
from shortlist.settings import Settings, arguments, body_of
from shortlist.spec import (
    Certificate,
    Json,
    OnFailure,
    OnLate,
    Order,
    Population,
    Seeds,
    UnitName,
    documented,
)
from shortlist.stores.base import MemoryStore
from shortlist.validation import (
    MOST_WORKERS,
    flag,
    number,
    real,
    seconds,
    shown,
    text,
    whole,
    words,
)
from shortlist.wire import (
    counts_to_json,
    error_of,
    handout_of,
    metrics_to_json,
    receipt_of,
    result_of,
    shares_of,
    status_of,
)


def lease_to_json(ticket: Ticket | int) -> Json:
    """A ticket with the end of its lease: it means that lease and no later one."""
    more = {"expires": ticket.expires} if isinstance(ticket, Ticket) else {}
    return {**ticket_to_json(ticket), **more}


def ticket_to_json(ticket: Ticket | int) -> Json:
    """A ticket with its arm, if known: the service refuses a ticket of another arm."""
    if isinstance(ticket, Ticket):
        item = {} if ticket.item is None else {"item": ticket.item}
        return {"ticket": ticket.id, "arm": ticket.arm, "experiment": ticket.experiment, **item}
    return {"ticket": whole("ticket", ticket, at_least=0)}


FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0  # seconds before a retry; doubles each time
BUSY = (429, 502, 503, 504)  # statuses that are retried
UNCHANGED, UNAUTHORIZED = 304, 401
logger = logging.getLogger("shortlist.client")


class Connection:
    """HTTP requests to one service. Threads may share it.

    Requests without an answer are retried with exponential back-off for `patience` seconds."""

    def __init__(self, url: str, token: str | None, timeout: float, patience: float) -> None:
        self._address = _address(url)
        self._token = None if token is None else _sendable(token)
        self._timeout = timeout
        self._patience = patience
        self._own = local()  # the connection of this thread
        self._made: list[HTTPConnection] = []  # the connections of all threads
        if token is not None and not _is_private(self._address):
            logger.warning("The token is sent to %s in plain text: use https.", url)

    @property
    def url(self) -> str:
        """The address of the service."""
        return self._address.geturl()

    def call(
        self, method: str, path: str, body: Json | None = None, *, repeatable: bool = True
    ) -> Json:
        """Return the data of a reply.

        A request that is not `repeatable` is retried only if it cannot have arrived."""
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
        """Return the ETag and the data of a reply; no data if `etag` is still current."""
        headers = {} if etag is None else {"If-None-Match": etag}
        response, raw = self._retry(method, path, body, headers, repeatable)
        current = response.headers.get("ETag")
        data = (
            None
            if response.status == UNCHANGED
            else _parsed(response, raw, self._token is not None)
        )
        return current, data

    def lines(self, path: str) -> Iterator[str]:
        """Yield the lines of a reply as they arrive."""
        response = self._send("GET", path, None, {}, True)
        if response.status >= 400:
            raise _refusal(_loaded(response.read()), response.status, self._token is not None)
        for line in response:
            yield line.decode().rstrip("\n")

    def close(self) -> None:
        """Close the connections of all threads."""
        while self._made:
            self._made.pop().close()

    def __del__(self) -> None:
        with suppress(AttributeError):  # the address was refused
            self.close()

    def _drop(self) -> None:
        """Close the connection of this thread."""
        connection = self._own.__dict__.pop("connection", None)
        if connection is not None:
            connection.close()
        if connection in self._made:
            self._made.remove(connection)

    def _retry(
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
        if not repeatable:  # an idle connection may be closed already, which only shows later
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
    """A token that a header can contain."""
    if not (text("token", token).isascii() and token.isprintable()):
        raise InvalidInput("`token` must consist of printable ASCII characters")
    return token


def _written(body: Json) -> bytes:
    try:
        return json.dumps(body, allow_nan=False, default=_plain).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"a value cannot be sent as JSON: {error}") from error


def _plain(value: Any) -> Any:
    """Numbers of NumPy and other libraries as numbers of JSON."""
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Real):
        return int(value) if isinstance(value, Integral) else real(value)
    raise InvalidInput(f"a value is {shown(value)}, but must have a JSON type")


def _is_private(address: SplitResult) -> bool:
    """Whether no one else can read what is sent there."""
    try:
        local_ = ip_address(address.hostname or "").is_loopback
    except ValueError:
        local_ = address.hostname == "localhost"
    return local_ or address.scheme == "https"


def _parsed(response: HTTPResponse, raw: bytes, has_token: bool) -> Json:
    data = _loaded(raw)
    if response.status >= 400 or not isinstance(data, dict):
        raise _refusal(data, response.status, has_token)
    return data


def _refusal(data: object, status: int, has_token: bool) -> ShortlistError:
    """The error of a reply; a caller without a token learns where to put one."""
    error = error_of(data, status)
    if status == UNAUTHORIZED and not has_token:
        return NotAllowed(f"{error}: use Client(url, token), or set SHORTLIST_TOKEN for commands")
    return error


def _loaded(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


class Client(Runnable):
    """An experiment at a service, with the methods of `Experiment`. Threads may share a client.

    Requests without an answer are retried. That is safe: repeating a tell changes nothing.

    Args:
        url: Address of the service, such as "http://127.0.0.1:8765".
        token: A token that `shortlist tokens create` made; None if the service has no tokens.
        name: Name of the experiment; None for the only one at the service.
        timeout: Seconds to wait for a reply.
        patience: Seconds for which requests without a reply are retried.

    Raises:
        InvalidInput: `url` is not an address, or `token` has characters that no token has.

    Example:
        >>> from shortlist import Client
        >>> client = Client("http://127.0.0.1:8765")
        >>> experiment = client.create(["red", "green"], k=1, budget=20)
        >>> while tickets := experiment.ask(5):
        ...     receipt = experiment.tell_many((each, each.arm == "red") for each in tickets)
        >>> experiment.result().top
        ('red',)"""

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
        """Return the names of all experiments at the service, in the order of their creation."""
        return [row["name"] for row in self.experiments()]

    def experiments(self) -> Iterator[Json]:
        """Yield a summary of every experiment: name, state, arms, k, algorithm, pulls."""
        offset: int | None = 0
        while offset is not None:
            page = self._connection.call("GET", f"/v1/experiments?offset={offset}")
            yield from page["experiments"]
            offset = page["next"]

    def open(self, name: str | None = None) -> "Client":
        """Return a client of an existing experiment.

        Args:
            name: Name of the experiment; None for the only one at the service.

        Returns:
            The client of that experiment.

        Raises:
            StoreMissing: There is no such experiment, or several and no name is given."""
        other = object.__new__(Client)
        other.__dict__.update(self.__dict__)
        other._name = the_only(self.names()) if name is None else checked_name(name)
        other._settings = other._seen = None
        other._describe()
        return other

    @documented("create", "algorithm")
    def create(  # noqa: D417  # `documented` adds the settings
        self,
        arms: Arms,
        k: int,
        *,
        name: str = "experiment",
        epsilon: float | str | None = None,
        delta: float = 0.05,
        budget: float | None = None,
        rewards: RewardsDeclared | None = None,
        minimize: bool = False,
        items: ItemsGiven | None = None,
        scores: ScoresGiven | None = None,
        order: Order = "shared",
        repeats: int = 1,
        clusters: Sequence[str | int] | None = None,
        population: Population = "these",
        algorithm: AlgorithmLike = "auto",
        options: Mapping[str, object] | None = None,
        max_rounds: int | None = None,
        min_batch: int | None = None,
        window: int | None = None,
        certificate: Certificate = "auto",
        quotas: QuotasGiven | None = None,
        constraint: ConstraintGiven | None = None,
        features: FeaturesGiven | None = None,
        linear: bool | float = False,
        drift: bool | None = None,
        per_day: int | None = None,
        delay: int = 0,
        skip_blocks: int = 0,
        min_blocks: int | None = None,
        timezone: str | None = None,
        control: OwnLabel | None = None,
        guardrails: Mapping[str, float | str] | None = None,
        unit: UnitName | None = None,
        seed: int = 0,
        seeds: Seeds = "own",
        lease: float | None = None,
        on_late: OnLate = "wait",
        retries: int = 2,
        on_failure: OnFailure = "stop",
        workers: int | None = None,
        exist_ok: bool = False,
    ) -> "Client":
        """Create an experiment at the service and return a client of it.

        Args:
            {settings}
            algorithm: Name of an algorithm of the package: a service imports no code of callers.
                Default: 'auto'.
            name: Name of the experiment.
            workers: Calls that will be under way at a time. On a test set it sets the defaults of
                `min_batch` and `window`, and nothing else.
            exist_ok: Whether to open an experiment of that name with the same settings, if there
                is one.

        Returns:
            A client of the experiment.

        Raises:
            InvalidInput: An argument is invalid.
            StoreExists: The name is taken and `exist_ok` is False, or the settings differ.
            NotAllowed: The token does not have the scope "admin"."""
        body = body_of(arguments(locals(), "create"))
        body |= {"name": checked_name(name), "exist_ok": flag("exist_ok", exist_ok)}
        if workers is not None:
            body["workers"] = whole("workers", workers, at_least=1, at_most=MOST_WORKERS)
        self._connection.call("POST", "/v1/experiments", body, repeatable=exist_ok)
        return self.open(name)

    @property
    def name(self) -> str:
        """The name of the experiment."""
        if self._name is None:
            self._name = the_only(self.names())
        return self._name

    @property
    def settings(self) -> Settings:
        """The settings of the experiment."""
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
        per_worker: int | None = None,
    ) -> Handout:
        """Ask for tickets: pulls that the search needs next.

        If the reply is lost, a named worker gets the same tickets again; the tickets of an unnamed
        worker are free again when their lease ends.

        Args:
            limit: Maximum number of tickets, at most 10,000.
            worker: Name of the worker; its own open tickets come first.
            lease: Seconds for which the tickets are reserved; None for the experiment's default.
            alive: Seconds after which a worker without a sign of life loses its tickets.
            per_worker: Most open tickets of the worker, those that it holds already included.
                Default: no other limit than `limit`.

        Returns:
            The tickets, and the state of the experiment."""
        asking = Asking.of(limit, worker, lease, alive, per_worker)
        reply = self._call("POST", "/ask", asking._asdict())
        self._note(reply)
        return handout_of(reply)

    def tell(
        self,
        ticket: Ticket | int,
        reward: float | Score,
        cost: float | None = None,
        info: Any = None,
        metrics: Mapping[str, float] | None = None,
    ) -> Receipt:
        """Record the reward of a ticket. It is in the store when this returns.

        Repeating a tell changes nothing. If `on_late` is a reward, late rewards are discarded, by
        the clock of the service; the receipt and a warning in the log name them.

        Args:
            ticket: The ticket, or its number.
            reward: The reward, or a `Score`.
            cost: Actual cost of the pull; None for the declared cost.
            info: Anything that JSON can hold, up to 64 KiB, stored with the reward.
            metrics: Further figures of the same pull, each from 0 to 1, such as `{"bounce": 1}`.

        Returns:
            The tickets whose rewards were discarded.

        Raises:
            InvalidInput: The reward or the cost is not allowed.
            ConflictingReward: Another reward was told before, which stays.
            UnknownTicket: There is no such ticket."""
        return self.tell_many([(ticket, reward, cost, info, metrics)])

    def tell_many(self, results: Iterable[Report]) -> Receipt:
        """Record the rewards of many tickets: all of them, or none if there is an error.

        Args:
            results: Pairs of ticket and reward, perhaps followed by the actual cost, the info and
                the metrics.

        Returns:
            The tickets whose rewards were discarded."""
        given = [self._told(each) for each in told_results(results)]
        if not given:
            return Receipt()
        receipt = receipt_of(self._call("POST", "/tell", {"results": given}))
        report(receipt, "`on_late`")
        return receipt

    def _told(self, told: ToldResult) -> Json:
        """A reward as JSON; values without a JSON type are refused here, as at the service."""
        data = ticket_to_json(told.ticket)
        paid = checked_cost(told.cost, f"the cost of ticket {data['ticket']}")
        if paid is not None:
            data["cost"] = paid
        metrics = checked_metrics(told.metrics, f"the metrics of ticket {data['ticket']}")
        noted = checked_info(told.info, f"the info of ticket {data['ticket']}", metrics=metrics)
        if noted is not None:
            kept = json.loads(noted)
            data |= {key: kept[key] for key in ("info", "metrics") if key in kept}
        value = real(told.reward)
        if not isfinite(value):
            model = self.settings.problem.rewards
            told_reward(told.reward, data["ticket"], data.get("arm", "?"), model)
        return {**data, "reward": value}

    def fail(self, ticket: Ticket | int, reason: str, attempts: int = 1) -> None:
        """Report a failed pull.

        The ticket is handed out again until more than `retries` attempts failed. Then the
        experiment stops, or with `on_failure` "retire" the arm is retired, with "void" no pull on
        that seed counts. If the ticket was told, or its lease has ended, this changes nothing.

        Args:
            ticket: The ticket, or its number.
            reason: Text for the log.
            attempts: How many attempts failed."""
        body = {**lease_to_json(ticket), "reason": words(reason), "attempts": attempts}
        self._call("POST", "/fail", body)

    def shares(self, block: str | None = None) -> Shares:
        """Open a block of a live test, or repeat the shares of one that exists.

        Args:
            block: Name of the block. Default: the date in UTC, by the clock of the service.

        Returns:
            The name of the block, and the share of every arm in percent.

        Raises:
            InvalidInput: The experiment was not created with `drift` or `per_day`."""
        query = "" if block is None else f"?block={quote(checked_block(block), safe='')}"
        return shares_of(self._call("GET", f"/shares{query}"))

    def assign(self, visitor: str, block: str | None = None) -> Assignment:
        """Assign a visitor of a live test to an arm: the same visitor always gets the same arm.

        Args:
            visitor: Identifier of the visitor; the service keeps a hash of it.
            block: Name of the block, as in `shares`.

        Returns:
            The arm to show, the block that the results of this visitor belong to, and whether this
            is the first visit.

        Raises:
            InvalidInput: The experiment was not created with `drift` or `per_day`."""
        body = {"visitor": checked_block(visitor, "visitor"), "block": block}
        return Assignment(**self._call("POST", "/assign", body))

    def tell_counts(
        self, block: str, counts: CountsGiven, *, metrics: MetricsGiven | None = None
    ) -> CountsReceipt:
        """Tell a block of a live test, once and completely.

        Args:
            block: Name of the block, as `shares` gave it.
            counts: Per arm `(visitors, sum)` or `(visitors, sum, squares)`, or a data frame with
                columns arm, visitors, and sum or conversions.
            metrics: Per metric the sum of every arm: between 0 and 1 per visitor.

        Returns:
            Whether the block counts, waits for an earlier one, was skipped or refused.

        Raises:
            UnknownName: There is no such block or arm.
            InvalidInput: The counts are incomplete or contradict the settings.
            ConflictingReward: The block was told before, with other counts."""
        body: Json = {"block": checked_block(block), "counts": counts_to_json(counts)}
        if metrics is not None:
            body["metrics"] = metrics_to_json(metrics)
        receipt = CountsReceipt(**self._call("POST", "/counts", body))
        doubt_refused(receipt)
        return receipt

    def void_block(self, block: str, reason: str) -> CountsReceipt:
        """Leave out a block of a live test whose data were lost.

        Decide without looking at results: see `Experiment.void_block`.

        Args:
            block: Name of the block.
            reason: What happened; it is shown with the result.

        Returns:
            The state "void", or "unused" once the test has ended.

        Raises:
            UnknownName: There is no such block.
            InvalidInput: The block was told, or the reason is empty."""
        body = {"block": checked_block(block), "void": checked_block(reason, "reason")}
        return CountsReceipt(**self._call("POST", "/counts", body))

    def retire(self, arm: Label | Sequence[Label], reason: str = "") -> None:
        """Retire an arm, for example because it cannot be pulled any more, or several at once.

        The guarantee is then about the remaining arms, unless arms are retired because of their
        rewards.

        Args:
            arm: Label of the arm, or a list of labels: all of them retire, or none.
            reason: Text for the log."""
        given = arm if isinstance(arm, list | tuple) else [arm]
        labels = list(labels_to_keep(tuple(given)))
        body = {"arm": labels[0]} if arm is not given else {"arms": labels}
        self._call("POST", "/retire", {**body, "reason": text("reason", reason)})

    def release(
        self,
        worker: str | None = None,
        *,
        tickets: Iterable[Ticket | int] | None = None,
        overdue: float | None = None,
    ) -> int:
        """Give tickets back whose results will not come; they are handed out again at once.

        Args:
            worker: Only tickets of this worker.
            tickets: Only these tickets, or their numbers.
            overdue: Only tickets whose lease ended this many seconds ago.

        Returns:
            The number of tickets."""
        several = named_tickets(tickets)
        given = None if several is None else [lease_to_json(ticket) for ticket in several]
        body: Json = {"worker": worker, "tickets": given, "overdue": overdue}
        return int(self._call("POST", "/release", body)["released"])

    def resume(self) -> None:
        """Continue an experiment that stopped after failed pulls; the failures no longer count."""
        self._call("POST", "/resume", {})

    def rename(self, new_name: str) -> None:
        """Rename the experiment. Its tickets stay valid, and its old name stays taken.

        Args:
            new_name: Its new name."""
        self._call("POST", "/rename", {"name": checked_name(new_name)})
        self._name = new_name

    def archive(self, *, restore: bool = False) -> None:
        """Archive the experiment: it is read-only then, and left out of lists and metrics.

        Args:
            restore: Make it active again instead."""
        self._call("POST", "/restore" if flag("restore", restore) else "/archive", {})

    def delete(self) -> None:
        """Delete the experiment for good, with its settings, labels, rewards and events."""
        body = {"confirm": self.name}
        self._connection.call("POST", f"{self._path}/delete", body, repeatable=False)

    def status(self) -> Status:
        """Return the status: state, counts, arms, workers."""
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
        """Return the number of pulls told and the progress of the search, as of the last `ask`."""
        return self._standing

    def position(self) -> int:
        """Return the number of entries of the log."""
        return int(self._read_standing()["position"])

    def change_token(self) -> str:
        """Return a text that changes whenever `status` does."""
        return str(self._read_standing()["version"])

    def state(self) -> State:
        """Return the state of the experiment."""
        return State(self._read_standing()["state"])

    def held(self) -> tuple[int, float]:
        """Return the number of tickets held by workers, and when the last of their leases ends."""
        reply = self._read_standing()
        return reply["held"], reply["held_until"]

    def result(self, *, partial: bool = False) -> Result:
        """Return the result.

        Args:
            partial: Also before the search has finished: the current choice.

        Returns:
            The result, as `Experiment.result` gives it.

        Raises:
            Unfinished: The search has not finished, and `partial` is False."""
        path = "/result?partial=true" if flag("partial", partial) else "/result"
        result = result_of(self._call("GET", path), self.settings.problem.rewards)
        return replace(result, control=self.settings.control, unit=self.settings.unit)

    def cells(self) -> EvaluatedCells:
        """Return all evaluated cells of a test set, as `Experiment.cells` does.

        The whole log is fetched when they are first needed."""
        copy = MemoryStore()
        return EvaluatedCells(lambda: self._fetched(copy).cells().rows)

    def _fetched(self, copy: MemoryStore) -> Experiment:
        import_lines(self.export_lines(), copy)
        return Experiment.open(copy)

    def export_lines(self) -> Iterator[str]:
        """Yield the experiment as lines of JSON, for `shortlist import`."""
        return self._connection.lines(f"{self._path}/export")

    def close(self) -> None:
        """Close the connections. Nothing is lost: what was told is in the store."""
        self._connection.close()

    def __repr__(self) -> str:
        return f"<Client {self._name or 'only experiment'!r} at {self._connection.url}>"

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _path(self) -> str:
        return f"/v1/experiments/{quote(self.name, safe='')}"

    def _call(self, method: str, path: str, body: Json | None = None) -> Json:
        return self._connection.call(method, self._path + path, body)

    def _read_standing(self) -> Json:
        reply = self._call("GET", "/standing")
        self._note(reply)
        return reply

    def _note(self, reply: Json) -> None:
        self._standing = (reply["told"], Progress(**reply["progress"]))
