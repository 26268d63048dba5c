"""Experiments by hand: `shortlist create`, `ask`, `tell`, `resume`, `list`, `export`, `import`,
`verify`.

`shortlist retire`: let an arm leave that cannot be pulled any more.

`shortlist release`: take back the tickets of those who are gone.

`shortlist copy`: experiments from one store to another."""

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.files import (
    arms_argument,
    labelled,
    labels_in,
    read_arms,
    read_rewards,
    with_test_set,
)
from shortlist.cli.options import name_option, setting_options, store_options
from shortlist.cli.output import format_option, note, print_data, print_rows
from shortlist.cli.status import stopped
from shortlist.cli.stores import create_experiment, export_from, list_rows, open_experiment, shown
from shortlist.errors import InvalidInput
from shortlist.formatting import given_text
from shortlist.reading.files import open_text

if TYPE_CHECKING:
    from shortlist.engine import Handout

NOT_YET, OVER = 3, 4  # exit statuses of `ask`: nothing to hand out now, or any more


@click.command()
@arms_argument
@setting_options()
@store_options
def create(*, arms: str, k: int | None, store: str, name: str | None, **settings: Any) -> None:
    """Make an experiment with the arms in a file.

    ARMS has one label a line, or is a CSV with a column `arm`, and perhaps `cost` of a pull and
    `limit` of pulls; - is stdin. The experiment ends by
    itself once it loses at most epsilon with probability 1 - delta, or when a budget is spent.
    Nothing is pulled yet: that is up to `run`, or to `ask` and `tell`.

    \b
    Example:
      shortlist create arms.csv -k 5 --epsilon 0.1 --store tests.db
    """
    from shortlist.formatting import plural

    if k is None:
        raise InvalidInput("`k` is not given, but an experiment needs it")
    given = read_arms(arms)
    known = with_test_set(settings, labels_in(given))
    made = create_experiment(given, k=k, store=store, **named(name), **known)
    status = made.status()
    note(
        f"{shown(store)}: experiment {made.name!r} with {len(given):,} arms,"
        f" {made.settings.algorithm} begins with {plural(status.wanted, 'pull')}"
    )
    made.close()


@click.command()
@store_options
@click.option("--limit", type=int, default=1, show_default=True, help="Tickets at most.")
@click.option("--worker", help="Who asks: own tickets that were not told yet come first.")
@format_option
@click.pass_context
def ask(
    context: click.Context,
    /,
    *,
    store: str,
    name: str | None,
    limit: int,
    worker: str | None,
    style: str,
) -> None:
    """Print tickets: pulls to be made and told.

    Exit status: 0 there are some, 3 none now, because others hold all that is wanted, 4 none any
    more, because the answer is there, 1 none because a pull failed too often.

    \b
    Example:
      shortlist ask --store tests.db --limit 10 --worker ann --format csv
    """
    with open_experiment(store, name) as experiment:
        handout = experiment.ask(limit, worker)
        trouble = experiment.status().trouble if handout.state == "stopped" else ""
    rows = [{"ticket": row.pop("id"), **row} for row in map(asdict, handout)]
    for row in rows:
        del row["experiment"]  # the store says which, and tickets are told by number
        if row["item"] is None:
            del row["item"]
    if style == "table":
        rows = [
            {**row, "seed": str(row["seed"]), "expires": time.ctime(row["expires"])} for row in rows
        ]
    if rows or style == "json":
        print_rows(rows, style)
    if len(rows) < limit:
        note(f"{len(rows)} of {limit} tickets: {handout.state}{_meanwhile(handout)}")
    if trouble:
        raise stopped(trouble)
    if not rows:
        context.exit(NOT_YET if handout.state == "pending" else OVER)


@click.command(context_settings={"ignore_unknown_options": True})  # so that -1.5 is a reward
@click.argument("ticket", type=int, required=False)
@click.argument("reward", type=float, required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="A CSV with columns `ticket`, `reward`, perhaps `cost`, told all or none; - is stdin.",
)
@click.option("--cost", type=float, help="What the pull did cost, if not what was declared.")
@click.option(
    "--failed", metavar="REASON", help="Instead of a reward: why the pull could not be made."
)
@store_options
def tell(
    *,
    ticket: int | None,
    reward: float | None,
    path: str | None,
    cost: float | None,
    failed: str | None,
    store: str,
    name: str | None,
) -> None:
    """Tell the reward of a ticket, or of many.

    It is on the disk when the command ends. The same may be told again; another reward for the same
    ticket is refused.

    \b
    Examples:
      shortlist tell 0 0.75 --store tests.db
      shortlist tell 1 --failed 'no network' --store tests.db
      shortlist tell --file rewards.csv --store tests.db
    """
    given = (ticket is not None, reward is not None, path is not None, failed is not None)
    if given not in {
        (True, True, False, False),
        (True, False, False, True),
        (False, False, True, False),
    }:
        raise InvalidInput(
            "the arguments must be TICKET REWARD, or TICKET --failed REASON, or --file FILE"
        )
    if cost is not None and reward is None:
        raise InvalidInput(f"`cost` is {given_text(cost)}, but goes with TICKET REWARD only")
    results = read_rewards(path) if path is not None else [(ticket or 0, reward or 0.0, cost)]
    with open_experiment(store, name) as experiment:
        if failed is not None:
            experiment.fail(ticket or 0, failed)
        else:
            experiment.tell_many(results)


@click.command()
@store_options
def resume(*, store: str, name: str | None) -> None:
    """Let an experiment that stopped go on.

    It stopped because a pull failed too often; see `status`. The failures so far are forgiven.

    \b
    Example:
      shortlist resume --store tests.db
    """
    with open_experiment(store, name) as experiment:
        experiment.resume()


