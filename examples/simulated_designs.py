"""Which stock rules earn most? Designs are compared by simulation, on all cores.

A shop orders up to S items whenever fewer than s are left. Each pull of the design (s, S) is one
simulated season with random demand. The search ends when the three chosen designs are known to earn
at most 5 per day less than the best three: `python examples/simulated_designs.py`."""

import random

import shortlist

DAYS = 30
PRICE, COST, STORAGE, ORDER = 10.0, 6.0, 0.15, 25.0  # per item, item, item and day, order
LOWEST, HIGHEST = -20.0, 50.0  # limits of the average earnings per day
DESIGNS = [(low, high) for low in range(0, 40, 10) for high in range(20, 120, 20)]


def earned_per_day(design: tuple[int, int], seed: int) -> float:
    """One season with this design; the same seed gives the same season on every machine."""
    low, high = design
    demand = random.Random(seed)
    stock, earned = 0, 0.0
    for _ in range(DAYS):
        if stock <= low < high:
            earned -= ORDER + COST * (high - stock)
            stock = high
        sold = min(stock, round(demand.expovariate(1 / 12)))
        stock -= sold
        earned += PRICE * sold - STORAGE * stock
    return max(LOWEST, min(HIGHEST, (earned + COST * stock) / DAYS))


def main() -> None:
    """Choose the best three designs."""
    result = shortlist.select(
        earned_per_day,
        arms=DESIGNS,  # tuples: the function gets the very tuple, and the result shows it
        k=3,
        epsilon=5.0,
        delta=0.05,
        rewards=(LOWEST, HIGHEST),
        executor="processes",
        workers=2,
        seed=7,
        progress=False,
    )
    print(result)
    low, high = result.top[0]
    print(f"\nOrder up to {high} items whenever {low} or fewer are left.")


# worker processes import this file, and must not start the search again
if __name__ == "__main__":
    main()
