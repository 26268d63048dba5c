"""`shortlist run`: choose by running any program that prints a number."""

import logging
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

import shortlist
from shortlist.cli.files import (
    labelled,
    labels_in,
    read_arms,
    with_features,
    with_quotas,
    with_test_set,
)
from shortlist.cli.live import named
from shortlist.cli.options import create_experiment, name_option, open_experiment, setting_options
from shortlist.cli.output import format_option, note
from shortlist.cli.status import print_result
from shortlist.errors import (
    EvaluationFailed,
    InvalidInput,
    InvalidReward,
    StoreReplaced,
    Unfinished,
)

if TYPE_CHECKING:
    from shortlist import Client, Command, Experiment
    from shortlist.arms import OwnLabel

INTERRUPTED = 130  # exit status after Ctrl-C, as of any program that it ends


@click.command()
@click.argument(
    "arms",
    required=False,
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="[ARMS]",
)
@click.option(
    "--pull",
    "template",
    required=True,
    metavar="COMMAND",
    help="Command that prints the reward of one pull of {arm}.",
)
@click.option(
    "--workers",
    type=int,
    default=1,
    show_default=True,
    help="Number of programs that run at the same time.",
)
@click.option(
    "--timeout",
    type=float,
    metavar="SECONDS",
    help="Seconds after which a program counts as failed.",
)
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="[NAME=]NUMBER",
    help="Maximum number of pulls per minute, or of their cost: --rate 600 --rate cost=2.5.",
)
@setting_options()
@click.option(
    "--store",
    envvar="SHORTLIST_STORE",
    type=click.Path(dir_okay=False),
    metavar="FILE|URL",
    help="Store of the experiment: a file, postgresql://… or a service. Continues an existing one.",
)
@name_option
@format_option
@click.pass_context
def run(
    context: click.Context,
    /,
    *,
    arms: str | None,
    template: str,
    workers: int,
    timeout: float | None,
    rates: tuple[str, ...],
    store: str | None,
    name: str | None,
    style: str,
    **settings: Any,
) -> None:
    """Choose the best arms by running a program.

    COMMAND runs once per pull and must print the reward, or the reward and the actual cost. In it,
    {arm} is the label, {seed} a seed of this pull, {draw} and {ticket} its numbers; {{word}} is
    {word} itself. No shell is started: a label is always one argument (for labels that begin with a
    dash write `-- {arm}` or `--arm={arm}`). In a script of your own (sh -c '...') a label could run
    commands: write "$SHORTLIST_ARM" there. A pull fails on an exit status other than 0, on other
    output, or on a timeout. It is retried after a pause; after --retries retries the experiment
    stops. A failure of the very first pull ends the command at once.

    With --items the command runs once per cell and must contain {item}; no cell is pulled twice.

    ARMS has one label per line, or is a CSV with a column `arm` and optional columns `cost` (of a
    pull), `limit` (of pulls) and `group`; - is stdin. With --store, Ctrl-C or a crash loses
    nothing: the same command continues, and several may run at once. Without ARMS it continues the
    experiment in the store and takes no settings.

    Exit status: 0 finished, 2 bad input, 130 interrupted, 1 any other error, such as too many
    failures.

    \b
    Examples:
      shortlist run arms.csv --pull './evaluate {arm}' -k 2 --epsilon .2 --workers 2 --store runs.db
      shortlist run --pull './evaluate {arm}' --store runs.db
      shortlist run models.csv --items items.csv --pull './score {arm} {item}' -k 5 --epsilon 0.02
    """
    command = shortlist.Command(template, timeout)
    if workers < 1:  # before a file is created
        raise InvalidInput(f"`workers` is {workers}, but must be a whole number of at least 1")
    rate = _rate(rates)
    source = context.get_parameter_source
    given = [each for each in settings if source(each) is not ParameterSource.DEFAULT]
    with (
        _experiment(arms, store, name, settings, given) as experiment,
        _terminable(),
        _notes_on_stderr(),
    ):
        _check_item(command, experiment)
        against = _control(settings["control"], experiment)
        try:
            result = experiment.run(command, workers=workers, rate=rate)
        except KeyboardInterrupt:
            note(_interrupted(experiment, store))
            context.exit(INTERRUPTED)
        except Unfinished as error:
            raise click.ClickException(f"{error}. {_remedy(store)}") from error
        except (EvaluationFailed, InvalidReward) as error:
            rule = "Fix the cause and run the command again"
            raise click.ClickException(f"the first pull failed: {error}. {rule}") from error
        except StoreReplaced as error:
            if isinstance(experiment, shortlist.Client):  # the service has the file
                raise
            raise click.ClickException(f"{error}. {_rescued(experiment)}") from error
        print_result(replace(result, control=against), style)


