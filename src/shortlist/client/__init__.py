"""A service from afar: `client.py` is an experiment there, `connection.py` the way to it."""

from shortlist.client.client import Client

__all__ = ["Client"]
