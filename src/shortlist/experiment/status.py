"""Where an experiment stands, as a record."""

from collections.abc import Mapping
from dataclasses import dataclass

from shortlist.evaluation import Label
from shortlist.experiment.ticket import State
from shortlist.search import FloatArray, IntArray, Progress


@dataclass(frozen=True, slots=True)
class Status:
    """How far an experiment is; per arm what was told of it, in the order of the labels."""

    name: str
    state: State
    trouble: str  # why it is stopped, in words; empty if it is not
    held: int  # tickets that somebody works on
    wanted: int  # tickets that the search waits for and nobody works on
    failures: int  # evaluations that failed since the experiment was resumed last
    workers: Mapping[str, int]  # tickets held by everybody who gave a name
    labels: tuple[Label, ...]
    pulls: IntArray
    means: FloatArray  # NaN for an arm of which nothing was told
    to_go: IntArray  # pulls that the search waits for
    progress: Progress  # as the search sees it
