"""Constants of the certificate "drift" that cost visitors; no bound rests on them.

Measured by `python benchmarks/days.py`. Read constants as `tuning.NAME`, so that a benchmark can
vary them."""

MEMORY = 0.9  # weight of the visitors before, relative to those of the newest block told
PRIOR_VISITORS = 4.0  # that the guessed rate counts for
USUAL_RATE = 10.0  # the guess at the rate before anything is told, in units of epsilon
LEAST_RATE = 1e-3  # a centre is at least so far from 0 and from 1
KNOWN = 400.0  # visitors from which on the rate is taken to be known
BLIND = (
    0.5  # step of a block that is opened before the rate is known, relative to the usual one ...
)
BLIND_LOSS = 2.0  # ... if it costs at most this log wealth for any rate; else as much less
UNPACED = 0.25  # the same where it is not known how many visitors come
DOUBT_PRECISION = 1e-2  # of the level at which bounds are cut, relative to what is allowed
FEW_IN_PLAY = 50  # arms in play up to which shares are whole percent
PARTS = 100  # of which shares are whole numbers ...
MANY_PARTS = 10_000  # ... and with more arms in play
METRIC_VISITORS = 1000.0  # before the first result of a metric, where it is not known how many come
