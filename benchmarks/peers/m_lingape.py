"""m-LinGapE (Réda, Kaufmann, Delahaye-Duriez 2021), written from the paper's formulas.

It compares every arm inside the present choice with every arm outside, by regularised least
squares with the confidence ellipsoid of radius^2 = 2 ln(1/delta) + d ln(pulls). It stops when no
arm outside can be better by more than epsilon. So it proves more than a bound on the average
regret, and pays for it. Here it pulls in batches that grow by 5 %, by a design for the 50 pairs
that are least settled; the paper pulls one arm at a time.

    python benchmarks/peers/m_lingape.py --coefficients 5 --seed 0"""

import argparse

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.instances import linear
from shortlist.regret import aggregate_regret

SIGMA = 0.5  # of rewards in [0, 1]
GROWTH, WORST_PAIRS, STEPS = 0.05, 50, 30
MOST_PULLS = 10**9


def design(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Shares of pulls that make trace(matrix V^-1) small."""
    share = np.full(len(rows), 1 / len(rows))
    for _ in range(STEPS):
        information = (rows * share[:, None]).T @ rows + 1e-9 * np.eye(rows.shape[1])
        inverse = np.linalg.inv(information)
        share = share * np.sqrt(((rows @ (inverse @ matrix @ inverse)) * rows).sum(1))
        share /= share.sum()
    return share


def drawn(share: FloatArray, total: int, rng: np.random.Generator) -> IntArray:
    """Whole numbers of pulls with these shares."""
    return rng.multinomial(total, share).astype(np.int64)


def m_lingape(
    features: FloatArray,
    means: FloatArray,
    k: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
) -> tuple[BoolArray, int]:
    """The chosen arms and the number of pulls, on 0/1 rewards with these means."""
    rows = np.column_stack([np.ones(means.size), features])
    d = rows.shape[1]
    pulls = drawn(design(rows, rows.T @ rows), 20 * d, rng)
    moment = rows.T @ rng.binomial(pulls, means).astype(float)
    while True:
        information = (rows * pulls[:, None]).T @ rows / SIGMA**2 + np.eye(d)
        values = rows @ np.linalg.solve(information, moment / SIGMA**2)
        chosen = np.isin(np.arange(means.size), np.argsort(-values)[:k])
        inside, outside = np.flatnonzero(chosen), np.flatnonzero(~chosen)
        root = rows @ np.linalg.cholesky(np.linalg.inv(information))
        squares = (root**2).sum(1)
        lengths = squares[outside][:, None] + squares[inside] - 2 * root[outside] @ root[inside].T
        radius = np.sqrt(2 * np.log(1 / delta) + d * np.log(pulls.sum()))
        gaps = values[outside][:, None] - values[inside]
        index = gaps + radius * np.sqrt(np.maximum(lengths, 0))
        if index.max() <= epsilon or pulls.sum() > MOST_PULLS:
            return chosen, int(pulls.sum())
        worst = np.argpartition(-index.ravel(), WORST_PAIRS)[:WORST_PAIRS]
        z = rows[outside[worst // inside.size]] - rows[inside[worst % inside.size]]
        more = drawn(design(rows, z.T @ z), int(GROWTH * pulls.sum()) + 1, rng)
        pulls = pulls + more
        moment = moment + rows.T @ rng.binomial(more, means)


def main() -> None:
    """Print the pulls and the regret of one run on 1000 arms."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--coefficients", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = np.random.default_rng([given.seed, 0])
    features, means = linear(1000, given.coefficients, rng)
    chosen, pulls = m_lingape(features, means, 100, 0.01, 0.01, np.random.default_rng(given.seed))
    regret = aggregate_regret(means, np.flatnonzero(chosen))
    print(f"{given.coefficients} coefficients: {pulls:,} pulls, regret {regret:.5f}")


if __name__ == "__main__":
    main()
