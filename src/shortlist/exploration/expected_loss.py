"""Exploration by expected loss: spend each batch where it is largest per pull already spent.

Where costs differ, per cost of a pull too. At first only arms that cost no more than average are
pulled: their rewards show which of the expensive ones, if any, are worth a first pull.
docs/costs.md says what that can save."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import IntArray
from shortlist.budget import Budget
from shortlist.exploration import tuning
from shortlist.exploration.posterior import Posterior, batch_size, descending, share_out
from shortlist.search import Progress, Pulls, Rewards
from shortlist.validation import COUNTABLE


def explore_paid(
    posterior: Posterior,
    budget: Budget,
    rng: np.random.Generator,
    caps: IntArray | None,
    least: int,
    rounds: int | None,
) -> Generator[Pulls, Rewards, None]:
    """As `explore`, where costs differ: until the budget pays for no pull that `caps` allow."""
    most = np.full(posterior.n_arms, COUNTABLE) if caps is None else caps
    whole = budget.left
    request = 0
    while (left := _money_left(posterior, budget, most)) > 0 and request != rounds:
        request += 1
        aim = 0.0  # to be spent, in all
        if rounds is not None:
            aim = left if request == rounds else whole * (request / rounds) ** 2 - budget.spent
        if posterior.spent == 0:
            times = _first(budget, left, least, aim, every=rounds is not None)
            times = np.minimum(times, most)
        else:
            size = batch_size(posterior.n_arms, posterior.spent, tuning.GROWTH, tuning.GROWTH)
            size = max(size, least) if rounds is None else least
            times = _paid_shares(posterior, budget, left, rng, most, size, aim)
        arms = np.flatnonzero(times)
        pulls = Pulls(arms, times[arms], Progress(undecided=posterior.n_arms))
        posterior.add(pulls, reply := (yield pulls))
        budget.pay(pulls, reply)
        posterior.refresh()


def _money_left(posterior: Posterior, budget: Budget, caps: IntArray) -> float:
    """The rest of the budget; 0 if it does not pay for any pull that caps allow."""
    assert budget.costs is not None
    allowed = budget.costs[posterior.pulls < caps]
    return budget.left if allowed.size and allowed.min() <= budget.left else 0.0


def _first(budget: Budget, left: float, least: int, aim: float, *, every: bool) -> IntArray:
    """The first pulls: of the arms that cost no more than average, or of `every` arm; (arms,)."""
    assert budget.costs is not None
    now = np.ones(budget.costs.size, dtype=np.bool_) if every else budget.costs <= budget.usual
    price = float(budget.costs[now].sum())
    wanted = max(tuning.FIRST, -(-least // int(now.sum())), int(aim / price))
    return np.where(now, min(wanted, int(left / price)), 0)


def _paid_shares(
    posterior: Posterior,
    budget: Budget,
    left: float,
    rng: np.random.Generator,
    caps: IntArray,
    size: int,
    aim: float,
) -> IntArray:
    """About `size` pulls, and as many as cost `aim`, within the `left` budget: (arms,).

    No arm grows by more than half, or by twice the growth of all of them."""
    assert budget.costs is not None
    costs, pulls = budget.costs, posterior.pulls
    loss = posterior.arm_losses(rng)
    affordable = np.minimum(left / costs, COUNTABLE).astype(np.int64)
    more = np.minimum(affordable, caps - pulls)
    growth = max(0.5, 2 * size / posterior.spent, 2 * aim / max(budget.spent, budget.least))
    own = np.minimum(np.maximum(1, growth * pulls).astype(np.int64), more)
    if own.sum() < size or own @ costs < aim:  # the others take what caps deny some arms
        own = more
    order = descending(loss / np.maximum(pulls, tuning.FIRST) / costs, rng)
    times, price = own[order], (own * costs)[order]
    wanted = (np.cumsum(times) - times < size) | (np.cumsum(price) - price < aim)
    result = np.zeros(pulls.size, dtype=np.int64)
    result[order] = np.where(wanted & (np.cumsum(price) <= left), times, 0)
    return result


def explore(
    posterior: Posterior,
    budget: Budget,
    rng: np.random.Generator,
    caps: IntArray | None = None,
    *,
    least: int = 0,
    rounds: int | None = None,
) -> Generator[Pulls, Rewards, None]:
    """Explore until the budget is spent, or every arm is pulled as often as `caps` says.

    Every batch has at least `least` pulls, or the rest; the first one may have fewer where caps cut
    its even shares. With `rounds` there are at most that many batches, and the total spent grows
    with the square of the round."""
    if budget.costs is not None:
        return (yield from explore_paid(posterior, budget, rng, caps, least, rounds))
    most = budget.spent + _left(posterior, budget, caps)
    request = 0
    while (left := _left(posterior, budget, caps)) > 0 and request != rounds:
        request += 1
        wanted = least
        if rounds is not None:
            wanted = max(least, int(most * min(1, request / rounds) ** 2 - budget.spent))
        wanted = left if left < wanted + least or request == rounds else wanted
        yield from explore_once(posterior, left, rng, cap=caps, least=wanted, budget=budget)


def _left(posterior: Posterior, budget: Budget, caps: IntArray | None) -> int:
    """Pulls that the budget and the caps allow."""
    left = int(budget.left)
    if caps is None:
        return left
    return min(left, int(np.minimum(caps - posterior.pulls, max(0, left)).sum()))


def explore_once(
    posterior: Posterior,
    at_most: int,
    rng: np.random.Generator,
    *,
    early: float | None = None,
    growth: float | None = None,
    cap: int | IntArray | None = None,
    least: int = 0,
    budget: Budget | None = None,
) -> Generator[Pulls, Rewards, None]:
    """Ask for one batch of at most `at_most` pulls and add its rewards.

    A batch is the share `early` of all pulls so far until it has a pull per arm, then the share
    `growth`, by default GROWTH, and at least `least`. No arm is pulled more than `cap` times in
    all, which may differ by arm. `budget` counts the cost."""
    n_arms = posterior.n_arms
    spent = posterior.spent
    if spent == 0:
        times = posterior.first_pulls(least, rng)
        if times.sum() > at_most:
            times = np.full(n_arms, at_most // n_arms)
        times = times if cap is None else np.minimum(times, cap)
    else:
        growth = tuning.GROWTH if growth is None else growth
        batch = batch_size(n_arms, spent, growth if early is None else early, growth)
        if posterior.guided:  # few pulls teach much at first
            batch = min(batch, max(tuning.LEAST_BATCH, int(tuning.GUIDED_GROWTH * spent)))
        times = _shares(posterior, min(max(batch, least), at_most), rng, cap, least)
    arms = np.flatnonzero(times)
    pulls = Pulls(arms, times[arms], Progress(undecided=n_arms))
    posterior.add(pulls, reply := (yield pulls))
    if budget is not None:
        budget.pay(pulls, reply)
    posterior.refresh()


def _shares(
    posterior: Posterior,
    batch: int,
    rng: np.random.Generator,
    cap: int | IntArray | None,
    least: int,
) -> IntArray:
    """The pulls of every arm, by expected loss per pull; no arm grows by more than half.

    Where the batch was asked to be large, by no more than twice its even share of that."""
    kinds, priority, pulls = posterior.priorities(rng)  # (arms,), (kinds,), (kinds,)
    half = np.maximum(1, pulls // 2)
    if least > 0:
        twice = np.ceil(pulls * (2 * batch / posterior.spent))
        half = np.maximum(half, np.minimum(twice, batch).astype(np.int64))
    if isinstance(cap, np.ndarray):  # arms that are alike may have different limits
        own = np.minimum(half[kinds], cap - posterior.pulls)  # (arms,)
        if own.sum() < least:  # the others take what caps deny some arms
            own = np.minimum(batch, cap - posterior.pulls)
        return share_out(batch, np.arange(own.size), priority[kinds], own, rng)
    if cap is not None:
        half = np.minimum(half, cap - pulls)
    return share_out(batch, kinds, priority, half, rng)
