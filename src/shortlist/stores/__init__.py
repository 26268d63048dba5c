"""Stores of experiments: `base.py` defines what a store does and has the one in memory, the other
modules are stores on disk.

An experiment is its settings, written once, and an append-only log."""

from shortlist.stores.base import Event, Kind, News, RewardRow, Store, Told

__all__ = ["Event", "Kind", "News", "RewardRow", "Store", "Told"]
