"""Simulated arms: rewards with known means, drawn a whole batch at once, or a matrix of scores."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray, IntArray
from shortlist.cells import Drawn, grouped_order
from shortlist.errors import InvalidInput
from shortlist.problem import Items
from shortlist.reward_models import Binary, Bounded, Normal, RewardModel, SubGaussian
from shortlist.search import Pulls, Rewards, rewards_of
from shortlist.validation import table

CHUNK = 1_000_000  # rewards held in memory at once where they are drawn one by one
NORMAL_FROM = 10_000_000  # rewards of an entry whose sums are drawn from their normal limit instead
# of a Beta distribution: nearly all rewards are 0 or 1 at the least, and all alike at the most
LEAST_CONCENTRATION, MOST_CONCENTRATION = 1e-3, 1e15


class Bandit(Protocol):
    """Arms that can be pulled in batches."""

    @property
    def means(self) -> FloatArray:
        """The mean of every arm."""

    @property
    def model(self) -> RewardModel:
        """What may be declared about its rewards."""

    def with_means(self, means: FloatArray) -> "Bandit":
        """The same kind of arms with other means."""

    def pull(self, arms: IntArray, times: IntArray, rng: np.random.Generator) -> Rewards:
        """Pull every `arms[j]` `times[j]` times."""


@dataclass(frozen=True)
class BernoulliBandit:
    """Rewards 0 or 1: one binomial per entry."""

    means: FloatArray
    model = Binary()

    def with_means(self, means: FloatArray) -> "BernoulliBandit":
        """The same kind of arms with other means."""
        return replace(self, means=means)

    def pull(self, arms: IntArray, times: IntArray, rng: np.random.Generator) -> Rewards:
        """Pull every `arms[j]` `times[j]` times."""
        sums = rng.binomial(times, self.means[arms]).astype(np.float64)
        return Rewards(sums, sums)  # 0 and 1 are their own squares


@dataclass(frozen=True)
class GaussianBandit:
    """Normal rewards: the sum of a batch is normal, its squared deviations are chi-square.

    The two are independent, so that a batch costs two draws, however long it is."""

    means: FloatArray
    sigma: float = 0.5

    @property
    def model(self) -> RewardModel:
        """What may be declared about its rewards."""
        return SubGaussian(self.sigma)

    def with_means(self, means: FloatArray) -> "GaussianBandit":
        """The same kind of arms with other means."""
        return replace(self, means=means)

    def pull(self, arms: IntArray, times: IntArray, rng: np.random.Generator) -> Rewards:
        """Pull every `arms[j]` `times[j]` times."""
        sums = times * self.means[arms] + self.sigma * np.sqrt(times) * rng.standard_normal(
            arms.size
        )
        deviations = np.zeros(arms.size)  # squared, from the mean of the batch, added up
        several = times > 1
        deviations[several] = self.sigma**2 * rng.chisquare(times[several] - 1)
        return Rewards(sums, deviations + sums**2 / np.maximum(times, 1))


@dataclass(frozen=True)
class NormalBandit:
    """Normal rewards, drawn one by one; the standard deviations are not declared."""

    means: FloatArray
    sd: FloatArray | float = 1.0  # one for all arms, or (n,)
    correlation: float = 0.0  # of the pulls of two arms at one place of a batch
    model = Normal()

    def with_means(self, means: FloatArray) -> "NormalBandit":
        """The same kind of arms with other means."""
        return replace(self, means=means)

    def in_order(self, order: IntArray) -> "NormalBandit":
        """The same arms in another order."""
        return replace(self, means=self.means[order], sd=self._deviations[order])

    @property
    def _deviations(self) -> FloatArray:
        return np.broadcast_to(np.asarray(self.sd, dtype=np.float64), self.means.shape)

    def pull(self, arms: IntArray, times: IntArray, rng: np.random.Generator) -> Rewards:
        """Pull every `arms[j]` `times[j]` times."""
        entry, errors = _shared_errors(times, self.correlation, rng)
        drawn = arms[entry]
        each = self.means[drawn] + self._deviations[drawn] * errors
        return rewards_of(each, entry, arms.size)


@dataclass(frozen=True)
class CopulaBandit:
    """Rewards 0 or 1 on shared seeds: 1 where a normal variable is below a limit of the arm.

    The normal variables of two arms at one place of a batch are correlated."""

    means: FloatArray
    correlation: float = 0.0
    model = Binary()

    def with_means(self, means: FloatArray) -> "CopulaBandit":
        """The same kind of arms with other means."""
        return replace(self, means=means)

    def pull(self, arms: IntArray, times: IntArray, rng: np.random.Generator) -> Rewards:
        """Pull every `arms[j]` `times[j]` times."""
        from scipy.special import ndtri

        entry, errors = _shared_errors(times, self.correlation, rng)
        each = (errors < ndtri(self.means)[arms[entry]]).astype(np.float64)
        return rewards_of(each, entry, arms.size)


def _shared_errors(
    times: IntArray, correlation: float, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """The entry of every pull, and standard normal variables; those at one place share a part."""
    entry = np.repeat(np.arange(times.size), times)
    place = np.arange(entry.size) - (np.cumsum(times) - times)[entry]
    own = rng.standard_normal(entry.size)
    if not correlation:
        return entry, own
    shared = rng.standard_normal(int(times.max(initial=0)))
    return entry, np.sqrt(correlation) * shared[place] + np.sqrt(1 - correlation) * own


@dataclass(frozen=True)
class BetaBandit:
    """Beta(concentration * mean, concentration * (1 - mean)) rewards; means 0 and 1 give constants.

    With `sd` the concentration is such that rewards have that standard deviation, or the largest
    that their mean allows. Sums of them have no distribution that is quick to draw from, so they
    are drawn one by one, in chunks; of more than ten million, they are as good as normal."""

    means: FloatArray
    concentration: float = 4.0
    sd: float | None = None
    model = Bounded()

    def with_means(self, means: FloatArray) -> "BetaBandit":
        """The same kind of arms with other means."""
        return replace(self, means=means)

    def pull(self, arms: IntArray, times: IntArray, rng: np.random.Generator) -> Rewards:
        """Pull every `arms[j]` `times[j]` times."""
        sums, squares = np.zeros(arms.size), np.zeros(arms.size)
        long = times > NORMAL_FROM
        sums[long], squares[long] = self._limits(self.means[arms[long]], times[long], rng)
        for portion in _portions(np.where(long, 0, times)):
            entry = np.repeat(np.arange(arms.size), portion)
            rewards = self._rewards(self.means[arms[entry]], rng)
            sums += np.bincount(entry, rewards, arms.size)
            squares += np.bincount(entry, rewards**2, arms.size)
        return Rewards(sums, squares)

    def _rewards(self, means: FloatArray, rng: np.random.Generator) -> FloatArray:
        inner = (means > 0) & (means < 1)
        rewards = means.copy()
        drawn = means[inner]
        concentration = self._concentrations(drawn)
        rewards[inner] = rng.beta(concentration * drawn, concentration * (1 - drawn))
        return rewards

    def _limits(
        self, means: FloatArray, times: IntArray, rng: np.random.Generator
    ) -> tuple[FloatArray, FloatArray]:
        """Sums and sums of squares by the central limit theorem, with the covariance they have."""
        concentration = self._concentrations(means)
        powers = np.arange(4)[:, None]  # E x^r is a product of r factors
        first, second, third, fourth = np.cumprod(
            (concentration * means + powers) / (concentration + powers), axis=0
        )
        spread = np.sqrt(np.maximum(second - first**2, 0.0))
        with np.errstate(invalid="ignore", divide="ignore"):
            shared = np.nan_to_num((third - first * second) / spread)
        own = np.sqrt(np.maximum(fourth - second**2 - shared**2, 0.0))
        normal, other = np.sqrt(times) * rng.standard_normal((2, means.size))
        sums = np.clip(times * first + spread * normal, 0, times)
        squares = times * second + shared * normal + own * other
        return sums, np.clip(squares, sums * sums / times, sums)

    def _concentrations(self, means: FloatArray) -> FloatArray:
        """The variance of a Beta distribution is mean (1 - mean) / (concentration + 1)."""
        if self.sd is None:
            return np.full(means.size, self.concentration)
        with np.errstate(over="ignore"):
            wanted = means * (1 - means) / self.sd / self.sd - 1
        return np.clip(wanted, LEAST_CONCENTRATION, MOST_CONCENTRATION)


def _portions(times: IntArray) -> Iterator[IntArray]:
    """Cut the pulls, laid end to end, every CHUNK; yield how many of each entry a piece has."""
    edges = np.concatenate([[0], np.cumsum(times)])
    for start in range(0, int(edges[-1]), CHUNK):
        yield np.diff(np.clip(edges, start, start + CHUNK))


def score_matrix(scores: npt.ArrayLike) -> FloatArray:
    """Scores of every arm (row) on every item (column), if none is missing."""
    matrix = table("scores", scores, "a number for every arm and item")
    if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise InvalidInput(
            f"`scores` has shape {matrix.shape}, but must have a row per arm, at least 2, and a"
            " column per item"
        )
    wrong = np.argwhere(~np.isfinite(matrix))
    if wrong.size:
        arm, item = wrong[0]
        raise InvalidInput(
            f"the score of arm {arm} on item {item} is {matrix[arm, item]}, but must be a finite"
            " number"
        )
    return matrix


def model_of_scores(matrix: FloatArray) -> RewardModel:
    """The narrowest usual declaration: 0 and 1, the range [0, 1], or from the least to the most."""
    if np.isin(matrix, (0, 1)).all():
        return Binary()
    low, high = float(matrix.min()), float(matrix.max())
    return Bounded() if low >= 0 and high <= 1 else Bounded(low, high)


ALONE = Drawn()


def _columns(size: int, rng: np.random.Generator, drawn: Drawn) -> tuple[IntArray, IntArray | None]:
    """The order of the cells, and how many are drawn together; None if each is drawn alone.

    Where the promise is about the distribution behind the items, the matrix is that distribution:
    as many items, or clusters, are drawn from it, with replacement."""
    groups = drawn.groups(size // drawn.repeats)
    count = size if groups is None else len(groups)
    turns: IntArray = rng.integers(count, size=count) if drawn.sampled else rng.permutation(count)
    return (turns, None) if groups is None else grouped_order(groups, turns)


class ScoreTable:
    """One run's view of a matrix: items in a random order, shared by all arms or one an arm."""

    def __init__(
        self, matrix: FloatArray, rng: np.random.Generator, order: str, drawn: Drawn = ALONE
    ) -> None:
        n, size = matrix.shape
        widths: IntArray | None = None
        if order == "shared":
            columns, widths = _columns(size, rng, drawn)
            self._scores: FloatArray = matrix[:, columns]
        else:
            self._scores = rng.permuted(matrix, axis=1)
        self.items = Items(size, None, widths, drawn.sampled)
        self._drawn: IntArray = np.zeros(n, dtype=np.int64)

    def pull(self, request: Pulls) -> Rewards:
        """The next scores of every arm that is asked for."""
        entry = np.repeat(np.arange(request.arms.size), request.times)
        first = np.cumsum(request.times) - request.times
        steps = np.arange(entry.size) - first[entry]
        arms = request.arms[entry]
        each = self._scores[arms, self._drawn[arms] + steps]
        np.add.at(self._drawn, request.arms, request.times)
        return rewards_of(each, entry, request.arms.size)
