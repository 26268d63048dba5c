"""Where experiments are kept: `store.py` says what every store owes, the others are stores.

An experiment is its settings, written once, and a log to which entries are only ever added."""

from shortlist.stores.base import Event, Kind, News, RewardRow, Store, Told

__all__ = ["Event", "Kind", "News", "RewardRow", "Store", "Told"]
