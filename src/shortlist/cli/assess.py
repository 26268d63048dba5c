"""`shortlist assess`: the K best of past results, and what they prove."""

from typing import TYPE_CHECKING

import click

import shortlist
from shortlist.cli.options import minimize_option, rewards_option
from shortlist.cli.output import format_option, print_rows, print_summary
from shortlist.errors import InvalidInput

if TYPE_CHECKING:
    from shortlist.reward_models import RewardsDeclared


@click.command()
@click.argument(
    "counts",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="COUNTS",
)
@click.option("-k", type=int, required=True, help="Number of arms to keep, less than there are.")
@click.option(
    "--fixed/--no-fixed",
    default=None,
    help="Whether the pulls of every arm were fixed before any reward was seen. Required.",
)
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability that the bound or a tier is wrong; separately, that any interval is wrong.",
)
@rewards_option(help="What rewards can be; 0,1, or binary where successes are counted.")
@minimize_option
@click.option(
    "--plot",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Save a picture too: .png, .svg or .pdf.",
)
@format_option
def assess(
    *,
    counts: str,
    k: int,
    fixed: bool | None,
    delta: float,
    rewards: "RewardsDeclared | None",
    minimize: bool,
    plot: str | None,
    style: str,
) -> None:
    """Find the K best arms of past results, and bound what this choice can lose.

    COUNTS is a CSV with a line for every arm: columns arm, pulls and successes (or sum, the sum of
    the rewards), and perhaps squares, the sum of the squared rewards, which makes the bound smaller
    where rewards vary little.

    The bound is right although the same rewards chose the arms. State --fixed if the pulls of every
    arm were fixed before any reward was seen. State --no-fixed if they were not: you stopped when
    it looked good, or pulled good arms more often. If you are not sure, --no-fixed.

    The bound and the tiers hold together with confidence 1 - delta. So do the intervals, as a
    statement of their own.

    Not covered: rewards that depend on each other, results that were left out because of their
    values, the best of several tables.

    \b
    Examples:
      shortlist assess counts.csv -k 1 --fixed
      shortlist assess counts.csv -k 1 --no-fixed --delta 0.01 --format json

    \b
    where counts.csv is
      arm,pulls,successes
      red,400,48
      green,400,30
      blue,400,9
    """
    from shortlist.forecasting.picture import check_file

    if fixed is None:
        raise InvalidInput(
            "--fixed or --no-fixed is missing, but one must be given: --fixed if the pulls of every"
            " arm were fixed before any reward was seen, --no-fixed if they were not or you are not"
            " sure"
        )
    if plot is not None:
        check_file(plot)
    found = shortlist.assess(
        counts, k, fixed=fixed, delta=delta, rewards=rewards, minimize=minimize
    )
    if plot is not None:
        found.plot().savefig(plot, dpi=200)
    if style == "csv":
        print_rows(found.to_dict()["arms"], style)  # type: ignore[arg-type]
    else:
        print_summary(found, found.to_dict(), style)
