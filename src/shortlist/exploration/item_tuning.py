"""What may be tuned about a budget of cells. It costs regret, and nothing is proved by it.

What it is if one of them is halved or doubled:

    python benchmarks/items.py --only tuning --matrices 3 --runs 8 --seed 8000

Read them as `item_tuning.NAME`, so that a benchmark can vary them."""

# items that every arm is scored on before there is anything to compare
FIRST = 6
# requests that the budget is parted into
REQUESTS = 120
# further items of an arm at once, as a share of those it has seen
FURTHER = 0.25
# what is believed of the variance of arms before anything is seen, in units of that of the noise,
SCATTER = 0.025
# and what that counts for, in units of the arms there are
BELIEF = 0.5
# the loss of an arm is divided by the number of items it saw to this power: the larger it is, the
# more evenly cells are spread
PATIENCE = 0.7
