"""What may be tuned about algorithms. It costs pulls or time, never a guarantee.

Each constant has its unit, and what `python benchmarks/sensitivity.py` saw when it was halved and
doubled. Read them as `tuning.NAME`, so that a benchmark can vary them."""

# subroutines/race.py
OWN_GROWTH = 5  # times `growth` by which an arm's pulls grow before it is looked at again
