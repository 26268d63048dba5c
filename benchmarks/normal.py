"""Normal rewards of unknown variances: certified next to KN and Rinott, in the same runs.

python benchmarks/normal.py --runs 100"""

import argparse

import numpy as np

from shortlist import simulate
from shortlist.arrays import FloatArray
from shortlist.certificates.differences.fallback import two_stage_constant

EPSILON, DELTA, FIRST = 0.1, 0.05, 20
UNEVEN = np.linspace(0.4, 2, 10)
CASES: list[tuple[str, int, FloatArray, FloatArray]] = [
    ("one ahead by .15", 1, np.r_[0.15, np.zeros(4)], np.ones(5)),
    ("all tied", 1, np.zeros(5), np.ones(5)),
    ("steps of .1", 1, np.linspace(0, -0.9, 10), np.ones(10)),
    ("one ahead by .15, sd .4 to 2", 1, np.r_[0.15, np.zeros(9)], UNEVEN),
    ("three ahead by .2, sd .4 to 2", 3, np.r_[np.full(3, 0.2), np.zeros(7)], UNEVEN),
]


def kn(means: FloatArray, sd: FloatArray, rng: np.random.Generator) -> tuple[int, int]:
    """Kim and Nelson 2001, c = 1: the arm that is left, and the pulls."""
    n = means.size
    x = means + sd * rng.standard_normal((FIRST, n))
    h2 = ((2 * DELTA / (n - 1)) ** (-2 / (FIRST - 1)) - 1) * (FIRST - 1)
    s2 = (x[:, :, None] - x[:, None, :]).var(axis=0, ddof=1)
    sums, left, pulls, r = x.sum(axis=0), np.arange(n), FIRST * n, FIRST
    while left.size > 1:
        mean = sums[left] / r
        width = np.maximum(0, (h2 * s2[np.ix_(left, left)] / EPSILON**2 - r) * EPSILON / (2 * r))
        left = left[(mean[:, None] >= mean[None, :] - width).all(axis=1)]
        if left.size > 1:
            sums[left] += means[left] + sd[left] * rng.standard_normal(left.size)
            pulls, r = pulls + left.size, r + 1
    return int(left[0]), pulls


def rinott(means: FloatArray, sd: FloatArray, rng: np.random.Generator) -> tuple[int, int]:
    """Rinott 1978: the arm with the largest mean, and the pulls."""
    h = two_stage_constant(DELTA / (means.size - 1), FIRST)
    s2 = sd**2 * rng.chisquare(FIRST - 1, means.size) / (FIRST - 1)
    times = np.maximum(FIRST, np.ceil((h / EPSILON) ** 2 * s2))
    x = means + sd * rng.standard_normal(means.size) / np.sqrt(times)
    return int(x.argmax()), int(times.sum())


def ours(k: int, means: FloatArray, sd: FloatArray, run: int) -> tuple[int, bool]:
    """Pulls of certified, and whether it lost more than epsilon."""
    done = simulate(
        "certified", means, k=k, epsilon=EPSILON, delta=DELTA, rewards="normal", sd=sd, seed=run
    )
    return int(done.pulls[0]), bool(done.failed[0])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, nargs="*", default=range(len(CASES)))
    given = parser.parse_args()
    print("| n | K | means | certified | s.e. | most | failed | KN | Rinott |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in given.rows:
        name, k, means, deviations = CASES[row]
        rows = []
        for run in range(given.runs):
            rng = np.random.default_rng([given.seed, row, run])
            sd = rng.permutation(deviations)
            peers = [f(means, sd, rng)[1] if k == 1 else np.nan for f in (kn, rinott)]
            rows.append((*ours(k, means, sd, given.seed * 10**6 + run), *peers))
        pulls, failed, *others = np.array(rows, dtype=np.float64).T
        error = pulls.std() / np.sqrt(pulls.size)
        peers_text = " | ".join(
            "–" if np.isnan(each).any() else f"{each.mean():,.0f}" for each in others
        )
        print(
            f"| {means.size} | {k} | {name} | {pulls.mean():,.0f} | {error:,.0f} |"
            f" {pulls.max():,.0f} | {failed.sum():.0f} | {peers_text} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
