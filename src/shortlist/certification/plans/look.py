"""One look: the stages of its plans, their fresh rewards, and what these prove.

The plans of a later stage stop an arm nowhere that those of the stage before would not, so that
every arm goes on from where it stopped. No stage depends on the fresh rewards."""

import math
from collections.abc import Generator
from functools import cached_property
from itertools import islice

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.boundaries import Boundaries
from shortlist.certification.plans.drafts import Draft, Drafts
from shortlist.certification.plans.losses import Stakes
from shortlist.certification.plans.stage import Proof, Stage
from shortlist.certification.retired import Retired
from shortlist.search import Progress, Pulls, Rewards

ROUNDING = 1e-9  # of a reward that was moved from another range to [0, 1]


class Look:
    """All stages, which depend on the rewards before alone, and the fresh rewards so far."""

    def __init__(
        self, belief: Belief, stakes: Stakes, delta: float, retired: Retired | None = None
    ) -> None:
        self.retired = Retired(belief.row.size) if retired is None else retired
        self.belief = belief
        self.reach = stakes.reach
        middle = belief.middle, belief.error
        self.boundaries = [Boundaries.around(*middle, delta * each) for _, each in tuning.STAGES]
        self.strength = stakes.strength
        charges = self.boundaries[0].left_for_charges(stakes)
        self._stages = Drafts(belief, stakes, charges).stages(charges)
        self._first = list(islice(self._stages, 1))
        self.pulls: IntArray = np.zeros(belief.row.size, dtype=np.int64)  # (arms,)
        self.successes: IntArray = np.zeros(belief.row.size, dtype=np.int64)  # (arms,)
        self.binary = True  # no reward was anything but 0 or 1
        self.bound = math.inf  # on K R_T, about, after the last stage that was drawn
        self.record: list[tuple[Pulls, Rewards]] = []

    @property
    def promising(self) -> bool:
        """Whether it is expected to succeed at all."""
        return len(self._first) > 0

    @property
    def void(self) -> bool:
        """Whether it can prove nothing any more: (*) is about 0/1 rewards and plans that end."""
        return not self.binary or self.retired.any()

    @cached_property
    def drafts(self) -> list[Draft]:
        """Of all stages: whenever they are made, they depend on the rewards before alone."""
        return [*self._first, *self._stages]

    def prove(
        self, rng: np.random.Generator, rounds: int
    ) -> Generator[Pulls, Rewards, Proof | None]:
        """Go through the stages until one of them proves a set."""
        number: int | None = 0
        while number is not None:
            stage = self.stage(number)
            yield from self.draw(stage, rounds)
            if self.void:
                return None
            proof = stage.proof(self.pulls, self.successes, rng)
            if isinstance(proof, Proof):
                return proof
            self.bound = proof
            number = self._next(number)
        return None

    def _next(self, drawn: int) -> int | None:
        """The first later stage that should do, or the last one if it may do; None without hope."""
        if self.bound > tuning.WRONG * self.reach:
            return None
        expected = self._expected()
        predicted = self.bound * (expected / expected[drawn]) ** self._kept
        later = np.arange(expected.size) > drawn
        should = np.flatnonzero(later & (predicted <= self.reach))
        if should.size:
            return int(should[0])
        may = later[-1] and predicted[-1] <= tuning.HOPELESS * self.reach
        return expected.size - 1 if may else None

    @property
    def _kept(self) -> float:
        """What is realised of the logarithm of a predicted improvement."""
        weak = tuning.WEAK * self.boundaries[0].least_threshold
        return 1.0 if self.strength * self.reach < weak else tuning.KEPT

    def _expected(self) -> FloatArray:
        """The bound that is expected after every stage."""
        charges = np.array([each.charges.sum() for each in self.drafts])
        least = [each.least_threshold for each in self.boundaries[: charges.size]]
        result: FloatArray = charges + np.array(least) / self.strength
        return result

    def stage(self, number: int) -> Stage:
        """What is declared for stage `number`: plans that stop later the larger it is."""
        draft = self.drafts[number] if number else self._first[0]
        declared = self.boundaries[number], self.strength, self.reach
        return Stage(draft.plans, self.belief, *declared)

    def draw(self, stage: Stage, rounds: int) -> Generator[Pulls, Rewards, None]:
        """Let every arm follow its plan; arms wait for nobody, requests only are made together."""
        while not self.void:
            times = stage.missing(self.pulls, self.successes)
            arms = np.flatnonzero(times)
            if arms.size == 0:
                return
            progress = Progress(round=rounds + len(self.record), undecided=arms.size)
            pulls = Pulls(arms, times[arms], progress)
            rewards = yield pulls
            self.record.append((pulls, rewards))
            successes = np.rint(rewards.sums)
            whole = np.abs(rewards.sums - successes) <= ROUNDING * (1 + pulls.times)
            self.binary = bool((whole & (rewards.sums == rewards.squares)).all())
            self.pulls[arms] += pulls.times
            self.successes[arms] += successes.astype(np.int64)
