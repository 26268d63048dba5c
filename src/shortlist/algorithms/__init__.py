"""Every algorithm by name: one file each, to be read next to its paper.

`registry.py` lists them, `subroutines` holds what several of them are made of."""

from shortlist.algorithms.registry import ALGORITHMS, Algorithm, find

__all__ = ["ALGORITHMS", "Algorithm", "find"]
