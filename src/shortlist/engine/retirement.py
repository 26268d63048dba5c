"""Retired arms and void seeds: their tickets, and the answer.

A pull of a retired arm cannot be made any more. It counts as the worst reward that there is, so
that every search drops the arm; `certified` is told who left, and its guarantee is then about the
others: docs/retired.md.

A shared seed on which a pull failed for good is void: no pull on it counts, whatever other arms
gave there. Those that were not made are told a number that is not counted: docs/shared-seeds.md."""

from math import inf

import numpy as np

from shortlist.arms import position_of, unknown_arm
from shortlist.arrays import FloatArray
from shortlist.constraints import feasible_without
from shortlist.engine.log_entries import stretches
from shortlist.engine.replay import Replica
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.settings import worst_known
from shortlist.stores import Event, Kind, RewardRow
from shortlist.validation import shown

MOST_VOID = (
    100  # pulls of an arm in succession on void seeds, after which a failure stops the search
)


def leaving_arm(known: Replica, label: object) -> int:
    """The number of an arm that may leave; one that left before may leave again."""
    labels, problem = known.settings.labels, known.settings.problem
    if known.replay.outcome is not None:
        raise InvalidInput(f"`arm` is {shown(label)}, but the answer is there, and none can leave")
    arm = position_of(label, labels)
    if arm is None:
        raise unknown_arm("arm", label, labels)
    if problem.shared_seeds:
        raise InvalidInput(f"`arm` is {shown(label)}, but on shared seeds no arm can retire")
    if not worst_known(problem, known.settings.algorithm):
        raise InvalidInput(
            f"`arm` is {shown(label)}, but where rewards have no range no arm can retire: there is"
            " no worst reward"
        )
    if not _enough_stay(known, arm):
        raise InvalidInput(
            f"cannot retire {shown(label)}: at least k + 1 = {problem.k + 1} arms must remain"
        )
    if not may_leave(known, arm):
        raise InvalidInput(
            f"cannot retire {shown(label)}: no set of the remaining arms keeps to the constraint"
        )
    return arm


def may_leave(known: Replica, arm: int) -> bool:
    """Whether enough arms stay for a choice, and the search can do without the arm."""
    problem = known.settings.problem
    may = worst_known(problem, known.settings.algorithm) and not problem.shared_seeds
    if not may or not _enough_stay(known, arm):
        return False
    left = known.ledger.retired.keys() | {arm}
    family = problem.constraint
    return family is None or feasible_without(family, problem.n_arms, problem.k, left)


def _enough_stay(known: Replica, arm: int) -> bool:
    """Whether more arms stay than are to be chosen."""
    problem = known.settings.problem
    return problem.n_arms - len(known.ledger.retired.keys() | {arm}) > problem.k


def retirement(
    known: Replica, arm: int, reason: str, now: float
) -> tuple[list[RewardRow], list[Event]]:
    """The arm leaves, and its tickets that are under way are told the worst reward.

    It leaves after all that was told, whatever the clocks of others say: so the log tells what was
    drawn of it from the worst rewards that come later."""
    now = max(now, float(np.nextafter(known.ledger.ended, inf)))
    held = known.ledger.open_tickets().tolist()
    theirs = [ticket for ticket, own in zip(held, arms_of(known, held), strict=True) if own == arm]
    stopped = known.ledger.stopped
    # the batch in which it leaves is written down before, for the search is told in its reply
    begun = known.new_steps(now) if known.ledger.steps else []
    told, unpaid = _worst_of(known, theirs, [arm] * len(theirs), now)
    # batches may be asked for ahead: the search is told with the oldest that is open
    oldest = known.replay.number
    events = [*begun, Event(Kind.RETIRE, oldest, arm, reason, now), *unpaid]
    if stopped is not None and arms_of(known, [stopped.ticket]) == [arm]:
        events.append(Event(Kind.RESUME, 0, 0, "", now))
    return told, events


def voided(
    known: Replica, ticket: int, reason: str, now: float
) -> tuple[list[RewardRow], list[Event]]:
    """The seed of a ticket is void, and its tickets that are not told are not needed.

    It becomes void after all that was told: so the log tells what was drawn."""
    now = max(now, float(np.nextafter(known.ledger.ended, inf)))
    same = known.replay.numbering.of_same_seed(ticket)
    missing = [each for each in same.tolist() if known.ledger.reward(each) is None]
    any_reward = _any_reward(known.settings.problem, known.ledger.rewards)
    both = zip(missing, arms_of(known, missing), strict=True)
    told = [(each, arm, any_reward, now) for each, arm in both]
    spans = stretches(same)
    return told, [Event(Kind.VOID, first, span, reason, now) for first, span in spans]


def only_void(known: Replica, arm: int) -> bool:
    """Whether none of the last MOST_VOID pulls of an arm counts: its next failure stops the search.

    This depends on which seeds are void, and on no output, as Theorem C4 of docs/shared-seeds.md
    needs."""
    ledger = known.ledger
    theirs = np.flatnonzero(ledger.arms[: ledger.issued] == arm)
    last = theirs[~np.isnan(ledger.rewards[theirs])][-MOST_VOID:]
    return last.size == MOST_VOID and bool(ledger.void[last].all())


def _any_reward(problem: Problem, told: FloatArray) -> float:
    """A reward that may be told, for a pull that does not count: one that was told, or 0."""
    seen = told[np.isfinite(told)]
    low, _ = problem.rewards.support
    usual = low if problem.rewards.has_range else 0.0
    return float(seen[0]) if seen.size else usual


def arms_of(known: Replica, tickets: list[int]) -> list[int]:
    """The arms of tickets that are not told."""
    return known.replay.numbering.arms(tickets).tolist() if tickets else []


def worst_rewards(
    known: Replica, ids: list[int], now: float
) -> tuple[list[RewardRow], list[Event]]:
    """What is told of those tickets whose arms left; the others are there to be handed out."""
    left = known.ledger.retired
    theirs = [pair for pair in zip(ids, arms_of(known, ids), strict=True) if pair[1] in left]
    return _worst_of(known, [each for each, _ in theirs], [arm for _, arm in theirs], now)


def _worst_of(
    known: Replica, ids: list[int], arms: list[int], now: float
) -> tuple[list[RewardRow], list[Event]]:
    """The worst reward for every one of these tickets, and that the search pays nothing for it."""
    problem, left_at = known.settings.problem, known.ledger.left_at
    worst = _worst(problem, known.ledger.rewards)
    times = [max(now, float(left_at[arm])) if arm in known.ledger.retired else now for arm in arms]
    told = [(each, arm, worst, time) for each, arm, time in zip(ids, arms, times, strict=True)]
    unpaid = ids if problem.costs is not None else []
    return told, [Event(Kind.COST, each, 1, "0.0", now) for each in unpaid]


def _worst(problem: Problem, told: FloatArray) -> float:
    """The worst reward there is; where none was declared, or where one told is worse, that."""
    if not problem.rewards.has_range:  # `certified` leaves it out
        return _any_reward(problem, told)
    low, high = problem.rewards.support
    if problem.minimize:
        return float(np.fmax.reduce(told, initial=high))
    return float(np.fmin.reduce(told, initial=low))
