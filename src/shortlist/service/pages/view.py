"""What the intervals alone prove of the arms that lead, and how that came about pull by pull.

What the live page says in sentences, for somebody who has to decide and not to prove.

All that the live page shows of one experiment, gathered once for everybody who looks."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from math import inf, isfinite
from urllib.parse import quote

import numpy as np

from shortlist.arms import Label
from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.confidence import estimates
from shortlist.engine import Experiment, State, Status
from shortlist.engine.leases import FREE, Lease
from shortlist.engine.status import ArmsTold
from shortlist.errors import Unfinished
from shortlist.formatting import bound_text, failures_text, plural
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.result import Result
from shortlist.result.result import Ending
from shortlist.service.experiment_cache import Opened
from shortlist.service.pages import picture
from shortlist.service.pages.picture import Axis, Band, Bar, Line
from shortlist.settings import Settings
from shortlist.stores import Event, Kind, News
from shortlist.validation import COUNTABLE

POINTS = 60  # of a course at first
STEP = 1.03  # pulls from one point to the next, as a ratio


def proven(means: FloatArray, low: FloatArray, high: FloatArray, problem: Problem) -> float:
    """What the k best arms by their means lose at most, if every mean lies in its interval.

    The best set swaps some chosen arms for others, and each swap gains at most high - low: the
    largest gains first,

        k R_T <= sum_j max(0, high_(j) outside - low_(j) inside).

    The intervals hold together at all times with probability 1 - delta, so this does, too."""
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
class Course:
    """Pulls counted, and what was proved then: by the search if it says so, else by the
    intervals."""

    pulls: list[int] = field(default_factory=list)
    bounds: list[float] = field(default_factory=list)  # finite ones
    by_search: bool = False
    last: float = inf  # the present bound

    @classmethod
    def of(
        cls, arms_pulled: IntArray, rewards: FloatArray, problem: Problem, stay: BoolArray
    ) -> "Course":
        """What the intervals proved so far of the arms that `stay`, at points that are closer at
        the beginning; of pulls in the order in which they were asked for."""
        course = cls()
        counts = np.zeros(problem.n_arms, dtype=np.int64)  # (n,)
        sums = np.zeros(problem.n_arms)  # (n,)
        begin = 0
        for end in _points(arms_pulled.size):
            arms = arms_pulled[begin:end]
            counts += np.bincount(arms, minlength=problem.n_arms)
            sums += np.bincount(arms, rewards[begin:end], problem.n_arms)
            means, low, high = estimates(problem, counts, sums)
            course._add(end, proven(means[stay], low[stay], high[stay], problem))
            begin = end
        return course

    def go_on(self, experiment: Experiment, status: Status) -> None:
        """Add what was proved since."""
        own = proved_by_search(experiment, status)
        if own and status.bound is not None:
            self.by_search, self.last = True, status.bound
            self.pulls = [pulls for pulls, _ in own]
            self.bounds = [bound for _, bound in own]
            return
        if self.by_search:  # and is not any more: an arm that it chose has left
            self.pulls, self.bounds, self.by_search = [], [], False
        arms, stay = status.arms, staying(status.arms)
        ends = arms.means[stay], arms.low[stay], arms.high[stay]
        self.last = proven(*ends, experiment.settings.problem)
        counted = int(arms.pulls.sum())
        if counted and (not self.pulls or counted >= STEP * self.pulls[-1]):
            self._add(counted, self.last)

    def _add(self, pulls: int, bound: float) -> None:
        if np.isfinite(bound):
            self.pulls.append(pulls)
            self.bounds.append(bound)


def proved_by_search(experiment: Experiment, status: Status) -> list[tuple[int, float]]:
    """Pulls at every request, and what the search had proved; nothing if it proves nothing now."""
    if status.bound is None:
        return []
    scale = experiment.settings.problem.rewards.scale
    return [
        (pulls, progress.bound * scale)
        for pulls, progress in experiment.course()
        if progress.bound is not None
    ]


def staying(arms: ArmsTold) -> BoolArray:
    """(n,) Which arms did not leave."""
    return np.array([place != "retired" for place in arms.places])


def _points(size: int) -> list[int]:
    """How many pulls were told at the points of a course."""
    if not size:
        return []
    points: list[int] = np.unique(np.geomspace(1, size, POINTS).astype(int)).tolist()
    return points


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


RECENT = 1000  # entries of the log that are looked at
SHOWN = 30  # events in the page's log
WORKERS = 50  # in its table
LONG = 300  # characters of a name that are shown
OVER = (State.FINISHED, State.BUDGET, State.ENDED)


@dataclass(frozen=True, slots=True)
class View:
    """One experiment at one moment."""

    name: str
    path: str  # the name as it stands in addresses
    settings: Settings
    status: Status
    state: str
    facts: Sequence[tuple[str, str]]
    places: Sequence[tuple[str, int]]
    axis: tuple[str, str]  # the ends of it
    groups: Sequence[Sequence[Bar]]
    band: Band | None
    line: Line | None
    workers: Sequence[tuple[str, int]]
    events: Sequence[tuple[str, str]]
    result: Result | None
    guarantee: str
    proved_by_search: bool  # or by the intervals alone
    looked: str  # when


def look(opened: Opened, name: str, course: Course) -> View:
    """How an experiment stands now; `course` goes on with it."""
    experiment = opened.experiment(name)
    status, settings = experiment.status(), experiment.settings
    after = max(0, experiment.position() - RECENT)
    news = opened.store.read(name, after)
    axis = Axis.of(status.arms)
    order = picture.best_first(status.arms)
    k = settings.problem.k
    course.go_on(experiment, status)
    result = _result(experiment)
    return View(
        name=name,
        path=quote(name, safe=""),
        settings=settings,
        status=status,
        state=STATES[status.state],
        facts=_facts(status, settings, news, course.last, result),
        places=_places(status),
        axis=axis.ticks(),
        groups=picture.bars(status.arms, order, axis, k),
        band=picture.band(status.arms, order, axis, k) if order.size > picture.FEW else None,
        line=picture.line(course.pulls, course.bounds, _epsilon(settings)),
        workers=sorted(status.workers.items(), key=lambda each: -each[1])[:WORKERS],
        events=[event_in_words(event, settings.labels) for event in reversed(news.events[-SHOWN:])],
        result=result,
        guarantee="" if result is None else guarantee(result),
        proved_by_search=course.by_search,
        looked=moment(time.time()),
    )


def _places(status: Status) -> list[tuple[str, int]]:
    """How many arms there are in every place; who left only if one did."""
    counts = [(place, status.arms.places.count(place)) for place in PLACES]
    return [(place, count) for place, count in counts if count or place != "retired"]


def begun_course(opened: Opened, name: str) -> Course:
    """The course of the bound up to now."""
    experiment = opened.experiment(name)
    status = experiment.status()
    if proved_by_search(experiment, status):
        return Course(by_search=True)  # the search remembers
    stay = staying(status.arms)
    arms, rewards = experiment.pulls_counted()
    if not rewards.size or not np.isfinite(status.arms.high[stay]).all():
        return Course()  # where an interval is open now, it always was
    problem = experiment.settings.problem.seen(float(rewards.min()), float(rewards.max()))
    return Course.of(arms, rewards, problem, stay)


def _result(experiment: Experiment) -> Result | None:
    try:
        return experiment.result()
    except Unfinished:
        return None


def _epsilon(settings: Settings) -> float | None:
    goal = settings.problem.goal
    return goal.epsilon if isinstance(goal, FixedConfidence) else None


def _facts(
    status: Status, settings: Settings, news: News, bound: float, result: Result | None
) -> list[tuple[str, str]]:
    """The figures at the top of the page."""
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
    pace = _pace(news)
    running = status.state not in OVER
    if running:
        facts += [("Wanted next", f"{status.wanted:,}")]
        facts += [("Told a minute", "–" if pace is None else count(60 * pace))]
    shown = bound if result is None else result.regret_bound
    if shown is not None:
        facts += [("May lose at most", bound_text(shown) if isfinite(shown) else "–")]
    if running:
        facts += [("Expected still", _left(status, settings, bound, pace))]
    return facts


def _pace(news: News) -> float | None:
    """Rewards told a second, of late; None if nobody told any."""
    times = news.told.times
    if times.size < 2:
        return None
    seconds = max(time.time(), float(times[-1])) - float(times[0])
    return times.size / seconds if seconds > 0 else None


def _left(status: Status, settings: Settings, bound: float, pace: float | None) -> str:
    """Pulls and time that it may still take.

    A bound shrinks about as 1 / sqrt(pulls), so to bring it to epsilon takes (bound / epsilon)^2
    times the pulls so far of the arms that stay. That of the intervals is larger than it need be,
    and so is what is expected of it. It never takes more than what is left of budget, limits and
    test set."""
    goal = settings.problem.goal
    left, words_before = _most_left(status, settings.problem)
    if isinstance(goal, FixedConfidence) and status.told and isfinite(bound):
        arms, stay = status.arms, staying(status.arms)
        pulls = float((arms.pulls + arms.waiting)[stay].sum())
        grown = pulls * max(0.0, (bound / goal.epsilon) ** 2 - 1)
        expected = max(grown, status.held + status.wanted)
        if expected < left:
            left, words_before = round(expected), "up to about "
    if left == inf:
        return "not known yet"
    if left >= LARGE:
        return "very many pulls"
    # a maximum is exact: rounded it may be too small
    pulls_left = f"{left:,.0f}" if words_before == "up to " else count(left)
    shown = f"{words_before}{pulls_left} pulls"
    return f"{shown}, {duration(left / pace)}" if pace else shown


def _most_left(status: Status, problem: Problem) -> tuple[float, str]:
    """Pulls that can still be made, and the words before: a budget that is the goal is spent.

    Arms that left are not pulled. The others are pulled at most as often as their limits allow, or
    on a test set the cells that were not known."""
    arms, stay = status.arms, staying(status.arms)
    each = np.where(problem.most_in_all < COUNTABLE, problem.most_in_all, inf)
    by_arms = float((each - arms.pulls - arms.waiting)[stay].sum())
    by_budget, budget = inf, problem.goal.budget
    if problem.counted_budget is not None:
        by_budget = problem.counted_budget - status.sent
    elif budget is not None:
        by_budget = (budget - status.spent) // problem.prices[stay].min()
    spends = isinstance(problem.goal, FixedBudget) and problem.costs is None
    return max(0.0, min(by_arms, by_budget)), "" if spends and by_budget < by_arms else "up to "
