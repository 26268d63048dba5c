"""`shortlist reproduce`: the paper's figures with every method, and a verdict on its claims."""

from pathlib import Path

import click


@click.command()
@click.option(
    "--panel",
    "panels",
    multiple=True,
    metavar="NAME",
    help="uniform-500, or uniform for all its K; all 15 if none.",
)
@click.option(
    "--algorithm",
    "algorithms",
    multiple=True,
    metavar="NAME",
    help="One more to compare, within budgets and to a confidence, as it allows; repeatable.",
)
@click.option("--runs", type=int, help="Runs per point.  [default: 200, or 10 with --quick]")
@click.option(
    "--jobs", type=int, help="Processes; they do not change the results.  [default: one per core]"
)
@click.option(
    "--seed", type=int, default=0, show_default=True, help="The same seed gives the same files."
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder of the results.",
)
@click.option("--quick", is_flag=True, help="A rough look within two minutes.")
def reproduce(
    panels: tuple[str, ...],
    algorithms: tuple[str, ...],
    runs: int | None,
    jobs: int | None,
    seed: int,
    out: Path,
    quick: bool,
) -> None:
    """Redraw the paper's figures with every method in them.

    Writes results.csv (a row per panel, method and budget), the figures as PNG and SVG, and
    report.html with the figures, the fixed-confidence table and a verdict on every claim of the
    paper. Interrupted and started again, it goes on where it stood. With all panels it also sweeps
    over n and epsilon to check the theorems.

    Needs matplotlib: pip install 'shortlist[plot]'.

    \b
    Examples:
      shortlist reproduce --quick
      shortlist reproduce --panel uniform-500 --panel rte --runs 50 --out uniform-and-rte
      shortlist reproduce --panel rte-30 --algorithm lucb --out with-lucb
      shortlist reproduce --jobs 2
    """
    import shortlist.reproduction

    page = shortlist.reproduction.reproduce(
        out, panels=panels, algorithms=algorithms, runs=runs, seed=seed, quick=quick, jobs=jobs
    )
    click.echo(page)
