"""A researcher's own algorithm, compared with ours on the same simulated arms.

A search is a generator: it yields the pulls it wants, receives their rewards, and returns its
answer. This one is Sequential Halving (Karnin, Koren, Somekh 2013), extended from the best arm
to the best k: `python examples/own_algorithm.py`."""

import math

import numpy as np

import shortlist

N_ARMS, K, BUDGET, RUNS = 60, 5, 3_000, 40


@shortlist.register("halving", goals=shortlist.FixedBudget, source="Karnin, Koren, Somekh 2013")
def halving(
    problem: shortlist.Problem, rng: np.random.Generator, *, keep: float = 0.5
) -> shortlist.Search:
    """Share the budget among rounds; after each, keep the best share of the arms, but at least k.

    All randomness of a search comes from `rng`; this one uses it to break ties."""
    left = rng.permutation(problem.n_arms)
    sums = np.zeros(problem.n_arms)  # (n,) rewards of every arm so far
    pulls = np.zeros(problem.n_arms, dtype=np.int64)  # (n,)
    rounds = math.ceil(math.log(problem.n_arms / problem.k) / -math.log(keep))
    for _ in range(rounds):
        times = problem.budget // (rounds * left.size)
        rewards = yield shortlist.Pulls(left, np.full(left.size, times))
        sums[left] += rewards.sums
        pulls[left] += times
        best_first = left[np.argsort(-sums[left] / pulls[left], kind="stable")]
        left = best_first[: max(problem.k, math.ceil(keep * left.size))]
    return shortlist.Answer(left[: problem.k])


def main() -> None:
    """Print the regret of every algorithm with the same budget."""
    means = np.random.default_rng(0).beta(2, 6, N_ARMS)
    print(f"Mean regret of {RUNS} runs, {BUDGET:,} pulls of {N_ARMS} arms, the best {K} wanted:")
    for algorithm in ("uniform", "sar", "expected-loss", halving):
        runs = shortlist.simulate(algorithm, means, k=K, budget=BUDGET, runs=RUNS, seed=1)
        print(f"{runs.algorithm:>15} {runs.regret.mean():.4f}")
    slower = shortlist.simulate(
        halving, means, k=K, budget=BUDGET, epsilon=0.02, runs=RUNS, options={"keep": 0.75}, seed=1
    )
    print("\nThe same search, keeping three arms in four:")
    print(slower)


if __name__ == "__main__":
    main()
