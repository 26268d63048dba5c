"""Do all the work in order: pilot, curves, table, sweeps; then draw and report."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from shortlist.reproduction.progress import Progress
from shortlist.reproduction.rows import Row
from shortlist.reproduction.settings import Settings
from shortlist.reproduction.store import Store
from shortlist.reproduction.tasks import Task, confidence_table, curves, perform, pilots, sweeps
from shortlist.simulation.parallel import parallel_stream


def reproduce(settings: Settings, folder: Path, jobs: int = 1) -> list[Row]:
    """All rows of the results, from the folder if they are there, computed and put there if not.

    The same settings give the same file for any number of jobs, however often it is interrupted."""
    store = Store(folder, settings.record())
    progress = Progress(jobs)
    try:
        _perform(pilots(settings), store, jobs, progress, "where the curves fall")
        rest = curves(settings, store.rows) + confidence_table(settings) + sweeps(settings)
        _perform(rest, store, jobs, progress, "curves, table and sweeps")
    finally:
        progress.close()
    return store.rows


def _perform(tasks: Sequence[Task], store: Store, jobs: int, progress: Progress, what: str) -> None:
    done = store.done
    todo = [task for task in tasks if task.name not in done]
    with closing(parallel_stream(perform, todo, jobs)) as results:
        for number, (rows, seconds) in enumerate(results, start=1):
            store.append(rows)
            progress.took.append((todo[number - 1].kind, seconds))
            ahead = [task.kind for task in todo[number:]]
            progress.tell(what, len(tasks) - len(ahead), ahead)
