"""Commands that write experiments step by step, such as create, ask and tell, and commands on whole
stores, such as list, export, copy, rename and delete."""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.files import (
    METRIC,
    arms_argument,
    labelled,
    labels_in,
    read_arms,
    read_rewards,
    with_arms,
    with_features,
    with_quotas,
    with_test_set,
)
from shortlist.cli.options import (
    client,
    create_experiment,
    experiment_names,
    export_from,
    is_service,
    list_rows,
    metric_values,
    name_option,
    open_experiment,
    setting_options,
    shown,
    store_option,
    store_options,
    write_cells,
)
from shortlist.cli.output import format_option, note, print_data, print_rows
from shortlist.cli.status import stopped
from shortlist.errors import ConflictingReward, InvalidInput
from shortlist.formatting import given_text
from shortlist.reading.counts import decimal, whole
from shortlist.reading.files import FileLine, open_text, read_columns

if TYPE_CHECKING:
    from shortlist import Client, Experiment
    from shortlist.engine import Handout
    from shortlist.engine.blocks import CountsReceipt

SUMS = ("sum", "conversions")  # names of the column with the sums
NOT_YET, OVER = 3, 4  # exit statuses of `ask`: no tickets now, or no more tickets


@click.command()
@arms_argument
@setting_options()
@store_options
def create(*, arms: str, k: int | None, store: str, name: str | None, **settings: Any) -> None:
    """Create an experiment with the arms in a file.

    ARMS has one label per line, or is a CSV with a column `arm` and optional columns `cost` (of a
    pull), `limit` (of pulls) and `group`; - is stdin. The experiment ends when its regret is at
    most epsilon with probability 1 - delta, or when the budget is spent. To make the pulls, use
    `run`, or `ask` and `tell`.

    \b
    Examples:
      shortlist create arms.csv -k 5 --epsilon 0.1 --store tests.db
      shortlist create arms.csv -k 1 --epsilon 2% --per-day 3000 --delay 2 --store pages.db
    """
    from shortlist.forecasting.days import outlook_of
    from shortlist.formatting import plural, unit_of

    if k is None:
        raise InvalidInput("`k` is missing, but an experiment needs it")
    given = read_arms(arms)
    labels = labels_in(given)
    known = with_features(with_quotas(with_test_set(settings, labels)), arms, labels)
    made = create_experiment(given, k=k, store=store, **named(name), **known)
    status = made.status()
    begins = f"{made.settings.algorithm} starts with {plural(status.wanted, 'pull')}"
    if made.settings.problem.traffic is not None:
        begins = "open the first block with `shortlist shares`"
        expected = outlook_of(made.settings.problem, unit_of(made.settings.unit))
        begins += f"; {expected}" if expected else ""
    if made.settings.control is not None:
        begins += f"; `status` and `result` compare every arm with {made.settings.control!r}"
    note(f"{shown(store)}: experiment {made.name!r} with {len(given):,} arms, {begins}")
    made.close()


@click.command()
@store_options
@click.option(
    "--limit",
    type=int,
    help="Maximum number of tickets. Default: 1, or as many as --per-worker allows.",
)
@click.option(
    "--worker",
    "workers",
    multiple=True,
    help="Name of the worker; its open tickets come first. Repeat it for several workers.",
)
@click.option("--per-worker", type=int, help="Maximum number of open tickets per worker.")
@format_option
@click.pass_context
def ask(
    context: click.Context,
    /,
    *,
    store: str,
    name: str | None,
    limit: int | None,
    workers: tuple[str, ...],
    per_worker: int | None,
    style: str,
) -> None:
    """Print tickets: pulls to make and tell.

    Exit status: 0 tickets were printed; 3 none now, other workers hold all of them; 4 no more, the
    search has finished; 1 none, the experiment stopped after failed pulls.

    \b
    Example:
      shortlist ask --store tests.db --limit 10 --worker ann --format csv
      shortlist ask --store tests.db --worker ann --worker ben --per-worker 5 --format csv
    """
    most = (per_worker or 1) * max(1, len(workers)) if limit is None else limit
    with open_experiment(store, name) as experiment:
        handouts = _handouts(experiment, most, workers, per_worker)
        handout = next(reversed(handouts.values()))
        trouble = experiment.status().trouble if handout.state == "stopped" else ""
    rows = [
        {"ticket": row.pop("id"), **row, **({"worker": worker} if len(workers) > 1 else {})}
        for worker, tickets in handouts.items()
        for row in map(asdict, tickets)
    ]
    for row in rows:
        del row["experiment"]  # tickets are told by number
        if row["item"] is None:
            del row["item"]
    if style == "table":
        rows = [
            {**row, "seed": str(row["seed"]), "expires": time.ctime(row["expires"])} for row in rows
        ]
    if rows or style == "json":
        print_rows(rows, style)
    if len(rows) < most:
        note(f"{len(rows)} of {most} tickets: {handout.state}{_meanwhile(handout)}")
    if trouble:
        raise stopped(trouble)
    if not rows:
        context.exit(NOT_YET if handout.state == "pending" else OVER)


