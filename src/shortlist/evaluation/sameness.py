"""A function that gives the same number every time is no draw of a reward: say so, once."""

from collections.abc import Iterable

from shortlist.caution import caution
from shortlist.reward_models import RewardModel

ENOUGH = 20  # rewards that repeat the first one of their arm, and none that does not


class Sameness:
    """Watches rewards until one differs from the first of its arm.

    Arms may well give nothing but the least or the largest reward, as 0 and 1: of these alone
    nothing is said."""

    def __init__(self, rewards: RewardModel) -> None:
        self._ends = rewards.support
        self._first: dict[object, float] = {}
        self._repeated = 0
        self._inside: tuple[object, float] | None = None  # an arm, and its reward between the ends
        self._settled = False

    def see(self, label: object, rewards: Iterable[float]) -> None:
        """Take note of rewards of an arm."""
        for reward in rewards:
            if self._settled:
                return
            self._see(label, float(reward))

    def _see(self, label: object, reward: float) -> None:
        known = label in self._first
        self._settled = self._first.setdefault(label, reward) != reward
        self._repeated += known
        if reward not in self._ends:
            self._inside = label, reward
        if self._settled or self._inside is None or self._repeated < ENOUGH:
            return
        self._settled = True
        label, reward = self._inside
        caution(
            f"every arm gave one number again and again, as {label!r} {reward:.15g}, but rewards"
            " must be independent draws: is there a cache, or a fixed seed in the function?"
        )
