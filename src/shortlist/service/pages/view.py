"""All that the live page shows of one experiment, gathered once for everybody who looks."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from urllib.parse import quote

import numpy as np

from shortlist.digits import bound_text
from shortlist.errors import Unfinished
from shortlist.experiment import Experiment, State, Status
from shortlist.experiment.settings import Settings
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.result import Result
from shortlist.service.opened import Opened
from shortlist.service.pages import picture, words
from shortlist.service.pages.bounds import Course, proved_by_search, staying
from shortlist.service.pages.picture import Axis, Band, Bar, Line
from shortlist.storage import News
from shortlist.validation import COUNTABLE

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
        state=words.STATES[status.state],
        facts=_facts(status, settings, news, course.last, result),
        places=_places(status),
        axis=axis.ticks(),
        groups=picture.bars(status.arms, order, axis, k),
        band=picture.band(status.arms, order, axis, k) if order.size > picture.FEW else None,
        line=picture.line(course.pulls, course.bounds, _epsilon(settings)),
        workers=sorted(status.workers.items(), key=lambda each: -each[1])[:WORKERS],
        events=[
            words.event_in_words(event, settings.labels) for event in reversed(news.events[-SHOWN:])
        ],
        result=result,
        guarantee="" if result is None else words.guarantee(result),
        proved_by_search=course.by_search,
        looked=words.moment(time.time()),
    )


def _places(status: Status) -> list[tuple[str, int]]:
    """How many arms there are in every place; who left only if one did."""
    counts = [(place, status.arms.places.count(place)) for place in words.PLACES]
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
        facts += [("Told a minute", "–" if pace is None else words.count(60 * pace))]
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
    if left >= words.LARGE:
        return "very many pulls"
    # a maximum is exact: rounded it may be too small
    pulls_left = f"{left:,.0f}" if words_before == "up to " else words.count(left)
    shown = f"{words_before}{pulls_left} pulls"
    return f"{shown}, {words.duration(left / pace)}" if pace else shown


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
