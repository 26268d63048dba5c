"""What may be tuned about the race on items. It costs cells, and nothing is proved by it.

Read them as `tuning.NAME`, so that a benchmark can vary them."""

# items that every arm is scored on before arms are told apart
FIRST = 10
# further items of an arm at a time, as a share of those it has
GROWTH = 0.03
# gaps that are betted on, in units of epsilon times the square root of K,
GAPS = (1.5, 3.0, 6.0, 12.0)
# and the shares of the capital on each, for K = 1
WEIGHTS = (0.3, 0.3, 0.25, 0.15)
# and for larger K, where a pair may be off by K epsilon
WEIGHTS_OF_SETS = (0.45, 0.4, 0.15)
# of the capital, at most: no score ruins
STAKE = 0.98
# differences that the variance of the first items counts for
PRIOR = 10.0
# variance of a difference before anything is seen: about that of 0/1 scores
VARIANCE = 0.25
# bounds on a difference that are looked for, in units of epsilon, up to K
BOUNDS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0)
# an arm leaves the choice for one that looks better by this, in units of epsilon
STICKY = 0.5
# standard deviations below the K-th arm from which on an arm is no opponent for others any more
HOPELESS = 2.5
