"""Exploration where pulls of some arms cost more than those of others.

The next pull goes where the expected loss is largest per pull already spent and per cost of a
pull. At first only arms that cost no more than usual are pulled: what they show of all arms says
which of the dear ones, if any, are worth a first look. docs/costs.md says what that can save."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import IntArray
from shortlist.exploration import tuning
from shortlist.exploration.posterior import Posterior
from shortlist.exploration.sharing import batch_size, descending
from shortlist.purse import Purse
from shortlist.search import Progress, Pulls, Rewards
from shortlist.validation import COUNTABLE


def explore_paid(
    posterior: Posterior,
    purse: Purse,
    rng: np.random.Generator,
    caps: IntArray | None,
    least: int,
    rounds: int | None,
) -> Generator[Pulls, Rewards, None]:
    """Explore until the purse does not pay for any pull that `caps` allow; as `explore` does."""
    most = np.full(posterior.n_arms, COUNTABLE) if caps is None else caps
    whole = purse.left
    request = 0
    while (left := _left(posterior, purse, most)) > 0 and request != rounds:
        request += 1
        aim = 0.0  # to be spent, in all
        if rounds is not None:
            aim = left if request == rounds else whole * (request / rounds) ** 2 - purse.spent
        if posterior.spent == 0:
            times = _first(purse, left, least, aim, every=rounds is not None)
            times = np.minimum(times, most)
        else:
            size = batch_size(posterior.n_arms, posterior.spent, tuning.GROWTH, tuning.GROWTH)
            size = max(size, least) if rounds is None else least
            times = _shares(posterior, purse, left, rng, most, size, aim)
        arms = np.flatnonzero(times)
        pulls = Pulls(arms, times[arms], Progress(undecided=posterior.n_arms))
        posterior.add(pulls, reply := (yield pulls))
        purse.pay(pulls, reply)
        posterior.refresh()


def _left(posterior: Posterior, purse: Purse, caps: IntArray) -> float:
    """What may still be spent; 0 if it does not pay for any pull that caps allow."""
    assert purse.costs is not None
    allowed = purse.costs[posterior.pulls < caps]
    return purse.left if allowed.size and allowed.min() <= purse.left else 0.0


def _first(purse: Purse, left: float, least: int, aim: float, *, every: bool) -> IntArray:
    """The first pulls: of the arms that cost no more than usual, or of `every` arm; (arms,)."""
    assert purse.costs is not None
    now = np.ones(purse.costs.size, dtype=np.bool_) if every else purse.costs <= purse.usual
    price = float(purse.costs[now].sum())
    wanted = max(tuning.FIRST, -(-least // int(now.sum())), int(aim / price))
    return np.where(now, min(wanted, int(left / price)), 0)


def _shares(
    posterior: Posterior,
    purse: Purse,
    left: float,
    rng: np.random.Generator,
    caps: IntArray,
    size: int,
    aim: float,
) -> IntArray:
    """About `size` pulls, and as many as cost `aim`, within what is `left`: (arms,).

    No arm grows by more than half, or by twice what all of them have to grow by."""
    assert purse.costs is not None
    costs, pulls = purse.costs, posterior.pulls
    chosen, boundary = posterior.split(rng)
    loss = posterior.loss(boundary).ravel()[posterior.kinds(chosen)]  # (arms,)
    affordable = np.minimum(left / costs, COUNTABLE).astype(np.int64)
    more = np.minimum(affordable, caps - pulls)
    growth = max(0.5, 2 * size / posterior.spent, 2 * aim / max(purse.spent, purse.least))
    own = np.minimum(np.maximum(1, growth * pulls).astype(np.int64), more)
    if own.sum() < size or own @ costs < aim:  # what some arms may not take, the others do
        own = more
    order = descending(loss / np.maximum(pulls, tuning.FIRST) / costs, rng)
    times, price = own[order], (own * costs)[order]
    wanted = (np.cumsum(times) - times < size) | (np.cumsum(price) - price < aim)
    result = np.zeros(pulls.size, dtype=np.int64)
    result[order] = np.where(wanted & (np.cumsum(price) <= left), times, 0)
    return result
