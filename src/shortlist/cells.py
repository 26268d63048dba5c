"""Which item a pull is: every arm goes through a random order of the items, known ones left out.

The order depends on the seed, and where scores are known on a digest of which ones are. Pull t of
an arm is its score on the t-th item of its order that was not known before. So a batch is still a
number of pulls per arm, and tickets, seeds and replay are the same as without items.

With `repeats` the order is one of item and repetition: cell c is repetition c mod R of item c / R.
Cells of a cluster are next to each other, and clusters are in random order."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
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
ID = "id"  # of an item that is a mapping
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
        drawn: "Drawn | None" = None,
    ) -> None:
        self.labels = item_labels(items)
        self.drawn = Drawn() if drawn is None else drawn
        self.drawn.check(len(self.labels), order)
        self.repeats = self.drawn.repeats
        n_cells = len(self.labels) * self.repeats
        check_cells(n_arms, n_cells)
        self.known = known_scores(scores, n_arms, len(self.labels), rewards, self.repeats)
        self.order = checked_order(order)
        if order != "shared" and self.known is not None:
            raise InvalidInput(
                f"`order` is {order!r} and `scores` are given, but known scores need a shared order"
            )
        rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=self._key()))
        groups = self.drawn.groups(len(self.labels))
        self.widths: IntArray | None = None  # of groups that are drawn whole, by position
        if groups is None:
            self.orders = _orders(order, n_arms, n_cells, rng)  # (arms, cells)
        else:
            whole_order, self.widths = grouped_order(groups, rng.permutation(len(groups)))
            self.orders = np.tile(whole_order, (n_arms, 1))
        self._queues = [self._unknown(arm) for arm in range(n_arms)]

    @property
    def problem_items(self) -> Items:
        """The items as a search sees them."""
        known, sampled = self.known, self.drawn.sampled
        if known is not None:
            known = np.take_along_axis(known, self.orders, axis=1)
        return Items(len(self.labels) * self.repeats, known, self.widths, sampled)

    def to_record(self) -> dict[str, Any]:
        """The cells as JSON; with the seed, they can be made again from it."""
        numbered = isinstance(self.labels, range)
        known = None
        if self.known is not None:
            rows = self.known.tolist()
            known = [[None if each != each else each for each in row] for row in rows]
        labels = len(self.labels) if numbered else list(self.labels)
        return {"labels": labels, "order": self.order, "scores": known, **asdict(self.drawn)}

    @classmethod
    def from_record(
        cls, record: Mapping[str, Any], n_arms: int, rewards: RewardModel, seed: int
    ) -> "Cells":
        """The cells that `to_record` wrote."""
        labels, scores, order = record["labels"], record["scores"], record["order"]
        drawn = Drawn(*(record[each.name] for each in fields(Drawn)))
        return cls(labels, n_arms, rewards, seed, scores, order, drawn)

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
        return int(self._queues[arm][draw]) // self.repeats

    def repetition(self, arm: int, draw: int) -> int | None:
        """Which repetition of its item this pull is, from 0; None if there is one of each only."""
        return None if self.repeats == 1 else int(self._queues[arm][draw]) % self.repeats

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
    if hasattr(items, "columns"):  # iterates over their names
        raise InvalidInput(
            f"`items` is a {type(items).__name__}, but must be a number of items or a list of them:"
            " of pandas give items.to_dict('records'), of polars items.to_dicts()"
        )
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):
        raise InvalidInput(
            f"`items` is {shown(items)}, but must be a number of items or a list of them"
        )
    labels = _ids(tuple(collected("items", items, at_most=MOST_ITEMS)))
    if not labels:
        raise InvalidInput("`items` is empty, but must hold at least one item")
    plain = Counter(each for each in labels if isinstance(each, str | int))
    double, times = plain.most_common(1)[0] if plain else (None, 1)
    if times > 1:
        raise InvalidInput(f"two items are called {shown(double)}, but labels must differ")
    return labels


def named_item(item: object) -> Any:
    """The id of an item that is a mapping with one, such as {"id": "q1"}; else the item."""
    return item[ID] if isinstance(item, Mapping) and ID in item else item


def _ids(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """The items, or the ids of all of them if they are mappings that have one."""
    names = tuple(map(named_item, items))
    with_id = [name is not item for name, item in zip(names, items, strict=True)]
    if any(with_id) and not all(with_id):
        place = with_id.index(False)
        rule = "others are mappings with an 'id'"
        raise InvalidInput(f"items[{place}] is {shown(items[place])}, but {rule}")
    for place, name in enumerate(names if any(with_id) else ()):
        if isinstance(name, bool) or not isinstance(name, str | Integral):
            rule = "an id must be a text or a whole number"
            raise InvalidInput(f"the id of items[{place}] is {shown(name)}, but {rule}")
    return names


def items_by_id(items: ItemsGiven | None) -> tuple[ItemsGiven | None, dict[Any, Any] | None]:
    """Items to be given to settings, and where they are mappings with an id, all of them by id."""
    if isinstance(items, Iterator):
        items = tuple(collected("items", items, at_most=MOST_ITEMS))
    if not isinstance(items, Iterable) or not isinstance(next(iter(items), None), Mapping):
        return items, None
    labels = item_labels(items)
    by_id = {label: item for label, item in zip(labels, items, strict=True) if label is not item}
    return (labels, by_id) if by_id else (items, None)


def known_scores(
    scores: npt.ArrayLike | None,
    n_arms: int,
    n_items: int,
    rewards: RewardModel,
    repeats: int = 1,
) -> FloatArray | None:
    """Known scores, NaN or None where there is none: (arms, items * repeats).

    One column per item are scores of its first repetition."""
    if scores is None:
        return None
    if repeats > 1 and isinstance(scores, np.ndarray) and scores.ndim == 3:
        scores = scores.reshape(len(scores), -1)  # (arms, items, repeats)
    known = table("scores", scores, "a row per arm, all of the same length")
    if repeats > 1 and known.shape == (n_arms, n_items):
        first, known = known, np.full((n_arms, n_items * repeats), np.nan)
        known[:, ::repeats] = first
    if known.shape != (n_arms, n_items * repeats):
        each = "" if repeats == 1 else f", or for each of {repeats} repetitions of these"
        raise InvalidInput(
            f"`scores` has shape {known.shape}, but must have a row for each of {n_arms} arms and a"
            f" column for each of {n_items} items{each}"
        )
    check_scores(known, range(n_arms), range(n_items), rewards)
    return known


def check_scores(
    known: FloatArray, arms: Sequence[Any], items: Sequence[Any], rewards: RewardModel
) -> None:
    """Refuse a score that breaks the declaration, with its arm and item; NaN is no score."""
    wrong = np.argwhere(~np.isnan(known) & ~np.asarray(rewards.admits(known)))
    if wrong.size:
        arm, cell = wrong[0]
        item = items[cell * len(items) // known.shape[1]]  # cells of an item are neighbours
        raise InvalidReward(
            f"the known score of arm {shown(arms[arm])} on item {shown(item)} is"
            f" {given_text(known[arm, cell])}, but must be {rewards.rule}; for other scores declare"
            " `rewards`, such as (0, 100)"
        )


def _digest(mask: BoolArray) -> tuple[int, ...]:
    """A digest of which cells are known, as words of 32 bits.

    An order that follows from the seed alone may have decided which cells are known: those that an
    earlier search with this seed asked for."""
    content = repr(mask.shape).encode() + np.packbits(mask).tobytes()
    digest = blake2b(content, digest_size=16).digest()
    return tuple(np.frombuffer(digest, dtype="<u4").tolist())


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is drawn from a test set, and what the promise is about.

    `repeats` scores per item; `clusters`, the cluster of every item, each drawn whole; `population`
    "these" items, or the distribution behind them, "like these"."""

    repeats: int = 1
    clusters: tuple[Any, ...] | None = None
    population: str = "these"

    @property
    def sampled(self) -> bool:
        """Whether the promise is about the distribution behind the items."""
        return self.population == "like these"

    @property
    def plain(self) -> bool:
        """Whether every item is drawn once and on its own, and the promise is about these."""
        return self == Drawn()

    def check(self, n_items: int, order: str) -> None:
        """Refuse what does not go together."""
        grouped = self.clusters is not None or self.sampled
        if order != "shared" and grouped:
            given = "`clusters` are given" if not self.sampled else "`population` is 'like these'"
            raise InvalidInput(f"`order` is {order!r} and {given}, but that needs a shared order")
        if self.clusters is None:
            return
        if len(self.clusters) != n_items:
            raise InvalidInput(
                f"`clusters` has {len(self.clusters)} entries, but must have one for each of"
                f" {n_items} items"
            )
        sizes = Counter(self.clusters)
        if self.sampled and len(set(sizes.values())) > 1:
            large, small = max(sizes.values()), min(sizes.values())
            raise InvalidInput(
                f"`clusters` have from {small} to {large} items, but with `population` 'like these'"
                " must have equally many: nothing is proved about clusters of random sizes"
            )

    def groups(self, n_items: int) -> list[IntArray] | None:
        """The cells of every group that is drawn whole; None if each cell is drawn on its own.

        Scores of one item depend on each other, so that a sample of items is one of whole items."""
        if self.clusters is None and not (self.sampled and self.repeats > 1):
            return None
        names = range(n_items) if self.clusters is None else self.clusters
        members: dict[Any, list[int]] = {}
        for item, name in enumerate(names):
            cells = range(item * self.repeats, (item + 1) * self.repeats)
            members.setdefault(name, []).extend(cells)
        return [np.array(each, dtype=np.int64) for each in members.values()]


