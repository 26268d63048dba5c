"""Constants of exploration that cost pulls or time; nothing is proved by them.

benchmarks/sensitivity.py (12 runs) halves and doubles each of them. Another seed alone changes
pulls of the split search by a ratio of 1.19 and regret of `expected-loss` by 1.08; beyond that
matter `FIRST` (pulls 1.24 when doubled), `GROWTH` (regret 1.20 when doubled) and `TEMPER` (regret
1.32 when halved). Read them as `tuning.NAME`, so that a benchmark can vary them."""

# batches (expected_loss.py)
FIRST = 2  # pulls per arm in the first batch
GROWTH = 0.1  # size of a batch, as a share of all pulls so far ...
PER_ARM = 0.45  # ... at least in pulls per arm, since a batch takes time with many arms ...
LEAST_BATCH = 32  # ... and at least in pulls, for parallel workers
# the grid (posterior.py)
EVEN = 50  # points at first
BLURRED = 3.0  # steps of that grid: once arms are known better than this it is refined
FINE = 100  # points of a grid that is finer towards the boundary, about
MOST_EVEN = 400  # points of a grid for many prices
# the prior (posterior.py)
FEW = 30  # arms below which the prior stays flat
STEPS = 1  # steps of EM per refresh; more of them fit noise
NEW_GRID_STEPS = 4  # factor of these steps on a new grid
FLOOR = 0.08  # share of the prior that stays flat, so that no mean is ever ruled out
TEMPER = 0.7  # power of the likelihood in `loss`: boundary and prior are estimates too
# prices (prices.py)
QUANTILES = 8  # of the posterior of an arm, in linear programs
PRICE_STEPS = 256  # steps of the prices of rows and columns per unit, so that few prices differ ...
FINE_STEPS = 1024  # ... and of prices of other families
CUT_ROUNDS = 40  # times that sets which exceed the chosen one are cut off ...
SMALL_SURPLUS = 1e-6  # ... unless they exceed it by no more than this
# features as a guide (guide.py)
FIRST_PER_COEFFICIENT = 20  # arms pulled once at first, per coefficient
GUIDED_GROWTH = 0.25  # largest batch at first, as a share of all pulls so far
GUIDED_POINTS = 400  # least points of the grid ...
GUIDED_CELLS = 4_000_000  # ... unless arms times points exceed this
FIRST_WEIGHT = 0.9  # of the prior by features before any reward
LEAST_WEIGHT, MOST_WEIGHT = 0.02, 0.99
WEIGHT_STEPS = 10  # of EM per refresh
SPREAD_RANGE = 0.002, 0.4  # of spreads that are tried, in the unit of means ...
SPREADS = 14  # ... this many
LEAST_SPREAD = 1e-9  # of observed means without a range, to be their unit
LEAST_STEPS = 0.75  # steps of the grid: least standard deviation of a prior on it
NEAREST = 0.03  # of a fitted mean to 0 and 1, for its variance
RIDGE = 1e-3  # information about a coefficient before any reward
