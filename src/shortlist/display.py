"""How a run shows where it stands: a bar on a terminal, a line now and then elsewhere, always on
stderr.

And how what others wrote is made fit to be shown."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from shortlist.search import Progress

PATIENCE = 2.0  # seconds before a bar appears: what is over sooner needs none
REFRESH = 0.1  # seconds between two looks of the bar
PAUSE = 10.0  # seconds between two lines

Show = Callable[[int, Progress], None]  # pulls so far, and where the search stands


@contextmanager
def display(wanted: bool, budget: int | None) -> Iterator[Show]:
    """What to call after every evaluation; it returns at once unless something is due."""
    if not wanted:
        yield lambda pulls, progress: None  # noqa: ARG005
    elif sys.stderr.isatty():
        bar = Bar(budget)
        try:
            yield bar
        finally:
            bar.close()
    else:
        yield Lines(budget)


class Lines:
    """A line every ten seconds."""

    def __init__(self, budget: int | None) -> None:
        self.budget = budget
        self.started = time.monotonic()
        self.due = self.started + PAUSE

    def __call__(self, pulls: int, progress: Progress) -> None:
        """Print a line if it is time."""
        now = time.monotonic()
        if now >= self.due:
            self.due = now + PAUSE
            print(
                f"{now - self.started:.0f} s: {standing(pulls, self.budget, progress)}",
                file=sys.stderr,
                flush=True,
            )


class Bar:
    """A bar that appears after two seconds and vanishes at the end."""

    def __init__(self, budget: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self.bar = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            auto_refresh=False,  # no thread: worker processes are forked while the bar is up
            # what the user's function prints goes above it, never elsewhere
            redirect_stdout=sys.stdout.isatty(),
        )
        self.task = self.bar.add_task("", total=budget)
        self.budget = budget
        self.due = time.monotonic() + PATIENCE

    def __call__(self, pulls: int, progress: Progress) -> None:
        """Draw the bar if it is time."""
        now = time.monotonic()
        if now >= self.due:
            self.due = now + REFRESH
            self.bar.update(
                self.task, completed=pulls, description=standing(pulls, self.budget, progress)
            )
            self.bar.start()
            self.bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()


def standing(pulls: int, budget: int | None, progress: Progress) -> str:
    """Where a search stands, in words."""
    facts = [plural(pulls, "pull") if budget is None else f"{pulls:,} of {plural(budget, 'pull')}"]
    facts += [
        f"{count:,} {name}"
        for name in ("accepted", "undecided")
        if (count := getattr(progress, name))
    ]
    if progress.bound is not None:
        facts.append(f"bound {progress.bound:.3g}")
    return ", ".join(facts)


def plural(count: int, noun: str) -> str:
    """1 pull, 2 pulls."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def printable(text: str, keep: str = "") -> str:
    """A text that leaves a terminal alone: characters that are not to be seen are spelt, but for
    those to be kept."""
    return "".join(
        each if each.isprintable() or each in keep else each.encode("unicode_escape").decode()
        for each in text
    )
