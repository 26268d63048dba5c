"""`shortlist algorithms`: what there is to choose from."""

import click

import shortlist
from shortlist.cli.output import format_option, print_rows


@click.command()
@format_option
def algorithms(style: str) -> None:
    """List the algorithms and what they guarantee.

    \b
    Goals:
      confidence   stop by itself, given --epsilon and --delta
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
