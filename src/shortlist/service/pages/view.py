"""What the live page shows of one experiment: figures, bound history, sentences, log."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from math import inf, isfinite
from threading import Lock
from urllib.parse import quote

import numpy as np

from shortlist.arms import Label, shown_label
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.confidence import estimates
from shortlist.engine import Experiment, State, Status
from shortlist.engine.status import ArmsTold
from shortlist.engine.tickets import FREE, Lease
from shortlist.errors import Unfinished
from shortlist.formatting import (
    Unit,
    bound_text,
    day_text,
    days_text,
    failures_text,
    given_text,
    percent_text,
    plural,
    unit_of,
)
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.result import Result
from shortlist.result.arm_results import ArmLift, Lift, MetricLift, kept_word, lift_cells
from shortlist.result.result import Ending
from shortlist.reward_models import Undeclared
from shortlist.service.experiments import OpenExperiments
from shortlist.service.pages import charts
from shortlist.service.pages.charts import Axis, Band, Bar, BoundChart
from shortlist.settings import Settings
from shortlist.stores import Event, Kind, News
from shortlist.validation import COUNTABLE

OF_BLOCKS = (Kind.OPEN, Kind.COUNTS, Kind.ASSIGN)
POINTS = 60  # of the bound history when the page is opened
STEP = 1.03  # ratio of pulls from one point to the next


def regret_bound(means: FloatArray, low: FloatArray, high: FloatArray, problem: Problem) -> float:
    """Return the regret bound of the k arms with the best means, if every mean is in its interval.

    The best set swaps some chosen arms for others, and each swap gains at most high - low:

        k R_T <= sum_j max(0, high_(j) outside - low_(j) inside).

    All intervals hold at all times with probability 1 - delta, and so does the bound. Nothing is
    known of rewards that were not declared, nor of the k best means where these may not be chosen.
    """
    if isinstance(problem.rewards, Undeclared) or problem.constraint is not None:
        return inf
    k = problem.k
    if problem.minimize:
        means, low, high = -means, -high, -low
    order = np.argsort(-np.nan_to_num(means, nan=-np.inf), kind="stable")
    inside = np.sort(low[order[:k]])
    outside = -np.sort(-high[order[k:]])
    swaps = min(inside.size, outside.size)
    gains = np.maximum(0, outside[:swaps] - inside[:swaps])
    return float(gains.sum()) / k


@dataclass(slots=True)
class BoundHistory:
    """The regret bound by number of pulls: the search's own if it has one, else the intervals'."""

    pulls: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)  # finite ones
    by_search: bool = False
    last: float = inf  # the current bound
    lock: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def of(
        cls, arms_pulled: IntArray, rewards: FloatArray, problem: Problem, stay: BoolArray
    ) -> "BoundHistory":
        """The bounds of the intervals of the remaining arms (`stay`), at points on a geometric
        grid of the pulls in the order of their tickets."""
        history = cls()
        counts = np.zeros(problem.n_arms, dtype=np.int64)  # (n,)
        sums = np.zeros(problem.n_arms)  # (n,)
        begin = 0
        for end in _points(arms_pulled.size):
            arms = arms_pulled[begin:end]
            counts += np.bincount(arms, minlength=problem.n_arms)
            sums += np.bincount(arms, rewards[begin:end], problem.n_arms)
            means, low, high = estimates(problem, counts, sums)
            history._add(end, regret_bound(means[stay], low[stay], high[stay], problem))
            begin = end
        return history

    def extend(self, experiment: Experiment, status: Status) -> None:
        """Add the current bound. Threads may share a history."""
        with self.lock:
            self._extend(experiment, status)

    def _extend(self, experiment: Experiment, status: Status) -> None:
        own = proved_by_search(experiment, status)
        if own and status.bound is not None:
            self.by_search, self.last = True, status.bound
            self.pulls = [pulls for pulls, _ in own]
            self.bounds = [bound for _, bound in own]
            return
        if self.by_search:  # no longer: an arm that it chose was retired
            self.pulls, self.bounds, self.by_search = [], [], False
        arms, stay = status.arms, remaining(status.arms)
        ends = arms.means[stay], arms.low[stay], arms.high[stay]
        self.last = regret_bound(*ends, experiment.settings.problem)
        counted = int(arms.pulls.sum())
        if counted and (not self.pulls or counted >= STEP * self.pulls[-1]):
            self._add(counted, self.last)

    def _add(self, pulls: int, bound: float) -> None:
        if np.isfinite(bound):
            self.pulls.append(pulls)
            self.bounds.append(bound)


def proved_by_search(experiment: Experiment, status: Status) -> list[tuple[int, float]]:
    """Pulls and bound at every batch of the search; empty if the search has no bound now."""
    if status.bound is None:
        return []
    scale = experiment.settings.problem.rewards.scale
    return [
        (pulls, progress.bound * scale)
        for pulls, progress in experiment.history()
        if progress.bound is not None
    ]


def remaining(arms: ArmsTold) -> BoolArray:
    """(n,) Which arms are not retired."""
    return np.array([place != "retired" for place in arms.places])


def _points(size: int) -> list[int]:
    """Numbers of pulls at the points of the history."""
    if not size:
        return []
    points: list[int] = np.unique(np.geomspace(1, size, POINTS).astype(int)).tolist()
    return points


STATES = {
    State.READY: "Running: tickets are available.",
    State.PENDING: "Running: all pulls of this round are under way.",
    State.FINISHED: "Finished: the result has the guarantee that was asked for.",
    State.BUDGET: "Finished: the budget is spent.",
    State.ENDED: "Finished without the guarantee that was asked for: see the result.",
    State.STOPPED: "Stopped: a pull failed too often.",
}
WHY = {
    Ending.EPSILON: "",
    Ending.BUDGET: "The budget is spent.",
    Ending.LIMITS: "The limits of the arms allow no more pulls.",
    Ending.RETIRED: "Arms were retired, and this algorithm has no bound for the others.",
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
    "in": "accepted",
    "undecided": "undecided",
    "out": "rejected",
    "retired": "retired",
}
DECIDED = {**PLACES, "in": "chosen", "out": "not chosen"}  # once there is a result
MANY = [10**power for power in range(2, 13)]  # numbers of statements
LARGE = 1e15  # above which a count is not shown
MINUTE, HOUR, DAY = 60, 3600, 86400  # seconds


def count(value: float) -> str:
    """A count, rounded to two digits."""
    if value >= LARGE:
        return "very many"
    digits = max(0, len(str(int(value))) - 2)
    return f"{round(value, -digits):,.0f}"


def guarantee(result: Result) -> str:
    """The guarantee of a result, in one sentence without symbols."""
    k = len(result.top)
    chosen = "this one" if k == 1 else f"these {k:,}"
    retired = any(arm.retired for arm in result.arms)
    best = "the best" if k == 1 else f"the best {k:,}"
    best += " of the remaining arms" if retired else " of all arms"
    if result.regret_bound is None or result.confidence is None:
        return (
            f"{WHY[result.ended_by]} Of {'the remaining' if retired else 'all'} arms, {chosen} had"
            " the best mean, but there is no guarantee that no other arm is better."
        )
    lost = f"at most {bound_text(result.regret_bound, unit=unit_of(result.unit))}"
    price = (
        f"pay {lost} too much on average"
        if result.minimize
        else f"give up {lost} of average reward"
    )
    best += "" if result.leads is None else ", on average over the days of the test"
    promise = (
        f"If you go with {chosen}, you {price} compared with {best}. {_wrong(result.confidence)}"
    )
    if result.warnings:
        return (
            "The rewards contradict what was declared about them, so there is no guarantee. If the"
            f" declaration were true, this would hold: {promise}"
        )
    early = f"{EARLY[result.ended_by]} before the precision asked for was reached. "
    return early + promise if result.reached is False else promise


def _wrong(confidence: float) -> str:
    """How many of 100 such statements are wrong, or of the smallest number of which one is."""
    statements = next(
        (many for many in MANY if float(failures_text(confidence, many)) >= 1), MANY[-1]
    )
    wrong = failures_text(confidence, statements)
    verb = "is" if wrong == "1" else "are"
    return f"Of {statements:,} such statements at most {wrong} {verb} wrong."


def headline(status: int) -> str:
    """The headline of an error page."""
    if status == HTTPStatus.UNAUTHORIZED:
        return "Sign in"
    return f"{status}: {HTTPStatus(status).phrase}"


def duration(seconds: float) -> str:
    """A duration, rounded."""
    for unit, name in ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute")):
        if seconds >= 2 * unit:
            return plural(round(seconds / unit), name)
    return plural(max(1, round(seconds)), "second")


def moment(seconds: float) -> str:
    """A point in time, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def event_text(
    event: Event, labels: Sequence[Label], blocks: Sequence[str] = ()
) -> tuple[str, str]:
    """When an event happened, if the log says so, and what happened; `blocks` are their names."""
    when = "" if event.kind is Kind.LEASE else moment(event.time)
    by = f" (by {event.author})" if event.author else ""
    if event.kind is Kind.RETIRE:
        reason = f": {event.text}" if event.text else ""
        return when, f"{labels[event.span]} was retired{reason}{by}"
    text = EVENT_TEXTS[event.kind](event)
    if event.kind in OF_BLOCKS and event.ticket < len(blocks):
        text = text.replace(f"lock {event.ticket + 1:,}", f"lock {blocks[event.ticket]}", 1)
    return when, text + by


