"""How far the work is and how long the rest will take, on stderr."""

import sys
import time
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

PAUSE = 10.0  # seconds between two lines where nobody watches
BLINK = 0.2  # and between two looks on a terminal


def seconds_left(
    todo: Iterable[Hashable], took: Sequence[tuple[Hashable, float]], jobs: int
) -> float | None:
    """How long these kinds of tasks will take, if each takes as long as its kind did so far.

    A kind not seen yet counts as the average task; nothing is known before the first one."""
    if not took:
        return None
    seen = defaultdict(list)
    for kind, seconds in took:
        seen[kind].append(seconds)
    average = sum(seconds for _, seconds in took) / len(took)
    means = {kind: sum(values) / len(values) for kind, values in seen.items()}
    return sum(means.get(kind, average) for kind in todo) / jobs


class Progress:
    """Says now and then what is being done."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.took: list[tuple[Hashable, float]] = []
        self.live = sys.stderr.isatty()
        self.due = time.monotonic() + (0 if self.live else PAUSE)

    def tell(self, what: str, done: int, todo: Sequence[Hashable]) -> None:
        """Show where things stand, if it is time."""
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + (BLINK if self.live else PAUSE)
            left = seconds_left(todo, self.took, self.jobs)
            rest = "" if left is None else f", about {in_words(left)} left"
            self._show(f"{what}: {done:,} of {done + len(todo):,}{rest}")

    def _show(self, line: str) -> None:
        print(
            f"\r\x1b[2K{line}" if self.live else line,
            end="" if self.live else "\n",
            file=sys.stderr,
            flush=True,
        )

    def close(self) -> None:
        """Take the line away."""
        if self.live:
            print("\r\x1b[2K", end="", file=sys.stderr, flush=True)


def in_words(seconds: float) -> str:
    """A length of time for people."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"
