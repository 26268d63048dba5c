"""Exploration by expected loss: spend each batch where that is largest per pull already spent."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import IntArray
from shortlist.exploration import tuning
from shortlist.exploration.posterior import Posterior
from shortlist.exploration.sharing import share_out
from shortlist.search import Progress, Pulls, Rewards


def explore(
    posterior: Posterior,
    until: int,
    rng: np.random.Generator,
    *,
    least: int = 0,
    rounds: int | None = None,
) -> Generator[Pulls, Rewards, None]:
    """Explore until `until` pulls are spent in all.

    Every request has at least `least` pulls, or what is left. With `rounds` there are at most so
    many requests, and what is spent grows with their square."""
    request = 0
    while (left := until - posterior.spent) > 0 and request != rounds:
        request += 1
        wanted = least
        if rounds is not None:
            wanted = max(least, int(until * min(1, request / rounds) ** 2) - posterior.spent)
        wanted = left if left < wanted + least or request == rounds else wanted
        yield from explore_once(posterior, left, rng, least=wanted)


def explore_once(
    posterior: Posterior,
    at_most: int,
    rng: np.random.Generator,
    *,
    early: float | None = None,
    cap: int | None = None,
    least: int = 0,
) -> Generator[Pulls, Rewards, None]:
    """Ask for one batch of at most `at_most` pulls and take in its reply.

    A batch is the share `early` of what was spent until it has a pull an arm, then GROWTH, and at
    least `least`. No arm is pulled more than `cap` times in all."""
    n_arms = posterior.n_arms
    spent = posterior.spent
    if spent == 0:
        first = max(tuning.FIRST, -(-least // n_arms))
        first = first if cap is None else min(cap, first)
        times = np.full(n_arms, min(first, at_most // n_arms))
    else:
        batch = _batch_size(n_arms, spent, tuning.GROWTH if early is None else early)
        times = _shares(posterior, min(max(batch, least), at_most), rng, cap, least)
    arms = np.flatnonzero(times)
    pulls = Pulls(arms, times[arms], Progress(undecided=n_arms))
    posterior.add(pulls, (yield pulls))
    posterior.refresh()


def _batch_size(n_arms: int, spent: int, early: float) -> int:
    """A share of what was spent, but enough for many arms and for parallel workers."""
    at_first = min(n_arms, early * spent)
    return int(max(tuning.LEAST, tuning.AN_ARM * n_arms, at_first, tuning.GROWTH * spent))


def _shares(
    posterior: Posterior, batch: int, rng: np.random.Generator, cap: int | None, least: int
) -> IntArray:
    """The pulls of every arm, by expected loss per pull; no arm grows by more than half.

    Where the batch was asked to be large, by no more than twice its even share of that."""
    chosen, boundary = posterior.split(rng)
    priority = posterior.loss(boundary) / posterior.row_pulls  # (sides, rows)
    half = np.maximum(1, posterior.row_pulls // 2)  # (rows,)
    if least > 0:
        twice = np.ceil(posterior.row_pulls * (2 * batch / posterior.spent))
        half = np.maximum(half, np.minimum(twice, batch).astype(np.int64))
    if cap is not None:
        half = np.minimum(half, cap - posterior.row_pulls)
    at_most = np.concatenate([half, half])  # (kinds,): rows outside, then rows inside
    return share_out(batch, posterior.kinds(chosen), priority.ravel(), at_most, rng)
