"""How many pulls a search still needs: its rest, simulated from where it stands.

A simulated run is sent what the search was sent, and from there on rewards that are drawn around
means, which are drawn from the posterior. Nothing is promised by it: the posterior is an estimate,
and the rewards to come are drawn like those that came."""

import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.driver import Run, unit_tally
from shortlist.engine.tickets import State
from shortlist.errors import InvalidInput, ShortlistError
from shortlist.formatting import duration_text, plural
from shortlist.interim import MOST_RANKED, Tally, posterior_after
from shortlist.problem import Problem
from shortlist.search import Dialogue, Pulls, Rewards, rewards_of
from shortlist.validation import MOST_RUNS, seeded, whole

MOST_REPLIES = 100_000  # that are kept: more take too long to run through again
LEAST_SPREAD = 1e-4  # of rewards around their mean, as a share of what 0/1 rewards have
SURE = 1e-9  # least distance of a mean from the ends of the range


class Remaining(NamedTuple):
    """What a simulated run still took."""

    pulls: int
    batches: int  # the present one included


class PartialBatch(NamedTuple):
    """What is counted of the present batch, entry by entry."""

    times: IntArray
    sums: FloatArray
    squares: FloatArray


@dataclass(frozen=True, slots=True)
class SearchSnapshot:
    """A search under way: how it began, and all that it was sent so far."""

    begin: Callable[[], Run]
    problem: Problem
    replies: Sequence[Rewards]  # to every batch but those that are open
    partly: Sequence[PartialBatch]  # of the open ones
    tally: Tally  # of all rewards that are counted; those that wait are drawn again
    # retired arms: the worst reward is told, and no pull made
    retired: frozenset[int] = frozenset()

    @property
    def can_be_simulated(self) -> bool:
        """Whether rewards can be drawn, and the search be run through again."""
        return self.problem.rewards.has_range and len(self.replies) < MOST_REPLIES

    @property
    def _retired(self) -> IntArray | None:
        """As the search is told of retired arms."""
        return np.array(sorted(self.retired), dtype=np.int64) if self.retired else None

    def rest(self, rng: np.random.Generator) -> Generator[None, None, Remaining]:
        """Simulate the rest, a batch at a time."""
        run, world = Dialogue(self.begin()), World(self, rng)
        for reply in self.replies:
            run.reply(reply)
            yield
        batches = 0
        made = np.ones(self.problem.n_arms, dtype=np.bool_)
        made[list(self.retired)] = False
        pulls = -int(self.tally.waiting[made].sum())  # they are told already
        partly = deque(self.partly)
        while run.result is None:
            oldest, told = run.unanswered[0], partly.popleft() if partly else NOTHING
            missing = (oldest.times - told.times) * made[oldest.arms]
            pulls += int(missing.sum())
            batches += bool(missing.any())
            run.reply(replace(world.reply(oldest, told), retired=self._retired))
            yield
        return Remaining(pulls, batches)


NO_PULLS: IntArray = np.zeros(1, dtype=np.int64)
NOTHING = PartialBatch(NO_PULLS, np.zeros(1), np.zeros(1))  # of any number of entries


