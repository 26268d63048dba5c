"""Every algorithm by name: a file for each or for a family, to be read next to its paper.

`registry.py` lists them and finds the one that is meant, a search of the user's own too;
`steps` and `likelihood_ratio` hold what several of them are made of."""

from shortlist.algorithms.algorithm import Algorithm, AlgorithmLike, SearchFunction
from shortlist.algorithms.registry import ALGORITHMS, AUTOMATIC, find, name_to_keep, register

__all__ = [
    "ALGORITHMS",
    "AUTOMATIC",
    "Algorithm",
    "AlgorithmLike",
    "SearchFunction",
    "find",
    "name_to_keep",
    "register",
]
