"""What may be tuned about the race on items. It costs cells, and nothing is proved by it.

Beside each stands the ratio of cells if it is halved and doubled, measured by

    python benchmarks/items.py --only tuning --matrices 3 --runs 8 --seed 8000

with `MANY` and `LOPSIDED` out of reach, as they are about pairs of arms; those from
`SINGLE_FIRST` on, where arms are judged one by one, have none.
Another seed alone gives a ratio of 0.94, so only larger differences tell anything. A share
that doubling would take to 1 or more goes halfway to 1, and weights go to the power.

Read them as `tuning.NAME`, so that a benchmark can vary them."""

# items that every arm is scored on before arms are told apart
FIRST = 10  # ×½: 1.07; ×2: 1.00
# further items of an arm at a time, as a share of those it has
GROWTH = 0.03  # ×½: 0.99; ×2: 1.02
# gaps that are betted on, in units of epsilon times the square root of K,
GAPS = (1.5, 3.0, 6.0, 12.0)  # ×½: 1.02; ×2: 1.03
# and the shares of the capital on each, for K = 1
WEIGHTS = (0.3, 0.3, 0.25, 0.15)  # ×½: 1.00; ×2: 1.00
# and for larger K, where a pair may be off by K epsilon
WEIGHTS_OF_SETS = (0.45, 0.4, 0.15)  # ×½: 1.00; ×2: 1.00
# of the capital, at most: no score ruins
STAKE = 0.98  # ×½: 0.99; ×2: 1.00
# differences that the variance of the first items counts for
PRIOR = 10.0  # ×½: 1.00; ×2: 0.99
# variance of a difference before anything is seen: about that of 0/1 scores
VARIANCE = 0.25  # ×½: 1.03; ×2: 0.99
# bounds on a difference that are looked for, in units of epsilon, up to K
BOUNDS = (0.0, 0.5, 1.0, 2.0, 3.0, 5.0, 9.0, 16.0)  # ×½: 1.00; ×2: 1.00
# an arm leaves the choice for one that looks better by this, in units of epsilon
STICKY = 0.5  # ×½: 1.00; ×2: 0.97
# standard deviations below the K-th arm from which on an arm is no opponent for others any more
HOPELESS = 2.5  # ×½: 1.25; ×2: 1.00
# items that every arm is scored on first where arms are judged one by one
SINGLE_FIRST = 5
# arms outside for every arm inside from which on arms are judged one by one,
LOPSIDED = 7
# and the number of arms from which on they always are
MANY = 40
# of delta, for bounds from above: there are K of them, and most arms need only these
ABOVE = 0.75
# gaps that single arms bet on, in units of epsilon times the square root of K,
SINGLE_GAPS = (3.0, 6.0, 12.0)
# and the shares of the capital on each
SINGLE_WEIGHTS = (0.35, 0.35, 0.3)
# variance of a score before anything is seen: between that of 0/1 scores and of graded ones
SINGLE_VARIANCE = 0.1
# further items of a single arm at a time, as a share of those it has
SINGLE_GROWTH = 0.05
# items of an arm are as the number of its doubtful pairs to this power
FAVOUR = 0.7
# how many times the items it has an arm may catch up to at once
JUMP = 1.15
