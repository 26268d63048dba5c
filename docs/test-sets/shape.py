"""The shape of made-up test sets: `python docs/test-sets/shape.py`."""

from itertools import combinations

import numpy as np

from shortlist.arrays import FloatArray
from shortlist.instances import item_response

MODELS, QUESTIONS, MATRICES, BEST = 80, 1000, 10, 10


def shape(scores: FloatArray) -> tuple[float, ...]:
    """Mean, deviation and largest of the means; of the best, how pairs of them go together."""
    means = scores.mean(1)
    best = scores[np.argsort(-means)[:BEST]]
    together = np.asarray(np.corrcoef(best))[np.triu_indices(BEST, 1)]
    differences = [(one - other).std() for one, other in combinations(best, 2)]
    figures = means.mean(), means.std(), means.max(), together.min(), together.mean()
    return (*map(float, figures), float(together.max()), float(np.mean(differences)))


def main() -> None:
    """Print the mean of every figure over some matrices."""
    made = (item_response(MODELS, QUESTIONS, np.random.default_rng(s)) for s in range(MATRICES))
    mean, deviation, most, least, usual, largest, apart = np.mean([*map(shape, made)], axis=0)
    print(f"means {mean:.2f}, deviation {deviation:.3f}, largest {most:.2f}")
    print(f"correlation of two of the best {BEST}: {usual:.2f}, from {least:.2f} to {largest:.2f}")
    print(f"deviation of their difference on an item: {apart:.2f}")


if __name__ == "__main__":
    main()
