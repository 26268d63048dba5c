"""Metrics in the text format of Prometheus."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
HELP = {
    "shortlist_requests_total": ("counter", "Requests by method, route and status."),
    "shortlist_request_seconds": ("histogram", "Time to answer, without event streams."),
    "shortlist_rewards_total": ("counter", "Rewards told through this process."),
    "shortlist_tickets_total": ("counter", "Tickets handed out by this process."),
    "shortlist_stream_readers": ("gauge", "Open live pages."),
    "shortlist_experiment_told": ("gauge", "Rewards told, per experiment that is open here."),
    "shortlist_experiment_held": ("gauge", "Tickets held by workers, per open experiment."),
}


class Metrics:
    """Counts since the process began. It belongs to the event loop."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.rewards = 0
        self.tickets = 0
        self.readers = 0
        self._buckets = [0] * (len(BUCKETS) + 1)
        self._seconds = 0.0

    def count(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests[method, route, status] += 1
        self._buckets[bisect_left(BUCKETS, seconds)] += 1
        self._seconds += seconds

    def text(self, experiments: Mapping[str, tuple[int, int]]) -> str:
        """All metrics; `experiments` has rewards told and tickets held per experiment."""
        return "".join(f"{line}\n" for line in self._lines(experiments))

    def _lines(self, experiments: Mapping[str, tuple[int, int]]) -> Iterator[str]:
        yield from _head("shortlist_requests_total")
        for (method, route, status), count in sorted(self.requests.items()):
            labels = _labels(method=method, route=route, status=str(status))
            yield f"shortlist_requests_total{labels} {count}"
        yield from self._histogram()
        for name in ("rewards_total", "tickets_total", "stream_readers"):
            yield from _head(f"shortlist_{name}")
            value = getattr(self, name.removeprefix("stream_").removesuffix("_total"))
            yield f"shortlist_{name} {value}"
        for index, name in enumerate(("told", "held")):
            yield from _head(f"shortlist_experiment_{name}")
            for experiment, figures in experiments.items():
                labels = _labels(experiment=experiment)
                yield f"shortlist_experiment_{name}{labels} {figures[index]}"

    def _histogram(self) -> Iterator[str]:
        yield from _head("shortlist_request_seconds")
        below = 0
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), self._buckets, strict=True):
            below += count
            yield f"shortlist_request_seconds_bucket{_labels(le=limit)} {below}"
        yield f"shortlist_request_seconds_sum {self._seconds!r}"
        yield f"shortlist_request_seconds_count {below}"


def _head(name: str) -> Iterator[str]:
    kind, text = HELP[name]
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labels(**labels: str) -> str:
    """Labels, with quotes, backslashes and line ends escaped as the format demands."""
    pairs = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return "{" + ",".join(pairs) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
