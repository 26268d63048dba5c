"""What the live page says in sentences, for somebody who has to decide and not to prove."""

import time
from collections.abc import Callable, Sequence
from http import HTTPStatus

from shortlist.arms import Label
from shortlist.digits import bound_text, failures_text
from shortlist.display import plural
from shortlist.experiment import State
from shortlist.experiment.lease import FREE, Lease
from shortlist.result import Result
from shortlist.result.ending import Ending
from shortlist.storage import Event, Kind

STATES = {
    State.READY: "Running: there is work to hand out.",
    State.PENDING: "Running: all that is wanted now is under way.",
    State.FINISHED: "Finished: the answer is there, with the guarantee that was wanted.",
    State.BUDGET: "Finished: the budget is spent.",
    State.ENDED: "Finished, but without the guarantee that was wanted: see the answer.",
    State.STOPPED: "Stopped: a pull failed too often.",
}
WHY = {
    Ending.EPSILON: "",
    Ending.BUDGET: "The budget is spent.",
    Ending.LIMITS: "The limits of the arms allow no more pulls.",
    Ending.RETIRED: "Arms left, and this algorithm proves nothing about the others.",
    Ending.REFUTED: "",
    Ending.SEARCH: "The search ended.",
}
EARLY = {
    **WHY,
    Ending.BUDGET: "The budget ended",
    Ending.LIMITS: "The limits of the arms ended the search",
    Ending.SEARCH: "The search ended",
}
MARKS = {"in": "●", "undecided": "◆", "out": "○", "retired": "×"}  # places of arms
PLACES = {
    "in": "surely in",
    "undecided": "undecided",
    "out": "surely out",
    "retired": "left",
}
DECIDED = {**PLACES, "in": "chosen", "out": "not chosen"}  # once there is an answer
MANY = [10**power for power in range(2, 13)]  # statements, some of which may be wrong
LARGE = 1e15  # from which on a count says nothing
MINUTE, HOUR, DAY = 60, 3600, 86400  # seconds


def count(value: float) -> str:
    """About how many: two digits that mean something."""
    if value >= LARGE:
        return "very many"
    digits = max(0, len(str(int(value))) - 2)
    return f"{round(value, -digits):,.0f}"


def guarantee(result: Result) -> str:
    """What is promised about the choice, without a symbol."""
    k = len(result.top)
    chosen = "this one" if k == 1 else f"these {k:,}"
    left = any(arm.left for arm in result.arms)
    best = "the best" if k == 1 else f"the best {k:,}"
    best += " of those that stay" if left else " there is" if k == 1 else " there are"
    if result.regret_bound is None or result.confidence is None:
        return (
            f"{WHY[result.ended_by]} Of all{' that stay' * left}, {chosen} had the best record, but"
            " nothing is guaranteed about what else might have been better."
        )
    lost = f"at most {bound_text(result.regret_bound)}"
    price = (
        f"pay {lost} too much on average"
        if result.minimize
        else f"give up {lost} of average reward"
    )
    promise = (
        f"If you go with {chosen}, you {price} compared with {best}. {_wrong(result.confidence)}"
    )
    if result.warnings:
        return (
            "The rewards refute what was declared about them, so nothing is guaranteed. Were the"
            f" declaration true, this would hold: {promise}"
        )
    early = f"{EARLY[result.ended_by]} before the precision asked for was reached. "
    return early + promise if result.reached is False else promise


def _wrong(confidence: float) -> str:
    """How many of a hundred such statements are wrong, or of so many that one of them is."""
    statements = next(
        (many for many in MANY if float(failures_text(confidence, many)) >= 1), MANY[-1]
    )
    wrong = failures_text(confidence, statements)
    verb = "is" if wrong == "1" else "are"
    return f"Of {statements:,} such statements at most {wrong} {verb} wrong."


def headline(status: int) -> str:
    """What an error page is headed with."""
    if status == HTTPStatus.UNAUTHORIZED:
        return "Sign in"
    return f"{status}: {HTTPStatus(status).phrase}"


def duration(seconds: float) -> str:
    """A length of time, about."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if seconds >= 2 * unit:
            return plural(round(seconds / unit), name)
    return plural(max(1, round(seconds)), "second")


def moment(seconds: float) -> str:
    """A point in time, as clocks on this planet agree on it."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def event_in_words(event: Event, labels: Sequence[Label]) -> tuple[str, str]:
    """When something happened, as far as the log says, and what; the arms have these labels."""
    when = "" if event.kind is Kind.LEASE else moment(event.time)
    if event.kind is Kind.RETIRE:
        why = f": {event.text}" if event.text else ""
        return when, f"{labels[event.span]} left{why}"
    return when, SAID[event.kind](event)


def _tickets(event: Event) -> str:
    if event.span == 1:
        return f"ticket {event.ticket:,}"
    return f"tickets {event.ticket:,} to {event.ticket + event.span - 1:,}"


def _step(event: Event) -> str:
    if event.span == 0:
        return "The search has its answer"
    return f"The search asked for {plural(event.span, 'pull')}"


def _lease(event: Event) -> str:
    who = event.text or "Somebody"
    if event.time == FREE:
        return f"{who} gave back {_tickets(event)}"
    due = moment(Lease(event.text, event.time).due)
    return f"{who} was handed {_tickets(event)}, due {due}"


SAID: dict[Kind, Callable[[Event], str]] = {
    Kind.STEP: _step,
    Kind.LEASE: _lease,
    Kind.FAIL: lambda event: f"Ticket {event.ticket:,} failed: {event.text}",
    Kind.RESUME: lambda _event: "The experiment was resumed",
    Kind.COST: lambda event: f"Ticket {event.ticket:,} cost {event.text}",
    Kind.LATE: lambda event: f"The lease of {_tickets(event)} was over: counted as late",
    Kind.UNUSED: lambda event: f"Ticket {event.ticket:,} was told after its arm left: not used",
    Kind.SPENT: lambda _event: "The rest of the budget does not pay for the next pulls",
}
