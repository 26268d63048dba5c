"""What is new in a log, checked again before anything is made of it.

A store sees that its entries are those that were written. That they could have been told is
checked here: a file may come from anywhere."""

from math import isfinite

import numpy as np

from shortlist.arrays import IntArray
from shortlist.engine.ledger import Ledger
from shortlist.errors import StoreDamaged
from shortlist.problem import MOST_COST
from shortlist.settings import Settings
from shortlist.stores import Event, Kind, News, Told

ABOUT_REWARDS = {Kind.COST: "the cost", Kind.UNUSED: "the cost", Kind.LATE: "the lateness"}
MOST_UNDER_WAY = 1_000_000  # tickets handed out and not told: each takes memory


def check_news(news: News, ledger: Ledger, settings: Settings, where: str) -> None:
    """Refuse entries that no experiment with these settings could have written."""
    if news.last == ledger.position:
        return
    _check_rewards(news.told, settings, where)
    for event in news.events:
        _check_event(event, settings.problem.n_arms, where)
    _check_enough_stay(news, ledger, settings, where)
    _check_paid(news, ledger, where)
    leases = [event.ticket + event.span for event in news.events if event.kind is Kind.LEASE]
    handed_out = max([*leases, _largest(news.told.tickets) + 1])
    told = ledger.told + news.told.tickets.size
    if handed_out > told + MOST_UNDER_WAY:
        raise StoreDamaged(
            f"{where} has handed out ticket {handed_out - 1} when {told} were told, but at most"
            f" {MOST_UNDER_WAY:,} are under way at a time"
        )


def _check_rewards(told: Told, settings: Settings, where: str) -> None:
    model, n_arms = settings.problem.rewards, settings.problem.n_arms
    admitted = np.asarray(model.admits(told.rewards) & np.isfinite(told.times))  # (rewards,)
    if admitted.all() and _largest(told.arms) < n_arms:
        return
    wrong = np.flatnonzero(~admitted | ((told.arms < 0) | (told.arms >= n_arms)))[0]
    raise StoreDamaged(
        f"the reward of ticket {told.tickets[wrong]} in {where} is {told.rewards[wrong]} of arm"
        f" {told.arms[wrong]} at {told.times[wrong]}, but must be {model.rule}, of an arm below"
        f" {n_arms}"
    )


def _check_enough_stay(news: News, ledger: Ledger, settings: Settings, where: str) -> None:
    """Refuse a log in which too few arms stay to choose from."""
    left = {event.span for event in news.events if event.kind is Kind.RETIRE}
    if left and settings.problem.n_arms - len(left | ledger.retired.keys()) <= settings.problem.k:
        raise StoreDamaged(
            f"{len(left | ledger.retired.keys())} of {settings.problem.n_arms} arms retire in"
            f" {where}, but more than {settings.problem.k} must stay"
        )


def _check_paid(news: News, ledger: Ledger, where: str) -> None:
    """Refuse what is said of the reward of a ticket that has none."""
    about = [event for event in news.events if event.kind in ABOUT_REWARDS]
    told = set(news.told.tickets.tolist()) if about else set()
    for event in about:
        for ticket in range(event.ticket, event.ticket + event.span):
            if ticket not in told and ledger.reward(ticket) is None:
                said = ABOUT_REWARDS[event.kind]
                raise StoreDamaged(f"{said} of ticket {ticket} is in {where}, but not its reward")


def is_cost(text: str) -> bool:
    """Whether an event may say that a pull did cost this."""
    try:
        return 0 <= float(text) <= MOST_COST
    except ValueError:
        return False


def _largest(numbers: IntArray) -> int:
    """The largest of numbers from 0; one below 0 counts as larger than all."""
    return int(numbers.view(np.uint64).max()) if numbers.size else -1


def _check_event(event: Event, n_arms: int, where: str) -> None:
    nobody = event.kind is Kind.RETIRE and event.span >= n_arms
    nobody |= event.kind in (Kind.COST, Kind.UNUSED) and not is_cost(event.text)
    if event.ticket < 0 or event.span < 0 or nobody or not isfinite(event.time):
        raise StoreDamaged(
            f"{event.kind} of {event.span} tickets from {event.ticket} at {event.time} is in"
            f" {where}, but no such event can be"
        )
