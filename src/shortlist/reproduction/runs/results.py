"""All rows of the results, in order: pilots, curves, table, sweeps, decisions."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from shortlist.display import displayed
from shortlist.reproduction.design.design import Design
from shortlist.reproduction.runs.remaining import Pace
from shortlist.reproduction.runs.results_file import ResultsFile
from shortlist.reproduction.runs.rows import ResultRow
from shortlist.reproduction.runs.tasks import Task, main_tasks, perform, pilots
from shortlist.simulation.parallel import parallel_stream


def results(design: Design, folder: Path, jobs: int = 1) -> list[ResultRow]:
    """All rows of the results, from the folder if they are there, computed and put there if not.

    The same design gives the same file for any number of jobs, however often it is interrupted."""
    file = ResultsFile(folder, design.record(), design.anytime)
    pace = Pace(jobs)
    _perform("where the curves fall", pilots(design), file, pace)
    _perform("curves, table and sweeps", main_tasks(design, file.rows), file, pace)
    return file.rows


def _perform(what: str, tasks: Sequence[Task], file: ResultsFile, pace: Pace) -> None:
    """Do what is not yet in the file."""
    there = file.done
    todo = [task for task in tasks if task.name not in there]
    done = len(tasks) - len(todo)
    with (
        displayed(True, len(tasks), done) as display,
        closing(parallel_stream(perform, todo, pace.jobs)) as performed,
    ):
        for number, (rows, seconds) in enumerate(performed, start=1):
            file.append(rows)
            pace.note(todo[number - 1].kind, seconds)
            if display.due(done + number):
                left = pace.seconds_left(task.kind for task in todo[number:])
                display.show(done + number, f"{what}: {done + number:,} of {len(tasks):,}", left)
