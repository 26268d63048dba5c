"""What every request of the API does: what only reads is a function from an `Inquiry` to a `Reply`,
run in a thread; what writes says from its body what is to be done, and `writes.py` does it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice

from shortlist.engine import Experiment, export_lines
from shortlist.errors import InvalidInput, ShortlistError
from shortlist.service.bodies import (
    NAMED,
    check_fields,
    held_ticket,
    label,
    listed_tickets,
    results,
    text,
)
from shortlist.service.experiment_cache import Opened
from shortlist.service.group_commit import Act, Results
from shortlist.service.limits import Limits
from shortlist.service.replies import TOO_MUCH, Refusal
from shortlist.settings import arms_of_json, rewards_of
from shortlist.spec import FIELDS, REQUIRED, Json
from shortlist.validation import shown, whole
from shortlist.wire import MOST_TICKETS, handout_to_json, status_to_json

PAGE = 100  # experiments in one list
LINES = 1000  # of an export, sent together


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A request that was let in."""

    opened: Opened
    limits: Limits
    name: str  # of the experiment; empty where none is meant
    body: Json  # of a POST; of a GET what stands behind the question mark
    etag: str | None = None  # of what whoever asks has already

    @property
    def experiment(self) -> Experiment:
        """The experiment that is meant."""
        return self.opened.experiment(self.name)


@dataclass(frozen=True, slots=True)
class Reply:
    """What goes back: data as JSON, or lines."""

    data: Json | None = None
    status: int = 200
    etag: str | None = None
    lines: Iterator[str] | None = None


def list_experiments(inquiry: Inquiry) -> Reply:
    """Every experiment in a line, a hundred at a time."""
    check_fields(inquiry.body, ("offset",))
    offset = inquiry.body.get("offset", "0")
    if not (offset.isdecimal() and offset.isascii() and len(offset) < 10):
        raise InvalidInput(
            f"`offset` is {offset[:100]!r}, but must be a whole number of at least 0"
        )
    first = int(offset)
    names = inquiry.opened.store.names()
    rows = [listed(inquiry.opened, name) for name in names[first : first + PAGE]]
    following = first + PAGE if first + PAGE < len(names) else None
    return Reply({"experiments": rows, "total": len(names), "next": following})


def listed(opened: Opened, name: str) -> Json:
    """An experiment in a line: its state, or why it has none."""
    row: Json = dict.fromkeys(("name", "state", "arms", "k", "algorithm", "pulls"))
    try:
        experiment = opened.experiment(name)
        settings = experiment.settings
        experiment.position()
        row |= {"state": experiment.state().value, "arms": len(settings.labels)}
        row |= {"k": settings.problem.k, "algorithm": settings.algorithm}
        row |= {"pulls": experiment.standing()[0]}
    except ShortlistError as error:
        row["state"] = str(error)
    return {**row, "name": name}


def create(inquiry: Inquiry) -> Reply:
    """Make an experiment. One that this package does not know itself is not searched by: a name
    such as module:function would let whoever asks choose what the service imports."""
    body = inquiry.body
    check_fields(body, ("name", *FIELDS, "exist_ok"), REQUIRED)
    _check_arms(body["arms"], inquiry.limits.arms)
    if not isinstance(body.get("options"), dict | None):
        raise InvalidInput(f"`options` is {shown(body['options'])[:100]}, but must be an object")
    _check_scores(body.get("scores"))
    algorithm = text(body, "algorithm")
    if algorithm is not None and ":" in algorithm:
        raise InvalidInput(
            f"`algorithm` is {algorithm!r}, but must be one of `shortlist algorithms` at a service"
        )
    given = {name: value for name, value in body.items() if value is not None or name in REQUIRED}
    given |= {"arms": arms_of_json(body["arms"]), "rewards": rewards_of(body.get("rewards"))}
    there = inquiry.opened.store.names()
    made = inquiry.opened.create(**given)
    return Reply(_described(made), 200 if made.name in there else 201)


def _check_scores(scores: object) -> None:
    """Refuse the name of a file: whoever asks must not choose what the service reads."""
    if not isinstance(scores, list | None):
        raise InvalidInput(f"`scores` is {shown(scores)[:100]}, but must be a list of lists")


def _check_arms(arms: object, most: int) -> None:
    count = len(arms) if isinstance(arms, list) else arms
    if isinstance(count, int) and count > most:
        raise Refusal(TOO_MUCH, f"`arms` are {count:,}, but a service takes {most:,} at most")
    if isinstance(arms, Mapping):
        raise InvalidInput("`arms` is an object, but must be a number of arms or a list of labels")


