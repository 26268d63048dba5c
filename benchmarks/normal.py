"""Normal rewards of unknown variances: certified, kn and rinott on the same arms.

python benchmarks/normal.py --runs 100
python benchmarks/normal.py --many --runs 50"""

import argparse

import numpy as np

from shortlist import simulate
from shortlist.arrays import FloatArray
from shortlist.simulation.simulate import Runs

EPSILON, DELTA = 0.1, 0.05
UNEVEN = np.linspace(0.4, 2, 10)
CASES: list[tuple[str, int, FloatArray, FloatArray]] = [
    ("one ahead by .15", 1, np.r_[0.15, np.zeros(4)], np.ones(5)),
    ("all tied", 1, np.zeros(5), np.ones(5)),
    ("steps of .1", 1, np.linspace(0, -0.9, 10), np.ones(10)),
    ("one ahead by .15, sd .4 to 2", 1, np.r_[0.15, np.zeros(9)], UNEVEN),
    ("three ahead by .2, sd .4 to 2", 3, np.r_[np.full(3, 0.2), np.zeros(7)], UNEVEN),
]

MANY = [(200, 10, 0.1, 1.0), (200, 10, 0.1, 3.0), (1000, 100, 0.05, 1.0), (1000, 100, 0.05, 3.0)]


def many_arms(runs: int, seed: int) -> None:
    """Print pulls for means uniform on [0, 3], deviations 1 or log-uniform from .3 to 3."""
    print("| n | K | epsilon | sd | median | mean | most | failed |")
    print("|---|---|---|---|---|---|---|---|")
    for n, k, epsilon, most in MANY:
        pulls, failed = [], 0
        for run in range(runs):
            rng = np.random.default_rng([seed, n, int(most), run])
            means = rng.uniform(0, 3, n)
            sd = np.exp(rng.uniform(-np.log(most), np.log(most), n))
            done = simulate(
                "certified",
                means,
                k=k,
                epsilon=epsilon,
                delta=DELTA,
                rewards="normal",
                sd=sd,
                seed=seed * 10**6 + run,
            )
            pulls.append(int(done.pulls[0]))
            failed += bool(done.failed[0])
        spread = "1" if most == 1 else f"{1 / most:.2g} to {most:g}"
        print(
            f"| {n} | {k} | {epsilon} | {spread} | {np.median(pulls):,.0f} |"
            f" {np.mean(pulls):,.0f} | {max(pulls):,} | {failed} |",
            flush=True,
        )


def one_run(name: str, row: int, run: int, seed: int) -> Runs:
    """One run of an algorithm; the deviations are shuffled, the same way for all of them."""
    _, k, means, deviations = CASES[row]
    sd = np.random.default_rng([seed, row, run]).permutation(deviations)
    return simulate(
        name,
        means,
        k=k,
        epsilon=EPSILON,
        delta=DELTA,
        rewards="normal",
        sd=sd,
        seed=seed * 10**6 + run,
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rows", type=int, nargs="*", default=range(len(CASES)))
    parser.add_argument("--many", action="store_true")
    given = parser.parse_args()
    if given.many:
        many_arms(given.runs, given.seed)
        return
    print("| n | K | means | certified | s.e. | most | failed | kn | rinott |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in given.rows:
        name, k, means, _ = CASES[row]
        ours = [one_run("certified", row, run, given.seed) for run in range(given.runs)]
        pulls = np.array([int(done.pulls[0]) for done in ours])
        failed = sum(bool(done.failed[0]) for done in ours)
        peers = []
        for peer in ("kn", "rinott"):
            taken = [
                int(one_run(peer, row, run, given.seed).pulls[0])
                for run in range(given.runs if k == 1 else 0)
            ]
            peers.append(f"{np.mean(taken):,.0f}" if taken else "–")
        print(
            f"| {means.size} | {k} | {name} | {pulls.mean():,.0f} |"
            f" {pulls.std() / np.sqrt(pulls.size):,.0f} | {pulls.max():,.0f} | {failed} |"
            f" {' | '.join(peers)} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
