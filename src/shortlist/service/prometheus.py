"""Metrics in the text format of Prometheus, named by its conventions."""

import os
import sys
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from pathlib import Path

from shortlist.engine import State
from shortlist.engine.status import Vitals

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
HELP = {
    "shortlist_build_info": ("gauge", "Version of the service; always 1."),
    "process_start_time_seconds": ("gauge", "Start of the process, in seconds since 1970."),
    "process_cpu_seconds_total": ("counter", "Processor time of the process."),
    "process_resident_memory_bytes": ("gauge", "Memory of the process now."),
    "shortlist_requests_total": ("counter", "Requests by method, route and status."),
    "shortlist_request_duration_seconds": ("histogram", "Time to answer, without event streams."),
    "shortlist_rewards_total": ("counter", "Rewards told through this process."),
    "shortlist_tickets_total": ("counter", "Tickets handed out by this process."),
    "shortlist_stream_readers": ("gauge", "Open live pages."),
    "shortlist_store_ready": ("gauge", "1 if the store can be read."),
    "shortlist_queue_length": ("gauge", "Calls that wait for a thread, per kind of work."),
    "shortlist_experiment_state": ("gauge", "1 for the state that an experiment is in."),
    "shortlist_experiment_rewards": ("gauge", "Rewards told, per experiment."),
    "shortlist_experiment_held_tickets": ("gauge", "Tickets that workers hold."),
    "shortlist_experiment_overdue_tickets": ("gauge", "Tickets whose lease has ended."),
    "shortlist_experiment_failures": ("gauge", "Failed pulls that count."),
    "shortlist_experiment_regret_bound": ("gauge", "Regret bound that the search has proved."),
}
STARTED = time.time()
STATM = Path("/proc/self/statm")  # of Linux: pages in all, and in memory
GAUGES = (
    ("held_tickets", "held"),
    ("overdue_tickets", "overdue"),
    ("failures", "failures"),
    ("regret_bound", "bound"),
)


class Metrics:
    """Counts since the process began. It belongs to the event loop."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.rewards = 0
        self.tickets = 0
        self.readers = 0
        self._buckets: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[method, route, status] += 1
        self._buckets[route][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[route] += seconds

    def text(
        self,
        version: str,
        queues: Mapping[str, int],
        experiments: Sequence[tuple[str, Vitals]],
        ready: bool,
    ) -> str:
        """All metrics; `queues` has the lengths of queues by kind of work."""
        parts = (
            _one("shortlist_build_info", 1, version=version),
            _process(),
            _one("shortlist_store_ready", int(ready)),
            self._counted(),
            _all(
                "shortlist_queue_length",
                ((count, {"work": name}) for name, count in queues.items()),
            ),
            _experiments(experiments),
        )
        return "".join(f"{line}\n" for part in parts for line in part)

    def _counted(self) -> Iterator[str]:
        rows = sorted(self.requests.items())
        yield from _all(
            "shortlist_requests_total",
            (
                (count, {"method": method, "route": route, "status": str(status)})
                for (method, route, status), count in rows
            ),
        )
        yield from self._histogram()
        yield from _one("shortlist_rewards_total", self.rewards)
        yield from _one("shortlist_tickets_total", self.tickets)
        yield from _one("shortlist_stream_readers", self.readers)

    def _histogram(self) -> Iterator[str]:
        name = "shortlist_request_duration_seconds"
        yield from _head(name)
        for route, counts in sorted(self._buckets.items()):
            below = 0
            for limit, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += count
                yield f"{name}_bucket{_labels(route=route, le=limit)} {below}"
            yield f"{name}_sum{_labels(route=route)} {self._seconds[route]!r}"
            yield f"{name}_count{_labels(route=route)} {below}"


def _process() -> Iterator[str]:
    yield from _one("process_start_time_seconds", STARTED)
    times = os.times()
    yield from _one("process_cpu_seconds_total", times.user + times.system)
    if sys.platform != "win32":
        yield from _one("process_resident_memory_bytes", _memory())


def _memory() -> int:
    """Bytes in memory now; the maximum so far where the system does not tell."""
    import resource

    try:
        return int(STATM.read_text().split()[1]) * resource.getpagesize()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _experiments(experiments: Sequence[tuple[str, Vitals]]) -> Iterator[str]:
    yield from _all(
        "shortlist_experiment_state",
        (
            (int(vitals.state == state), {"experiment": name, "state": state.value})
            for name, vitals in experiments
            for state in State
        ),
    )
    told = ((vitals.told, {"experiment": name}) for name, vitals in experiments)
    yield from _all("shortlist_experiment_rewards", told)
    for metric, figure in GAUGES:
        values = ((getattr(vitals, figure), name) for name, vitals in experiments)
        known = ((value, {"experiment": name}) for value, name in values if value is not None)
        yield from _all(f"shortlist_experiment_{metric}", known)


def _one(name: str, value: float, **labels: str) -> Iterator[str]:
    return _all(name, [(value, labels)])


def _all(name: str, rows: Iterable[tuple[float, dict[str, str]]]) -> Iterator[str]:
    yield from _head(name)
    for value, labels in rows:
        number = repr(value) if isfinite(value) else "+Inf"
        yield f"{name}{_labels(**labels)} {number}"


def _head(name: str) -> Iterator[str]:
    kind, text = HELP[name]
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labels(**labels: str) -> str:
    """Labels, with quotes, backslashes and line ends escaped as the format demands."""
    if not labels:
        return ""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
