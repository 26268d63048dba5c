"""What rounding can do to a bound or a confidence, and what is done about it.

A float is off by 2^-53 of itself at most, and the elementary functions of numpy by 4 units in the
last place. What is computed from a hundred such steps is off by `ROUNDED` of the largest number on
the way at most, and is rounded outward by that. docs/certificate.md has the proof."""

ROUNDED = 2.0**-46
RESOLVED = 1000 * ROUNDED  # of what is asked for, as a share of the numbers that it is found from
SUREST = 1 - 2.0**-53  # the largest number below 1


def confidence_of(delta: float) -> float:
    """1 - delta, which is never 1: a float next to 1 is rounded down."""
    return min(1 - delta, SUREST)
