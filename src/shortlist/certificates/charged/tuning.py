"""Constants of the split certificate with charged variances that cost pulls; no bound rests on
them."""

import numpy as np

FIRST_PULLS = 15  # of every arm; they fix the caps
CAP_SHARE = 0.1  # of delta, for caps that are too small
GRID = np.unique(np.rint(4 * 1.4 ** np.arange(30))).astype(np.int64)  # fresh pulls of an arm
SLOPES = (1.0, 0.7, 0.5, 0.35)  # slopes of an arm, as shares of the strength
STRENGTHS = (1.3, 1.5, 1.75, 2.1, 2.6, 3.3)  # strengths, in units of ln(1 / delta) / (K epsilon)
FIRST_GOAL = 0.9  # expected bound of the first look, as a share of K epsilon ...
LOWER_GOAL = 0.85  # ... by which factor it falls after a look that failed ...
LEAST_GOAL = 0.6  # ... and how far at most
READY = 1.2  # pulls of a look, in units of those so far, from which on it is made
APART = 1.25  # growth of the pulls between a look that failed and the next draft
GROWTH = 0.15  # pulls of a batch that explores, as a share of those so far
PRIOR_PULLS = 4.0  # pulls that the variance of all arms counts for in that of one
LEAST_VARIANCE = 1e-12  # of a reward, in units of epsilon squared
MOST_INFLATION = 3.0  # factor of a charged variance above which a candidate is left out
