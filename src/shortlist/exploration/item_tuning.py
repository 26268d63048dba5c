"""What may be tuned about a budget of cells. It costs regret, and nothing is proved by it.

Read them as `item_tuning.NAME`, so that a benchmark can vary them."""

# items that every arm is scored on before there is anything to compare
FIRST = 6
# requests that the budget is parted into
REQUESTS = 80
# further items of an arm at once, as a share of those it has seen
FURTHER = 0.25
# deviations are taken as this share of themselves
BOLD = 0.6
