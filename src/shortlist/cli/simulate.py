"""`shortlist simulate`: run an algorithm many times on arms whose means are known."""

from typing import Any

import click

import shortlist
from shortlist.cli.instance import instance_options, means_of
from shortlist.cli.options import (
    algorithm_option,
    algorithm_settings,
    minimize_option,
    pace_options,
)
from shortlist.cli.output import format_option, print_summary, progress_bar


@click.command()
@instance_options
@algorithm_option(required=True, help="See `shortlist algorithms`; or package.module:function.")
@click.option(
    "--epsilon", type=float, help="Regret allowed; with --budget, what counts as a failure."
)
@click.option(
    "--delta",
    type=float,
    default=0.05,
    show_default=True,
    help="Probability of losing more than epsilon.",
)
@click.option(
    "--budget", type=int, help="Pulls to spend, instead of stopping by epsilon and delta."
)
@click.option(
    "--runs",
    type=int,
    default=1,
    show_default=True,
    help="Independent runs, arms shuffled in each.",
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same figures."
)
@click.option(
    "--jobs",
    type=int,
    default=1,
    show_default=True,
    help="Processes; they do not change the figures.",
)
@click.option(
    "--rewards",
    type=click.Choice(["bernoulli", "beta", "gaussian"]),
    default="bernoulli",
    show_default=True,
    help="Law of the rewards around their mean.",
)
@minimize_option
@algorithm_settings
@pace_options
@format_option
def simulate(
    *,
    instance: str | None,
    n: int | None,
    k: int,
    p: float | None,
    path: str | None,
    algorithm: str,
    runs: int,
    style: str,
    **settings: Any,
) -> None:
    """Run an algorithm many times on known means.

    Prints what it spends, what it loses and how often it fails: a run fails if its set of k arms
    has an aggregate regret above epsilon. Without --budget the algorithm stops by itself once it
    loses at most epsilon with probability 1 - delta. With --budget it spends that; for an algorithm
    that takes both, the budget is a cap. A search function of your own is named by its module,
    found in this folder or wherever Python looks: --algorithm mine:search.

    \b
    Examples:
      shortlist simulate --instance uniform -n 1000 -k 500 --algorithm adaptive-top-k-tight \\
          --epsilon 0.05 --delta 0.05 --runs 20 --jobs 2
      shortlist simulate --instance synthetic -p 6 -n 1000 -k 100 --algorithm uniform \\
          --budget 29000 --epsilon 0.01 --runs 200 --format json
      shortlist simulate --means means.csv -k 10 --algorithm uniform --epsilon 0.1
    """
    means = means_of(instance, n, k, p, path)
    with progress_bar("runs", runs) as progress:
        outcome = shortlist.simulate(
            algorithm, means, k=k, runs=runs, progress=progress, **settings
        )
    print_summary(outcome, outcome.summary(), style)
