"""Constants of the certificate "plans" that cost pulls or time; no bound rests on them.

They were set on a few runs of the paper's panels at other seeds than those of docs/plans.md. Read
them as `tuning.NAME`."""

# the pilot (search.py)
FIRST_PILOT = 6  # pulls per arm in its first batch
PILOT = 10  # pulls per arm, unless fewer fresh ones are predicted
PILOT_GROWTH = 2.0  # growth of its pulls with every later batch
PILOT_PART = 1.9  # its pulls per arm, by the root of the predicted fresh pulls per arm
LEAST_PILOT_SHARE = 1.8  # least share of the fresh pulls, by the cube root of the number of arms
MOST_PILOT_SHARE = 0.4  # largest share of the fresh pulls
PILOT_ENOUGH = 0.62  # share of the wanted pulls that is enough
PILOT_FACTOR = 5.0  # largest factor by which a pilot grows at once
PLAN_LOOKS = 4  # looks by plans before the split certificate takes over

# the prior (belief.py)
BANDWIDTHS = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)  # of smooth priors, in standard deviations of an arm
LIKELIHOOD_GAIN = 1.5  # in ln(likelihood) that half the bandwidth needs to count as much
LIKELIHOOD_DEFICIT = 5.0  # largest deficit at which narrower bandwidths are still tried
EM_STEPS = 150  # steps of EM at most ...
EM_CHANGE = 1e-4  # ... and change of the prior in the last one
FLAT_FLOOR = 0.01  # share of the prior that stays flat

# the belief (belief.py)
EVEN_POINTS = 80  # of the grid of means, evenly spaced in angles ...
NEAR_POINTS = 81  # ... and near the boundary ...
NEAR_ANGLE = 0.06  # ... up to this angle from it
EDGE_POWER = 0.4  # of n / min(k, n - k): factor of the pilot, and how much smoothing is undone ...
UNSURE = 0.1  # ... which falls to 0 as the error of the boundary grows to this share of an arm's
MOVED_AHEAD = 2.0  # times the move by a sharper prior that proofs are expected ahead ...
MOST_AHEAD = 1.5  # ... in errors of the boundary, at most
PUT_ASIDE = 0.25  # errors between the boundary and the balance point beyond which it was put aside
BLUNT = 9.0  # pulls that a pilot counts for where arms are stopped and accepted
SOFT = 0.1  # share of the belief about all arms in that about a group, where arms are stopped ...
DOUBT = 0.03  # ... and where they are charged
ALIKE = (-3.0, -1.8, -0.9, 0.0, 0.9, 1.8, 3.0)  # deviations from the boundary between groups
ALIKE_PULLS = 2.5  # largest ratio of pulls within a group
LEAST_DENSITY = 0.5  # of arms per unit of the mean next to the boundary, as a share of all arms
LIKELY = 0.5  # standard deviations of the count above within which a boundary may be put aside
AS_HARD = 0.05  # distance from the boundary within which arms are about as hard
INFLATE = 1.6  # factor of the standard deviation of the number of arms above the boundary
RESOLUTION = 1.0  # standard deviations of an arm over which the density at the boundary is a mean
NODE_DISTANCE = 1.5  # of the other two boundaries that plans are made for, in errors ...
NODE_WEIGHT = 1 / 6  # ... and the weight of each

# stopping (planning.py)
SMOOTHED = 0.28  # bandwidth of the prior that arms are stopped by, in standard deviations
PER_PULL = 0.5  # power of the pulls that expected losses are divided by
FIRST_LEVEL = 2  # pulls at the first level at least, ...
FIRST_LEVEL_SHARE = 0.4  # ... or this share of an arm's pulls before
LEVEL_RATIO = 2.0  # of the pulls at a level to those before ...
FAR_LEVEL_RATIO = 4.0  # ... and where few arms of a group are in doubt ...
FEW_IN_DOUBT = 0.1  # ... that is, with this probability at most
RARE = 0.05  # share of arms that stop at a level below which it is dropped
MOST_PLAN_PULLS = 20_000  # pulls at which every arm stops
BAND_WIDTH = 6.0  # standard deviations from the boundary beyond which every arm stops
BIN, ROUGH_BIN = 0.1, 0.6  # standard deviations in which successes are one bin; in forecasts

# boundaries (bound.py)
BOUNDARIES = 18  # on each side of the middle one
BOUNDARY_SPACE = 0.4  # between the middle one and the next, in errors of the boundary
EVEN_ERRORS = 3.0  # errors from which on they are spaced geometrically
CAUCHY_WIDTH = 1.5  # half-width, in errors, of the Cauchy distribution of the shares of delta

