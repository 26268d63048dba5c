"""How tight `assess` is: median bounds on simulated past results, next to separate intervals.

    python benchmarks/assess.py --runs 200 --seed 17

Per case: the median bound of `assess` with fixed pulls and without, and of Bonferroni's
Clopper-Pearson intervals of all arms, which need fixed pulls: the K largest upper ends of arms left
out less the K smallest lower ends of arms kept. Last, how often each was wrong."""

import argparse

import numpy as np
from scipy.stats import beta

import shortlist

CASES = {
    "12 ads, .02 to .06, K = 3, 1,000 pulls": (np.linspace(0.02, 0.06, 12), 3, [1000]),
    "12 ads, .02 to .06, K = 1, 1,000 pulls": (np.linspace(0.02, 0.06, 12), 1, [1000]),
    "12 ads, .02 to .06, K = 3, 200 to 5,000 pulls": (
        np.linspace(0.02, 0.06, 12),
        3,
        [200, 1000, 5000],
    ),
    "2 pages, .10 and .12, K = 1, 500 pulls": (np.array([0.10, 0.12]), 1, [500]),
    "12 prompts, .1 to .9, K = 3, 50 pulls": (np.linspace(0.1, 0.9, 12), 3, [50]),
    "50 workers, .3 to .7, K = 10, 200 pulls": (np.linspace(0.3, 0.7, 50), 10, [200]),
    "12 equal arms, .05, K = 3, 1,000 pulls": (np.full(12, 0.05), 3, [1000]),
}


def bonferroni(pulls: np.ndarray, sums: np.ndarray, k: int, delta: float) -> float:
    """The bound that follows from separate intervals, each with delta / n."""
    tail = delta / (2 * pulls.size)
    low = np.nan_to_num(beta.ppf(tail, sums, pulls - sums + 1))
    high = np.nan_to_num(beta.isf(tail, sums + 1, pulls - sums), nan=1.0)
    order = np.argsort(-sums / pulls)
    upper, lower = np.sort(high[order[k:]])[::-1][:k], np.sort(low[order[:k]])[: pulls.size - k]
    return float(np.maximum(upper - lower, 0.0).sum() / k)


def measured(name: str, runs: int, rng: np.random.Generator, delta: float) -> list[float]:
    means, k, times = CASES[name]
    rows, wrong = [], np.zeros(3)
    for _ in range(runs):
        theta = rng.permutation(means)
        pulls = np.resize(times, means.size)
        sums = rng.binomial(pulls, theta)
        counts = dict(enumerate(zip(pulls.tolist(), sums.tolist(), strict=True)))
        found = [shortlist.assess(counts, k, fixed=each, delta=delta) for each in (True, False)]
        bounds = [each.regret_bound for each in found] + [bonferroni(pulls, sums, k, delta)]
        lost = (np.sort(theta)[-k:].sum() - theta[list(found[0].top)].sum()) / k
        wrong += lost > np.array(bounds) + 1e-12
        rows.append(bounds)
    return [*np.median(rows, axis=0), *wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--delta", type=float, default=0.05)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    print("| case | fixed | not fixed | separate intervals | wrong |")
    print("|---|---|---|---|---|")
    for name in CASES:
        fixed, free, separate, *wrong = measured(name, given.runs, rng, given.delta)
        counts = ", ".join(f"{each:.0f}" for each in wrong)
        print(f"| {name} | {fixed:.4f} | {free:.4f} | {separate:.4f} | {counts} |", flush=True)


if __name__ == "__main__":
    main()
