"""Share pulls out among arms."""

import numpy as np

from shortlist.arrays import IntArray


def even_shares(total: int, parts: int, rng: np.random.Generator) -> IntArray:
    """Share `total` pulls among `parts` arms as evenly as can be, the remainder at random."""
    shares = np.full(parts, total // parts)
    shares[rng.permutation(parts)[: total % parts]] += 1
    return shares