@click.command("list")
@click.argument("store", type=click.Path(dir_okay=False), envvar="SHORTLIST_STORE")
@format_option
def list_(*, store: str, style: str) -> None:
    """List the experiments in a file, or at a service.

    \b
    Example:
      shortlist list tests.db
    """
    rows = list_rows(store)
    if rows or style == "json":
        print_rows(rows, style)


@click.command()
@store_options
def export(*, store: str, name: str | None) -> None:
    """Print an experiment as lines of JSON.

    Everything is in them: the settings, every reward, and who was asked when. `shortlist import`
    makes the same experiment of them.

    \b
    Example:
      shortlist export --store tests.db
    """
    for line in export_from(store, name):
        print_data(line + "\n")


@click.command("import")
@click.argument(
    "path", type=click.Path(exists=True, dir_okay=False, allow_dash=True), metavar="FILE"
)
@click.option(
    "--store",
    required=True,
    envvar="SHORTLIST_STORE",
    type=click.Path(dir_okay=False),
    metavar="FILE|URL",
    help="The file or the postgresql://… to put it in.",
)
@name_option
def import_(*, path: str, store: str, name: str | None) -> None:
    """Make an experiment from what `export` printed; - is stdin.

    \b
    Example:
      shortlist import exported.jsonl --store other.db
    """
    from shortlist.engine import import_lines

    with open_text(path) as lines:
        name = import_lines(lines, store, name)
    note(f"{shown(store)}: experiment {name!r}")


@click.command()
@click.argument("store", type=click.Path(dir_okay=False), envvar="SHORTLIST_STORE")
@format_option
@click.pass_context
def verify(context: click.Context, /, *, store: str, style: str) -> None:
    """Check that a file is as it was written, row by row.

    Every experiment is read along its chain of checksums and replayed; nothing is written. Exit
    status: 0 all is as it was written, 1 something is damaged.

    \b
    Example:
      shortlist verify tests.db
    """
    from shortlist.engine import verify

    verdicts = verify(store)
    rows: list[dict[str, object]] = [
        {"name": each.name, "rows": each.rows, "verdict": each.damage or each.replay or "intact"}
        for each in verdicts
    ]
    if rows or style == "json":
        print_rows(rows, style)
    if any(each.damage for each in verdicts):
        context.exit(1)


def _meanwhile(handout: "Handout") -> str:
    """What to serve if you cannot wait for a ticket."""
    if handout.state != "pending" or handout.meanwhile is None:
        return ""
    best = f"serve {handout.meanwhile!r} (best so far)"
    return f"; if you cannot wait, {best} and do not report its result"


def named(name: str | None) -> dict[str, Any]:
    """The name as an argument, if there is one."""
    return {} if name is None else {"name": name}


@click.command()
@click.argument("arm")
@click.option("--reason", default="", help="Why, for the log.")
@store_options
def retire(*, arm: str, reason: str, store: str, name: str | None) -> None:
    """Let an arm leave that cannot be pulled any more.

    It is handed out no more and is not chosen; what the search still asks of it counts as the worst
    reward. The guarantee is then about the arms that stay. Let an arm leave because it is gone,
    never because of its rewards: that would void the guarantee.

    \b
    Example:
      shortlist retire 'variant 7' --reason 'sold out' --store tests.db
    """
    with open_experiment(store, name) as experiment:
        label = labelled("arm", arm, experiment.settings.labels)
        experiment.retire(label, reason)
        note(f"{label!r} is handed out no more")


@click.command()
@click.argument("tickets", type=int, nargs=-1, metavar="[TICKET]...")
@click.option("--worker", help="Those of this worker.")
@click.option(
    "--overdue",
    type=float,
    metavar="SECONDS",
    help="Those that were due at least so long ago; see `status`.",
)
@store_options
def release(
    *,
    tickets: tuple[int, ...],
    worker: str | None,
    overdue: float | None,
    store: str,
    name: str | None,
) -> None:
    """Hand tickets out again of which no result will come.

    Those by number, by worker, or overdue; of several, those that fit all. A ticket that is not
    told is waited for, since to give up what takes long leaves results out because of their value.
    So take back only what is known to be lost: the worker is gone, the machine was switched off.

    \b
    Examples:
      shortlist release --worker ann --store tests.db
      shortlist release 4 5 --store tests.db
      shortlist release --worker ben --overdue 3600 --store tests.db
    """
    from shortlist.formatting import plural

    with open_experiment(store, name) as experiment:
        count = experiment.release(worker, tickets=tickets or None, overdue=overdue)
    are = "is" if count == 1 else "are"
    note(f"{plural(count, 'ticket')} {are} handed out again")


PLACE = click.Path(dir_okay=False)


@click.command()
@click.argument("source", type=PLACE)
@click.argument("target", type=PLACE)
@name_option
def copy(*, source: str, target: str, name: str | None) -> None:
    """Copy experiments from one store to another, all or the one of that name.

    Both are files or postgresql://…; the target is made if there is none. Every log is checked on
    the way. If the target has an experiment of that name already, nothing is copied. Tokens stay
    where they are. Let nobody write to the source any more: what is told there later is not in the
    copy.

    \b
    Examples:
      shortlist copy tests.db copied.db
      shortlist copy tests.db postgresql://ann@db.example.org/tests --name colours
    """
    from shortlist.engine import copy as copied
    from shortlist.formatting import plural

    for each in copied(source, target, name):
        note(f"{shown(target)}: experiment {each.name!r} with {plural(each.rows, 'row')}")