class World:
    """Arms of means that they may have, by what was seen of them."""

    def __init__(self, underway: SearchSnapshot, rng: np.random.Generator) -> None:
        problem, tally = underway.problem, underway.tally
        unit = unit_tally(problem, tally)
        self._rng = rng
        self._on_items = problem.items is not None
        self._low, high = problem.rewards.support
        self._width = high - self._low
        means = _means(problem, unit, rng)
        means = 1 - means if problem.minimize else means
        means[list(underway.retired)] = float(problem.minimize)
        self._means: FloatArray = np.clip(means, SURE, 1 - SURE)
        self._spread = _spread(unit)

    def reply(self, request: Pulls, partly: PartialBatch) -> Rewards:
        """What the search is sent: what is in, and draws of what is missing."""
        if self._on_items:  # single rewards; those that are in bear on the means alone
            entries = np.repeat(np.arange(request.arms.size), request.times)
            sums, _ = self._drawn(request.arms[entries], np.ones_like(entries))
            return rewards_of(self._low + self._width * sums, entries, request.arms.size)
        times = request.times - partly.times
        sums, squares = self._drawn(request.arms, times)
        low, width = self._low, self._width
        moved = times * low**2 + 2 * low * width * sums + width**2 * squares
        return Rewards(partly.sums + times * low + width * sums, partly.squares + moved)

    def _drawn(self, arms: IntArray, times: IntArray) -> tuple[FloatArray, FloatArray]:
        """Sums and sums of squares of this many rewards in [0, 1].

        If rewards are not all 0 or 1, the mean is drawn from a beta distribution of their variance,
        and the squares are as they are expected around it."""
        means = self._means[arms]
        if self._spread == 1:
            sums = self._rng.binomial(times, means).astype(np.float64)
            return sums, sums
        strength = np.maximum(times, 1) / self._spread - 1
        drawn = self._rng.beta(strength * means, strength * (1 - means))
        around = np.maximum(times - 1, 0) * self._spread * drawn * (1 - drawn)
        return times * drawn, times * drawn**2 + around


def _means(problem: Problem, unit: Tally, rng: np.random.Generator) -> FloatArray:
    """Means of all arms, drawn from their posteriors: (arms,) on the unit scale."""
    if not unit.pulls.any():
        return rng.random(problem.n_arms)
    posterior = posterior_after(problem.unit(), unit)
    rising = np.cumsum(posterior.weights, axis=1)[posterior.row]  # (arms, grid)
    drawn = (rising < rng.random(problem.n_arms)[:, None]).sum(axis=1)
    means: FloatArray = posterior.grid[np.minimum(drawn, posterior.grid.size - 1)]
    return means


def _spread(unit: Tally) -> float:
    """The variance of rewards around their means over that of 0/1 rewards of these means: 1 if all
    are 0 or 1, or it is not known."""
    if np.array_equal(unit.sums, unit.squares):
        return 1.0
    again = unit.pulls > 1
    pulls, sums = unit.pulls[again], unit.sums[again]
    means = sums / pulls
    most = ((pulls - 1) * means * (1 - means)).sum()
    if most <= 0:
        return 1.0
    around = (unit.squares[again] - sums * means).sum()
    # not 1, which is for rewards that are 0 or 1
    return float(np.clip(around / most, LEAST_SPREAD, 1 - LEAST_SPREAD))


RUNS = 20  # simulations that count: the last ones
ENOUGH = 5  # simulations before anything is shown
SHARE = 0.03  # the largest share of the elapsed time that simulations take
LONGEST = 0.05  # seconds that they take at once
PAUSE = 0.1  # seconds between two turns of them
PATIENCE = 1.0  # seconds before the first
HIGH = 0.9  # quantile

# the search as it is now; None where that is not known
ReadSearch = Callable[[], SearchSnapshot | None]


class Expected(NamedTuple):
    """Pulls still to be made."""

    median: int
    high: int  # in 90 % of the simulations at most


