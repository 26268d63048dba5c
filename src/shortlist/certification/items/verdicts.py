"""What capital proves: how much better an arm can be than another, and which arms are out.

Let B be the best K arms. For every j in B the capitals W_ij(m_ij) of all i outside B, m_ij at most
the true difference, add up to at most K (n - K) / delta at all times, for all j together with
probability 1 - delta (docs/items.md, Lemma 3). So where W_ij(m) is more, j is better than i by less
than m; and where the W_ij(0) without the K - 1 largest add up to more, j is not in B."""

import numpy as np

from shortlist.arrays import BoolArray, FloatArray
from shortlist.certification.items.capital import Capital, Pairs


class Verdicts:
    """Bounds on differences and arms that are out; both stay once they are there."""

    def __init__(self, n_arms: int, k: int, delta: float, retired: int = 0) -> None:
        """`retired` arms were there at first, besides these `n_arms`."""
        self.k = k
        self.level = (k + retired) * (n_arms - k + retired) / delta  # Lemma 6, or 3 if none has
        # [i, j]: how much better than i can j be, at most
        self.bounds: FloatArray = np.ones((n_arms, n_arms))
        self.out: BoolArray = np.zeros(n_arms, dtype=np.bool_)

    def look(self, capital: Capital, pairs: Pairs) -> None:
        """Take in the capital of pairs that have just betted on an item.

        All of them stand at the same item: sums of capital hold there only."""
        rows, columns = pairs
        against = capital.against(pairs)  # (bounds, rows, columns)
        against[:, rows == columns] = 0.0
        rejected = against >= self.level
        if rejected.any():
            steps = np.append(capital.grid, 1.0)
            least = steps[capital.grid.size - rejected.sum(0)]  # capital grows with m: Lemma 2
            self.bounds[pairs] = np.minimum(self.bounds[pairs], least)
        promising = against[0].sum(0) >= self.level  # (columns,)
        if promising.any():
            fair = self._without_largest(against[0][:, promising])
            self.out[columns[0, promising]] |= fair >= self.level

    def _without_largest(self, capital: FloatArray) -> FloatArray:
        """Sums over rows without the K - 1 largest: at most K - 1 rows are in B as well."""
        kept = max(0, capital.shape[0] - (self.k - 1))
        total: FloatArray = np.sort(capital, axis=0)[:kept].sum(0)
        return total