def _tickets(event: Event) -> str:
    if event.span == 1:
        return f"ticket {event.ticket:,}"
    return f"tickets {event.ticket:,} to {event.ticket + event.span - 1:,}"


def _step(event: Event) -> str:
    if event.span == 0:
        return "The search finished"
    return f"The search asked for {plural(event.span, 'pull')}"


def _lease(event: Event) -> str:
    worker = event.text or "A worker"
    if event.time == FREE:
        return f"{worker} gave back {_tickets(event)}"
    due = moment(Lease(event.text, event.time).due)
    return f"{worker} got {_tickets(event)}, due {due}"


def _became(event: Event) -> str:
    """What became of a block that was told."""
    told = json.loads(event.text) if event.text else {}
    if told.get("void"):
        return f"is void: {told['void']}"
    return "was refused: its visitors do not fit its shares" if "refused" in told else "was told"


EVENT_TEXTS: dict[Kind, Callable[[Event], str]] = {
    Kind.STEP: _step,
    Kind.LEASE: _lease,
    Kind.FAIL: lambda event: f"Ticket {event.ticket:,} failed: {event.text}",
    Kind.RESUME: lambda _event: "The experiment was resumed",
    Kind.COST: lambda event: f"Ticket {event.ticket:,} cost {event.text}",
    Kind.LATE: lambda event: f"The lease of {_tickets(event)} ended: counted as late",
    Kind.UNUSED: lambda event: (
        f"Ticket {event.ticket:,} was told after its arm was retired: not used"
    ),
    Kind.VOID: lambda event: f"The seed of {_tickets(event)} is void: {event.text}",
    Kind.INFO: lambda event: f"Ticket {event.ticket:,} was told with further figures",
    Kind.OPEN: lambda event: f"Block {event.ticket + 1:,} was opened",
    Kind.COUNTS: lambda event: f"Block {event.ticket + 1:,} {_became(event)}",
    Kind.ASSIGN: lambda event: f"A visitor was assigned in block {event.ticket + 1:,}",
    Kind.AUTHOR: lambda event: f"Rewards of {_tickets(event)} were told",
    Kind.SPENT: lambda _event: "The rest of the budget does not cover the next pulls",
}