def _rate(rates: tuple[str, ...]) -> dict[str, float] | None:
    """The limits per minute by name, if they make sense."""
    limits: dict[str, float] = {}
    for each in rates:
        name, _, figure = each.rpartition("=")
        name = name.strip() or "requests"
        if name in limits or name not in ("requests", "cost"):
            rule = "must be 'requests' or 'cost'" if name not in limits else "is given twice"
            raise InvalidInput(f"`rate` limits {name!r}, which {rule}")
        limits[name] = _per_minute(figure, each)
    return limits or None


def _per_minute(figure: str, given: str) -> float:
    with suppress(ValueError):
        if 0 < float(figure) < inf:
            return float(figure)
    rule = "must be a number per minute above 0, like 600 or cost=2.5"
    raise InvalidInput(f"`rate` is {given!r}, but {rule}")


def _experiment(
    arms: str | None,
    store: str | None,
    name: str | None,
    settings: dict[str, Any],
    given: list[str],
) -> "Experiment | Client":
    """Open the experiment in the store, or create one; `given` are the settings on the command
    line."""
    if arms is None:
        if store is None:
            raise InvalidInput("ARMS and --store are missing, but one must be given")
        settled = [each for each in given if each != "control"]  # which may differ from the store's
        if settled:
            names = ", ".join(f"`{each}`" for each in settled)
            raise InvalidInput(
                f"{names} given without ARMS, but without ARMS all settings come from the store"
            )
        return open_experiment(store, name)
    if settings["k"] is None:
        raise InvalidInput("`k` is missing, but an experiment needs it")
    described = read_arms(arms)
    labels = labels_in(described)
    known = with_features(with_quotas(with_test_set(settings, labels)), arms, labels)
    return create_experiment(described, store=store, exist_ok=True, **named(name), **known)


def _check_item(command: "Command", experiment: "Experiment | Client") -> None:
    """Refuse {item} without a test set, and a test set without {item}."""
    if command.on_items != experiment.settings.on_items:
        rule = "{item} needs --items"
        if experiment.settings.on_items:
            rule = "must contain {item}"
        raise InvalidInput(f"the command is {command.template!r}, but {rule}")


def _control(word: str | None, experiment: "Experiment | Client") -> "OwnLabel | None":
    """The arm that --control names, if all others can be compared with it; else the stored one."""
    from shortlist.settings import checked_control

    settings = experiment.settings
    if word is None:
        return settings.control
    return checked_control(
        labelled("control", word, settings.labels), settings.labels, settings.problem
    )


def _interrupted(experiment: "Experiment | Client", store: str | None) -> str:
    told = experiment.status().told
    pulls = f"{told:,} pull" if told == 1 else f"{told:,} pulls"
    again = "the same command continues" if store else "without --store nothing is stored"
    return f"Interrupted after {pulls}; {again}."


def _remedy(store: str | None) -> str:
    if store:
        return "Fix the cause, run `shortlist resume`, then the same command again"
    return "Fix the cause and run the command again"


def _rescued(experiment: "Experiment") -> str:
    """Export the rewards from the file, which is still open."""
    from shortlist.engine import export_lines

    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="shortlist-", suffix=".jsonl", delete=False
    ) as file:
        file.writelines(f"{line}\n" for line in export_lines(experiment.store, experiment.name))
    return f"All rewards so far are in {file.name}, for `shortlist import`"


@contextmanager
def _terminable() -> Iterator[None]:
    """Handle SIGTERM and SIGHUP as Ctrl-C."""
    names = (signal.SIGTERM, signal.SIGHUP) if hasattr(signal, "SIGHUP") else (signal.SIGTERM,)
    before = {each: signal.signal(each, signal.default_int_handler) for each in names}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


class _OnStderr(logging.Handler):
    """Prints log messages without a prefix."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


@contextmanager
def _notes_on_stderr() -> Iterator[None]:
    """Show failures and waiting on stderr."""
    logger, handler = logging.getLogger("shortlist"), _OnStderr()
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
