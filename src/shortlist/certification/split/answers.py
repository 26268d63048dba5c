"""The answer of a search that certifies: its set, its bound, and what the bound rests on."""

import numpy as np

from shortlist.certification.split.drafting import Draft
from shortlist.certification.split.holdout import Holdout
from shortlist.search import Answer


def answer_of(
    draft: Draft, bound: float, delta: float, explored: int, holdout: Holdout, looks: int
) -> Answer:
    """The set of a draft with the bound it came to, after so many looks."""
    evidence = {
        "certificate": "split",
        "boundary": draft.boundary,
        "strength": draft.strength,
        "pulls explored": explored,
        "pulls certified": holdout.spent,
        "looks": looks,
    }
    return Answer(np.flatnonzero(draft.chosen), bound, 1 - delta, evidence)
