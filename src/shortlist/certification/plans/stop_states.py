"""The states in which a declared plan stops, with the exact number of paths to each.

A plan has levels, cumulative numbers of pulls N_1 < N_2 < ...; at each of them some numbers of
successes stop the arm. A state is (pulls, successes). All paths to a state are equally likely:

    p_m(state) = paths * m^successes * (1 - m)^(pulls - successes)        for every mean m,

so that one forward recursion serves all means. It adds and multiplies positive numbers only: its
relative error is that of a few roundings. States whose probability underflows are left out. An arm
that ends in one of them is charged infinitely, which adds nothing to its exponential moment."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from shortlist.arrays import BoolArray, FloatArray, IntArray

NEGLIGIBLE = 1e-280  # probability under the reference mean below which states are left out
UNLIKELY = 1e-16  # probability under every mean, likewise
NOT_THERE = -1  # the number of a state that was left out


@dataclass(frozen=True, slots=True)
class Level:
    """After `pulls` pulls: which numbers of successes, 0 ... pulls, stop the arm."""

    pulls: int
    stops: BoolArray  # (pulls + 1,)


@dataclass(frozen=True, slots=True)
class StopStates:
    """Where a plan can stop: pulls, successes, ln(paths); pulls rise, then successes."""

    pulls: FloatArray  # (states,)
    successes: FloatArray  # (states,)
    log_paths: FloatArray  # (states,)

    def log_probability(self, means: FloatArray) -> FloatArray:
        """Logarithm of p_m(state): (means, states)."""
        column = means[:, None]
        log_path = self.successes * np.log(column)
        log_path += (self.pulls - self.successes) * np.log1p(-column)
        log_path += self.log_paths
        result: FloatArray = log_path
        return result

    def log_likeliest(self) -> FloatArray:
        """Logarithm of the largest p_m(state) for any m, the one at m = successes / pulls."""
        share = self.successes / self.pulls
        result: FloatArray = xlogy(self.successes, share) + self.log_paths
        result += xlog1py(self.pulls - self.successes, -share)
        return result

    def only(self, kept: BoolArray) -> "StopStates":
        """Some of the states."""
        return StopStates(self.pulls[kept], self.successes[kept], self.log_paths[kept])

    def find(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """The number of every one of these states; NOT_THERE for those that were left out."""
        base = float(self.pulls.max()) + 1
        keys = self.pulls * base + self.successes
        wanted = pulls * base + successes
        at = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
        return np.where(keys[at] == wanted, at, NOT_THERE)


def stop_states(levels: Sequence[Level], reference: float) -> StopStates:
    """All states in which the plan can stop, by forward recursion under the mean `reference`."""
    running = np.ones(1)  # (pulls + 1,): probability of successes, not stopped yet
    before = 0
    parts: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    for level in levels:
        reached = np.convolve(running, binomial(level.pulls - before, reference))
        ended = np.flatnonzero(level.stops & (reached > NEGLIGIBLE))
        pulls = np.full(ended.size, float(level.pulls))
        parts.append((pulls, ended.astype(np.float64), reached[ended]))
        running = np.where(level.stops, 0.0, reached)
        before = level.pulls
    pulls, successes, probability = (np.concatenate(each) for each in zip(*parts, strict=True))
    log_path = xlogy(successes, reference) + xlog1py(pulls - successes, -reference)
    states = StopStates(pulls, successes, np.log(probability) - log_path)
    return states.only(states.log_likeliest() > math.log(UNLIKELY))


def binomial(pulls: int, mean: float) -> FloatArray:
    """Probability of 0 ... `pulls` successes."""
    successes = np.arange(pulls + 1)
    log_factorial = gammaln(successes + 1.0)
    log_paths = log_factorial[-1] - log_factorial - log_factorial[::-1]
    log_path = successes * np.log(mean) + successes[::-1] * np.log1p(-mean)
    result: FloatArray = np.exp(log_paths + log_path)
    return result
