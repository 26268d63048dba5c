"""What may be tuned about the split certificate. It costs pulls or time, never the guarantee.

Each constant has its unit, and what `python benchmarks/sensitivity.py` saw when it was halved and
doubled. Read them as `tuning.NAME`, so that a benchmark can vary them."""

# exact_offsets.py
CHECKS = 64  # steps of the grid on which a 0/1 moment is checked,
MORE_CHECKS = 16  # steps more for every e-folding of what is allowed,
MOST_CHECKS = 256  # steps at most

# offsets.py
RETREATS = 4  # times that a start may be backed off
RETREAT = 0.1  # square roots of the pulls by which a start is backed off

# candidates.py
ONE_BY_ONE = 8  # pulls up to which every number of pulls is a candidate,
RATIO = 1.4  # of a candidate's pulls to those of the one before, from there on
STARTS = (0.3, 0.9, 1.5)  # standard deviations beyond the boundary up to which nothing is charged
FLAT = 0.3  # slope of a candidate that is not steep, as a part of the strength,
STEEP_REACH = 0.3  # reach, in units of the range, from which on all candidates are steep

# predicted_offsets.py
POINTS = 20  # means at which a predicted moment is looked at
EXACT_OFFSETS = 64  # pulls up to which predicted offsets are binomial, not normal

# expected_charges.py
EXACT_CHARGES = 16  # pulls up to which expected charges are binomial, not normal

# drafting.py
OFFERED = 40  # times the mean exploration pulls that a draft may spend on an arm

# knapsack.py
HALVINGS = 12  # halvings of the interval in which the Lagrange multiplier is sought

# alpha_spending.py
FIRST_LOOK = 0.75  # share of delta of the first look; later ones get this share of what is left

# strengths.py
LEAST_STRENGTH = 1.5  # smallest strength tried, in units of ln(1/delta) / (k epsilon),
STRENGTH_RATIO = 1.3  # ratio of a strength to the one before,
STRENGTHS = 8  # strengths that are tried,
USUAL = 3  # strengths that are smaller than the one tried first

# looks.py
HOPE = 0.35  # share of k epsilon that may be expected to be lost when drafts begin
NEAR = 1.5  # times the exploration pulls that a draft may cost when better strengths are sought
PATIENCE = 0.3  # power of the excess by which exploration grows before the next draft (back-off),
LONGEST = 1.3  # and factor by which it grows at most
CAUTION = 0.85  # factor on what is aimed at after every look that failed,
LEAST_AIM = 0.5  # and share of k epsilon that is aimed at in any case

# final_look.py
GUESSES = 10  # regrets for which a final certificate may be tuned

# split_search.py
EARLY = 0.25  # a batch of exploration, as a share of what was spent, until it has a pull an arm
EAGER = 1.2  # times the exploration pulls that certifying may cost,
SLOW = 2.0  # and that it may cost once exploring further saves less than it costs
