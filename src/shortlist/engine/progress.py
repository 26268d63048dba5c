"""The one display of progress: a bar on a terminal or in a notebook, lines elsewhere.

It is on stderr, and in a notebook below the cell. A bar appears after two seconds and vanishes at
the end; a line comes every ten seconds. Nothing is drawn but by a call of `show`: a refreshing
thread would be lost in worker processes that are forked while the bar is up."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from html import escape
from typing import Any, Protocol

from shortlist.engine.eta import Expected, ReadSearch, RemainingEstimator
from shortlist.formatting import amount_text, bound_text, duration_text, plural, printable
from shortlist.problem import FixedBudget, Problem
from shortlist.search import Progress

Count = Callable[[int], None]  # how many are done


class Show(Protocol):
    """What is called after every evaluation."""

    def __call__(self, pulls: int, progress: Progress, spent: float | None = None) -> None:
        """Take pulls so far, where the search stands, and what was spent if that is known."""


class Surface(Protocol):
    """Where progress is shown."""

    @property
    def patience(self) -> float:
        """Seconds before anything is shown: what is over sooner needs nothing."""

    @property
    def pause(self) -> float:
        """Seconds between two looks."""

    def draw(self, seconds: float, done: int, total: int | None, *facts: str) -> None:
        """Show the state after this many seconds: steps done, their total, and facts as text."""

    def close(self) -> None:
        """Take away what is only of use while the work is done."""


class Lines:
    """A line every ten seconds."""

    patience = 10.0
    pause = 10.0

    def draw(self, seconds: float, done: int, total: int | None, *facts: str) -> None:  # noqa: ARG002
        """Print a line."""
        print(f"{seconds:.0f} s: {', '.join(facts)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """Leave the lines."""


class ProgressBar:
    """A bar that appears after two seconds and vanishes at the end."""

    patience = 2.0
    pause = 0.1

    def __init__(self) -> None:
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
        self.task = self.bar.add_task("", total=None)

    def draw(self, seconds: float, done: int, total: int | None, *facts: str) -> None:  # noqa: ARG002
        """Draw the bar, every fact on a line of its own: narrow terminals would cut them off."""
        self.bar.update(self.task, completed=done, total=total, description="\n".join(facts))
        self.bar.start()
        self.bar.refresh()

    def close(self) -> None:
        """Take the bar away."""
        self.bar.stop()


class NotebookBar:
    """A bar below the cell that runs: HTML that is updated, without widgets. It vanishes, too."""

    patience = 2.0
    pause = 0.5

    def __init__(self) -> None:
        self._shown: Any = None  # what updates the HTML, once there is any

    def draw(self, seconds: float, done: int, total: int | None, *facts: str) -> None:
        """Draw the bar, or update it; without a total it only moves."""
        goal = "" if total is None else f' max="{max(total, 1)}" value="{min(done, total)}"'
        lines = [*(escape(printable(fact)) for fact in facts), duration_text(seconds)]
        bar = f'<progress{goal} style="width: 24em; max-width: 100%"></progress>'
        self._update(f'<div role="status">{bar}<br>{"<br>".join(lines)}</div>')

    def close(self) -> None:
        """Take the bar away."""
        if self._shown is not None:
            self._update("")

    def _update(self, html: str) -> None:
        from IPython.display import HTML, display

        if self._shown is None:
            self._shown = display(HTML(html), display_id=True)
        else:
            self._shown.update(HTML(html))


class MarimoSpinner:
    """A spinner with text below the cell of marimo that runs. It vanishes, too."""

    patience = 2.0
    pause = 0.5

    def __init__(self) -> None:
        self._shown = ExitStack()
        self._spinner: Any = None  # what updates the text, once there is any

    def draw(self, seconds: float, done: int, total: int | None, *facts: str) -> None:
        """Show the facts, or update them."""
        share = [] if not total else [f"{min(done / total, 1):.0%}"]
        title, *more = (printable(fact) for fact in facts)
        text = {"title": title, "subtitle": ", ".join([*share, *more, duration_text(seconds)])}
        if self._spinner is None:
            import marimo

            self._spinner = self._shown.enter_context(marimo.status.spinner(**text))
        self._spinner.update(**text)

    def close(self) -> None:
        """Take the spinner away."""
        self._shown.close()


def in_marimo() -> bool:
    """Whether a notebook of marimo runs this program."""
    marimo = sys.modules.get("marimo")
    return marimo is not None and bool(marimo.running_in_notebook())


def in_notebook() -> bool:
    """Whether a kernel of Jupyter runs this program; IPython in a terminal is none."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _surface() -> Surface:
    """The surface that suits where the program runs."""
    if in_notebook():
        return NotebookBar()
    if in_marimo():
        return MarimoSpinner()
    return ProgressBar() if sys.stderr.isatty() else Lines()


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
        if left is None and self.total is not None:
            left = self.seconds_for(self.total - done, done)
        rest = "" if left is None else f", about {duration_text(left)} left"
        self._draw(done, self.total, words + rest)

    def show_expected(self, done: int, words: str, expected: Expected) -> None:
        """Show it, with how many more are expected, and how long these take."""
        pulls = f"about {expected.median:,} more (90 %: {expected.high:,})"
        median, high = (self.seconds_for(more, done) for more in expected)
        if median is not None and high is not None:
            pulls += f", {duration_text(median)} left (90 %: {duration_text(high)})"
        self._draw(done, done + expected.median, words, pulls)

    def _draw(self, done: int, total: int | None, *facts: str) -> None:
        now = time.monotonic()
        self.next = now + self.surface.pause
        self.surface.draw(now - self.started, done, total, *facts)

    def seconds_for(self, more: int, done: int) -> float | None:
        """How long this many more take at the pace so far; None if that is not known."""
        before = self.before or 0
        if more <= 0 or done <= before:
            return None
        return (time.monotonic() - self.started) * more / (done - before)


