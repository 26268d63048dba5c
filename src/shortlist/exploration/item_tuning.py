"""What may be tuned about a budget of cells. It costs regret, and nothing is proved by it.

Beside each stands the ratio of regret if it is halved and doubled, measured by

    python benchmarks/items.py --only tuning --matrices 3 --runs 8 --seed 8000

Another seed alone gives a ratio of 0.80, so only larger differences tell anything. A share
that doubling would take to 1 or more goes halfway to 1, and weights go to the power.

Read them as `item_tuning.NAME`, so that a benchmark can vary them."""

# items that every arm is scored on before there is anything to compare
FIRST = 6  # ×½: 0.91; ×2: 1.06
# requests that the budget is parted into
REQUESTS = 80  # ×½: 1.11; ×2: 0.98
# further items of an arm at once, as a share of those it has seen
FURTHER = 0.25  # ×½: 1.04; ×2: 1.03
# deviations are taken as this share of themselves
BOLD = 0.6  # ×½: 1.02; ×2: 1.01
