"""Choose the 30 best of 164 crowd workers by gold questions, whose answers are known.

The accuracy of each worker is that of the RTE data of Snow, O'Connor, Jurafsky, Ng (2008)."""

import random

import shortlist

ACCURACY = shortlist.instances.rte_workers()


def answered_rightly(worker: int, seed: int) -> bool:
    """Ask one gold question; with the same seed, the same answer."""
    return bool(random.Random(seed).random() < ACCURACY[worker])


def main() -> None:
    """Ask until the choice loses at most 0.1 of mean accuracy, with 95 % confidence."""
    result = shortlist.select(
        answered_rightly,
        arms=ACCURACY.size,
        k=30,
        epsilon=0.1,
        delta=0.05,
        rewards="binary",
        seed=1,
    )
    lost = shortlist.regret.aggregate_regret(ACCURACY, [int(worker) for worker in result.top])
    print(result)
    print(f"True loss: {lost:.4f}; promised: at most {result.regret_bound:.4f}")


if __name__ == "__main__":
    main()
