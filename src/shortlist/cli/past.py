"""Commands on results that exist: `shortlist certify` and `shortlist assess`."""

import math
from typing import TYPE_CHECKING

import click

import shortlist
from shortlist.cli.files import Fresh, read_fresh, read_quotas, with_features
from shortlist.cli.options import plot_option, setting_option
from shortlist.cli.output import Record, format_option, print_rows, print_summary
from shortlist.errors import InvalidInput
from shortlist.formatting import TextTable, bound_text, confidence_text, figures, given_text

if TYPE_CHECKING:
    from shortlist.reward_models import RewardsDeclared


rewards_of_past = setting_option(
    "rewards",
    help="Range or model. Default: 0 to 1, or binary for successes. normal needs squares.",
)


@click.command()
@click.argument(
    "file",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="FILE",
)
@click.option(
    "--fresh",
    is_flag=True,
    help="Required: all rewards were drawn after the choice, and none was used for it.",
)
@click.option(
    "--boundary",
    type=float,
    help="A value between the worst chosen and the best other mean, as believed beforehand.",
)
@setting_option("quotas")
@setting_option("delta", help="Probability of losing more than the bound.")
@click.option(
    "--epsilon",
    type=float,
    help="Regret to test for: the bound is tight near it, and infinite above.",
)
@click.option(
    "--strength",
    type=float,
    help="Trades ln(1/delta) against the noise; found from pulls or epsilon if not given.",
)
@rewards_of_past
@setting_option(
    "features",
    help="Means are linear in these features: a CSV with a column for each and a line per arm, or"
    " columns of FILE.",
)
@setting_option("linear", help="With --features: largest distance of means from linear ones.")
@format_option
def certify(
    *,
    file: str,
    fresh: bool,
    boundary: float | None,
    quotas: str | None,
    delta: float,
    epsilon: float | None,
    strength: float | None,
    rewards: "RewardsDeclared | None",
    features: str | None,
    linear: bool | float,
    style: str,
) -> None:
    """Bound the regret of a set that was chosen elsewhere, by fresh rewards.

    FILE is a CSV with a line for every arm, chosen or not: columns arm, chosen (yes or no), pulls
    and sum (or successes), and perhaps squares, the sum of the squared rewards, which makes the
    bound smaller where rewards vary little and a boundary is given, and is needed for --rewards
    normal.

    With --quotas the set is compared with the best set that keeps to the quotas, and FILE has a
    column group. No --boundary is given then.

    With --features you declare that means are linear in them, or with --linear at most that far
    from linear ones. Arms without pulls are allowed then, and the bound does not grow with the
    number of arms.

    State with --fresh that all rewards were drawn after the choice was made, and that none of them
    was used for it. If the same rewards chose the set, use `shortlist assess`. Fix everything else
    before you see the rewards, too: the chosen arms, the pulls of every arm, --boundary, --delta,
    --epsilon, --strength and --rewards. If you try several values on the same data and keep the
    best bound, there is no guarantee.

    \b
    Examples:
      shortlist certify fresh.csv --fresh
      shortlist certify fresh.csv --fresh --boundary 0.6
      shortlist certify fresh.csv --fresh --boundary 0.6 --epsilon 0.1 --format json
      shortlist certify fresh.csv --fresh --features features.csv

    \b
    where fresh.csv is
      arm,chosen,pulls,successes
      red,yes,400,330
      green,yes,400,310
      blue,no,400,120
    """
    from shortlist.arrays import confidence_of

    if not fresh:
        raise InvalidInput(
            "--fresh is missing, but must be given: the bound holds only for rewards drawn after"
            " the set was chosen, none of which was used to choose it; for rewards that also chose"
            " the set use `shortlist assess`"
        )
    if linear and features is None:
        raise InvalidInput("`linear` is given, but only goes with `features`")
    data = read_fresh(file, least=1 if features is None else 0)
    declared = data.usual_rewards if rewards is None else rewards
    data.check(declared)
    known = with_features({"features": features}, file, data.labels)
    bound = shortlist.certify(
        data.chosen.nonzero()[0],
        data.pulls,
        data.sums,
        boundary=boundary,
        fresh=True,
        delta=delta,
        epsilon=epsilon,
        rewards=declared,
        strength=strength,
        squares=data.squares if boundary is not None or declared == "normal" else None,
        constraint=None if quotas is None else data.quotas(quotas),
        linear=linear or True,
        **known,
    )
    sure = confidence_of(delta)
    summary = _summary(data, bound, sure, boundary)
    verdict = _verdict(bound, sure, epsilon)
    print_summary(_table(summary, boundary, verdict), summary, style)


