"""Choose the 10 cheapest of 200 stock rules by simulation, with common random numbers.

A depot looks at its stock every evening. If at most `reorder` items are left, it orders up to
`target`; the delivery comes two days later. A pull of a design is one replication: 80 days, of
which the first 20 are warm-up and do not count. Its output is the mean cost per day, so small is
good. Nothing is known of the variances, and all designs meet the same demand on the same seed:
`python examples/inventory.py`."""

import random

import shortlist

DAYS, WARM_UP, DELIVERY = 80, 20, 2
HOLDING, SHORTAGE, ORDER = 1.0, 9.0, 30.0  # per item and day, item short, order
DESIGNS = [(reorder, reorder + lot) for reorder in range(5, 105, 5) for lot in range(10, 110, 10)]


def cost_per_day(design: tuple[int, int], seed: int) -> float:
    """One replication; the demand of a day depends on the seed, and not on the design."""
    reorder, target = design
    demand = random.Random(seed)
    stock, cost = target, 0.0
    arriving = [0] * DELIVERY  # orders by the day on which they come
    for day in range(DAYS):
        stock += arriving.pop(0)
        stock -= round(demand.expovariate(1 / 12))  # one number per day: designs stay in step
        today = HOLDING * max(0, stock) + SHORTAGE * max(0, -stock)
        ordered = 0
        if stock + sum(arriving) <= reorder:
            ordered = target - stock - sum(arriving)
            today += ORDER
        arriving.append(ordered)
        cost += today if day >= WARM_UP else 0.0
    return cost / (DAYS - WARM_UP)


def main() -> None:
    """Choose the 10 cheapest designs, to within 2 per day on average."""
    result = shortlist.select(
        cost_per_day,
        arms=DESIGNS,
        k=10,
        epsilon=2.0,
        rewards="normal",
        seeds="shared",
        minimize=True,
        seed=1,
        progress=False,
    )
    print(f"{result.pulls:,} replications, regret at most {result.regret_bound:.2f} per day")
    print(f"correlation of designs on a seed: {result.evidence['correlation']:.2f}")
    for reorder, target in sorted(result.top):
        print(f"at most {reorder} left: order up to {target}")


if __name__ == "__main__":
    main()
