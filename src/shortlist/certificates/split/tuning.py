"""What may be tuned about the split certificate. It costs pulls or time, never the guarantee.

Above each constant stands what it is and its unit; beside it how results change if it is halved
and doubled: the ratio of pulls of the split search, measured by

    python benchmarks/sensitivity.py --runs 12

Another seed alone changes pulls by a ratio of 1.19 and regret by 1.08, so only larger differences
tell anything. Of a factor above or below 1 the distance from 1 is halved and doubled. Read them as
`tuning.NAME`, so that a benchmark can vary them."""

# exact_offsets.py:
# steps of the grid on which a 0/1 moment is checked,
CHECKS = 64  # ×½: pulls 1.00, ×2: 1.00
# steps more for every e-folding of what is allowed,
MORE_CHECKS = 16  # ×½: pulls 1.00, ×2: 1.00
# steps at most
MOST_CHECKS = 256  # ×½: pulls 1.00, ×2: 1.00

# offsets.py:
# times that a start may be backed off
RETREATS = 4  # ×½: pulls 1.00, ×2: 1.00
# square roots of the pulls by which a start is backed off
RETREAT = 0.1  # ×½: pulls 1.00, ×2: 1.00

# candidates.py:
# pulls up to which every number of pulls is a candidate,
ONE_BY_ONE = 8  # ×½: pulls 1.10, ×2: 1.06
# of a candidate's pulls to those of the one before, from there on
RATIO = 1.4  # ×½: pulls 1.11, ×2: 1.14
# standard deviations beyond the boundary up to which nothing is charged
STARTS = (0.3, 0.9, 1.5)  # ×½: pulls 0.98, ×2: 1.03
# slope of a candidate that is not steep, as a part of the strength,
FLAT = 0.3  # ×½: pulls 1.01, ×2: 1.01
# reach, in units of the range, from which on all candidates are steep
STEEP_REACH = 0.3  # ×½: pulls 1.00, ×2: 1.00

# predicted_offsets.py:
# means at which a predicted moment is looked at
POINTS = 20  # ×½: pulls 1.01, ×2: 1.01
# pulls up to which predicted offsets are binomial, not normal
EXACT_OFFSETS = 64  # ×½: pulls 1.02, ×2: 1.01

# expected_charges.py:
# pulls up to which expected charges are binomial, not normal
EXACT_CHARGES = 16  # ×½: pulls 0.99, ×2: 1.00

# score_charges.py:
# bets on rewards that are not 0 or 1: a share of strength / N, and what they may lose at most
BETS = ((1.0, 0.95), (0.5, 0.8), (0.25, 0.6), (0.1, 0.35))
# of a candidate's pulls to those of the one before, where rewards are not 0 or 1
FINE_RATIO = 1.2
# classes of dispersion in which arms are planned
CLASSES = 5

# drafting.py:
# times the mean exploration pulls that a draft may spend on an arm
OFFERED = 40  # ×½: pulls 1.02, ×2: 1.00

# knapsack.py:
# halvings of the interval in which the Lagrange multiplier is sought
HALVINGS = 12  # ×½: pulls 1.14, ×2: 1.03

# alpha_spending.py:
# share of delta of the first look, below 1; later ones get this share of what is left
FIRST_LOOK = 0.75  # ×½: pulls 1.16, ×2: 1.06

# strengths.py:
# smallest strength tried, in units of ln(1/delta) / (k epsilon),
LEAST_STRENGTH = 1.5  # ×½: pulls 1.01, ×2: 1.32
# ratio of a strength to the one before,
STRENGTH_RATIO = 1.3  # ×½: pulls 1.02, ×2: 1.12
# strengths that are tried,
STRENGTHS = 8  # ×½: pulls 1.00, ×2: 1.00
# strengths that are smaller than the one tried first
USUAL = 3  # ×½: pulls 1.01, ×2: 1.20
# the same four where rewards are not 0 or 1: a small variance wants small strengths
SCORE_LADDER = (1.15, 1.2, 12, 4)

# looks.py:
# share of k epsilon that may be expected to be lost when drafts begin
HOPE = 0.35  # ×½: pulls 1.01, ×2: 1.02
# times the exploration pulls that a draft may cost when better strengths are sought
NEAR = 1.5  # ×½: pulls 1.09, ×2: 1.04
# power of the excess by which exploration grows before the next draft (back-off),
PATIENCE = 0.3  # ×½: pulls 1.03, ×2: 0.99
# and factor by which it grows at most
LONGEST = 1.3  # ×½: pulls 1.01, ×2: 0.99
# factor on what is aimed at after every look that failed,
CAUTION = 0.85  # ×½: pulls 1.03, ×2: 1.02
# and share of k epsilon that is aimed at in any case
LEAST_AIM = 0.5  # ×½: pulls 1.01, ×2: 1.00

# share of what is aimed at otherwise, where rewards are not 0 or 1 and there are stages
STAGED_AIM = 0.9

# final_look.py:
# regrets for which a final certificate may be tuned
GUESSES = 10  # not measured: no search of the benchmark has a final look

# split_search.py:
# parts of the planned pulls after which the bound is computed, where rewards are not 0 or 1
STAGES = (0.7, 0.85, 1.0, 1.2, 1.45)
# a batch of exploration, as a share of what was spent, until it has a pull an arm
EARLY = 0.25  # ×½: pulls 1.01, ×2: 0.99
# share of the pulls that all limits allow, where arms have limits, that exploration may take
EXPLORED = 0.25  # not measured: no search of the benchmark has limits
# times the exploration pulls that certifying may cost,
EAGER = 1.2  # ×½: pulls 1.11, ×2: 1.03
# and that it may cost once exploring further saves less than it costs
SLOW = 2.0  # ×½: pulls 1.07, ×2: 1.00
