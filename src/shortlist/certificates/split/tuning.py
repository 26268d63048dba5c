"""Constants of the split certificate that cost pulls or time; no bound rests on them.

benchmarks/sensitivity.py (12 runs) halves and doubles each of them. Another seed alone changes
pulls by a ratio of 1.19; beyond that only `LEAST_STRENGTH` (1.32 when doubled) and `USUAL` (1.20)
matter. Read them as `tuning.NAME`, so that a benchmark can vary them."""

# offsets.py
CHECKS = 64  # steps of the grid on which a 0/1 moment is checked, ...
MORE_CHECKS = 16  # ... more for every e-folding of the allowed moment, ...
MOST_CHECKS = 256  # ... and at most
RETREATS = 4  # times that a start may be lowered ...
RETREAT = 0.1  # ... by this many square roots of the pulls

# expected_charges.py
ONE_BY_ONE = 8  # pulls up to which every number of pulls is a candidate, ...
PULLS_RATIO = 1.4  # ... and ratio of the pulls of two candidates from there on ...
FINE_RATIO = 1.2  # ... where rewards are not 0 or 1
STARTS = (0.3, 0.9, 1.5)  # standard deviations beyond the boundary that are not charged
FLAT_SLOPE = 0.3  # slope of the candidates that are not steep, as a part of the strength ...
STEEP_REACH = 0.3  # ... which are not tried from this reach on, in units of the range
OFFSET_POINTS = 20  # means at which a predicted moment is computed
EXACT_OFFSETS = 64  # pulls up to which predicted offsets are binomial, not normal
EXACT_CHARGES = 16  # pulls up to which expected charges are binomial, not normal
# bets on rewards that are not 0 or 1: a share of strength / N, and the largest loss
BETS = ((1.0, 0.95), (0.5, 0.8), (0.25, 0.6), (0.1, 0.35))
CLASSES = 5  # classes of dispersion in which arms are planned

# planning.py
OFFERED = 40  # largest number of fresh pulls of an arm, in units of the average explored
MULTIPLIER_HALVINGS = 12  # of the interval in which the Lagrange multiplier is sought
LEAST_STRENGTH = 1.5  # smallest strength tried, in units of ln(1/delta) / (k epsilon), ...
STRENGTH_RATIO = 1.3  # ... ratio of a strength to the one before, ...
STRENGTHS_ON_LADDER = 8  # ... number of strengths, ...
USUAL = 3  # ... and number of those smaller than the one tried first
SCORE_LADDER = (1.15, 1.2, 12, 4)  # the same four where rewards are not 0 or 1

# search.py
HOPED_LOSS = 0.35  # expected loss at which drafts begin, as a share of k epsilon
STALLED = 10  # drafts in a row without a smaller expected loss after which prices are given up
NEAR_COST = 1.5  # cost of a draft, in explored pulls, from which on better strengths are sought
PATIENCE = 0.3  # back-off: power of the excess by which exploration grows before the next draft ...
LONGEST_WAIT = 1.3  # ... and largest growth
AIM_FACTOR = 0.85  # of the aim after every look that failed ...
LEAST_AIM = 0.5  # ... and its least value, as a share of k epsilon
AFTER_FAILURE = 1.3  # growth of exploration after a look that failed, for matchings and the like
STAGED_AIM = 0.9  # factor of the aim where rewards are not 0 or 1
GUESSES = 10  # regrets for which a final certificate may be tuned
LOOK_PARTS = (0.7, 0.85, 1.0, 1.2, 1.45)  # parts of a look's pulls, where rewards are not 0 or 1
EARLY = 0.25  # first batches of exploration, as a share of all pulls so far
EXPLORED = 0.25  # largest share of the pulls that limits allow for exploration
EAGER_COST = 1.2  # cost of a certificate, in explored pulls, at which it is drawn ...
SLOW_COST = 2.0  # ... and once further exploration saves less than it costs
