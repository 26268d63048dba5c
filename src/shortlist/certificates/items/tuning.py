"""Constants of the certificate "items" that cost cells; no bound rests on them.

Ratio of cells at half and at twice the value, where it was measured, by

    python benchmarks/items.py --only tuning --matrices 3 --runs 8 --seed 8000

with `MANY_ARMS` and `LOPSIDED` out of reach. Another seed alone gives a ratio of 0.94, so only
`HOPELESS_ARM` (1.25 at half) and `FIRST_ITEMS` (1.07 at half) matter. Read constants as
`tuning.NAME`, so that a benchmark can vary them."""

# pairs of arms:
FIRST_ITEMS = 10  # items per arm in the first batch
ITEM_GROWTH = 0.03  # further items of an arm at a time, as a share of those it has
GAPS = (1.5, 3.0, 6.0, 12.0)  # gaps that are bet on, in units of epsilon sqrt(K)
GAP_WEIGHTS = (0.3, 0.3, 0.25, 0.15)  # shares of the wealth on each, for K = 1 ...
WEIGHTS_OF_SETS = (0.45, 0.4, 0.15)  # ... and for larger K, where a pair may be off by K epsilon
MOST_BET = 0.98  # largest share of the wealth in a bet: no score ruins
PRIOR_ITEMS = 10.0  # differences that the variance of the first items counts for
VARIANCE = 0.25  # of a difference before any score is seen: about that of 0/1 scores
BOUNDS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0)  # bounds tried, in units of epsilon, up to K
STICKY = 0.5  # an arm leaves the choice for one better by this, in units of epsilon
HOPELESS_ARM = 2.5  # standard deviations below the K-th arm at which an arm is no opponent any more
# single arms:
LOPSIDED = 7  # arms outside per arm inside from which on arms are judged one by one, ...
MANY_ARMS = 40  # ... as they are with this many arms
SINGLE_FIRST = 5  # items per arm in the first batch
ABOVE = 0.75  # share of delta for upper bounds: there are K, and most arms need no others
SINGLE_GAPS = (3.0, 6.0, 12.0)  # gaps that are bet on, in units of epsilon sqrt(K)
SINGLE_WEIGHTS = (0.35, 0.35, 0.3)  # shares of the wealth on each
SINGLE_VARIANCE = 0.1  # of a score before any is seen: between 0/1 scores and graded ones
SINGLE_GROWTH = 0.05  # further items of an arm at a time, as a share of those it has
FAVOUR = 0.7  # items of an arm are proportional to the number of its open pairs to this power
THRIFT = 0.5  # ... and inversely to the cost of an item to this power
JUMP = 1.15  # largest factor by which the items of an arm may grow to catch up
LOOK_GROWTH = 0.02  # new items after which a bound is computed again, less than any usual step
# matrices with missing cells:
MATRIX_GAPS = (0.12, 0.25, 0.5, 1.0)  # gaps that are bet on, in units of the expected half-width