def describe(inquiry: Inquiry) -> Reply:
    """What an experiment was made with."""
    return Reply(_described(inquiry.experiment))


def _described(experiment: Experiment) -> Json:
    return {"name": experiment.name, "settings": json.loads(experiment.settings.to_json())}


def ask(body: Json) -> Act:
    """Hand out tickets."""
    check_fields(body, ("limit", "worker", "lease", "alive"))
    limit = whole("limit", body.get("limit", 1), at_least=1)
    if limit > MOST_TICKETS:
        rule = f"a service hands out {MOST_TICKETS:,} at a time at most"
        raise Refusal(TOO_MUCH, f"`limit` is {limit:,}, but {rule}")
    worker = text(body, "worker")
    how = {"lease": body.get("lease"), "alive": body.get("alive")}

    def handed(experiment: Experiment) -> Json:
        handout = experiment.ask(limit, worker, **how)
        return {**handout_to_json(handout), **_standing(experiment)}

    return handed


def tell(body: Json) -> Results:
    """What is told."""
    return results(body)


def fail(body: Json) -> Act:
    """Note that a pull could not be made; of the same lease, twice counts once."""
    check_fields(body, (*NAMED, "expires", "reason"), ("ticket", "reason"))
    named = held_ticket(body)
    reason = text(body, "reason") or ""
    return lambda experiment: experiment.fail(named, reason)


def release(body: Json) -> Act:
    """Take back tickets: of a worker, by number, or overdue."""
    check_fields(body, ("worker", "tickets", "overdue"))
    worker, overdue = text(body, "worker"), body.get("overdue")
    given = body.get("tickets")
    tickets = None if given is None else listed_tickets(given)

    def released(experiment: Experiment) -> Json:
        return {"released": experiment.release(worker, tickets=tickets, overdue=overdue)}

    return released


def retire(body: Json) -> Act:
    """Let an arm leave that cannot be pulled any more."""
    check_fields(body, ("arm", "reason"), ("arm",))
    arm, reason = label(body["arm"]), text(body, "reason") or ""
    return lambda experiment: experiment.retire(arm, reason)


def resume(body: Json) -> Act:
    """Let an experiment that stopped go on."""
    check_fields(body, ())
    return lambda experiment: experiment.resume()


def status(inquiry: Inquiry) -> Reply:
    """Where an experiment stands, arm by arm; nothing if whoever asks knows it already."""
    check_fields(inquiry.body, ())
    experiment = inquiry.experiment
    etag = f'"{experiment.version()}"'  # before the status: it may be older than that, never newer
    if inquiry.etag is not None and etag in inquiry.etag:
        return Reply(status=304, etag=etag)
    return Reply(status_to_json(experiment.status()), etag=etag)


def standing(inquiry: Inquiry) -> Reply:
    """The figures that cost nothing."""
    check_fields(inquiry.body, ())
    experiment = inquiry.experiment
    position = experiment.position()
    held, until = experiment.held()
    state = experiment.state().value
    more: Json = {"state": state, "position": position, "version": experiment.version()}
    more |= {"held": held, "held_until": until}
    return Reply({**_standing(experiment), **more})


def _standing(experiment: Experiment) -> Json:
    count, progress = experiment.standing()
    return {"told": count, "progress": asdict(progress)}


def result(inquiry: Inquiry) -> Reply:
    """The answer, once there is one; with `partial=true` also before that, as it would be now."""
    check_fields(inquiry.body, ("partial",))
    partial = inquiry.body.get("partial", "false")
    if partial not in ("true", "false"):
        raise InvalidInput(f"`partial` is {partial!r}, but must be true or false")
    return Reply(inquiry.experiment.result(partial=partial == "true").to_dict())


def export(inquiry: Inquiry) -> Reply:
    """The whole experiment as lines of JSON."""
    check_fields(inquiry.body, ())
    lines = export_lines(inquiry.opened.store, inquiry.name)
    return Reply(lines=_together(lines))


def _together(lines: Iterator[str]) -> Iterator[str]:
    """Many lines at a time. The first are read at once, so that an error is still one."""
    first = list(islice(lines, LINES))
    return _joined(first, lines)


def _joined(first: list[str], lines: Iterator[str]) -> Iterator[str]:
    while first:
        yield "".join(f"{line}\n" for line in first)
        first = list(islice(lines, LINES))