RECENT = 1000  # entries of the log that are read
SHOWN = 30  # events in the page's log
WORKERS = 50  # in its table
LONG = 300  # characters of a name that are shown, at most
OVER = (State.FINISHED, State.BUDGET, State.ENDED)


@dataclass(frozen=True, slots=True)
class View:
    """One experiment at one moment."""

    name: str
    path: str  # the name, percent-encoded
    settings: Settings
    status: Status
    state: str
    facts: Sequence[tuple[str, str]]
    places: Sequence[tuple[str, int]]
    axis: tuple[str, str]  # its ends
    groups: Sequence[Sequence[Bar]]
    band: Band | None
    lift: "LiftTable | None"  # if there is a control
    metrics: Sequence["LiftTable"]  # if some were told
    shares: Mapping[str, str]  # of the newest block of a live test, per arm
    line: BoundChart | None
    workers: Sequence[tuple[str, int]]
    events: Sequence[tuple[str, str]]
    result: Result | None
    guarantee: str
    proved_by_search: bool  # or by the intervals alone
    as_of: str  # when


def view_experiment(experiments: OpenExperiments, name: str, history: BoundHistory) -> View:
    """Return the current view of an experiment; adds the current bound to its history."""
    experiment = experiments.get(name)
    status, settings = experiment.status(), experiment.settings
    after = max(0, experiment.position() - RECENT)
    news = experiments.store.read(name, after)
    axis = Axis.of(status.arms)
    order = charts.best_first(status.arms)
    k, unit = settings.problem.k, unit_of(settings.unit)
    history.extend(experiment, status)
    result = _result(experiment)
    blocks = experiment.opened_blocks()
    shown = result if result or settings.control is None else _so_far(experiment)
    return View(
        name=name,
        path=quote(name, safe=""),
        settings=settings,
        status=status,
        state=_state(status),
        facts=_facts(status, settings, news, history.last, result),
        places=_places(status),
        axis=axis.ticks(unit),
        groups=charts.bars(status.arms, order, axis, k, unit),
        band=charts.band(status.arms, order, axis, k) if order.size > charts.FEW else None,
        lift=None if shown is None or settings.control is None else LiftTable.of(shown),
        metrics=[LiftTable.of_metric(each) for each in (() if shown is None else shown.metrics)],
        line=_line(experiment, history, unit),
        workers=sorted(status.workers.items(), key=lambda each: -each[1])[:WORKERS],
        events=[
            event_text(event, settings.labels, [block for block, _ in blocks])
            for event in reversed(news.events[-SHOWN:])
        ],
        shares=_percent(settings.labels, blocks[-1][1]) if blocks else {},
        result=result,
        guarantee="" if result is None else guarantee(result),
        proved_by_search=history.by_search,
        as_of=moment(time.time()),
    )


