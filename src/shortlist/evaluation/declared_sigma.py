"""Whether rewards vary as little as the declared sigma says: a test that is valid at any time.

If X is sub-Gaussian with sigma around its mean mu, then for 0 < l < 1

    E exp(l (X - mu)^2 / (2 sigma^2)) <= (1 - l)^(-1/2):

the left side is E exp(g sqrt(l) (X - mu) / sigma) for a standard normal g of its own, and given g
that is at most exp(l g^2 / 2). So the product of exp(l (X - mu)^2 / (2 sigma^2)) (1 - l)^(1/2) over
all rewards of all arms is a supermartingale from 1, however the search samples. The squares around
the means of the rewards are at most those around mu: so

    W(l) = exp(l S / (2 sigma^2)) (1 - l)^(N/2),    S = squares around the arms' means, N rewards,

is at most that, and so is its mean over several l. By Ville's inequality it stays below 1 / alpha
with probability 1 - alpha at all times."""

import math

import numpy as np

from shortlist.arrays import FloatArray, IntArray

STRENGTHS = np.array([0.1, 0.4, 0.8])[:, None]  # values of l


class DeclaredSigma:
    """Capital against the claim that rewards are sub-Gaussian with `sigma`."""

    def __init__(self, n_arms: int, sigma: float) -> None:
        self.sigma = sigma
        self._pulls: IntArray = np.zeros(n_arms, dtype=np.int64)
        self._means: FloatArray = np.zeros(n_arms)  # in units of sigma
        self._squares: FloatArray = np.zeros(n_arms)  # around the means

    def take(self, arms: IntArray, rewards: FloatArray) -> None:
        """Book rewards; those of one arm stand together."""
        rewards = rewards / self.sigma
        begins = np.flatnonzero(np.diff(arms, prepend=-1))
        owners = arms[begins]
        sizes = np.diff(np.append(begins, arms.size))
        opening = rewards[begins]  # rewards far from 0 keep their digits around it
        means = opening + np.add.reduceat(rewards - np.repeat(opening, sizes), begins) / sizes
        squares = np.add.reduceat((rewards - np.repeat(means, sizes)) ** 2, begins)
        before, total = self._pulls[owners], self._pulls[owners] + sizes
        apart = means - self._means[owners]
        self._squares[owners] += squares + apart**2 * before * sizes / total
        self._means[owners] += apart * sizes / total
        self._pulls[owners] = total

    def log_capital(self) -> tuple[float, FloatArray]:
        """Logarithm of the capital of all arms together, and of every single arm: (arm,)."""
        together = _log_capital(self._squares.sum(), self._pulls.sum())
        return float(together[0]), _log_capital(self._squares, self._pulls)

    def deviation(self, arm: int | None = None) -> float:
        """The standard deviation within arms, or within one."""
        several = self._pulls > 1
        which = several if arm is None else several & (np.arange(several.size) == arm)
        degrees = (self._pulls[which] - 1).sum()
        return self.sigma * math.sqrt(self._squares[which].sum() / max(1, degrees))


def _log_capital(squares: FloatArray | float, pulls: IntArray | int) -> FloatArray:
    logs = (STRENGTHS * np.atleast_1d(squares) + np.atleast_1d(pulls) * np.log1p(-STRENGTHS)) / 2
    mean: FloatArray = np.logaddexp.reduce(logs, axis=0) - math.log(STRENGTHS.size)
    return mean