def checked_clusters(clusters: object) -> tuple[Any, ...] | None:
    """The cluster of every item, by labels that JSON can hold."""
    if clusters is None:
        return None
    if isinstance(clusters, Mapping) or hasattr(clusters, "columns"):  # iterates over its keys
        raise InvalidInput(
            f"`clusters` is a {type(clusters).__name__}, but must be a list with the cluster of"
            " every item, in the order of the items"
        )
    if isinstance(clusters, str | bytes) or not isinstance(clusters, Iterable):
        raise InvalidInput(
            f"`clusters` is {shown(clusters)}, but must be a list with the cluster of every item"
        )
    names = tuple(collected("clusters", clusters, at_most=MOST_ITEMS))
    for name in names:
        if isinstance(name, bool) or not isinstance(name, str | Integral):
            raise InvalidInput(
                f"`clusters` names {shown(name)}, but a cluster must be a text or a whole number"
            )
    return tuple(name if isinstance(name, str) else int(name) for name in names)


def grouped_order(groups: list[IntArray], turns: IntArray) -> tuple[IntArray, IntArray]:
    """The cells of groups in this order of the groups, and the sizes of the groups."""
    chosen = [groups[turn] for turn in turns.tolist()]
    widths = np.array([each.size for each in chosen], dtype=np.int64)
    return np.concatenate(chosen), widths


def _orders(order: str, n_arms: int, n_items: int, rng: np.random.Generator) -> IntArray:
    if order == "shared":
        return np.tile(rng.permutation(n_items), (n_arms, 1))
    return rng.permuted(np.tile(np.arange(n_items), (n_arms, 1)), axis=1)