@contextmanager
def displayed(total: int | None, before: int | None = None) -> Iterator[Display]:
    """A display of work that has `total` steps, if that is known."""
    surface = _surface()
    try:
        yield Display(surface, total, before)
    finally:
        surface.close()


@contextmanager
def display(problem: Problem, look: ReadSearch) -> Iterator[Show]:
    """What to call after every evaluation; it returns at once unless something is due.

    If the number of pulls is not known, it is simulated from what `look` sees."""
    total = problem.counted_budget if isinstance(problem.goal, FixedBudget) else None
    with displayed(total) as shown:
        foresight = RemainingEstimator(look, possible=total is None)

        def show(pulls: int, progress: Progress, spent: float | None = None) -> None:
            foresight.work()
            if not shown.due(pulls):
                return
            words = standing(pulls, problem, progress, spent)
            expected = foresight.expected(pulls)
            if expected is None:
                shown.show(pulls, words)
            else:
                shown.show_expected(pulls, words, expected)

        yield show


@contextmanager
def counting(what: str, total: int) -> Iterator[Count]:
    """What to call with the number done, of `total` in all."""
    with displayed(total, before=0) as shown:

        def count(done: int) -> None:
            if shown.due(done):
                shown.show(done, f"{what}: {done:,} of {total:,}")

        yield count


def standing(pulls: int, problem: Problem, progress: Progress, spent: float | None = None) -> str:
    """The state of a search as text; its bound in the user's units."""
    most, budget = problem.counted_budget, problem.goal.budget
    facts = [plural(pulls, "pull") if most is None else f"{pulls:,} of {plural(most, 'pull')}"]
    if problem.costs is not None and spent is not None:
        of_all = "" if budget is None else f" of {amount_text(budget)}"
        facts[0] += f" for {amount_text(spent)}{of_all}"
    facts += [
        f"{count:,} {name}"
        for name in ("accepted", "undecided")
        if (count := getattr(progress, name))
    ]
    if progress.bound is not None:
        facts.append(f"bound {bound_text(progress.bound * problem.rewards.scale, 3)}")
    return ", ".join(facts)
