"""The stages that all arms walk through, and the log capitals they have earned.

A stage is fixed from rewards of earlier stages only: the pulls of every arm when the first arm
enters it; how far each clock advances, and where bets are centred, before any of its rewards is
looked at. So arms may lag behind and catch up."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray, IntArray
from shortlist.certification.pairs.bets import Draws, log_gains
from shortlist.reward_models import RewardModel

Number = TypeVar("Number", np.int64, np.float64)


@dataclass(frozen=True, slots=True)
class Stage:
    """What is fixed before a stage begins."""

    times: IntArray  # (arm,) pulls
    advance: FloatArray  # (clock,)
    mean: float  # that the centre of an arm's bets is drawn to ...
    weight: float  # ... as if it had been seen in so many pulls
    lower: FloatArray  # (arm,) how far below that bets up are centred, ...
    higher: FloatArray  # (arm,) ... and how far above bets down


class Stages:
    """All stages so far; stage 0 is the start, where every capital is 1."""

    def __init__(self, n_arms: int, clocks: int) -> None:
        self.fixed: list[Stage] = []  # stage q is fixed[q - 1]
        self.last = 0  # stage whose pulls are planned
        self.at: IntArray = np.zeros(n_arms, dtype=np.int64)  # last stage completed by every arm
        self.planned: IntArray = np.zeros(n_arms, dtype=np.int64)  # pulls of all stages together
        self._clock: FloatArray = np.zeros((1, clocks))  # (stage, clock)
        self._times: IntArray = np.zeros((1, n_arms), dtype=np.int64)  # (stage, arm)
        self._up: FloatArray = np.zeros((1, n_arms, clocks))  # (stage, arm, clock)
        self._down: FloatArray = np.zeros((1, n_arms, clocks))

    def add(self, stage: Stage) -> None:
        """Plan one more stage and fix it."""
        self.plan(stage.times)
        self.fix(stage)

    def plan(self, times: IntArray) -> None:
        """Say how often every arm is pulled in one more stage, whose bets are fixed later."""
        if self.last + 1 == len(self._clock):  # double the room
            self._clock = _doubled(self._clock)
            self._times = _doubled(self._times)
            self._up = _doubled(self._up)
            self._down = _doubled(self._down)
        self.last += 1
        self.planned = self.planned + times
        self._times[self.last] = times

    def fix(self, stage: Stage) -> None:
        """Fix the bets of the first stage that is only planned."""
        self.fixed.append(stage)
        q = len(self.fixed)
        self._clock[q] = self._clock[q - 1] + stage.advance

    def book(
        self, q: int, arms: IntArray, draws: Draws, centres: FloatArray, rewards: RewardModel
    ) -> None:
        """Add what `arms`, which have completed stage q - 1, gave in stage q."""
        assert (self.at[arms] == q - 1).all()  # no arm skips a stage: clocks are common
        stage = self.fixed[q - 1]
        low = np.clip(centres - stage.lower[arms], 0.0, 1.0)
        high = np.clip(centres + stage.higher[arms], 0.0, 1.0)
        up, down = log_gains(draws, stage.advance, low, high, rewards)
        self._up[q, arms] = self._up[q - 1, arms] + up
        self._down[q, arms] = self._down[q - 1, arms] + down
        self.at[arms] = q

    def times(self, stages: IntArray, arms: IntArray) -> IntArray:
        """Pulls of these arms in these stages, entry by entry."""
        result: IntArray = self._times[stages, arms]
        return result

    def up(self, q: int | IntArray, arms: IntArray) -> FloatArray:
        """L+ of these arms after stage q: (..., clock)."""
        result: FloatArray = self._up[q, arms]
        return result

    def down(self, q: int | IntArray, arms: IntArray) -> FloatArray:
        """L- of these arms after stage q: (..., clock)."""
        result: FloatArray = self._down[q, arms]
        return result

    def clock(self, q: int | IntArray) -> FloatArray:
        """The clocks after stage q: (..., clock)."""
        result: FloatArray = self._clock[q]
        return result


def _doubled(table: npt.NDArray[Number]) -> npt.NDArray[Number]:
    return np.concatenate([table, np.zeros_like(table)])
