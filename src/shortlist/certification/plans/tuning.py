"""What may be tuned about plans. It costs pulls or time, never the guarantee.

Above each constant stands what it is and its unit. They were set on a few runs of the paper's
panels at other seeds than those of docs/plans.md. Read them as `tuning.NAME`."""

# plan_search.py:
# pulls of every arm in the first request of the pilot,
FIRST = 4
# pulls an arm in the pilot at least,
PILOT = 10
# growth of what was spent with every later request of the pilot, up to PILOT and beyond,
GROWTH = 0.3
LATER_GROWTH = 0.5
# share of the predicted fresh pulls that the pilot has at least,
PILOT_SHARE = 0.25
# times that a pilot may grow for that at once
LARGER = 5.0
# looks by plans before the split certificate takes over
LOOKS = 4

# beliefs.py:
# points of the grid of means, evenly in angles,
EVEN = 80
# and near the boundary,
NEAR = 81
# up to this angle from it
NEAR_ANGLE = 0.06
# steps of EM
STEPS = 200
# share of the prior that stays flat
FLOOR = 0.02
# pulls that a pilot counts for where arms are stopped and labelled: proofs need fresh rewards
BLUNT = 9.0
# standard deviations from the boundary between which arms are alike,
ALIKE = (-3.5, -2.2, -1.4, -0.7, 0.0, 0.7, 1.4, 2.2, 3.5)
# and ratio of their pulls
ALIKE_PULLS = 1.6
# arms per unit of the mean next to the boundary at least, as a share of all
LEAST_DENSITY = 0.2

# policies.py:
# pulls at the first level,
FIRST_LEVEL = 2
# of a level to those of the one before,
RATIO = 1.55
# and pulls beyond which every arm stops
MOST_PULLS = 20_000
# standard deviations from the boundary beyond which every arm stops,
BAND = 6.0
# and width in them within which successes are looked at as one
BIN = 0.1
# share of the belief about all arms in that about a group, where it stops and labels,
SOFT = 0.1
# and where charges are made
DOUBT = 0.03

# boundaries.py:
# boundaries on each side of the middle one,
BOUNDARIES = 25
# errors of the boundary from the middle one to the next,
SPACE = 0.3
# errors from which on they are spaced geometrically,
TURN = 3.0
# and half-width, in errors, of the Cauchy law that shares out delta
WIDTH = 1.5

# an arm is free if the smaller expected loss exceeds this share of the larger one; share of delta
FREE_BANDS = ((0.7, 0.6), (0.2, 0.25), (0.03, 0.15))

# charges.py:
# barrier at first,
BARRIER = 1e-2
# its ratio to the one before,
SHRINK = 0.15
# and Newton decrement, in units of barrier and means, at which a barrier is done with
CENTRED = 1e-3

# plan.py:
# means on each side of the boundary at which charges are made,
SUPPORT = 16
# and their least distance, in standard deviations at the last level
NEAREST = 0.3

# moments.py:
# standard deviations from the boundary beyond which plans stop earlier
FAR = 4.0

# look.py:
# strength in units of ln(1/delta) / (k epsilon),
STRENGTH = 5.0
# errors of the boundary for which charges are predicted,
HEDGE = (-1.5, 0.0, 1.5)
# share of k epsilon that they and what delta costs are to reach on average,
AIM = 0.85
# thresholds that are tried,
TRIES = 6
# ln of the first one,
THRESHOLD = -9.0
# ln of what charges may be off the aim,
NEAR_AIM = 0.1
# slope of ln(charges) in ln(threshold) before it is known
SLOPE = 0.8
# what forecasts of all charges may be off, as a share of k epsilon,
ROUGH = 0.02
# what charges in all may be too large by, likewise, for the barrier and for the check each
EXACT = 0.005
# boundaries that are settled for each free band at most
CANDIDATES = 3