class TicketNumber(click.types.IntParamType):
    """The number of a ticket; the error for a file names the options that take one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As any whole number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(
                f"{error.message} A file goes with --file, counts of a live test with --counts.",
                param,
                ctx,
            )


@click.command(context_settings={"ignore_unknown_options": True})  # -1.5 is a reward, not an option
@click.argument("ticket", type=TicketNumber(), required=False)
@click.argument("reward", type=float, required=False)
@click.option(
    "--file",
    "path",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="CSV with columns `ticket`, `reward`, optionally `cost`, `metric:NAME` for every metric,"
    " and `arm` as printed by `ask`: all or none; - is stdin.",
)
@click.option(
    "--counts",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="CSV of a live test with columns `arm`, `visitors`, `sum` or `conversions`, optionally"
    " `block`, `squares`, and `metric:NAME` for every metric; - is stdin.",
)
@click.option("--block", metavar="NAME", help="Block of --counts or --void.")
@click.option(
    "--void",
    metavar="REASON",
    help="Leave out a block whose data were lost, for a reason unrelated to results.",
)
@click.option("--cost", type=float, help="Actual cost of the pull; default: the declared cost.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    callback=metric_values,
    metavar="METRIC=VALUE",
    help="Further figure of the pull, from 0 to 1; repeat for several.",
)
@click.option(
    "--failed", metavar="REASON", help="Report a failed pull instead of a reward, with this reason."
)
@store_options
def tell(
    *,
    ticket: int | None,
    reward: float | None,
    path: str | None,
    counts: str | None,
    block: str | None,
    void: str | None,
    cost: float | None,
    metrics: dict[str, Any] | None,
    failed: str | None,
    store: str,
    name: str | None,
) -> None:
    """Tell the reward of a ticket, of many, or the counts of a live test.

    The reward is on the disk when the command ends. Repeating a tell changes nothing; another
    reward for the same ticket is refused. For --file, print tickets with `ask --format csv`, and
    add a column `reward`.

    \b
    Examples:
      shortlist tell 0 0.75 --store tests.db
      shortlist tell 2 0.75 --metric bounce=1 --store tests.db
      shortlist tell 1 --failed 'no network' --store tests.db
      shortlist tell --file rewards.csv --store tests.db
      shortlist tell --counts day.csv --block 2026-03-02 --store live.db
      shortlist tell --block 2026-03-03 --void 'the warehouse lost the day' --store live.db
    """
    if void is not None:
        if (ticket, reward, path, failed, cost, counts) != (None,) * 6 or block is None:
            raise InvalidInput(f"`void` is {void!r}, but goes with --block alone")
        void_block(block, void, store, name)
        return
    if counts is not None:
        if (ticket, reward, path, failed, cost) != (None,) * 5:
            raise InvalidInput("`counts` is given, but goes with --block alone")
        tell_counts(counts, block, store, name)
        return
    if block is not None:
        raise InvalidInput(f"`block` is {block!r}, but goes with --counts or --void only")
    given = (ticket is not None, reward is not None, path is not None, failed is not None)
    if given not in {
        (True, True, False, False),
        (True, False, False, True),
        (False, False, True, False),
    }:
        raise InvalidInput(
            "the arguments must be TICKET REWARD, or TICKET --failed REASON, or --file FILE, or"
            " --counts FILE"
        )
    if cost is not None and reward is None:
        raise InvalidInput(
            f"`cost` is {given_text(cost)}, but must be given with TICKET REWARD only"
        )
    if metrics and reward is None:
        rule = "must be given with TICKET REWARD only: a file has columns `metric:NAME`"
        raise InvalidInput(f"`metric` is {next(iter(metrics))!r}, but {rule}")
    lines = [] if path is None else read_rewards(path)
    with open_experiment(store, name) as experiment:
        if failed is not None:
            experiment.fail(ticket or 0, failed)
        elif path is None:
            experiment.tell_many([(ticket or 0, reward or 0.0, cost, None, metrics)])
        else:
            labels = experiment.settings.labels if any(each.arm for each in lines) else ()
            receipt = experiment.tell_many(with_arms(lines, labels))
    if path is not None:
        discarded = {"late": len(receipt.late), "not needed": len(receipt.unused)}
        told = len(lines) - sum(discarded.values())
        more = [f"{count:,} {why}" for why, count in discarded.items() if count]
        note(", ".join([f"told {told:,} of {len(lines):,} rewards", *more]))


@click.command()
@store_options
def resume(*, store: str, name: str | None) -> None:
    """Continue an experiment that stopped after failed pulls.

    See `status` for the reason. The failures so far no longer count.

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
    """List the experiments in a store.

    \b
    Example:
      shortlist list tests.db
    """
    rows = list_rows(store)
    if rows or style == "json":
        print_rows(rows, style)


