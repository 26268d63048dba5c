"""`shortlist certify`: what a set that was chosen elsewhere can lose, by fresh data."""

import math
from typing import TYPE_CHECKING

import click

import shortlist
from shortlist.cli.fresh import Fresh, read_fresh
from shortlist.cli.options import rewards_option
from shortlist.cli.output import Record, format_option, print_summary
from shortlist.digits import bound_text, confidence_text, given_text
from shortlist.rounding import confidence_of
from shortlist.tables import TextTable, figures

if TYPE_CHECKING:
    from shortlist.reward_models import RewardsDeclared


@click.command()
@click.argument(
    "fresh",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="FRESH",
)
@click.option(
    "--boundary",
    type=float,
    required=True,
    help="A value between the worst chosen and the best other mean, as believed beforehand.",
)
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability of losing more than the bound.",
)
@click.option(
    "--epsilon",
    type=float,
    help="Is no more than this lost? The bound is tight near it, and infinite above.",
)
@click.option(
    "--strength",
    type=float,
    help="Trades ln(1/delta) against the noise; found from pulls or epsilon if not given.",
)
@rewards_option(help="What rewards can be; 0,1, or binary where successes are counted.")
@format_option
def certify(
    *,
    fresh: str,
    boundary: float,
    delta: float,
    epsilon: float | None,
    strength: float | None,
    rewards: "RewardsDeclared | None",
    style: str,
) -> None:
    """Bound what a set that was chosen elsewhere can lose.

    FRESH is a CSV with a line for every arm, chosen or not: columns arm, chosen (yes or no), pulls
    and sum (or successes), and perhaps squares, the sum of the squared rewards, which makes the
    bound smaller where rewards vary little.

    All rewards must be fresh: drawn after the choice was made, and none of them used for it. Fix
    everything else before you see them, too: the chosen arms, the pulls of every arm, --boundary,
    --delta, --epsilon, --strength and --rewards. Whoever tries several values on the same data and
    keeps the best bound has no guarantee.

    \b
    Examples:
      shortlist certify fresh.csv --boundary 0.6
      shortlist certify fresh.csv --boundary 0.6 --epsilon 0.1 --delta 0.01 --format json

    \b
    where fresh.csv is
      arm,chosen,pulls,successes
      red,yes,400,330
      green,yes,400,310
      blue,no,400,120
    """
    data = read_fresh(fresh)
    declared = data.usual_rewards if rewards is None else rewards
    data.check(declared)
    bound = shortlist.certify(
        data.chosen.nonzero()[0],
        data.pulls,
        data.sums,
        boundary=boundary,
        delta=delta,
        epsilon=epsilon,
        rewards=declared,
        strength=strength,
        squares=data.squares,
    )
    sure = confidence_of(delta)
    summary = _summary(data, bound, sure, boundary)
    verdict = _verdict(bound, sure, epsilon)
    print_summary(_table(summary, boundary, verdict), summary, style)


def _summary(data: Fresh, bound: float, confidence: float, boundary: float) -> dict[str, object]:
    return {
        "regret_bound": bound,
        "confidence": confidence,
        "k": int(data.chosen.sum()),
        "n": data.chosen.size,
        "boundary": boundary,
    }


def _table(summary: Record, boundary: float, verdict: str) -> TextTable:
    """The figures above the verdict, which says the bound."""
    shown = {"k": summary["k"], "n": summary["n"], "boundary": given_text(boundary)}
    return figures(shown, verdict=verdict)


def _verdict(bound: float, confidence: float, epsilon: float | None) -> str:
    if math.isinf(bound):
        return f"No bound of at most {epsilon} follows from these data."
    sure = confidence_text(confidence)
    return f"At most {bound_text(bound)} of mean reward is lost, with {sure} confidence."