@dataclass(frozen=True, slots=True)
class LiftTable:
    """The comparison of every arm with the control."""

    control: str
    unit: str  # of the differences; empty for raw numbers
    rows: Sequence[tuple[str, ...]]  # arm, difference, interval, place
    verdict: str  # on the control, if there is one
    note: str
    metric: str = ""  # empty for the rewards

    @classmethod
    def of(cls, result: Result) -> "LiftTable":
        """The arms of a result, largest difference first."""
        verdict = "" if result.warnings else result.kept()
        lift = result.lift()
        return cls._made(lift, lambda arm: _compared(arm, result.minimize), verdict, "")

    @classmethod
    def of_metric(cls, metric: MetricLift) -> "LiftTable":
        """The arms of a metric, largest difference first; `verdict` names the guardrail."""
        margin = metric.guardrail
        allowed = "" if margin is None else _allowed(margin, unit_of(metric.unit))

        def place(arm: ArmLift) -> str:
            return kept_word(arm, margin)

        return cls._made(metric, place, allowed, metric.metric)

    @classmethod
    def _made(
        cls, lift: Lift, place: Callable[[ArmLift], str], verdict: str, metric: str
    ) -> "LiftTable":
        ordered = sorted(lift.arms, key=lambda arm: -(arm.difference or 0.0))
        unit = unit_of(lift.unit)
        named = unit.spelled.strip()
        unit = replace(unit, points="")  # the header names it
        rows = [(*lift_cells(arm, unit)[:3], place(arm)) for arm in ordered]
        sure = percent_text(lift.confidence)
        note = f"All intervals hold together with {sure} % confidence, at any time."
        return cls(shown_label(lift.control), named, rows[:SHOWN], verdict, note, metric)


