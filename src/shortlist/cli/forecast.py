"""`shortlist forecast`: how many pulls will be needed, and what will be lost."""

from typing import Any

import click

import shortlist
from shortlist.cli.files import (
    FILE,
    groups_of,
    read_items,
    read_pilot,
    whole_number,
    with_features,
    with_quotas,
)
from shortlist.cli.options import (
    algorithms_option,
    groups_option,
    plot_option,
    read_limits,
    read_means,
    runs_option,
    setting_option,
    setting_options,
    workers_option,
)
from shortlist.cli.output import (
    format_option,
    note,
    print_json,
    print_rows,
    print_tables,
    progress_bar,
)
from shortlist.errors import InvalidInput


def _pair(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> tuple[float, float] | None:
    """("2,18") as (2.0, 18.0)."""
    if text is None:
        return None
    try:
        a, b = map(float, text.split(","))
    except ValueError:
        raise click.BadParameter(f"{text!r} must be two numbers A,B", context, parameter) from None
    return a, b


def _items(
    context: click.Context, parameter: click.Parameter, given: str | None
) -> int | list[str] | None:
    """A number, or the items in a file."""
    if given is None:
        return None
    count = whole_number(given)
    return read_items(str(FILE(given, parameter, context))) if count is None else count


def _means(path: str | None) -> dict[str, Any]:
    """Guessed means from a file, and what pulls cost and limits if it says so."""
    means, costs = (None, None) if path is None else read_means(path)
    return {"means": means, "costs": costs}


def _limits(path: str | None, limit: int | None) -> int | list[int | None] | None:
    """The limit of all arms, or those of a file of means."""
    listed = None if path is None or path == "-" else read_limits(path)
    if listed is not None and limit is not None:
        raise InvalidInput(f"`limit` is {limit}, but {path} has limits, too")
    return limit if listed is None else listed


@click.command()
@click.option(
    "-n",
    type=int,
    help="Number of arms. Not needed with --means or --pilot; may exceed the arms of the pilot.",
)
@setting_option("k", required=True)
@click.option(
    "--prior",
    callback=_pair,
    metavar="A,B",
    help="Means are like draws from Beta(A, B), which averages A/(A+B).",
)
@click.option(
    "--pilot",
    type=FILE,
    metavar="FILE",
    help="Results of a pilot: a CSV with columns pulls and sum (or successes), one row per arm.",
)
@click.option(
    "--means",
    type=FILE,
    metavar="FILE",
    help="Guessed means, 0.02 for 2 %: one per line, or a CSV with columns `mean`, perhaps `cost`"
    " and `limit`.",
)
@click.option("--limit", type=int, help="Most pulls of an arm, for all arms.")
@click.option(
    "--items",
    metavar="N|FILE",
    callback=_items,
    help="A test set: how many items, or the file that names them. Pulls are cells then.",
)
@setting_option("order")
@setting_option(
    "epsilon", help="Largest regret allowed; adds the number of pulls until then. 0.2% is 0.002."
)
@setting_option("delta")
@setting_option(
    "budget",
    multiple=True,
    help="Number of pulls to spend, or their total cost; repeat for several.",
)
@setting_option("minimize")
@algorithms_option("Algorithm to simulate instead of the usual ones; repeat for several.")
@setting_options("max_rounds", "min_batch", "window", "certificate")
@setting_option(
    "features",
    help="Features of the arms: a CSV with a column for each, in the order of the means, or"
    " columns of the file of means.",
)
@groups_option
@setting_option("quotas")
@setting_option("linear")
@click.option(
    "--concurrency",
    type=int,
    help="Number of calls under way at a time (--workers of `run`).  [default: 1]",
)
@click.option(
    "--latency",
    type=float,
    metavar="SECONDS",
    help="Duration of one call in seconds; adds the total time to the forecast.",
)
@click.option(
    "--per-day",
    type=float,
    help="Pulls that can be made a day; adds the number of days to the forecast.",
)
@click.option(
    "--delay",
    type=float,
    default=0.0,
    show_default=True,
    help="Days until the reward of a pull is there.",
)
@setting_options("drift", "skip_blocks", "min_blocks")
@runs_option(20, "Simulated runs of each algorithm.")
@setting_option("seed")
@workers_option
@plot_option
@format_option
def forecast(
    *,
    pilot: str | None,
    means: str | None,
    limit: int | None,
    groups: str | None,
    budget: tuple[float, ...],
    algorithms: tuple[str, ...],
    plot: str | None,
    style: str,
    **settings: Any,
) -> None:
    """Forecast how many pulls a search needs and what it loses.

    Say what the arms are like (--prior, --pilot or --means) and what is wanted (--epsilon with
    --delta, --budget, or both). Searches are then run on simulated arms like these, and 10, 50 and
    90 % of the runs stay below the figures p10, p50 and p90. A short pilot leaves much open, which
    shows as wide ranges.

    \b
    Examples:
      shortlist forecast -n 60 -k 5 --prior 2,18 --epsilon 0.1 --budget 1000 --runs 5
      shortlist forecast -k 3 --pilot pilot.csv --epsilon 0.2 --runs 5 --plot forecast.png
      shortlist forecast -k 4 --means means.csv --budget 500 --budget 2000 --format csv
      shortlist forecast -n 20 -k 2 --prior 8,8 --items 200 --epsilon 0.05 --runs 5
      shortlist forecast -n 9 -k 2 --prior 8,8 --items 99 --epsilon .1 --concurrency 9 --latency 2
      shortlist forecast -n 50 -k 5 --prior 8,2 --limit 40 --epsilon 0.1 --runs 5
      shortlist forecast -k 1 --means means.csv --epsilon 0.02 --per-day 5000 --delay 3 --runs 5
    """
    from shortlist.forecasting.prospects import save
    from shortlist.result.plots import check_file

    if plot is not None:
        check_file(plot)
    known = with_features(with_quotas(settings), means)
    with progress_bar("simulating", 100) as show:
        outcome = shortlist.forecast(
            pilot=None if pilot is None else read_pilot(pilot),
            **_means(means),
            limits=_limits(means, limit),
            groups=groups_of(groups, means, settings["quotas"]),
            budget=budget,
            algorithms=algorithms or None,
            on_progress=None if show is None else lambda share: show(int(100 * share)),
            **known,
        )
    _print(outcome, style)
    if plot is not None:
        save(outcome, plot)


def _print(outcome: "shortlist.Forecast", style: str) -> None:
    if style == "table":  # which says what is left out
        print_tables(outcome)
        return
    for name in outcome.left_out:
        note(f"{name} is left out: its runs would take too long; --algorithm {name} asks for it")
    if style == "json":
        print_json(outcome.summary())
    else:
        print_rows([prospect.summary() for prospect in outcome.prospects], style)