# acceptance (stage.py)
BLOCKS = (0.16, 0.3, 0.32, 0.22)  # shares of the arms of a plan in the blocks, in order ...
FEW_ARMS = 12  # ... fewer arms are all in the last one
LEAST_CHANCE = 1e-6  # least probability of acceptance, or rejection, of an arm that may be moved
FAR_SCORE = 20.0  # distance of a score from which on it is not moved, in doubts of the threshold
TRACKS = ((0.0, 0.44), (0.8, 0.2), (-0.8, 0.2), (2.0, 0.08), (-2.0, 0.08))
# of every track: arms it aims to accept beyond k, in standard deviations of the number that the
# last block accepts; its share of delta
MISCOUNT = 1.0  # arms by which the number of accepted arms may be off in the end ...
MOST_BLUR = 0.2  # ... but no more of a mean than this, in its standard deviations
MOVING = 0.5  # cost of moving an arm, in the same unit
TOGETHER = 1.5  # most that tracks add to the proof of one of them, in ln(1 / delta) ...
USUALLY = 0.6  # ... and what they usually add
NEIGHBOURS = 3  # boundaries on either side of the cheapest one that bounds are made of
STRIDE = 2  # first step in the search for it, in boundaries

# charges (planning.py)
EVERY = 3  # one mean in this many is a constraint at first ...
CUTS = 8  # ... and violated ones are added this many times at most
NEWTON_STEPS = 50  # at most ...
SHRINK = 0.1  # ... and share of the duality gap that each aims to leave
NEAREST = 0.3  # least distance of these means from the boundary, in deviations at the last level
APART, ROUGH_APART = 0.08, 0.3  # distance between two, relative to that from the boundary
EVEN_FROM = 4.0  # deviations at the first level from which on they are evenly spaced
TAIL = 9.0  # deviations from the boundary beyond which all successes are one bin

# the check of moments (bound.py)
CELL_WIDTH = 0.5  # of the first cells next to the boundary, in standard deviations
CELL_GROWTH = 0.15  # by which cells are wider than their neighbours
CELL_HALVINGS = 12  # of a cell, at most

# cost prediction (planning.py)
STRENGTHS_TRIED = (3.0, 4.5, 6.5)  # in units of ln(1/delta) / (k epsilon), until it gets worse
AIMED_SHARE = 0.75  # of k epsilon that bounds aim at where strengths are compared
FIRST_THRESHOLD = -7.0  # ln of the first threshold tried ...
THRESHOLD_STEP = 0.33  # ... and difference to the next
MOST_TRIES = 26  # of thresholds, up and down ...
MANY_CHARGES = 2.0  # ... from this multiple of the charges that the first stage aims at ...
STAGE_CHARGES, FEW_CHARGES = 0.6, 0.2  # ... to these shares, for the first and the last stage
ROUGH_ERROR = 0.02  # of forecasts of all charges, as a share of k epsilon
CHECKED_ERROR = 0.005  # of all charges, likewise, for the barrier and for the check each

# stages (search.py): expected charges, as a share of the largest possible, and share of delta
STAGE_AIMS = (
    (0.88, 0.3),
    (0.81, 0.13),
    (0.73, 0.14),
    (0.65, 0.13),
    (0.57, 0.12),
    (0.49, 0.08),
    (0.4, 0.05),
    (0.31, 0.03),
    (0.22, 0.02),
)
REALISED = 0.8  # share of the logarithm of a predicted improvement that is realised ...
WEAK_LOOK = 4.0  # ... where looks are as strong as this; all of it where they are weaker
HOPELESS_BOUND = 1.2  # predicted bound of the last stage, in k epsilon, above which it is skipped
WRONG_BOUND = 1.5  # bound, in k epsilon, above which another look is better than a later stage

# prices (exploration/prices.py, search.py)
FEWEST_SHARING = 75  # arms per price: with fewer, numbers of arms above prices vary too much
PRICED_PILOT = 22  # pulls per arm of a pilot, unless fewer fresh ones are predicted
PRICED_ROOM = 0.85  # share of the charges that is planned: moved arms and the surplus take the rest
PRICED_WRONG = 1.3  # as WRONG_BOUND
CLASS_BLUR = 0.1  # of the score to accept a class by, in twice the error of the number accepted
CLASS_SOFT = 0.02  # share of the belief about all arms of a class in that about some
