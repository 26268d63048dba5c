"""Exploration by expected loss: spend each batch where the loss to expect, per pull already spent, is largest."""

from collections.abc import Generator

import numpy as np

from shortlist.posterior import Posterior
from shortlist.ranking import share_out
from shortlist.search import Progress, Pulls, Rewards

FIRST = 2  # pulls of every arm before there is anything to compare
GROWTH = 0.1  # a batch, as a share of what has been spent
LEAST = 32  # but no smaller than this, so that parallel workers have something to do,
AN_ARM = 0.4  # and with many arms no smaller than this times their number, since a batch takes time


def explore(posterior: Posterior, until: int, rng: np.random.Generator) -> Generator[Pulls, Rewards, None]:
    """Explore until `until` pulls are spent in all."""
    while (spent := int(posterior.pulls.sum())) < until:
        yield from explore_once(posterior, until - spent, rng)


def explore_once(posterior: Posterior, at_most: int, rng: np.random.Generator) -> Generator[Pulls, Rewards, None]:
    """Ask for one batch of at most `at_most` pulls and take in its reply; no arm grows by more than half."""
    spent = int(posterior.pulls.sum())
    if spent == 0:
        times = np.full(posterior.n_arms, min(FIRST, at_most // posterior.n_arms))
    else:
        top, boundary = posterior.split(rng)
        priority = (posterior.loss(boundary) / posterior.row_pulls).ravel()
        half = np.maximum(1, posterior.row_pulls // 2)
        batch = min(at_most, max(LEAST, int(AN_ARM * posterior.n_arms), int(GROWTH * spent)))
        times = share_out(batch, posterior.kinds(top), priority, np.concatenate([half, half]), rng)
    arms = np.flatnonzero(times)
    pulls = Pulls(arms, times[arms], Progress(undecided=posterior.n_arms))
    posterior.add(pulls, (yield pulls))
    posterior.refresh()
