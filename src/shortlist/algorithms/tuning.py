"""What may be tuned about algorithms. It costs pulls or time, never a guarantee.

Each constant has its unit, and what `python benchmarks/sensitivity.py` saw when it was halved and
doubled. Read them as `tuning.NAME`, so that a benchmark can vary them."""

# certified.py
EARLY = 0.25  # a batch of exploration, as a share of what was spent, until it has a pull an arm
EAGER = 1.2  # times the exploration pulls that certifying may cost,
SLOW = 2.0  # and that it may cost once exploring further saves less than it costs

# subroutines/race.py
OWN_GROWTH = 5  # times `growth` by which an arm's pulls grow before it is looked at again
