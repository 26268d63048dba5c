"""Commands on known means: simulate, hardness, algorithms, reproduce, demo."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import shortlist
from shortlist.cli.files import groups_of, with_features, with_quotas
from shortlist.cli.options import (
    FEATURED,
    USUAL_COEFFICIENTS,
    algorithms_option,
    distribution_options,
    featured,
    groups_option,
    instance_options,
    means_of,
    plot_option,
    runs_option,
    sets_of,
    setting_option,
    setting_options,
    workers_option,
)
from shortlist.cli.output import (
    format_option,
    print_rows,
    print_summary,
    print_tables,
    progress_bar,
)
from shortlist.errors import InvalidInput
from shortlist.formatting import TextTable, bound_text, percent_text

if TYPE_CHECKING:
    from shortlist.arrays import FloatArray
    from shortlist.driver import Outcome


@click.command()
@instance_options
@click.option(
    "--scores",
    type=click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="FILE",
    help="Scores of a test set: a CSV or Parquet file with a row per arm, a column per item.",
)
@setting_options("order", "repeats", "clusters", "population")
@setting_option(
    "algorithm",
    default=None,
    multiple=True,
    help="Name of the algorithm, or package.module:function. Needed without --scores.",
)
@setting_option(
    "epsilon", help="Largest regret allowed; with --budget, a run that exceeds it has failed."
)
@setting_options("delta", "budget")
@runs_option(1, "Independent runs, arms shuffled in each.")
@setting_option("seed")
@workers_option
@distribution_options
@click.option(
    "--correlation",
    type=float,
    default=0.0,
    show_default=True,
    help="Correlation of arms on a shared seed, from 0 to 1.",
)
@setting_options("seeds", "minimize", "options")
@setting_options("max_rounds", "min_batch", "window", "certificate")
@setting_option(
    "features",
    help="Features of the arms: a CSV with a column for each, in the order of the means, or"
    " columns of the file of means; own: those of --instance linear or sigmoid.",
)
@groups_option
@setting_option("quotas")
@setting_option("linear")
@click.option(
    "--coefficients",
    type=int,
    default=USUAL_COEFFICIENTS,
    show_default=True,
    help="Coefficients of --instance linear and sigmoid: a constant and one per feature.",
)
@click.option(
    "--residual",
    type=float,
    default=0.0,
    show_default=True,
    help="Standard deviation of their means around those that features explain.",
)
@format_option
def simulate(
    *,
    instance: str | None,
    n: int | None,
    k: int,
    p: float | None,
    path: str | None,
    scores: str | None,
    algorithm: tuple[str, ...],
    groups: str | None,
    coefficients: int,
    residual: float,
    runs: int,
    style: str,
    **settings: Any,
) -> None:
    """Run an algorithm many times on known means, or on the scores of a test set.

    Prints what it spends, what it loses and how often it fails: a run fails if its set of k arms
    has an aggregate regret above epsilon. Without --budget the algorithm stops once its
    regret is at most epsilon with probability 1 - delta. With --budget it spends that; for an
    algorithm that takes both, the budget is a cap. A search function of your own is named by its
    module, found in this folder or wherever Python looks: --algorithm mine:search.

    \b
    Examples:
      shortlist simulate --instance uniform -n 1000 -k 500 --algorithm adaptive-top-k-tight \\
          --epsilon 0.05 --delta 0.05 --runs 20 --workers 2
      shortlist simulate --instance synthetic -p 6 -n 1000 -k 100 --algorithm uniform \\
          --budget 29000 --epsilon 0.01 --runs 200 --format json
      shortlist simulate --means means.csv -k 10 --algorithm uniform --epsilon 0.1
      shortlist simulate --means means.csv -k 2 --algorithm certified --epsilon 0.05 \\
          --rewards beta --sd 0.1
      shortlist simulate --means means.csv -k 2 --algorithm certified --epsilon 0.1 \\
          --groups groups.csv --quotas quotas.csv
      shortlist simulate --instance matching -n 16 -k 4 --algorithm expected-loss --budget 400
      shortlist simulate --instance linear -n 300 -k 30 --algorithm certified --epsilon 0.05 \\
          --coefficients 4 --linear
      shortlist simulate --scores scores.csv -k 5 --epsilon 0.02 --runs 20 --format json
    """
    arms: dict[str, Any] = {"scores": None}
    if scores is None:
        if settings["clusters"] is not None:
            raise InvalidInput("`clusters` is given without --scores, but only goes with them")
        arms["means"], arms["costs"] = means_of(instance, n, k, p, path)
    else:
        others: dict[str, object] = {"instance": instance, "n": n, "p": p, "means": path}
        arms |= _scores(scores, others, settings["repeats"], settings["clusters"])
        algorithm = algorithm or (usual(settings["epsilon"]),)
    if not algorithm:
        raise InvalidInput("`algorithm` is not given, but only --scores needs none")
    if len(algorithm) > 1:
        raise InvalidInput(
            f"--algorithm is given {len(algorithm)} times ({', '.join(algorithm)}), but simulate"
            " runs one; `shortlist forecast` compares several"
        )
    if instance in FEATURED and scores is None:
        made = featured(str(instance), n, coefficients, residual, settings["seed"])
        arms["means"] = made.means
        if settings["features"] == "own" or (settings["linear"] and settings["features"] is None):
            settings["features"], arms["features"] = None, made.features
    known = {**with_features(with_quotas(settings), path), **arms}
    with progress_bar("runs", runs) as progress:
        outcome = shortlist.simulate(
            algorithm[0],
            k=k,
            runs=runs,
            on_progress=progress,
            **{"groups": groups_of(groups, path, settings["quotas"]), **sets_of(instance, n, k)},
            **known,
        )
    print_summary(outcome, outcome.summary(), style)


@click.command()
@instance_options
@algorithms_option("Name of an algorithm, or package.module:function; repeatable.", required=True)
@click.option(
    "--budget",
    "budgets",
    type=float,
    multiple=True,
    metavar="N",
    help="Number of pulls to spend: a point of the curves; repeatable.",
)
@setting_option(
    "epsilon", help="Largest regret allowed. Algorithms that prove it stop there without a budget."
)
@setting_option("delta")
@runs_option(20, "Runs of every algorithm with every budget.")
@setting_option("seed")
@workers_option
@distribution_options
@setting_option("minimize")
@click.option(
    "--seconds",
    type=float,
    default=60.0,
    show_default=True,
    help="Begin no more runs after this time; what is not complete is left out and named.",
)
@plot_option
@format_option
def compare(
    *,
    instance: str | None,
    n: int | None,
    k: int,
    p: float | None,
    path: str | None,
    algorithms: tuple[str, ...],
    budgets: tuple[float, ...],
    plot: str | None,
    style: str,
    **settings: Any,
) -> None:
    """Compare algorithms on known means: regret and failures, budget by budget.

    A row per algorithm and budget, and one without a budget for algorithms that stop when --epsilon
    is proved. Pulls and regret are means over the runs; 90 % of the runs lose at most the figure
    next to it. With --epsilon a run has failed if it loses more; the rate has an exact 95 %
    confidence interval. All algorithms meet the same arms. A search function of your own is named
    by its module: --algorithm mine:search.

    \b
    Examples:
      shortlist compare --instance uniform -n 60 -k 5 --algorithm sar --algorithm expected-loss \\
          --budget 1000 --budget 4000 --runs 10
      shortlist compare --means means.csv -k 2 --algorithm certified --algorithm uniform \\
          --epsilon 0.1 --runs 10 --plot comparison.png
    """
    from shortlist.result.plots import check_file

    if plot is not None:
        check_file(plot)
    means, costs = means_of(instance, n, k, p, path)
    with progress_bar("percent of the runs", 100) as progress:
        made = shortlist.compare(
            algorithms,
            means,
            k=k,
            budgets=budgets or None,
            costs=costs,
            on_progress=lambda share: progress(round(100 * share)),
            **sets_of(instance, n, k),
            **settings,
        )
    if plot is not None:
        made.plot().savefig(plot, dpi=200)
    if style == "table":
        print_tables(made)
    else:
        print_rows(made.rows(), style)
    if made.left_out:
        names = ", ".join(made.left_out)
        click.echo(f"Left out after {settings['seconds']:g} s: {names}", err=True)


def usual(epsilon: float | None) -> str:
    """The default algorithm on a test set."""
    return "expected-loss" if epsilon is None else "certified"


def _scores(
    path: str, others: dict[str, object], repeats: int, clusters: str | None
) -> dict[str, Any]:
    """The matrix in a file, if nothing else names the arms, and the clusters of its items."""
    from shortlist.cli.files import read_clusters
    from shortlist.reading.scores import check_repeats, read_scores

    for name, value in others.items():
        if value is not None:
            raise InvalidInput(f"`{name}` and --scores are given, but only one names the arms")
    found = read_scores(path, repeats)
    if found.items is not None:
        check_repeats(found, repeats)
    if clusters is None:
        return {"scores": found.scores}
    if found.items is None:
        raise InvalidInput(f"{path} does not name its items, but --clusters needs their names")
    return {"scores": found.scores, "clusters": read_clusters(clusters, found.items)}


@click.command()
@instance_options
@click.option("--epsilon", type=float, required=True, help="Regret allowed.")
@format_option
def hardness(
    *,
    instance: str | None,
    n: int | None,
    k: int,
    p: float | None,
    path: str | None,
    epsilon: float,
    style: str,
) -> None:
    """Print how hard an instance is: t, psi and H.

    They are those of the paper's Section 1.1: h is what adaptive-top-k pays for, h0 what CLUCB-PAC
    pays for, and h_tilde the classical sum of 1/gap^2, infinite where arms tie at the boundary.

    \b
    Examples:
      shortlist hardness --instance uniform -n 1000 -k 500 --epsilon 0.01
      shortlist hardness --means means.csv -k 10 --epsilon 0.05 --format json
    """
    means, _ = means_of(instance, n, k, p, path)
    result = shortlist.hardness(means, k=k, epsilon=epsilon)
    print_summary(result, result.summary(), style)


@click.command()
@format_option
def algorithms(style: str) -> None:
    """List the algorithms and what they guarantee.

    \b
    Goals:
      confidence   stop when --epsilon is proved, given --delta
      budget       spend --budget pulls
      capped       confidence, but stop at --budget at the latest

    \b
    Examples:
      shortlist algorithms
      shortlist algorithms --format json
    """
    rows = []
    for algorithm in shortlist.ALGORITHMS.values():
        goals = {
            "confidence": shortlist.FixedConfidence in algorithm.goals,
            "budget": shortlist.FixedBudget in algorithm.goals,
            "capped": algorithm.capped,
        }
        rows.append(
            {
                "name": algorithm.name,
                "goals": [goal for goal, served in goals.items() if served],
                "guarantee": algorithm.guarantee,
                "source": algorithm.source,
            }
        )
    print_rows(rows, style)


@click.command()
@click.option(
    "--panel",
    "panels",
    multiple=True,
    metavar="NAME",
    help="Panel, such as uniform-500, or uniform for all its K; default: all 15.",
)
@algorithms_option("Further algorithm to compare; repeatable.")
@click.option("--runs", type=int, help="Runs per point.  [default: 200, or 10 with --quick]")
@click.option(
    "--workers",
    type=int,
    help="Processes; they do not change the results.  [default: one per core]",
)
@setting_option("seed")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder of the results.",
)
@click.option("--quick", is_flag=True, help="Rough figures within two minutes.")
def reproduce(
    panels: tuple[str, ...],
    algorithms: tuple[str, ...],
    runs: int | None,
    workers: int | None,
    seed: int,
    out: Path,
    quick: bool,
) -> None:
    """Redraw the paper's figures with every method in them.

    Writes results.csv (a row per panel, method and budget), the figures as PNG and SVG, and
    report.html with the figures, the fixed-confidence table and a verdict on every claim of the
    paper. If interrupted, the same command continues. With all panels it also sweeps
    over n and epsilon to check the theorems.

    Needs matplotlib: pip install 'shortlist[plot]'.

    \b
    Examples:
      shortlist reproduce --quick
      shortlist reproduce --panel uniform-500 --panel rte --runs 50 --out uniform-and-rte
      shortlist reproduce --panel rte-30 --algorithm lucb --out with-lucb
      shortlist reproduce --workers 2
    """
    import shortlist.reproduction

    page = shortlist.reproduction.reproduce(
        out,
        panels=panels,
        algorithms=algorithms,
        runs=runs,
        seed=seed,
        quick=quick,
        workers=workers,
    )
    click.echo(page)


K, EPSILON, DELTA = 30, 0.05, 0.05
HEADER = ("worker", "questions", "accuracy, estimated", "true")
PREFERRED = ("certified", "adaptive-top-k-tight")  # the first one that is registered


@click.command()
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Random seed. Runs with the same seed are identical.",
)
def demo(seed: int) -> None:
    """Choose the best 30 of 164 crowd workers.

    They answer simulated gold questions, each as often rightly as in the RTE data of Snow et al.
    (2008). The choice may cost at most 0.05 of average accuracy, with 95 % confidence.

    \b
    Example:
      shortlist demo --seed 1
    """
    workers = shortlist.instances.rte_workers()
    algorithm = next(name for name in PREFERRED if name in shortlist.ALGORITHMS)
    outcome, yardstick = (_choose(name, workers, seed) for name in (algorithm, "uniform"))
    _print(
        f"The best {K} of {workers.size} crowd workers, chosen by {algorithm}:",
        outcome,
        yardstick,
        workers,
    )


def _choose(algorithm: str, workers: "FloatArray", seed: int) -> "Outcome":
    import numpy as np

    from shortlist.simulation.simulate import drive
    from shortlist.simulation.worlds import BernoulliBandit

    goal = shortlist.FixedConfidence(EPSILON, DELTA)
    problem = shortlist.Problem(workers.size, K, goal, shortlist.Binary())
    return drive(
        shortlist.find(algorithm), problem, BernoulliBandit(workers), np.random.default_rng(seed)
    )


def _print(title: str, outcome: "Outcome", yardstick: "Outcome", workers: "FloatArray") -> None:
    means = outcome.sums / outcome.pulls
    best_first = sorted(outcome.answer.top.tolist(), key=lambda arm: -means[arm])
    rows = [
        (f"{arm}", f"{outcome.pulls[arm]:,}", f"{means[arm]:.3f}", f"{workers[arm]:.3f}")
        for arm in best_first
    ]
    facts = "\n".join(_facts(outcome, yardstick, workers))
    print_tables(TextTable(HEADER, rows, title=title, verdict=facts, align="rrrr"))


def _facts(outcome: "Outcome", yardstick: "Outcome", workers: "FloatArray") -> Iterator[str]:
    answer, spent, even = outcome.answer, outcome.pulls.sum(), yardstick.pulls.sum()
    assert answer.regret_bound is not None
    assert answer.confidence is not None
    yield f"Spent:      {spent:,} questions"
    yield (
        f"Yardstick:  {even:,} if every worker is asked equally often, {even / spent:.2g} times as"
        " many"
    )
    yield (
        f"Guaranteed: at most {bound_text(answer.regret_bound, 2)} of mean accuracy lost at"
        f" {percent_text(answer.confidence)}% confidence"
    )
    lost = shortlist.regret.aggregate_regret(workers, answer.top)
    yield f"True loss:  {bound_text(lost)}"