def _allowed(margin: float, unit: Unit) -> str:
    """What a guardrail allows, in a sentence."""
    way = "lower" if margin < 0 else "higher"
    return f"Guardrail: at most {given_text(abs(margin), unit)} {way}."


def _compared(arm: ArmLift, minimize: bool) -> str:
    """What the interval of a difference proves."""
    if arm.difference_low > 0 or arm.difference_high < 0:
        return "better" if (arm.difference_low > 0) != minimize else "worse"
    return "unclear"


def _percent(labels: Sequence[Label], shares: FloatArray) -> dict[str, str]:
    """Shares in percent, per label as a text."""
    rows = zip(labels, shares.tolist(), strict=True)
    return {str(label): f"{round(100 * share, 2):g}%" for label, share in rows}


def _so_far(experiment: Experiment) -> Result:
    return experiment.result(partial=True)


def _line(experiment: Experiment, history: BoundHistory, unit: Unit) -> BoundChart | None:
    """The chart of the bound: by day in a live test, else by pulls."""
    settings = experiment.settings
    goal = _epsilon(settings)
    if settings.problem.traffic is None:
        return charts.bound_chart(history.pulls, history.bounds, goal, unit)
    scale = settings.problem.rewards.scale
    bounds = [inf if each.bound is None else each.bound for _, each in experiment.history()[1:]]
    return charts.days_chart(
        experiment.told_blocks(), [bound * scale for bound in bounds], goal, unit
    )


def _places(status: Status) -> list[tuple[str, int]]:
    """The number of arms per place; `retired` only if there are any."""
    counts = [(place, status.arms.places.count(place)) for place in PLACES]
    return [(place, count) for place, count in counts if count or place != "retired"]


def kept_history(experiments: OpenExperiments, name: str) -> BoundHistory:
    """Return the history of the bound, which is computed once per open experiment."""
    return experiments.kept(name, lambda: bound_history(experiments, name))


def bound_history(experiments: OpenExperiments, name: str) -> BoundHistory:
    """Return the history of the bound up to now."""
    experiment = experiments.get(name)
    status = experiment.status()
    if proved_by_search(experiment, status):
        return BoundHistory(by_search=True)  # the search keeps its own
    stay = remaining(status.arms)
    arms, rewards = experiment.pulls_counted()
    if not rewards.size or not np.isfinite(status.arms.high[stay]).all():
        return BoundHistory()  # an interval that is unbounded now always was
    problem = experiment.settings.problem.seen(float(rewards.min()), float(rewards.max()))
    return BoundHistory.of(arms, rewards, problem, stay)


def _result(experiment: Experiment) -> Result | None:
    try:
        return experiment.result()
    except Unfinished:
        return None


def _state(status: Status) -> str:
    """The state in a sentence; a live test has no tickets."""
    if status.live and status.state is State.READY:
        return "Running: visitors are assigned, and results told per block."
    return STATES[status.state]


def _epsilon(settings: Settings) -> float | None:
    goal = settings.problem.goal
    return goal.epsilon if isinstance(goal, FixedConfidence) else None


def _facts(
    status: Status, settings: Settings, news: News, bound: float, result: Result | None
) -> list[tuple[str, str]]:
    """The figures at the top of the page."""
    if settings.problem.traffic is not None:
        return _live_facts(status, settings, bound, result)
    facts = [("Pulls told", f"{status.told:,}")]
    if status.arms.known.any():
        facts += [("Scores known before", f"{status.arms.known.sum():,}")]
    never = status.never_counted
    counts = {
        "Late": status.late,
        "Not used": status.unused,
        "Not counted yet": status.waiting - never,
        "Not counted": never,
    }
    facts += [(name, f"{count:,}") for name, count in counts.items() if count]
    facts += [("Under way", f"{status.held:,}")]
    if status.overdue:
        facts += [("Overdue", f"{status.overdue:,}")]
    facts += [("Failed", f"{status.failures:,}")]
    rate = _rate(news)
    running = status.state not in OVER
    if running:
        facts += [("Available tickets", f"{status.wanted:,}")]
        facts += [("Told per minute", "–" if rate is None else count(60 * rate))]
    shown = bound if result is None else result.regret_bound
    if shown is not None:
        facts += [
            (
                "Regret bound",
                bound_text(shown, unit=unit_of(status.unit)) if isfinite(shown) else "–",
            )
        ]
    if status.period is not None:
        facts += [("Since", moment(status.period[0])), ("Elapsed", elapsed(status.period))]
    if running:
        facts += [("Remaining", _left(status, settings, bound, rate))]
    return facts


