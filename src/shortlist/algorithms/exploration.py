"""Exploration by expected loss: spend each batch where the loss to expect, per pull already spent, is largest."""

from collections.abc import Generator

import numpy as np

from shortlist.posterior import Posterior
from shortlist.ranking import share_out
from shortlist.search import IntArray, Progress, Pulls, Rewards

FIRST = 2  # pulls of every arm before there is anything to compare
GROWTH = 0.1  # a batch, as a share of what has been spent,
AN_ARM = 0.45  # in pulls an arm at least, since a batch takes time with many arms,
LEAST = 32  # and in any case so many that parallel workers have something to do


def explore(posterior: Posterior, until: int, rng: np.random.Generator) -> Generator[Pulls, Rewards, None]:
    """Explore until `until` pulls are spent in all."""
    if not posterior.pulls.any():
        yield from begin(posterior, until)
    while (left := until - int(posterior.pulls.sum())) > 0:
        yield from explore_once(posterior, left, rng)


def begin(posterior: Posterior, at_most: int) -> Generator[Pulls, Rewards, None]:
    """Pull every arm a few times, once if no more is allowed."""
    yield from _ask(posterior, np.full(posterior.n_arms, min(FIRST, at_most // posterior.n_arms)))


def explore_once(
    posterior: Posterior, at_most: int, rng: np.random.Generator, *, an_arm: float = AN_ARM
) -> Generator[Pulls, Rewards, None]:
    """Ask for one batch of at most `at_most` pulls and take in its reply; no arm grows by more than half.

    If it may, it has at least `an_arm` times as many pulls as there are arms."""
    batch = max(LEAST, int(an_arm * posterior.n_arms), int(GROWTH * int(posterior.pulls.sum())))
    top, boundary = posterior.split(rng)
    priority = (posterior.loss(boundary) / posterior.row_pulls).ravel()
    half = np.maximum(1, posterior.row_pulls // 2)
    yield from _ask(
        posterior, share_out(min(batch, at_most), posterior.kinds(top), priority, np.concatenate([half, half]), rng)
    )


def _ask(posterior: Posterior, times: IntArray) -> Generator[Pulls, Rewards, None]:
    arms = np.flatnonzero(times)
    pulls = Pulls(arms, times[arms], Progress(undecided=posterior.n_arms))
    posterior.add(pulls, (yield pulls))
    posterior.refresh()
