"""The swap race: few arms, ties, one best.

All arms walk through common stages and bet on their rewards with common clocks; the capital
against a swap of arms then depends on the means only through the gap of that swap. Ville's
inequality bounds the gap of every swap at every stage at once, so a race may sample, stop and
answer as it likes. Behind it stands a fixed design as a safety net. docs/pairs.md has the theorem
and its proof."""

from collections.abc import Generator

import numpy as np

from shortlist.arrays import BoolArray, IntArray
from shortlist.certification.pairs.bets import Draws
from shortlist.certification.pairs.race import Race, in_pair
from shortlist.certification.pairs.standing import Pace
from shortlist.certification.retired import Retired
from shortlist.problem import Problem
from shortlist.search import Progress, Pulls, Rewards, Search


def swap_race(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired | None = None,
    *,
    batch: int = 4,
    growth: float = 0.02,
    least: int | None = None,
    rounds: int | None = None,
) -> Search:
    """Race all swaps of arms against each other until none can cost more than K epsilon.

    R_T <= its bound with probability >= 1 - delta, whenever it ends: at epsilon, at the budget, or
    by the safety net, which holds a run to 1.5 times the fixed design (docs/pairs.md says when).
    Where costs of arms differ, one is pulled in proportion to its cost to the power of -1/2.
    Where arms have limits there is no net: an arm that may not be pulled through the next stage
    stays where it is, the others go on, and the bound is what all pairs have earned by then.
    A request has about `batch` pulls and `growth` times what was spent, or at least `least` unless
    fewer complete all samples or limits leave fewer; or there are at most `rounds` requests, and
    one more if rewards in [0, 1] that were all 0 or 1 turn out not to be, or if an arm retires in
    the last one. Arms that have retired are in no pair any more: the bound is about the others."""
    return run(Race(problem, rng, Pace(batch, growth, rounds, least or 0), retired))


def run(race: Race) -> Search:
    """Pull, book and stand until the bound is small, or pulls run out."""
    rounds = race.pace.rounds
    requests = 0
    while (bound := race.bound()) > race.allowed:
        if not race.open.any() or requests == rounds:
            break
        if not race.racing or (requests + 1 == rounds and race.net.holds):
            return (yield from last_resort(race, requests, at_once=True))
        stages, arms = race.movers()
        if not race.ready(stages):
            return (yield from last_resort(race, requests, at_once=race.pace.together))
        times = race.stages.times(stages, arms)
        left = race.left(arms, times)
        dry = race.dry(times)
        stuck = (dry | (times > left)) & (stages == race.stages.at[arms] + 1)
        if stuck.any():
            race.exhaust(arms[stuck])
            continue
        fits = race.purse.affords(arms, times) & (times <= left) & ~dry
        if not fits.any():
            break
        requests += 1
        progress = race.progress(requests, bound)
        given = yield from _draw(race, arms[fits], times[fits], progress)
        if race.book(stages[fits], arms[fits], given):
            return race.answer(race.bound())
        race.stand()
    return race.answer(bound)


def last_resort(race: Race, requests: int, *, at_once: bool) -> Search:
    """Complete the samples of the arms in doubt and choose among them by these.

    An arm is in doubt if it is in an open pair, also of the new choice; `at_once`: if it is in a
    pair that is not known to be in the right order, and then no new choice can bring in another."""
    if not race.net.holds:  # every arm is at its limit
        return race.answer(race.bound())
    complete = _in_doubt(race, at_once=at_once)
    while True:
        missing = np.where(complete, race.net.caps - race.pulls, 0)
        if not race.purse.affords(np.arange(missing.size), missing).all():
            return race.answer(race.bound())
        if missing.any():
            requests += 1
            before = race.retired.count
            yield from _complete(race, missing, race.progress(requests, race.bound()))
            if race.retired.count > before:  # what it beat was not compared with the others
                race.stand()
                complete = (complete | _in_doubt(race, at_once=at_once)) & ~race.retired.arms
            continue  # the samples may have become larger
        _choose_by_samples(race, complete)
        joining = race.open & ~complete
        if at_once or not joining.any():
            return race.answer(min(race.bound(), race.allowed), by_net=True)
        complete |= joining


def _in_doubt(race: Race, *, at_once: bool) -> BoolArray:
    """The arms whose samples are to be complete: those in open pairs of the present choice.

    If all is to be decided `at_once`, those in a pair that is not known to be in the right order:
    any other arm is on its side of the choice, whatever the samples say of these."""
    return in_pair(race.pairs_above(0.0)) if at_once else race.open.copy()


def _choose_by_samples(race: Race, complete: BoolArray) -> None:
    """Replace the chosen arms whose samples are complete by the best of all such arms."""
    kept = np.flatnonzero(race.top & ~complete)
    ranked = race.net.order(race.sums)
    ranked = ranked[complete[ranked]]
    race.choose(np.concatenate([kept, ranked[: race.problem.k - kept.size]]))


def _complete(race: Race, missing: IntArray, progress: Progress) -> Generator[Pulls, Rewards, None]:
    """Draw what is missing, outside of all stages."""
    arms = np.flatnonzero(missing)
    pulls = Pulls(arms, missing[arms], progress)
    given = yield pulls
    race.purse.pay(pulls, given)
    race.count(arms, Draws(missing[arms], given.sums, given.squares))
    race.net.look(race.pulls, race.sums, race.squares, first=False)


def _draw(
    race: Race, arms: IntArray, times: IntArray, progress: Progress
) -> Generator[Pulls, Rewards, Rewards]:
    """Ask for the entries that have pulls; the others give nothing."""
    pulled = times > 0
    sums, squares = np.zeros(times.size), np.zeros(times.size)
    if pulled.any():
        pulls = Pulls(arms[pulled], times[pulled], progress)
        given = yield pulls
        race.purse.pay(pulls, given)
        sums[pulled], squares[pulled] = given.sums, given.squares
    return Rewards(sums, squares)
