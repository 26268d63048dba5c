"""Stores of experiments: `base.py` defines what a store does, the other modules are stores.

An experiment is its settings, written once, and an append-only log."""

from shortlist.stores.base import Event, Kind, News, RewardRow, Store, Told

__all__ = ["Event", "Kind", "News", "RewardRow", "Store", "Told"]
