"""Alpha spending: every look has its own share of delta, and all shares add up to delta.

Look j = 0, 1, ... gets f (1 - f)^j of delta, f = FIRST_LOOK. By the union bound the probability
that any look certifies wrongly is at most their sum, however the looks are timed."""

from shortlist.certification.split import tuning

MOST_LOOKS = 100  # so that the share of the last one is still a number


def share_of(delta: float, look: int) -> float:
    """The share of delta for look number `look`, counted from 0."""
    return delta * tuning.FIRST_LOOK * (1 - tuning.FIRST_LOOK) ** look


def share_after(delta: float, looks: int) -> float:
    """What is left of delta after so many looks."""
    return delta * (1 - tuning.FIRST_LOOK) ** looks
