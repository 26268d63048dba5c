"""The certification stream: fresh pulls that prove, and choose nothing."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.search import Progress, Pulls, Rewards


class Holdout:
    """Fresh pulls and their sums; the rewards never influence which pulls are requested."""

    def __init__(self, n_arms: int, blur: float) -> None:
        """`blur` is what rounding may have done to the mean of an arm on the way here."""
        self.blur = blur
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self.sums: FloatArray = np.zeros(n_arms)
        self.squares: FloatArray = np.zeros(n_arms)

    @property
    def spent(self) -> int:
        """Pulls made in all."""
        return int(self.pulls.sum())

    def fill_up(self, wanted: IntArray, progress: Progress) -> Generator[Pulls, Rewards, None]:
        """Ask for what is missing to `wanted` pulls of every arm, in one request."""
        missing = wanted - self.pulls
        arm = int(missing.argmin())
        if missing[arm] < 0:  # a certificate of fewer pulls than were drawn would be void
            raise ValueError(
                f"{wanted[arm]} pulls of arm {arm} are wanted, but {self.pulls[arm]} were drawn"
            )
        arms = np.flatnonzero(missing)
        if arms.size:
            times = missing[arms]
            rewards = yield Pulls(arms, times, progress)
            self.pulls[arms] += times
            self.sums[arms] += rewards.sums
            self.squares[arms] += rewards.squares
