"""What may be tuned about plans. It costs pulls or time, never the guarantee.

Above each constant stands what it is and its unit. They were set on a few runs of the paper's
panels at other seeds than those of docs/plans.md. Read them as `tuning.NAME`."""

# plan_search.py:
# pulls of every arm in the first request of the pilot,
FIRST = 6
# pulls an arm in the pilot, unless it is predicted that there will be fewer fresh ones,
PILOT = 10
# growth of what was spent with every later request of the pilot,
GROWTH = 2.0
# pulls an arm of the pilot, by the root of the fresh pulls an arm that are predicted,
PILOT_PART = 1.9
# but as a share of the fresh pulls, by the cube root of the number of arms, not less than this,
LEAST_SHARE = 1.8
# and, as a share of them, not more than this,
MOST_SHARE = 0.4
# share of that with which it is content,
NEARLY = 0.62
# times that a pilot may grow for that at once
LARGER = 5.0
# looks by plans before the split certificate takes over
LOOKS = 4

# priors.py:
# widths to which priors are smoothed, in standard deviations of an arm,
SMOOTH = (0.8, 0.4, 0.2, 0.1, 0.05, 0.025)
# what each has to gain on the one before in ln(likelihood) of all rewards to count as much,
SPEAKS = 1.5
# what it may count less than the best, likewise, for narrower ones to be tried,
SPOKEN = 5.0
# steps of EM for each at most,
STEPS = 150
# and what the prior changes by in the last one
STILL = 1e-4
# share of the prior that stays flat
FLOOR = 0.01

# beliefs.py:
# points of the grid of means, evenly in angles,
EVEN = 80
# and near the boundary,
NEAR = 81
# up to this angle from it
NEAR_ANGLE = 0.06
# power of all arms by those to be chosen, or to be left out if these are fewer: so much larger is
# the pilot, and to that power is undone before the first look what smoothing did to a prior,
EDGE = 0.4
# all the less the larger the error of the boundary, up to this share of an arm's deviation
UNSURE = 0.1
# by so much more than a sharper prior moves the boundary, proofs are expected to be elsewhere,
AHEAD = 2.0
# but by no more errors of the boundary than this
MOST_AHEAD = 1.5
# errors from where k arms are above that a boundary is put to be between arms
PUT_ASIDE = 0.25
# pulls that a pilot counts for where arms are stopped and taken: proofs need fresh rewards
BLUNT = 9.0
# share of the belief about all arms in that about a group, where arms are stopped and taken,
SOFT = 0.1
# and where they are charged
DOUBT = 0.03
# standard deviations from the boundary between which arms are alike,
ALIKE = (-3.0, -1.8, -0.9, 0.0, 0.9, 1.8, 3.0)
# and ratio of their pulls
ALIKE_PULLS = 2.5
# arms per unit of the mean next to the boundary at least, as a share of all
LEAST_DENSITY = 0.5

# miscounts within which a boundary may be put aside,
LIKELY = 0.5
# and the distance from it within which arms are about as hard
CLOSE = 0.05
# what the standard deviation of the number of arms above the boundary is multiplied by,
INFLATE = 1.6
# standard deviations of an arm within which the density of arms at the boundary is a mean,
RESOLUTION = 1.0
# distance of the other two boundaries that plans are made for, in errors of the boundary,
SPREAD = 1.5
# and how much each of them counts
ASIDE = 1 / 6

# policies.py:
# width to which the prior that arms are stopped by is smoothed, in standard deviations of an arm
# after the pilot: that most arms are alike is no proof for any of them,
SMOOTHED = 0.28
# power of the pulls that expected losses are divided by: 1 compares losses per pull, 0 losses,
PER_PULL = 0.5
# pulls at the first level at least,
FIRST_LEVEL = 2
# or this share of an arm's pulls before, if that is more,
FIRST_PART = 0.4
# of a level to those of the one before,
RATIO = 2.0
# the same where few arms of a group are in doubt: hardly any go on, and they cost rounds,
FAR_RATIO = 4.0
# and how likely an arm is in doubt where few are
FEW_IN_DOUBT = 0.1
# share of arms that stop at a level below which it is none,
RARE = 0.05
# and pulls at which every arm stops
MOST_PULLS = 20_000
# standard deviations from the boundary beyond which every arm stops,
BAND = 6.0
# and width in them within which successes are looked at as one, in forecasts a larger one
BIN = 0.1
ROUGH_BIN = 0.6

