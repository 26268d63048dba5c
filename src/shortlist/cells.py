"""Which item a pull is: every arm goes through a random order of the items, known ones left out.

The order depends on the seed, and where scores are known on a digest of which ones are. Pull t of
an arm is its score on the t-th item of its order that was not known before. So a batch is still a
number of pulls per arm, and tickets, seeds and replay are the same as without items."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.errors import InvalidInput, InvalidReward
from shortlist.formatting import given_text
from shortlist.problem import Items, checked_order
from shortlist.reward_models import RewardModel
from shortlist.validation import MOST_CELLS, collected, shown, table, whole

MOST_ITEMS = 10**6  # of a test set

ItemsGiven = int | Iterable[Any]
ORDER_KEY = (0, 0, 0)  # of the stream that orders come from; those of pulls have two numbers


class Cells:
    """The items by label, and for every arm the order in which it meets them."""

    def __init__(
        self,
        items: ItemsGiven,
        n_arms: int,
        rewards: RewardModel,
        seed: int,
        scores: npt.ArrayLike | None = None,
        order: str = "shared",
    ) -> None:
        self.labels = item_labels(items)
        check_cells(n_arms, len(self.labels))
        self.known = known_scores(scores, n_arms, len(self.labels), rewards)
        self.order = checked_order(order)
        if order != "shared" and self.known is not None:
            raise InvalidInput(
                f"`order` is {order!r} and `scores` are given, but known scores need a shared order"
            )
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=self._key()))
        self.orders = _orders(order, n_arms, len(self.labels), rng)  # (arms, items)
        self._queues = [self._unknown(arm) for arm in range(n_arms)]

    @property
    def problem_items(self) -> Items:
        """The items as a search sees them."""
        if self.known is None:
            return Items(len(self.labels))
        return Items(len(self.labels), np.take_along_axis(self.known, self.orders, axis=1))

    def to_record(self) -> dict[str, Any]:
        """The cells as JSON; with the seed, they can be made again from it."""
        numbered = isinstance(self.labels, range)
        known = None
        if self.known is not None:
            rows = self.known.tolist()
            known = [[None if each != each else each for each in row] for row in rows]
        labels = len(self.labels) if numbered else list(self.labels)
        return {"labels": labels, "order": self.order, "scores": known}

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], n_arms: int, rewards: RewardModel, seed: int
    ) -> "Cells":
        """The cells that `to_record` wrote."""
        labels, scores, order = record["labels"], record["scores"], record["order"]
        return cls(labels, n_arms, rewards, seed, scores, order)

    def same(self, other: "Cells | None") -> bool:
        """Whether others are of the same items, with the same scores known."""
        return other is not None and self.to_record() == other.to_record()

    def _key(self) -> tuple[int, ...]:
        """The stream that orders come from."""
        if self.known is None:
            return ORDER_KEY
        return (*ORDER_KEY, *_digest(~np.isnan(self.known)))

    def item(self, arm: int, draw: int) -> int:
        """The number of the item that this pull of the arm is."""
        return int(self._queues[arm][draw])

    def label(self, arm: int, draw: int) -> Any:
        """The item that this pull of the arm is, as it was given."""
        return self.labels[self.item(arm, draw)]

    def _unknown(self, arm: int) -> IntArray:
        order: IntArray = self.orders[arm]
        if self.known is None:
            return order
        unknown: IntArray = order[np.isnan(self.known[arm, order])]
        return unknown


def check_cells(n_arms: int, n_items: int) -> None:
    """Refuse more cells than a search can hold."""
    if n_arms * n_items > MOST_CELLS:
        raise InvalidInput(
            f"{n_arms:,} arms and {n_items:,} items are given, but there must be at most"
            f" {MOST_CELLS:,} cells"
        )


def item_labels(items: ItemsGiven) -> Sequence[Any]:
    """The items as they were given, or numbers from 0 if only their number was."""
    if isinstance(items, Integral):
        return range(whole("items", items, at_least=1, at_most=MOST_ITEMS))
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InvalidInput(
            f"`items` is {shown(items)}, but must be a number of items or a list of them"
        )
    labels = tuple(collected("items", items, at_most=MOST_ITEMS))
    if not labels:
        raise InvalidInput("`items` is empty, but must hold at least one item")
    plain = Counter(each for each in labels if isinstance(each, str | int))
    double, times = plain.most_common(1)[0] if plain else (None, 1)
    if times > 1:
        raise InvalidInput(f"two items are called {shown(double)}, but labels must differ")
    return labels


def known_scores(
    scores: npt.ArrayLike | None, n_arms: int, n_items: int, rewards: RewardModel
) -> FloatArray | None:
    """Known scores, NaN or None where there is none: (arms, items)."""
    if scores is None:
        return None
    known = table("scores", scores, "a row per arm, all of the same length")
    if known.shape != (n_arms, n_items):
        raise InvalidInput(
            f"`scores` has shape {known.shape}, but must have a row for each of {n_arms} arms and a"
            f" column for each of {n_items} items"
        )
    wrong = np.argwhere(~np.isnan(known) & ~np.asarray(rewards.admits(known)))
    if wrong.size:
        arm, item = wrong[0]
        raise InvalidReward(
            f"the known score of arm {arm} on item {item} is {given_text(known[arm, item])}, but"
            f" must be {rewards.rule}"
        )
    return known


def _digest(mask: BoolArray) -> tuple[int, ...]:
    """A digest of which cells are known, as words of 32 bits.

    An order that follows from the seed alone may have decided which cells are known: those that an
    earlier search with this seed asked for."""
    content = repr(mask.shape).encode() + np.packbits(mask).tobytes()
    digest = blake2b(content, digest_size=16).digest()
    return tuple(np.frombuffer(digest, dtype="<u4").tolist())


def _orders(order: str, n_arms: int, n_items: int, rng: np.random.Generator) -> IntArray:
    if order == "shared":
        return np.tile(rng.permutation(n_items), (n_arms, 1))
    return rng.permuted(np.tile(np.arange(n_items), (n_arms, 1)), axis=1)
