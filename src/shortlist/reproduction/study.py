"""A reproduction from the names of its panels to its report."""

import os
from collections.abc import Sequence
from pathlib import Path

from shortlist.algorithms import AlgorithmLike, find
from shortlist.reproduction.design import QUICK_RUNS, RUNS, Design, choose
from shortlist.reproduction.report import check_matplotlib, write_report
from shortlist.reproduction.runs import results
from shortlist.validation import check_sendable, whole


def reproduce(
    folder: str | Path,
    *,
    panels: Sequence[str] = (),
    algorithms: Sequence[AlgorithmLike] = (),
    runs: int | None = None,
    seed: int = 0,
    quick: bool = False,
    workers: int | None = None,
) -> Path:
    """Measure, or continue to measure, in a folder; write its report and return its path.

    `panels` are all 15 if none is given. `algorithms` are compared with the standard methods on
    every panel, within budgets, to a confidence, or both, as each allows. `workers` processes, one
    per core by default, do not change the results."""
    check_matplotlib()
    if runs is None:
        runs = QUICK_RUNS if quick else RUNS
    design = Design(choose(panels), runs, seed, quick, tuple(algorithms))
    processes = whole("workers", os.cpu_count() if workers is None else workers, at_least=1)
    if processes > 1:
        for algorithm in algorithms:
            check_sendable(find(algorithm).name, algorithm)
    place = Path(folder)
    return write_report(design, results(design, place, processes), place)