# boundaries.py:
# boundaries on each side of the middle one,
BOUNDARIES = 18
# errors of the boundary from the middle one to the next,
SPACE = 0.4
# errors from which on they are spaced geometrically,
TURN = 3.0
# and half-width, in errors, of the Cauchy law that shares out delta
WIDTH = 1.5

# settling.py:
# shares of the arms of a plan that are settled one after the other,
BLOCKS = (0.16, 0.3, 0.32, 0.22)
# and arms up to which they are all in the last one
FEW_ARMS = 12
# least probability of being taken, or left out, of an arm that may be moved,
HARDLY = 1e-6
# and distance from which on it is not expected to be, in units of MISCOUNT arms
NEVER = 20.0

# counts.py:
# tracks to settle arms on: how many arms more than k they aim to take, in standard deviations of
# how many the last block takes; share of delta
TRACKS = (
    (0.0, 0.44),
    (0.8, 0.2),
    (-0.8, 0.2),
    (2.0, 0.08),
    (-2.0, 0.08),
)
# arms by which the number that is taken may be off in the end,
MISCOUNT = 1.0
# but no more of a mean than this, in its standard deviations,
BLUR = 0.2
# and what moving an arm costs, likewise
MOVING = 0.5

# stage.py:
# what tracks may add to what one of them proves, in ln(1 / delta),
TOGETHER = 1.5
# and what they usually do
USUALLY = 0.6
# boundaries on either side of the cheapest one that bounds are made of,
NEIGHBOURS = 3
# and the first step on the way to it, in boundaries
STRIDE = 2

# charges.py:
# one in so many means is taken at first,
EVERY = 3
# and those where (*) is broken are added so many times at most
CUTS = 8
# steps of Newton's method at most,
NEWTON_STEPS = 50
# and share of the gap that every one of them aims to leave
SHRINK = 0.1

# plan.py:
# least distance from the boundary of means at which charges are made, in standard deviations at the
# last level,
NEAREST = 0.3
# distance of one from the next, relative to that from the boundary, in forecasts a larger one,
APART = 0.08
ROUGH_APART = 0.3
# and standard deviations at the first level from which on they are as far apart
EVEN_FROM = 4.0
# standard deviations from the boundary beyond which successes are looked at as one: arms on the
# other side of it are so unlikely there that their exponential loss does not matter
TAIL = 9.0

# moments.py:
# width of the first cells next to the boundary, in standard deviations,
CELL = 0.5
# by how much cells are wider than their neighbours on the way out, relative,
WIDER = 0.15
# and times that a cell is halved at most
HALVINGS = 12

# sketches.py:
# strengths in units of ln(1/delta) / (k epsilon) that are tried as long as it gets better: weaker
# ones would gain a little where the first stage suffices and lose a lot where it does not,
STRENGTHS = (3.0, 4.5, 6.5)
# share of k epsilon to which bounds should come where they are compared: less than 1, since the
# stronger a look is, the less it takes to make up for a bound that turns out larger
SAFE = 0.75

# look.py:
# charges that are expected after every stage, as a share of what they may come to; share of delta
STAGES = (
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
# what is kept of the logarithm of a predicted improvement: less is realised next to ties,
KEPT = 0.8
# where looks are as strong as this, in units of sketches.py,
WEAK = 4.0
# what it may be after the last one for that to have a chance,
HOPELESS = 1.2
# and the bound, likewise, above which another look is better than a later stage
WRONG = 1.5

# drafts.py:
# ln of the first threshold that is tried,
THRESHOLD = -7.0
# and what the ln of the next is less,
STEP = 0.33
# tried up and down,
MOST_TRIES = 26
# from where charges are so many times what the first stage aims at,
MANY = 2.0
# to where they are such a share of what the first stage does, or of what the last one does
SOON = 0.6
FEW = 0.2
# what forecasts of all charges may be off, as a share of k epsilon,
ROUGH = 0.02
# what charges in all may be too large by, likewise, for the barrier and for the check each
EXACT = 0.005
