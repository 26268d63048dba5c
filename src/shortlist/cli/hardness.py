"""`shortlist hardness`: how hard an instance is."""

import click

import shortlist
from shortlist.cli.instance import instance_options, means_of
from shortlist.cli.output import format_option, print_summary


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
