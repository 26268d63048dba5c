"""A matrix of scores in the world's place: every cell is drawn once, in the order of a test set."""

import numpy as np
import numpy.typing as npt

from shortlist.arrays import FloatArray, IntArray
from shortlist.errors import InvalidInput
from shortlist.items import Items
from shortlist.reward_models import Binary, Bounded, RewardModel
from shortlist.search import Pulls, Rewards, rewards_of
from shortlist.validation import table


def score_matrix(scores: npt.ArrayLike) -> FloatArray:
    """Scores of every arm (row) on every item (column), if none is missing."""
    matrix = table("scores", scores, "a number for every arm and item")
    if matrix.ndim != 2 or matrix.shape[0] < 2 or matrix.shape[1] < 1:
        raise InvalidInput(
            f"`scores` has shape {matrix.shape}, but must have a row an arm, at least 2, and a"
            " column an item"
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


class ScoreTable:
    """One run's view of a matrix: items in a random order, shared by all arms or one an arm."""

    def __init__(self, matrix: FloatArray, rng: np.random.Generator, order: str) -> None:
        n, size = matrix.shape
        self.items = Items(size)
        if order == "shared":
            self._scores: FloatArray = matrix[:, rng.permutation(size)]
        else:
            self._scores = rng.permuted(matrix, axis=1)
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
