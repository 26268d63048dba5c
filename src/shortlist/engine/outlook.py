"""How many pulls an experiment still needs: it is gone on with in simulation, from where it
stands."""

from dataclasses import dataclass, field

import numpy as np

from shortlist.arrays import IntArray
from shortlist.engine.eta import HIGH, RUNS, Rest, Underway
from shortlist.engine.experiment import Experiment
from shortlist.errors import InvalidInput
from shortlist.formatting import in_words, plural
from shortlist.validation import MOST_RUNS, seeded, whole


@dataclass(frozen=True)
class Outlook:
    """What an experiment still needs, in every simulated run."""

    pulls: IntArray = field(repr=False)  #: (runs,) pulls still to be told
    rounds: IntArray = field(repr=False)  #: (runs,) requests still to come, the present included
    pace: float | None  #: pulls told a second so far; None if that is not known

    @property
    def median(self) -> int:
        """Pulls that half of the runs still need at most."""
        return int(np.quantile(self.pulls, 0.5, method="higher"))

    @property
    def high(self) -> int:
        """Pulls that 90 % of the runs still need at most."""
        return int(np.quantile(self.pulls, HIGH, method="higher"))

    def seconds(self, pulls: int) -> float | None:
        """How long so many pulls take at the pace so far."""
        return None if self.pace is None else pulls / self.pace

    def summary(self) -> dict[str, object]:
        """The figures of the command line's JSON."""
        return {
            "runs": self.pulls.size,
            "pulls": {"median": self.median, "high": self.high},
            "rounds": {"median": float(np.median(self.rounds)), "max": int(self.rounds.max())},
            "seconds": {"median": self.seconds(self.median), "high": self.seconds(self.high)},
        }

    def __str__(self) -> str:
        line = f"{plural(self.median, 'pull')} more in the median, {self.high:,} in 90 %"
        if self.pace is None:
            return f"{line} of {self.pulls.size} simulated runs"
        times = [in_words(pulls / self.pace) for pulls in (self.median, self.high)]
        return f"{line} of {self.pulls.size} simulated runs: about {times[0]}, and {times[1]}"


def outlook(experiment: Experiment, *, runs: int = RUNS, seed: int = 0) -> Outlook:
    """How many pulls an experiment still needs, by `runs` simulations from where it stands.

    It takes as long as `runs` replays and as many simulations of the rest."""
    runs = whole("runs", runs, at_least=1, at_most=MOST_RUNS)
    rng = np.random.default_rng(seeded(seed))
    experiment.position()  # whatever others told
    underway = experiment.underway()
    if underway is None:
        none: IntArray = np.zeros(runs, dtype=np.int64)
        return Outlook(none, none, experiment.pace())
    if not underway.problem.rewards.has_range:
        raise InvalidInput("`rewards` have no range, but an outlook needs one: say (low, high)")
    if not underway.can_be_simulated:
        raise InvalidInput("too many requests were made to go through all of them again")
    pulls, rounds = np.array([_rest(underway, each) for each in rng.spawn(runs)]).T
    return Outlook(pulls, rounds, experiment.pace())


def _rest(underway: Underway, rng: np.random.Generator) -> Rest:
    """One simulation to its end."""
    run = underway.rest(rng)
    while True:
        try:
            next(run)
        except StopIteration as stop:
            rest: Rest = stop.value
            return rest
