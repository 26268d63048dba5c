"""Options that several commands share: algorithms, experiments, and where they are kept."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from shortlist.cli.completion import algorithm_names, experiment_names

if TYPE_CHECKING:
    from shortlist.experiment.lease import Late
    from shortlist.reward_models import RewardsDeclared

Command = Callable[..., Any]


def _pairs(
    context: click.Context, parameter: click.Parameter, pairs: tuple[str, ...]
) -> dict[str, Any]:
    """("scale=2", "pooled=true") as {"scale": 2, "pooled": True}; what is not JSON is a word."""
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{pair!r} must be of the form name=value", context, parameter)
        try:
            options[name] = json.loads(value)
        except (ValueError, RecursionError):  # also a number of too many digits
            options[name] = value
    return options


def algorithm_option(*names: str, **settings: Any) -> Callable[[Command], Command]:
    """--algorithm, which the shell completes."""
    return click.option(
        "--algorithm", *names, metavar="NAME", shell_complete=algorithm_names, **settings
    )


algorithm_settings = click.option(
    "--option",
    "options",
    multiple=True,
    callback=_pairs,
    metavar="NAME=VALUE",
    help="A setting of the algorithm, as often as needed; a wrong name lists those there are.",
)


def search_options(command: Command) -> Command:
    """Add how pulls are cut into requests, and which certificate is wanted."""
    for option in reversed(
        (
            click.option(
                "--rounds",
                type=int,
                help="Requests at most; each waits for all rewards of the one before.",
            ),
            click.option("--least", type=int, help="Pulls in a request at least."),
            click.option(
                "--certificate",
                default="auto",
                show_default=True,
                metavar="pairs|plans|split|items",
                help="What proves the bound.",
            ),
        )
    ):
        command = option(command)
    return command


control_option = click.option(
    "--control", metavar="ARM", help="Print how much better or worse than this arm all others are."
)
minimize_option = click.option(
    "--minimize", is_flag=True, help="The best arms are those of the smallest mean rewards."
)


def _rewards(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> "RewardsDeclared | None":
    """What --rewards declares: "binary", "0,1" or "sub-gaussian:2.5"."""
    from shortlist import SubGaussian

    if text is None:
        return None
    if text == "binary":
        return "binary"
    try:
        kind, colon, sigma = text.partition(":")
        if kind == "sub-gaussian" and colon:
            spread = float(sigma)
            return SubGaussian(spread)
        low, high = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(
            f"{text!r} must be LOW,HIGH or binary or sub-gaussian:SIGMA", context, parameter
        ) from None
    return (low, high)


def rewards_option(**settings: Any) -> Callable[[Command], Command]:
    """--rewards, as every command spells it."""
    return click.option(
        "--rewards",
        callback=_rewards,
        metavar="LOW,HIGH|binary|sub-gaussian:SIGMA",
        **settings,
    )


def experiment_options(command: Command) -> Command:
    """Add what an experiment is made with."""
    for option in reversed(
        (
            click.option("-k", type=int, help="Number of arms to choose."),
            click.option("--epsilon", type=float, help="Regret allowed."),
            click.option(
                "--delta",
                type=float,
                default=0.05,
                show_default=True,
                help="Probability of losing more.",
            ),
            click.option(
                "--budget",
                type=float,
                help="Pulls to spend, or what they may cost; with --epsilon, at most.",
            ),
            rewards_option(help="What rewards can be; 0,1 unless a budget is all there is."),
            minimize_option,
            algorithm_option(
                default="auto",
                show_default=True,
                help="See `algorithms`; or package.module:function.",
            ),
            algorithm_settings,
            search_options,
            click.option(
                "--seed",
                type=int,
                default=0,
                show_default=True,
                help="The same seed asks for the same.",
            ),
            click.option(
                "--retries",
                type=int,
                default=2,
                show_default=True,
                help="Tries more of a pull that failed.",
            ),
            click.option(
                "--on-failure",
                type=click.Choice(["stop", "retire"]),
                default="stop",
                show_default=True,
                help="After that the experiment stops, or the arm leaves.",
            ),
        )
    ):
        command = option(command)
    return command


def _late(context: click.Context, parameter: click.Parameter, text: str) -> "Late":
    """What --late says: "wait", "again" or a reward."""
    if text == "wait":
        return "wait"
    if text == "again":
        return "again"
    try:
        return float(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} must be wait, again or a reward", context, parameter
        ) from None


def lease_options(command: Command) -> Command:
    """Add when a ticket is due, and what happens to one that is late."""
    return click.option(
        "--lease",
        type=float,
        metavar="SECONDS",
        help="When a ticket is due; an hour, or longer if pulls take longer.",
    )(
        click.option(
            "--late",
            callback=_late,
            default="wait",
            show_default=True,
            metavar="wait|again|REWARD",
            help="What is late is waited for, handed out again, or counts so.",
        )(command)
    )


store_option = click.option(
    "--store",
    required=True,
    envvar="SHORTLIST_STORE",
    type=click.Path(dir_okay=False),
    metavar="FILE|URL",
    help="Where it is kept: a file, postgresql://… or a service; or set SHORTLIST_STORE.",
)
made_store_option = click.option(
    "--store",
    required=True,
    envvar="SHORTLIST_STORE",
    type=click.Path(dir_okay=False),
    metavar="FILE|URL",
    help="A file, made if there is none, or postgresql://…; or set SHORTLIST_STORE.",
)


def store_options(command: Command) -> Command:
    """Add where an experiment is kept, and its name."""
    return store_option(name_option(command))


name_option = click.option(
    "--name", shell_complete=experiment_names, help="Its name, where the file holds several."
)