class RemainingEstimator:
    """Simulates the rest of a search again and again, never for more than a share of the time.

    A simulation may begin in one moment and end in another; it says how many pulls the search takes
    in all, and what it says is dropped once more were made."""

    def __init__(self, look: ReadSearch, *, possible: bool = True, seed: int = 0) -> None:
        self._look = look
        self._rng = np.random.default_rng(seed)
        self._started = time.monotonic()
        self._next = self._started + PATIENCE
        self._taken = 0.0  # seconds
        self._run: Generator[None, None, Remaining] | None = None
        self._before = 0  # pulls, when this run began
        self._retired: frozenset[int] = frozenset()  # arms that had left by then
        self._totals: deque[int] = deque(maxlen=RUNS)
        self._possible = possible

    def work(self) -> None:
        """Simulate, if there is time to spare; it returns at once if there is not."""
        now = time.monotonic()
        if now < self._next or not self._possible:
            return
        spare = SHARE * (now - self._started) - self._taken
        begun = time.thread_time()  # of this thread: others may keep the processor busy
        while self._possible and time.thread_time() < begun + min(spare, LONGEST):
            self._step()
        self._taken += time.thread_time() - begun
        self._next = time.monotonic() + PAUSE

    def expected(self, pulls: int) -> Expected | None:
        """What is still expected after this many pulls; None if not enough is known yet."""
        while self._totals and min(self._totals) <= pulls:
            self._totals.remove(min(self._totals))
        if len(self._totals) < ENOUGH:
            return None
        low, high = np.quantile(list(self._totals), [0.5, HIGH], method="higher")
        return Expected(int(low) - pulls, int(high) - pulls)

    def _step(self) -> None:
        """Take a simulation one batch further, or begin one."""
        try:
            if self._run is None:
                self._begin()
            else:
                next(self._run)
        except StopIteration as stop:
            self._totals.append(self._before + stop.value.pulls)
            self._run = None
        except ShortlistError:  # what cannot be simulated is not foreseen
            self._possible = False

    def _begin(self) -> None:
        underway = self._look()
        self._possible = (
            underway is not None
            and underway.can_be_simulated
            and underway.problem.n_arms <= MOST_RANKED
        )
        if underway is not None and self._possible:
            if underway.retired != self._retired:  # what was simulated before pulls them, too
                self._totals.clear()
                self._retired = underway.retired
            self._before = int((underway.tally.pulls + underway.tally.waiting).sum())
            self._run = underway.rest(self._rng.spawn(1)[0])


class Simulable(Protocol):
    """An experiment whose rest can be simulated."""

    def position(self) -> int:
        """Entries of its log; brings it up to date."""

    def underway(self) -> SearchSnapshot | None:
        """The search as it is now; None once there is an answer."""

    def pace(self) -> float | None:
        """Pulls told per second."""

    def state(self) -> State:
        """The state of the experiment."""


@dataclass(frozen=True)
class Outlook:
    """What an experiment still needs, in every simulated run."""

    pulls: IntArray = field(repr=False)  #: (runs,) pulls still to be told
    rounds: IntArray = field(repr=False)  #: (runs,) batches still to come, the present included
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
        """How long this many pulls take at the pace so far."""
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
        times = [duration_text(pulls / self.pace) for pulls in (self.median, self.high)]
        return f"{line} of {self.pulls.size} simulated runs: about {times[0]}, and {times[1]}"


def outlook(experiment: Simulable, *, runs: int = RUNS, seed: int = 0) -> Outlook:
    """How many pulls an experiment still needs, by `runs` simulations from where it stands.

    It takes as long as `runs` replays and as many simulations of the rest.

    Args:
        experiment: The experiment.
        runs: Number of simulations.
        seed: Random seed of the simulations.

    Returns:
        The pulls of every simulation, and how long they take at the pace so far."""
    runs = whole("runs", runs, at_least=1, at_most=MOST_RUNS)
    rng = np.random.default_rng(seeded(seed))
    experiment.position()  # whatever others told
    underway = experiment.underway()
    if underway is None and experiment.state() in (State.READY, State.PENDING):
        raise InvalidInput(
            "this experiment cannot be simulated from here, as a live test has blocks and not"
            " tickets: `forecast` says how long one takes"
        )
    if underway is None:
        none: IntArray = np.zeros(runs, dtype=np.int64)
        return Outlook(none, none, experiment.pace())
    if not underway.problem.rewards.has_range:
        raise InvalidInput("`rewards` have no range, but an outlook needs one: say (low, high)")
    if not underway.can_be_simulated:
        raise InvalidInput("too many batches were answered to go through all of them again")
    pulls, rounds = np.array([_rest(underway, each) for each in rng.spawn(runs)]).T
    return Outlook(pulls, rounds, experiment.pace())


def _rest(underway: SearchSnapshot, rng: np.random.Generator) -> Remaining:
    """One simulation to its end."""
    run = underway.rest(rng)
    while True:
        try:
            next(run)
        except StopIteration as stop:
            rest: Remaining = stop.value
            return rest
