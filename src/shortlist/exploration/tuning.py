"""What may be tuned about exploration. It costs pulls or time, and nothing is proved by it.

Above each constant stands what it is and its unit; beside it how results change if it is halved
and doubled: the ratio of pulls of the split search and of regret of `expected-loss`, measured by

    python benchmarks/sensitivity.py --runs 12

Another seed alone changes pulls by a ratio of 1.19 and regret by 1.08, so only larger differences
tell anything. Of a factor above or below 1 the distance from 1 is halved and doubled. Read them as
`tuning.NAME`, so that a benchmark can vary them."""

# explore.py:
# pulls of every arm before there is anything to compare
FIRST = 2  # ×½: pulls 1.07, regret 1.07; ×2: pulls 1.24, regret 0.98
# a batch, as a share of what has been spent,
GROWTH = 0.1  # ×½: pulls 1.08, regret 0.92; ×2: pulls 1.16, regret 1.20
# in pulls an arm at least, since a batch takes time with many arms,
AN_ARM = 0.45  # ×½: pulls 1.00, regret 0.93; ×2: pulls 1.01, regret 1.08
# and in pulls at least, so that parallel workers have something to do
LEAST = 32  # ×½: pulls 1.05, regret 0.99; ×2: pulls 1.08, regret 0.98

# grid.py:
# points of the grid at first
EVEN = 50  # ×½: pulls 0.99, regret 0.95; ×2: pulls 1.07, regret 0.98
# steps of that grid: once arms are known better than this it is made finer
BLURRED = 3.0  # ×½: pulls 1.01, regret 1.00; ×2: pulls 0.98, regret 0.97
# points of a grid that is finer towards the boundary, about
FINE = 100  # ×½: pulls 1.00, regret 1.00; ×2: pulls 1.02, regret 1.00

# posterior.py:
# arms below which a prior cannot be learned: a flat one is kept
FEW = 30  # ×½: pulls 1.00, regret 1.00; ×2: pulls 1.03, regret 1.01
# steps of EM per refresh, from the weights before (more of them fit noise),
STEPS = 1  # ×½: pulls 1.00, regret 1.00; ×2: pulls 0.94, regret 0.89
# and times as many on a new grid, where they start from a flat prior
STEPS_ANEW = 4  # ×½: pulls 1.01, regret 1.00; ×2: pulls 1.01, regret 1.00
# share of the prior that stays flat, so that no mean is ever ruled out
FLOOR = 0.08  # ×½: pulls 1.00, regret 0.88; ×2: pulls 1.03, regret 0.91
# power of the likelihood in `loss`: boundary and prior are estimates too
TEMPER = 0.7  # ×½: pulls 1.11, regret 1.32; ×2: pulls 1.13, regret 1.08
