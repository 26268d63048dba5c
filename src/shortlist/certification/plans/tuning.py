"""What may be tuned about plans. It costs pulls or time, never the guarantee.

Above each constant stands what it is and its unit. They were set on a few runs of the paper's
panels at other seeds than those of docs/plans.md. Read them as `tuning.NAME`."""

# plan_search.py:
# pulls of every arm in the first request of the pilot,
FIRST = 4
# pulls an arm in the pilot, unless it is predicted that there will be fewer fresh ones,
PILOT = 10
# growth of what was spent with every later request of the pilot, up to PILOT an arm and beyond,
GROWTH = 0.3
LATER_GROWTH = 0.6
# share of the predicted fresh pulls that the pilot has at least,
PILOT_SHARE = 0.25
# and share of that with which it is content,
NEARLY = 0.7
# times that a pilot may grow for that at once
LARGER = 5.0
# looks by plans before the split certificate takes over
LOOKS = 2

# beliefs.py:
# points of the grid of means, evenly in angles,
EVEN = 80
# and near the boundary,
NEAR = 81
# up to this angle from it
NEAR_ANGLE = 0.06
# steps of EM
STEPS = 1000
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
RATIO = 1.65
# and pulls beyond which every arm stops
MOST_PULLS = 20_000
# standard deviations from the boundary beyond which every arm stops,
BAND = 6.0
# and width in them within which successes are looked at as one, in forecasts a larger one
BIN = 0.1
ROUGH_BIN = 0.4
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
# steps of Newton's method at most,
NEWTON_STEPS = 50
# and share of the gap that every one of them aims to leave
SHRINK = 0.1

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
# share of k epsilon that charges and what delta costs are expected to come to after one stage,
AIM = 1.0
# fresh pulls that are expected after every stage, in units of the first; share of delta
STAGES = ((1.0, 0.5), (1.2, 0.25), (1.5, 0.25))
# and how many times it a bound may be for the next stage to have a chance
HOPELESS = 1.6

# drafts.py:
# ln of the first threshold that is tried,
THRESHOLD = -9.0
# and what the ln of the next is less,
STEP = 0.7
# tried up and down,
MOST_TRIES = 16
# from where charges are so many times what the first stage aims at,
MANY = 2.0
# to where they are such a share of what the last one does
FEW = 0.5
# what forecasts of all charges may be off, as a share of k epsilon,
ROUGH = 0.02
# what charges in all may be too large by, likewise, for the barrier and for the check each
EXACT = 0.005
# boundaries that are settled for each free band at most
CANDIDATES = 3
