"""The endpoints of the API.

Those that read take an `Inquiry` and return a `Reply`. Those that write take an experiment and the
body of the request, and run in group commit."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice

from shortlist.engine import Experiment, State, export_lines
from shortlist.engine.locate import checked_name
from shortlist.engine.log_entries import written_by
from shortlist.errors import InvalidInput
from shortlist.service.bodies import (
    NAMED,
    check_fields,
    held_ticket,
    label,
    listed_tickets,
    text,
)
from shortlist.service.experiments import OpenExperiments
from shortlist.service.replies import TOO_LARGE, Limits, Refusal
from shortlist.settings import arms_of_json, rewards_of
from shortlist.spec import FIELDS, REQUIRED, Json
from shortlist.stores.base import Kind, Listed
from shortlist.validation import shown, whole
from shortlist.wire import (
    MOST_TICKETS,
    counts_of,
    handout_to_json,
    metrics_of,
    shares_to_json,
    status_to_json,
)

PAGE = 100  # experiments per page of the list
LINES = 1000  # of an export per chunk


@dataclass(frozen=True, slots=True)
class Inquiry:
    """A request that passed access control."""

    experiments: OpenExperiments
    limits: Limits
    name: str  # of the experiment; empty if the route has none
    body: Json  # of a POST; the query parameters of a GET
    etag: str | None = None  # of the version that the caller has
    only: str | None = None  # the only experiment that the caller may see; None for all
    author: str = ""  # the name of the caller's token

    @property
    def experiment(self) -> Experiment:
        """The experiment of the route."""
        return self.experiments.get(self.name)


@dataclass(frozen=True, slots=True)
class Reply:
    """The reply: data as JSON, or lines."""

    data: Json | None = None
    status: int = 200
    etag: str | None = None
    lines: Iterator[str] | None = None


def list_experiments(inquiry: Inquiry) -> Reply:
    """List the experiments, one page at a time."""
    check_fields(inquiry.body, ("offset",))
    offset = inquiry.body.get("offset", "0")
    if not (offset.isdecimal() and offset.isascii() and len(offset) < 10):
        raise InvalidInput(
            f"`offset` is {offset[:100]!r}, but must be a whole number of at least 0"
        )
    first = int(offset)
    experiments = [
        each
        for each in inquiry.experiments.store.listed()
        if not each.archived and inquiry.only in (None, each.name)
    ]
    rows = [summary(inquiry.experiments, each) for each in experiments[first : first + PAGE]]
    following = first + PAGE if first + PAGE < len(experiments) else None
    return Reply({"experiments": rows, "total": len(experiments), "next": following})


def summary(experiments: OpenExperiments, listed: Listed) -> Json:
    """Summarise an experiment as its store knows it, or newer if it is open here."""
    row: Json = {"name": listed.name, "state": listed.state or State.READY.value}
    row |= {"arms": listed.arms, "k": listed.k, "algorithm": listed.algorithm}
    row["pulls"] = listed.told
    experiment = experiments.open_one(listed.name)
    if experiment is not None:
        vitals = experiment.vitals()
        row |= {} if vitals is None else {"state": vitals.state.value}
    return row


def create(inquiry: Inquiry) -> Reply:
    """Create an experiment. Only algorithms of this package are accepted: a name such as
    module:function would let the caller choose what the service imports."""
    body = inquiry.body
    check_fields(body, ("name", *FIELDS, "workers", "exist_ok"), REQUIRED)
    _check_arms(body["arms"], inquiry.limits.arms)
    if not isinstance(body.get("options"), dict | None):
        raise InvalidInput(f"`options` is {shown(body['options'])[:100]}, but must be an object")
    _check_scores(body.get("scores"))
    algorithm = text(body, "algorithm")
    if algorithm is not None and ":" in algorithm:
        raise InvalidInput(
            f"`algorithm` is {algorithm!r}, but at a service must be one of `shortlist algorithms`"
        )
    given = {name: value for name, value in body.items() if value is not None or name in REQUIRED}
    given |= {"arms": arms_of_json(body["arms"]), "rewards": rewards_of(body.get("rewards"))}
    with written_by(inquiry.author):
        created, new = inquiry.experiments.create(**given)
    return Reply(_described(created), 201 if new else 200)


def _check_scores(scores: object) -> None:
    """Refuse the name of a file: a caller must not choose what the service reads."""
    if not isinstance(scores, list | None):
        raise InvalidInput(f"`scores` is {shown(scores)[:100]}, but must be a list of lists")


def _check_arms(arms: object, most: int) -> None:
    count = len(arms) if isinstance(arms, list) else arms
    if isinstance(count, int) and count > most:
        raise Refusal(
            TOO_LARGE, f"{count:,} `arms` are given, but a service takes at most {most:,}"
        )
    if isinstance(arms, Mapping):
        raise InvalidInput("`arms` is an object, but must be a number of arms or a list of labels")


def archive(inquiry: Inquiry) -> Reply:
    """Archive an experiment."""
    check_fields(inquiry.body, ())
    return _changed(inquiry, Kind.ARCHIVE)


def restore(inquiry: Inquiry) -> Reply:
    """Make an archived experiment active again."""
    check_fields(inquiry.body, ())
    return _changed(inquiry, Kind.RESTORE)


def rename(inquiry: Inquiry) -> Reply:
    """Rename an experiment."""
    check_fields(inquiry.body, ("name",), ("name",))
    return _changed(inquiry, Kind.RENAME, checked_name(inquiry.body["name"]))


def delete(inquiry: Inquiry) -> Reply:
    """Delete an experiment for good, if its name is repeated."""
    check_fields(inquiry.body, ("confirm",), ("confirm",))
    if inquiry.body["confirm"] != inquiry.name:
        raise InvalidInput(
            f"`confirm` is {shown(inquiry.body['confirm'])[:300]}, but must be the name of the"
            " experiment that is deleted"
        )
    return _changed(inquiry, Kind.DELETE)


def _changed(inquiry: Inquiry, kind: Kind, new_name: str = "") -> Reply:
    experiments = inquiry.experiments
    experiments.store.change(inquiry.name, kind, new_name, inquiry.author)
    experiments.drop(inquiry.name)
    return Reply({})


def describe(inquiry: Inquiry) -> Reply:
    """Get the settings of an experiment."""
    return Reply(_described(inquiry.experiment))


def _described(experiment: Experiment) -> Json:
    return {"name": experiment.name, "settings": json.loads(experiment.settings.to_json())}


def ask(experiment: Experiment, body: Json) -> Json:
    """Hand out tickets."""
    check_fields(body, ("limit", "worker", "lease", "alive"))
    limit = whole("limit", body.get("limit", 1), at_least=1)
    if limit > MOST_TICKETS:
        rule = f"a service hands out at most {MOST_TICKETS:,} at a time"
        raise Refusal(TOO_LARGE, f"`limit` is {limit:,}, but {rule}")
    handout = experiment.ask(
        limit, text(body, "worker"), lease=body.get("lease"), alive=body.get("alive")
    )
    return {**handout_to_json(handout), **_standing(experiment)}


def fail(experiment: Experiment, body: Json) -> None:
    """Report a failed pull; a repeated report of the same lease changes nothing."""
    check_fields(body, (*NAMED, "expires", "reason", "attempts"), ("ticket", "reason"))
    experiment.fail(held_ticket(body), text(body, "reason") or "", body.get("attempts", 1))


def release(experiment: Experiment, body: Json) -> Json:
    """Take tickets back: of a worker, by number, or overdue."""
    check_fields(body, ("worker", "tickets", "overdue"))
    given = body.get("tickets")
    tickets = None if given is None else listed_tickets(given)
    worker, overdue = text(body, "worker"), body.get("overdue")
    return {"released": experiment.release(worker, tickets=tickets, overdue=overdue)}


def retire(experiment: Experiment, body: Json) -> None:
    """Retire an arm, or several at once."""
    check_fields(body, ("arm", "arms", "reason"))
    if ("arm" in body) == ("arms" in body):
        raise InvalidInput("one of `arm` and `arms` is needed, and not both")
    arms = body.get("arms", [body.get("arm")])
    if not isinstance(arms, list):
        raise InvalidInput(f"`arms` is {shown(arms)[:100]}, but must be a list of labels")
    experiment.retire([label(each) for each in arms], text(body, "reason") or "")


def resume(experiment: Experiment, body: Json) -> None:
    """Continue an experiment that stopped after failed pulls."""
    check_fields(body, ())
    experiment.resume()


def shares(experiment: Experiment, body: Json) -> Json:
    """Open a block of a live test, or repeat the shares of one that exists."""
    check_fields(body, ("block",))
    return shares_to_json(experiment.shares(body.get("block")))


def assign(experiment: Experiment, body: Json) -> Json:
    """Assign a visitor of a live test to an arm."""
    check_fields(body, ("visitor", "block"), ("visitor",))
    return asdict(experiment.assign(body["visitor"], body.get("block")))


def counts(experiment: Experiment, body: Json) -> Json:
    """Tell a block of a live test, or leave it out because its data were lost."""
    check_fields(body, ("block", "counts", "metrics", "void"), ("block",))
    if ("counts" in body) == ("void" in body):
        raise InvalidInput("one of `counts` and `void` is needed, and not both")
    if "void" in body:
        return asdict(experiment.void_block(body["block"], body["void"]))
    metrics = metrics_of(body.get("metrics"))
    told = counts_of(body["counts"])
    return asdict(experiment.tell_counts(body["block"], told, metrics=metrics))


def status(inquiry: Inquiry) -> Reply:
    """Get the status with every arm; 304 if the caller has this version."""
    check_fields(inquiry.body, ())
    experiment = inquiry.experiment
    etag = f'"{experiment.change_token()}"'  # read before the status, so it is never newer
    if inquiry.etag is not None and _matches(etag, inquiry.etag):
        return Reply(status=304, etag=etag)
    return Reply(status_to_json(experiment.status()), etag=etag)


def _matches(etag: str, header: str) -> bool:
    """Whether an If-None-Match header names this version, or any with an asterisk."""
    named = [each.strip().removeprefix("W/") for each in header.split(",")]
    return "*" in named or etag in named


def standing(inquiry: Inquiry) -> Reply:
    """Get the figures that are cheap to compute."""
    check_fields(inquiry.body, ())
    experiment = inquiry.experiment
    position = experiment.position()
    held, until = experiment.held()
    state = experiment.state().value
    data: Json = {"state": state, "position": position, "version": experiment.change_token()}
    return Reply({**_standing(experiment), **data, "held": held, "held_until": until})


def _standing(experiment: Experiment) -> Json:
    count, progress = experiment.standing()
    return {"told": count, "progress": asdict(progress)}


def result(inquiry: Inquiry) -> Reply:
    """Get the result; with `partial=true` also before the search has finished."""
    check_fields(inquiry.body, ("partial",))
    partial = inquiry.body.get("partial", "false")
    if partial not in ("true", "false"):
        raise InvalidInput(f"`partial` is {partial!r}, but must be true or false")
    return Reply(inquiry.experiment.result(partial=partial == "true").to_dict())


def export(inquiry: Inquiry) -> Reply:
    """Export the experiment as lines of JSON."""
    check_fields(inquiry.body, ())
    lines = export_lines(inquiry.experiments.store, inquiry.name)
    first = list(islice(lines, 1))  # read at once, so that an error still has its status
    return Reply(lines=_chunks(first, lines))


def _chunks(chunk: list[str], lines: Iterator[str]) -> Iterator[str]:
    while chunk:
        yield "".join(f"{line}\n" for line in chunk)
        chunk = list(islice(lines, LINES))