def _live_facts(
    status: Status, settings: Settings, bound: float, result: Result | None
) -> list[tuple[str, str]]:
    """The figures of a live test: visitors, days, and the bound against the one asked for."""
    unit = unit_of(status.unit)
    shown = bound if result is None else result.regret_bound
    known = shown is not None and isfinite(shown)
    facts = [("Visitors told", f"{status.told:,}")]
    if status.waiting:
        facts += [("Not counted yet" if result is None else "Not counted", f"{status.waiting:,}")]
    if status.period is not None:
        last = status.period[1] - 1  # the period ends with its last day
        facts += [("First day", day_text(status.period[0])), ("Last day", day_text(last))]
        facts += [("Elapsed", days_text(status.period))]
    facts += [("Blocks", status.live)] if status.live and result is None else []
    facts += [("Choice loses at most", bound_text(shown, unit=unit) if known and shown else "–")]
    goal = _epsilon(settings)
    return facts if goal is None else [*facts, ("Asked for", given_text(goal, unit))]


def elapsed(period: tuple[float, float]) -> str:
    """The length of a period: days, or less in the first ones."""
    return duration(period[1] - period[0])


def _rate(news: News) -> float | None:
    """Rewards told per second recently; None if fewer than two."""
    times = news.told.times
    if times.size < 2:
        return None
    seconds = max(time.time(), float(times[-1])) - float(times[0])
    return times.size / seconds if seconds > 0 else None


def _left(status: Status, settings: Settings, bound: float, rate: float | None) -> str:
    """Estimate of the remaining pulls and time.

    A bound shrinks about as 1 / sqrt(pulls), so it reaches epsilon after (bound / epsilon)^2 times
    the pulls so far of the remaining arms. The bound of the intervals is conservative, and so is
    the estimate. Budget, limits and test set cap it."""
    goal = settings.problem.goal
    left, prefix = _most_left(status, settings.problem)
    if isinstance(goal, FixedConfidence) and status.told and isfinite(bound):
        arms, stay = status.arms, remaining(status.arms)
        pulls = float((arms.pulls + arms.waiting)[stay].sum())
        grown = pulls * max(0.0, (bound / goal.epsilon) ** 2 - 1)
        expected = max(grown, status.held + status.wanted)
        if expected < left:
            left, prefix = round(expected), "up to about "
    if left == inf:
        return "not known yet"
    if left >= LARGE:
        return "very many pulls"
    # a maximum must not be rounded down
    pulls_left = f"{left:,.0f}" if prefix == "up to " else count(left)
    shown = f"{prefix}{pulls_left} pulls"
    return f"{shown}, {duration(left / rate)}" if rate else shown


def _most_left(status: Status, problem: Problem) -> tuple[float, str]:
    """The most pulls that can still be made, and "up to " unless all of them will be made.

    Retired arms are not pulled. The others are pulled at most as often as their limits allow, or
    on a test set as often as they have unknown cells."""
    arms, stay = status.arms, remaining(status.arms)
    each = np.where(problem.most_in_all < COUNTABLE, problem.most_in_all, inf)
    by_arms = float((each - arms.pulls - arms.waiting)[stay].sum())
    by_budget, budget = inf, problem.goal.budget
    if problem.counted_budget is not None:
        by_budget = problem.counted_budget - status.sent
    elif budget is not None:
        by_budget = (budget - status.spent) // problem.declared_costs[stay].min()
    spends = isinstance(problem.goal, FixedBudget) and problem.costs is None
    return max(0.0, min(by_arms, by_budget)), "" if spends and by_budget < by_arms else "up to "