def _summary(
    data: Fresh, bound: float, confidence: float, boundary: float | None
) -> dict[str, object]:
    return {
        "regret_bound": bound,
        "confidence": confidence,
        "k": int(data.chosen.sum()),
        "n": data.chosen.size,
        "boundary": boundary,
    }


def _table(summary: Record, boundary: float | None, verdict: str) -> TextTable:
    """The figures and the verdict with the bound."""
    shown = {"k": summary["k"], "n": summary["n"]}
    if boundary is not None:
        shown["boundary"] = given_text(boundary)
    return figures(shown, verdict=verdict)


def _verdict(bound: float, confidence: float, epsilon: float | None) -> str:
    if math.isinf(bound):
        return f"No bound of at most {epsilon} follows from these data."
    sure = confidence_text(confidence)
    return f"At most {bound_text(bound)} of mean reward is lost, with {sure} confidence."


@click.command()
@click.argument(
    "counts",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="COUNTS",
    required=False,
)
@click.option(
    "--scores",
    multiple=True,
    metavar="FILE",
    help="Scores on a test set instead of counts: a CSV or Parquet file, or results of a harness."
    " Can be repeated.",
)
@click.option("-k", type=int, required=True, help="Number of arms to keep, less than there are.")
@click.option(
    "--fixed/--no-fixed",
    default=None,
    help="Whether the pulls of every arm were fixed before any reward was seen. Required with"
    " COUNTS.",
)
@setting_option(
    "delta",
    help="Probability that the bound or a tier is wrong; separately, that any interval is wrong.",
)
@rewards_of_past
@setting_option("minimize")
@setting_option("quotas")
@plot_option
@format_option
def assess(
    *,
    counts: str | None,
    scores: tuple[str, ...],
    k: int,
    fixed: bool | None,
    delta: float,
    rewards: "RewardsDeclared | None",
    minimize: bool,
    quotas: str | None,
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

    With --quotas the best set that keeps to the quotas is chosen, the bound is about it, and COUNTS
    has a column group.

    Not covered: rewards that depend on each other, results that were left out because of their
    values, the best of several tables.

    With --scores, a file of scores on a test set is assessed: a row per arm and a column per item,
    or columns arm, item, score. It is about means over all items of the file; the items on which an
    arm has a score must be a random sample of them, of a size that does not depend on scores.
    Results of inspect_ai, lm-eval, Every Eval Ever, promptfoo and deepeval are read, too: files of
    one or more models, or a folder of them. FILE#METRIC chooses one of several metrics.

    \b
    Examples:
      shortlist assess counts.csv -k 1 --fixed
      shortlist assess --scores results.csv -k 5
      shortlist assess --scores logs -k 5
      shortlist assess counts.csv -k 1 --no-fixed --delta 0.01 --format json

    \b
    where counts.csv is
      arm,pulls,successes
      red,400,48
      green,400,30
      blue,400,9
    """
    from shortlist.result.plots import check_file

    if fixed is None and not scores:
        raise InvalidInput(
            "--fixed or --no-fixed is missing, but one must be given: --fixed if the pulls of every"
            " arm were fixed before any reward was seen, --no-fixed if they were not or you are not"
            " sure. A file of scores on a test set goes with --scores"
        )
    if plot is not None:
        check_file(plot)
    found = shortlist.assess(
        counts,
        k,
        scores=(list(scores) if len(scores) > 1 else scores[0]) if scores else None,
        fixed=fixed,
        delta=delta,
        rewards=rewards,
        minimize=minimize,
        quotas=None if quotas is None else read_quotas(quotas),
    )
    if plot is not None:
        found.plot().savefig(plot, dpi=200)
    if style == "csv":
        print_rows(found.to_dict()["arms"], style)  # type: ignore[arg-type]
    else:
        print_summary(found, found.to_dict(), style)
