"""What may be tuned about exploration. It costs pulls or time, and nothing is proved by it.

Each constant has its unit, and what `python benchmarks/sensitivity.py` saw when it was halved and
doubled. Read them as `tuning.NAME`, so that a benchmark can vary them."""

# explore.py
FIRST = 2  # pulls of every arm before there is anything to compare
GROWTH = 0.1  # a batch, as a share of what has been spent,
AN_ARM = 0.45  # in pulls an arm at least, since a batch takes time with many arms,
LEAST = 32  # and in pulls at least, so that parallel workers have something to do

# grid.py
EVEN = 50  # points of the grid at first
BLURRED = 3.0  # steps of that grid: once arms are known better than this it is made finer
FINE = 100  # points of a grid that is finer towards the boundary, about

# posterior.py
FEW = 30  # arms below which a prior cannot be learned: a flat one is kept
STEPS = 1  # steps of EM per refresh, from the weights before (more of them fit noise),
STEPS_ANEW = 4  # and times as many on a new grid, where they start from a flat prior
FLOOR = 0.08  # share of the prior that stays flat, so that no mean is ever ruled out
TEMPER = 0.7  # power of the likelihood in `loss`: boundary and prior are estimates too
