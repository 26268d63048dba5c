"""A verdict on a claim, from checks that are true or false by the data.

A claim holds if at least the share of checks is true that its words ask for ("most": more than
half), holds in part if at least half of that share is, and does not hold otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass

ALL = 1.0
ALMOST_ALL = 0.8
MOST = 0.5 + 1e-9  # more than half


@dataclass(frozen=True, slots=True)
class Finding:
    """The checks of a claim, and what was measured in words."""

    checks: Sequence[bool]
    words: str

    @property
    def measured(self) -> str:
        """The words, if there is anything behind them."""
        return self.words if self.checks else "nothing"

    def verdict(self, share: float) -> str:
        """What the checks say if that share of them ought to be true."""
        if not self.checks:
            return "not measured"
        true = sum(self.checks) / len(self.checks)
        if true >= share:
            return "holds"
        return "holds in part" if true >= share / 2 else "does not hold"
