"""The one display of progress, always on stderr: a bar on a terminal, lines elsewhere.

A bar appears after two seconds and vanishes at the end; a line comes every ten seconds. Nothing is
drawn but by a call of `show`: a refreshing thread would be lost in worker processes that are forked
while the bar is up."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import Protocol

from shortlist.search import Progress
from shortlist.validation import flag

Show = Callable[[int, Progress], None]  # pulls so far, and where the search stands
Count = Callable[[int], None]  # how many are done


class Surface(Protocol):
    """Where progress is shown."""

    @property
    def patience(self) -> float:
        """Seconds before anything is shown: what is over sooner needs nothing."""

    @property
    def pause(self) -> float:
        """Seconds between two looks."""

    def draw(self, seconds: float, done: int, words: str) -> None:
        """Show what stands after so many seconds."""

    def close(self) -> None:
        """Take away what is only of use while the work is done."""


class Silence:
    """Shows nothing, ever."""

    patience = inf
    pause = inf

    def draw(self, seconds: float, done: int, words: str) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


class Lines:
    """A line every ten seconds."""

    patience = 10.0
    pause = 10.0

    def draw(self, seconds: float, done: int, words: str) -> None:  # noqa: ARG002
        """Print a line."""
        print(f"{seconds:.0f} s: {words}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the lines."""


class Bar:
    """A bar that appears after two seconds and vanishes at the end."""

    patience = 2.0
    pause = 0.1

    def __init__(self, total: int | None) -> None:
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
        self.task = self.bar.add_task("", total=total)

    def draw(self, seconds: float, done: int, words: str) -> None:  # noqa: ARG002
        """Draw the bar."""
        self.bar.update(self.task, completed=done, description=words)
        self.bar.start()
        self.bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()


class Display:
    """Says when something is due to be shown, shows it, and estimates the time that is left.

    `before` is what had been done when it began; if not given, what the first call says."""

    def __init__(self, surface: Surface, total: int | None, before: int | None = None) -> None:
        self.surface = surface
        self.total = total
        self.before = before
        self.started = time.monotonic()
        self.next = self.started + surface.patience

    def due(self, done: int) -> bool:
        """Whether to show this now."""
        if self.before is None:
            self.before = done
        return time.monotonic() >= self.next

    def show(self, done: int, words: str, left: float | None = None) -> None:
        """Show it, with the seconds left as given or as the pace so far says."""
        now = time.monotonic()
        self.next = now + self.surface.pause
        left = self._seconds_left(done, now) if left is None else left
        rest = "" if left is None else f", about {in_words(left)} left"
        self.surface.draw(now - self.started, done, words + rest)

    def _seconds_left(self, done: int, now: float) -> float | None:
        before = self.before or 0
        if self.total is None or not before < done < self.total:
            return None
        return (now - self.started) * (self.total - done) / (done - before)


@contextmanager
def displayed(wanted: bool, total: int | None, before: int | None = None) -> Iterator[Display]:
    """A display of work that has so many steps, if that is known."""
    surface: Surface = Silence()
    if flag("progress", wanted):
        surface = Bar(total) if sys.stderr.isatty() else Lines()
    try:
        yield Display(surface, total, before)
    finally:
        surface.close()


@contextmanager
def display(wanted: bool, budget: int | None) -> Iterator[Show]:
    """What to call after every evaluation; it returns at once unless something is due."""
    with displayed(wanted, budget) as shown:

        def show(pulls: int, progress: Progress) -> None:
            if shown.due(pulls):
                shown.show(pulls, standing(pulls, budget, progress))

        yield show


@contextmanager
def counting(what: str, total: int) -> Iterator[Count]:
    """What to call with the number done, of `total` in all."""
    with displayed(True, total, before=0) as shown:

        def count(done: int) -> None:
            if shown.due(done):
                shown.show(done, f"{what}: {done:,} of {total:,}")

        yield count


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


def in_words(seconds: float) -> str:
    """A length of time for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def plural(count: int, noun: str) -> str:
    """1 pull, 2 pulls."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