@click.command()
@store_options
@click.option(
    "--cells",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Write the evaluated cells of a test set to a CSV or Parquet file instead.",
)
def export(*, store: str, name: str | None, cells: str | None) -> None:
    """Print an experiment as lines of JSON.

    They contain the settings, every reward and every event. `shortlist import` restores the
    experiment from them. With `--cells`, a file of arm, item, score, cost, seconds and info is
    written, which `--scores` takes as it is.

    \b
    Example:
      shortlist export --store tests.db
      shortlist export --store models.db --cells scores.parquet
    """
    if cells is not None:
        note(f"{cells}: {write_cells(store, name, cells):,} cells")
        return
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
    help="Store of the new experiment: a file, or postgresql://…",
)
@name_option
def import_(*, path: str, store: str, name: str | None) -> None:
    """Restore an experiment from the output of `export`; - is stdin.

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
    """Check a store for damage.

    Verifies the checksum of every row and replays every experiment; writes nothing. Exit status: 0
    intact, 1 damaged.

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


def _handouts(
    experiment: "Experiment | Client", most: int, workers: tuple[str, ...], per_worker: int | None
) -> "dict[str | None, Handout]":
    """The tickets of every worker, or of one without a name, in turn until there are no more."""
    handouts: dict[str | None, Handout] = {}
    for worker in workers or (None,):
        left = most - sum(map(len, handouts.values()))
        if left > 0 or not handouts:
            handouts[worker] = experiment.ask(left, worker, per_worker=per_worker)
    return handouts


def _meanwhile(handout: "Handout") -> str:
    """The arm to serve if you cannot wait for a ticket."""
    if handout.state != "pending" or handout.meanwhile is None:
        return ""
    best = f"serve {handout.meanwhile!r} (best so far)"
    return f"; if you cannot wait, {best} and do not report its result"


def named(name: str | None) -> dict[str, Any]:
    """The name as a keyword argument, if given."""
    return {} if name is None else {"name": name}


@click.command()
@click.argument("arms", nargs=-1, required=True, metavar="ARM...")
@click.option("--reason", default="", help="Reason, for the log.")
@store_options
def retire(*, arms: tuple[str, ...], reason: str, store: str, name: str | None) -> None:
    """Retire arms, for example because they cannot be pulled any more.

    A retired arm gets no more tickets and is not chosen; pulls that the search still needs of it
    count as the worst reward. The guarantee is then about the remaining arms. Never retire an arm
    because of its rewards: that would void the guarantee. In a live test it has no share from the
    next block on; in open blocks keep counting its visitors in its row.

    \b
    Examples:
      shortlist retire 'variant 6' 'variant 7' --reason 'sold out' --store tests.db
    """
    with open_experiment(store, name) as experiment:
        labels = [labelled("arm", arm, experiment.settings.labels) for arm in arms]
        experiment.retire(labels, reason)
        for label in labels:
            note(f"{label!r} is retired")
        if experiment.settings.problem.traffic is not None:
            note(
                "no share from the next block on; in open blocks keep counting the visitors in the"
                " row of the retired arm"
            )
        if experiment.settings.control in labels:
            note("the control is retired: its comparisons and guardrails end here")


