"""Exploration by expected loss: spend each batch where the loss to expect, per pull already spent,
is largest."""

from collections.abc import Generator

import numpy as np

from shortlist.exploration.posterior import Posterior
from shortlist.exploration.sharing import share_out
from shortlist.search import Progress, Pulls, Rewards

FIRST = 2  # pulls of every arm before there is anything to compare
GROWTH = 0.1  # a batch, as a share of what has been spent,
AN_ARM = 0.45  # in pulls an arm at least, since a batch takes time with many arms,
LEAST = 32  # and in any case so many that parallel workers have something to do


def explore(
    posterior: Posterior, until: int, rng: np.random.Generator
) -> Generator[Pulls, Rewards, None]:
    """Explore until `until` pulls are spent in all."""
    while (left := until - int(posterior.pulls.sum())) > 0:
        yield from explore_once(posterior, left, rng)


def explore_once(
    posterior: Posterior, at_most: int, rng: np.random.Generator, *, early: float = GROWTH
) -> Generator[Pulls, Rewards, None]:
    """Ask for one batch of at most `at_most` pulls and take in its reply; no arm grows by more than
    half.

    A batch is the share `early` of what was spent until it has a pull an arm, then GROWTH."""
    n_arms, spent = posterior.n_arms, int(posterior.pulls.sum())
    if spent == 0:
        times = np.full(n_arms, min(FIRST, at_most // n_arms))
    else:
        batch = int(max(LEAST, AN_ARM * n_arms, min(n_arms, early * spent), GROWTH * spent))
        top, boundary = posterior.split(rng)
        priority = (posterior.loss(boundary) / posterior.row_pulls).ravel()
        half = np.maximum(1, posterior.row_pulls // 2)
        times = share_out(
            min(batch, at_most), posterior.kinds(top), priority, np.concatenate([half, half]), rng
        )
    arms = np.flatnonzero(times)
    pulls = Pulls(arms, times[arms], Progress(undecided=n_arms))
    posterior.add(pulls, (yield pulls))
    posterior.refresh()
