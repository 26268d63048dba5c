"""Priors: how the means of all arms may be distributed, learned from their rewards by EM.

The likeliest prior is made of spikes, and a boundary between two of them is sure of itself and
wrong. Smooth priors take ties apart, and put the boundary too far from where most arms are. What a
prior does to rewards of its own says by how much: that is made up for."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from shortlist.arrays import FloatArray, product
from shortlist.certification.plans import tuning

LEAST_EXPECTED = 1e-6  # arms below which a number of successes is left out


@dataclass(frozen=True, slots=True)
class Rows:
    """Arms by their rewards so far: pulls, successes, how many arms have them; (rows,) each."""

    pulls: FloatArray
    successes: FloatArray
    sizes: FloatArray

    @property
    def deviation(self) -> float:
        """Of the angle of an arm, by its pulls so far, on average."""
        return 0.5 / math.sqrt(float(np.average(self.pulls, weights=self.sizes)))

    def log_likelihood(self, grid: FloatArray) -> FloatArray:
        """Of every mean, relative to the likeliest: (rows, grid)."""
        log = log_likelihood(self.pulls, self.successes, grid)
        log -= log.max(axis=1, keepdims=True)
        return log

    def replayed(self, posterior: FloatArray, grid: FloatArray) -> "Rows":
        """What is expected if every arm is pulled as often anew; sizes are no whole numbers."""
        rows = []
        for times in np.unique(self.pulls).tolist():
            same = self.pulls == times
            arms = product(self.sizes[None, same], posterior[same])  # (1, grid)
            successes = np.arange(times + 1)
            sizes = product(arms, chances(times, successes, grid).T)[0]
            likely = sizes > LEAST_EXPECTED
            rows.append([np.full(sizes.size, times)[likely], successes[likely], sizes[likely]])
        return Rows(*(np.concatenate(each) for each in zip(*rows, strict=True)))


def smooth_priors(rows: Rows, grid: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ever less smooth priors, (widths, grid), and how much each of them counts.

    By the likelihood of all rewards, which a prior of half the width has to raise to count as
    much: the likeliest prior of all is made of spikes."""
    likelihood = np.exp(rows.log_likelihood(grid))
    priors = [_flat(grid)]
    scores: list[float] = []
    for halvings, width in enumerate(tuning.SMOOTH):
        kernel = smoothing(grid, width * rows.deviation)
        priors.append(_by_em(likelihood, rows.sizes, priors[-1], kernel, priors[0]))
        of_arms = np.log(np.einsum("rg,g->r", likelihood, priors[-1]))
        evidence = float(np.einsum("r,r->", rows.sizes, of_arms))
        scores.append(evidence - tuning.SPEAKS * halvings)
        if scores[-1] < max(scores) - tuning.SPOKEN:
            break
    weights = np.exp(np.array(scores) - max(scores))
    return np.stack(priors[1:]), weights / weights.sum()


def sharpened(
    prior: FloatArray, rows: Rows, posterior: FloatArray, grid: FloatArray, power: float
) -> FloatArray:
    """A prior less what smoothing did to it: as much as it does to rewards that the prior expects.

    Fitted to these, it comes out wider than it was; by about as much it was wider than the truth
    ("twicing", Tukey 1977). The power says how much of that is undone."""
    priors, weights = smooth_priors(rows.replayed(posterior, grid), grid)
    wider = np.einsum("w,wg->g", weights, priors)
    sharper = prior * (prior / wider) ** power
    result: FloatArray = sharper / sharper.sum()
    return result


def smoothing(grid: FloatArray, width: float) -> FloatArray:
    """What becomes of weight on every point that is smoothed normally in angles: (to, from)."""
    angles = angle(grid)
    apart = (angles[:, None] - angles) / width
    kernel = np.exp(-(apart**2) / 2) * np.gradient(angles)[:, None]
    result: FloatArray = kernel / kernel.sum(axis=0)
    return result


def log_likelihood(pulls: FloatArray, successes: FloatArray, grid: FloatArray) -> FloatArray:
    """Log-probability of such rewards in one order, for every mean: (rows, grid)."""
    log: FloatArray = successes[:, None] * np.log(grid)
    log += (pulls - successes)[:, None] * np.log1p(-grid)
    return log


def chances(pulls: float, successes: FloatArray, grid: FloatArray) -> FloatArray:
    """Probability of so many successes after so many pulls, for every mean: (rows, grid)."""
    log_orders = gammaln(pulls + 1) - gammaln(successes + 1) - gammaln(pulls - successes + 1)
    log = log_likelihood(np.full(successes.size, pulls), successes, grid)
    return np.exp(log + log_orders[:, None])


def angle(mean: FloatArray | float) -> FloatArray:
    """In which rewards have about the same variance, whatever their mean."""
    result: FloatArray = np.arcsin(np.sqrt(mean))
    return result


def _by_em(
    likelihood: FloatArray,
    sizes: FloatArray,
    prior: FloatArray,
    kernel: FloatArray,
    flat: FloatArray,
) -> FloatArray:
    """Steps of EM: the mean posterior, smoothed (Silverman 1990), and a flat floor."""
    shares = sizes / sizes.sum()
    for _ in range(tuning.STEPS):
        before = prior
        evidence = np.einsum("rg,g->r", likelihood, prior)
        mean_posterior = np.einsum("r,rg->g", shares / evidence, likelihood) * prior
        smooth = np.einsum("gh,h->g", kernel, mean_posterior)
        prior = (1 - tuning.FLOOR) * smooth + tuning.FLOOR * flat
        if float(np.abs(prior - before).sum()) < tuning.STILL:
            break
    return prior


def _flat(grid: FloatArray) -> FloatArray:
    widths = np.gradient(grid)
    flat: FloatArray = widths / widths.sum()
    return flat
