"""How many tosses it takes to tell a good coin from a bad one."""

from dataclasses import dataclass
from math import log

import numpy as np
from scipy.special import expit
from scipy.stats import binom

from shortlist.arrays import IntArray
from shortlist.validation import number, whole

UNKNOWN = 0.9  # how often a tosser may give up


@dataclass
class Coin:
    """A coin that shows heads with probability `value` and counts its tosses."""

    value: float
    rng: np.random.Generator
    tosses: int = 0

    def toss(self, times: IntArray) -> IntArray:
        """Toss it that many times for each entry; return the heads of each."""
        self.tosses += int(times.sum())
        heads: IntArray = self.rng.binomial(times, self.value)
        return heads


def optimal_error(tosses: int, eta: float) -> float:
    """The least share of wrong answers of any tosser that leaves at most UNKNOWN of them open.

    Theorem "two-point": only the number of heads matters, and the best rule answers where it is
    farthest from half. Where the farthest outcomes do not add up to the share exactly, the last one
    is answered in part."""
    tosses = whole("tosses", tosses, at_least=0)
    eta = number("eta", eta, above=0, below=0.5)
    # heads or tails, whichever are fewer; from the clearest outcome on; (tosses // 2 + 1,)
    rarer = np.arange(tosses // 2 + 1)
    mass = binom.pmf(rarer, tosses, 0.5 - eta) + binom.pmf(tosses - rarer, tosses, 0.5 - eta)
    if tosses % 2 == 0:
        mass[-1] /= 2  # half heads is one outcome, not two
    answered = np.clip((1 - UNKNOWN) - (np.cumsum(mass) - mass), 0, mass)
    # the posterior probability of the less likely value, from the likelihood ratio
    wrong = expit((2 * rarer - tosses) * log((0.5 + eta) / (0.5 - eta)))
    return float(answered @ wrong / (1 - UNKNOWN))


def least_tosses(error: float, eta: float) -> int:
    """The least number of tosses with which a tosser errs in at most this share of its answers.

    Doubling, then bisection."""
    error = number("error", error, above=0)
    low = -1
    high = 0
    while optimal_error(high, eta) > error:
        low = high
        high = max(1, 2 * high)
    while high - low > 1:
        middle = (low + high) // 2
        if optimal_error(middle, eta) > error:
            low = middle
        else:
            high = middle
    return high


def least_pulls(n_arms: int, epsilon: float, eta: float) -> float:
    """The least mean cost, on n/2 good and n/2 bad coins, of a search that is right 9 in 10 times.

    Theorem "lb-eps" with its constants, for n epsilon >= 4 eta: a search of cost C makes a
    `Reduction` that errs in at most 4 epsilon / eta of its answers after 20 C / n tosses, which
    cannot be fewer than `least_tosses`."""
    return n_arms / 20 * least_tosses(4 * epsilon / eta, eta)
