"""How long the tasks that are left will take."""

from collections import defaultdict
from collections.abc import Hashable, Iterable


class Pace:
    """What tasks took so far, by kind, in `jobs` processes."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.took: dict[Hashable, list[float]] = defaultdict(list)

    def note(self, kind: Hashable, seconds: float) -> None:
        """Remember what a task of that kind took."""
        self.took[kind].append(seconds)

    def seconds_left(self, kinds: Iterable[Hashable]) -> float | None:
        """How long these tasks will take, if each takes as long as its kind did so far.

        A kind not seen yet counts as the average task; nothing is known before the first one."""
        if not self.took:
            return None
        means = {kind: sum(seconds) / len(seconds) for kind, seconds in self.took.items()}
        every = [seconds for of_kind in self.took.values() for seconds in of_kind]
        average = sum(every) / len(every)
        return sum(means.get(kind, average) for kind in kinds) / self.jobs
