"""An experiment at a service, as if it were here: `Client` has the methods of `Experiment`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from math import isfinite
from types import TracebackType
from urllib.parse import quote

from shortlist.algorithms import AlgorithmLike, find, name_to_keep
from shortlist.arms import Arms, Label, arms_of, labels_of, labels_to_keep
from shortlist.client.bodies import described_arms, held, said, test_set
from shortlist.client.connection import Connection
from shortlist.evaluation.cells import ItemsGiven
from shortlist.evaluation.rewards import checked_cost
from shortlist.experiment import Handout, Receipt, State, Status, Ticket
from shortlist.experiment import telling as told
from shortlist.experiment.handing import Asking, named_tickets
from shortlist.experiment.lease import WAIT, Late
from shortlist.experiment.place import checked_name, the_only
from shortlist.experiment.runnable import Runnable
from shortlist.experiment.settings import OnFailure, Settings
from shortlist.experiment.telling import told_reward, triples
from shortlist.items import ScoresGiven
from shortlist.question import cells_given
from shortlist.result import Result
from shortlist.reward_models import RewardsDeclared, declared
from shortlist.search import Progress
from shortlist.validation import flag, named, number, real, seconds, text, words
from shortlist.wire import Json, handout_of, receipt_of, result_of, rewards_to_json, status_of


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
        algorithm: AlgorithmLike = "auto",
        options: Mapping[str, object] | None = None,
        rounds: int | None = None,
        least: int | None = None,
        certificate: str = "auto",
        seed: int = 0,
        lease: float | None = None,
        late: Late = WAIT,
        retries: int = 2,
        on_failure: OnFailure = "stop",
        exist_ok: bool = False,
        items: ItemsGiven | None = None,
        scores: ScoresGiven | None = None,
        order: str = "shared",
    ) -> "Client":
        """Make an experiment there, as `Experiment.create` does here."""
        described = arms_of(arms)
        given = arms if described is None else [arm.label for arm in described]
        labels, model = labels_to_keep(labels_of(given)), declared(rewards)
        body: Json = {
            "arms": labels if described is None else described_arms(described, labels),
            "k": k,
            "name": checked_name(name),
            "epsilon": epsilon,
            "delta": delta,
            "budget": budget,
            "rewards": None if rewards is None else rewards_to_json(model),
            "minimize": minimize,
            "algorithm": algorithm if isinstance(algorithm, str) else name_to_keep(find(algorithm)),
            "options": named("options", options),
            "rounds": rounds,
            "least": least,
            "certificate": certificate,
            "seed": seed,
            "lease": lease,
            "late": late,
            "retries": retries,
            "on_failure": on_failure,
            "exist_ok": flag("exist_ok", exist_ok),
            **test_set(cells_given(items, seed, scores, order), labels, model),
        }
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
        late reward is discarded where `late` is a reward, by the clock of the service; the receipt
        and a warning in the log say so."""
        return self.tell_many([(ticket, reward, cost)])

    def tell_many(self, results: Iterable[told.Result]) -> Receipt:
        """Record the rewards of many tickets at once: all of them, or after an error none.

        The receipt names the tickets whose reward is discarded."""
        given = [self._told(*each) for each in triples(results)]
        if not given:
            return Receipt()
        receipt = receipt_of(self._call("POST", "/tell", {"results": given}))
        told.report(receipt, "`late`")
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
        return result_of(self._call("GET", what), self.settings.problem.rewards)

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
