"""How many pulls an experiment still needs: it is gone on with in simulation, from where it stands.

Every run replays the rewards that were told, draws the means of the arms from the posterior after
them, and draws the rewards that are missing around these means. Nothing is promised by it: the
posterior is an estimate, and the rewards to come are drawn like those that came."""

from dataclasses import dataclass, field

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.display import in_words, plural
from shortlist.driver import unit_tally
from shortlist.errors import InvalidInput
from shortlist.experiment.experiment import Experiment
from shortlist.experiment.ledger import Ledger
from shortlist.experiment.replay import Replay
from shortlist.experiment.settings import Settings
from shortlist.present import posterior_after
from shortlist.validation import MOST_RUNS, seeded, whole

RUNS = 20
HIGH = 0.9  # quantile of what is still needed


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
    settings = experiment.settings
    ledger = Ledger(settings.retries, settings.problem.prices)
    ledger.take_in(experiment.store.read(experiment.name))
    if not ledger.seen(settings.problem).rewards.has_range:
        raise InvalidInput("`rewards` have no range, but an outlook needs one: say (low, high)")
    ahead = [_Ahead(settings, ledger).run(each) for each in rng.spawn(runs)]
    pulls, rounds = np.array(ahead).T
    return Outlook(pulls, rounds, _pace(ledger))


def _pace(ledger: Ledger) -> float | None:
    seconds = ledger.ended - ledger.began
    return ledger.told / seconds if ledger.told and 0 < seconds < np.inf else None


class _Ahead:
    """One simulation of the rest of an experiment."""

    def __init__(self, settings: Settings, ledger: Ledger) -> None:
        problem = settings.problem
        self.settings, self.ledger = settings, ledger
        self.low, self.high = problem.rewards.support
        self.tally = ledger.tally(problem.n_arms)

    def run(self, rng: np.random.Generator) -> tuple[int, int]:
        """Pulls and requests until the end."""
        if self.ledger.spent_at is not None:
            return 0, 0
        replay, told = Replay(self.settings), self.ledger.rewards
        means = self._means(rng)
        requests = 0
        while replay.outcome is None:
            arms = replay.numbering.arms(replay.numbering.tickets)
            rewards = np.full(arms.size, np.nan)
            known = told[replay.numbering.first : replay.end]
            rewards[: known.size] = known
            missing = np.isnan(rewards)
            requests += bool(missing.any())
            rewards[missing] = self._draws(arms[missing], means, rng)
            costs = self.ledger.costs_in(range(replay.numbering.first, replay.end))
            replay.reply(rewards, arms, costs)
        return replay.end - self.ledger.told, requests

    def _means(self, rng: np.random.Generator) -> FloatArray:
        """Means of all arms, drawn from their posteriors: (arms,) on the scale from 0 to 1."""
        problem = self.settings.problem
        if not self.tally.pulls.any():
            return rng.random(problem.n_arms)
        posterior = posterior_after(problem.unit(), unit_tally(problem, self.tally))
        rising = np.cumsum(posterior.weights, axis=1)[posterior.row]  # (arms, grid)
        drawn = (rising < rng.random(problem.n_arms)[:, None]).sum(axis=1)
        means = posterior.grid[np.minimum(drawn, posterior.grid.size - 1)]
        turned: FloatArray = 1 - means if problem.minimize else means
        return turned

    def _draws(self, arms: IntArray, means: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Rewards of these arms: the worst or the best, the noisiest there are; of one that left
        the worst."""
        won = rng.random(arms.size) < means[arms]
        won[np.isin(arms, list(self.ledger.retired))] = self.settings.problem.minimize
        return np.where(won, self.high, self.low)