@click.command()
@click.argument("tickets", type=int, nargs=-1, metavar="[TICKET]...")
@click.option("--worker", help="Only tickets of this worker.")
@click.option(
    "--overdue",
    type=float,
    metavar="SECONDS",
    help="Only tickets whose lease ended at least this many seconds ago; see `status`.",
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
    """Give tickets back whose results will not come, so that others get them.

    Selects tickets by number, worker and overdue time; they must match all that is given. Release
    only tickets that are lost, because the worker or its machine is gone. Giving up slow pulls
    would leave results out because of their values.

    \b
    Examples:
      shortlist release --worker ann --store tests.db
      shortlist release 4 5 --store tests.db
      shortlist release --worker ben --overdue 3600 --store tests.db
    """
    from shortlist.formatting import plural

    with open_experiment(store, name) as experiment:
        count = experiment.release(worker, tickets=tickets or None, overdue=overdue)
    note(f"released {plural(count, 'ticket')}")


PLACE = click.Path(dir_okay=False)


@click.command()
@click.argument("source", type=PLACE)
@click.argument("target", type=PLACE)
@name_option
@click.option("--as", "as_name", metavar="NAME", help="Name of the copy; needs --name if several.")
def copy(*, source: str, target: str, name: str | None, as_name: str | None) -> None:
    """Copy all experiments, or the one with --name, from one store to another.

    Both are files or postgresql://…; a missing target is created. Every log is verified. If the
    target has an experiment of the same name, nothing is copied. Tokens are not copied. Stop all
    writers of the source first: later rewards are not in the copy.

    \b
    Examples:
      shortlist copy tests.db copied.db
      shortlist copy tests.db postgresql://ann@db.example.org/tests --name colours
      shortlist copy colours.db colours.db --name colours --as 'colours, again'
    """
    from shortlist.engine import copy as copied
    from shortlist.formatting import plural

    for each in copied(source, target, name, as_name=as_name):
        note(f"{shown(target)}: experiment {each.name!r} with {plural(each.rows, 'row')}")


name_argument = click.argument("name", shell_complete=experiment_names)


@click.command()
@name_argument
@click.argument("new_name")
@store_option
def rename(*, name: str, new_name: str, store: str) -> None:
    """Rename an experiment.

    Its tickets stay valid. The old name stays taken, so that it never means another experiment.

    \b
    Example:
      shortlist rename colours 'colours, first try' --store colours.db
    """
    if is_service(store):
        client(store, name).rename(new_name)
    else:
        from shortlist.engine import rename as renamed

        renamed(store, name, new_name)
    note(f"{name!r} is now {new_name!r}")


@click.command()
@name_argument
@click.option("--undo", is_flag=True, help="Make an archived experiment active again.")
@store_option
def archive(*, name: str, undo: bool, store: str) -> None:
    """Archive an experiment: read-only, and left out of lists and metrics.

    `status`, `result` and `export` still work.

    \b
    Examples:
      shortlist archive colours --store colours.db
      shortlist archive colours --undo --store colours.db
    """
    if is_service(store):
        client(store, name).archive(restore=undo)
    else:
        from shortlist.engine import archive as archived

        archived(store, name, restore=undo)
    note(f"{name!r} is {'active again' if undo else 'archived'}")


@click.command()
@name_argument
@click.option("--yes", is_flag=True, help="Do not ask.")
@store_option
def delete(*, name: str, yes: bool, store: str) -> None:
    """Delete an experiment for good: settings, labels, rewards and events.

    The store keeps its name, and when and by whom it was created and deleted. `shortlist export`
    first if you may need it again.

    \b
    Example:
      shortlist delete colours --yes --store colours.db
    """
    if not yes:
        question = f"Delete experiment {name!r} in {shown(store)} for good?"
        click.confirm(question, abort=True, err=True)
    if is_service(store):
        client(store, name).delete()
    else:
        from shortlist.engine import delete as deleted

        deleted(store, name)
    note(f"{name!r} is deleted")


@dataclass(slots=True)
class BlockCounts:
    """What a file says of a block."""

    rows: dict[str, tuple[float, ...]] = field(default_factory=dict)  # per label
    metrics: dict[str, dict[str, float]] = field(default_factory=dict)  # per metric and label


@click.command()
@click.option("--block", metavar="NAME", help="Name of the block. Default: the date in UTC.")
@store_options
@format_option
def shares(*, block: str | None, store: str, name: str | None, style: str) -> None:
    """Open a block of a live test and print the share of every arm in percent.

    A block is a day, or whatever is told together. Its shares never change: repeating the command
    prints the same. Set them before the first visitor of the block comes. Tell the results with
    `shortlist tell --counts`.

    \b
    Example:
      shortlist create arms.csv -k 1 --epsilon 0.01 --rewards binary --per-day 5000 --store live.db
      shortlist shares --block 2026-03-02 --store live.db
    """
    with open_experiment(store, name) as experiment:
        opened = experiment.shares(block)
    rows = [
        {"block": opened.block, "arm": arm, "percent": percent}
        for arm, percent in opened.percent.items()
    ]
    print_rows(rows, style)
    if not opened.block:
        note("the test has ended: show the chosen arms, and tell nothing")


def tell_counts(path: str, block: str | None, store: str, name: str | None) -> None:
    """Tell the blocks in a file; one that was told before with other counts stops no other."""
    told, refused = read_counts(path, block), list[ConflictingReward]()
    with open_experiment(store, name) as experiment:
        labels = experiment.settings.labels
        for each, block_counts in told.items():
            counts = {labelled("arm", arm, labels): row for arm, row in block_counts.rows.items()}
            metrics = {
                name: {labelled("arm", arm, labels): total for arm, total in sums.items()}
                for name, sums in block_counts.metrics.items()
            }
            try:
                receipt = experiment.tell_counts(each, counts, metrics=metrics)
                note_receipt(receipt)
            except ConflictingReward as error:
                refused.append(error)
    for other in refused[1:]:
        note(f"refused: {other}")
    if refused:
        raise refused[0]


def void_block(block: str, reason: str, store: str, name: str | None) -> None:
    """Leave out a block whose data were lost."""
    with open_experiment(store, name) as experiment:
        receipt = experiment.void_block(block, reason)
    note_receipt(receipt)


def note_receipt(receipt: "CountsReceipt") -> None:
    """Say on stderr what became of a block, and why."""
    reasons = {"waiting": receipt.reason, "unused": "the test has ended"}  # a refusal has a warning
    because = f": {reasons[receipt.state]}" if receipt.state in reasons else ""
    note(f"block {receipt.block!r}: {receipt.state}{because}")


def read_counts(path: str, block: str | None) -> dict[str, BlockCounts]:
    """Counts of every block from a CSV with columns `arm`, `visitors`, `sum` or `conversions`, and
    perhaps `block`, `squares` and `metric:NAME`."""
    table = read_columns(path)
    _check_columns(path, table.first, table.names)
    measured = [name for name in table.names if name.startswith(METRIC)]
    told: dict[str, BlockCounts] = {}
    for line in table.lines():
        named = line.cells.get("block", "").strip() or block
        if named is None:
            raise InvalidInput(f"{line.where} has no `block`, but needs one: a column, or --block")
        if block is not None and named != block:
            raise InvalidInput(f"{line.where} is of block {named!r}, but --block is {block!r}")
        found, label = told.setdefault(named, BlockCounts()), line["arm"].strip()
        if label in found.rows:
            raise InvalidInput(f"{line.where} has the arm {label!r} again, but each has one row")
        found.rows[label] = _row(line)
        for column in measured:
            sums = found.metrics.setdefault(column.removeprefix(METRIC), {})
            sums[label] = decimal(line, column)
    if not told:
        raise InvalidInput(f"{path} holds no counts, but must hold a row per arm")
    return told


def _row(line: FileLine) -> tuple[float, ...]:
    column = next(name for name in SUMS if name in line.cells)
    squares = line.cells.get("squares", "").strip()
    more = (decimal(line, "squares"),) if squares else ()
    total = decimal(line, column)
    if column == "conversions" and not total.is_integer():
        raise InvalidInput(
            f"{line.where} has {line[column]} `conversions`, but they must be a whole number:"
            " how many converted, not their share; a column `sum` has sums of other rewards"
        )
    return (whole(line, "visitors"), total, *more)


def _check_columns(path: str, first: int, names: Sequence[str]) -> None:
    missing = [name for name in ("arm", "visitors") if name not in names]
    missing += [] if any(name in names for name in SUMS) else ["sum"]
    if missing:
        raise InvalidInput(
            f"{path}, line {first} has no column `{missing[0]}`, but must be"
            f" block,arm,visitors,conversions (or sum); it is {','.join(names[:6])}"
        )
