"""The live page: what it shows, in which words, and that a name is never markup."""

import csv
import io
import math
import re
import urllib.request
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from services import Call

from shortlist.arms import Arm
from shortlist.engine import Experiment
from shortlist.engine.status import ArmsTold
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.result import Result
from shortlist.reward_models import Binary
from shortlist.service.pages import view as words
from shortlist.service.pages.charts import FEW, Axis, band, bars, best_first, bound_chart
from shortlist.service.pages.view import BoundHistory, regret_bound
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

pytest_plugins = ["service_fixtures"]

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7*7 }}",
    "שלום",
    "\u202egnp.exe",
    "=1+1",
    "x" * 5000,
    "a\nb",
]


class Elements(HTMLParser):
    """The elements of a page, and the text between them."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def experiment(store: MemoryStore, arms: Any, k: int = 2, pulls: int = 200, **more: Any) -> str:
    """An experiment with that many pulls told; its address."""
    settings = {"budget": 10_000, "rewards": "binary", "name": "<i>n</i>", **more}
    made = Experiment.create(arms, k, store=store, **settings)
    rng = np.random.default_rng(0)
    while pulls > 0 and (tickets := made.ask(min(pulls, 5000), worker="<b>w</b>")):
        made.tell_many((ticket, float(rng.random() < 0.5)) for ticket in tickets)
        pulls -= len(tickets)
    made.ask(3, worker="<b>w</b>")
    return f"/experiments/{quote(settings['name'], safe='')}"


def test_names_are_text_wherever_they_stand(store: MemoryStore, call: Call) -> None:
    path = experiment(store, HOSTILE)
    page = Elements(call("GET", path).raw)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"i", "b", "img", "iframe", "style"}
    assert [each["src"] for tag, each in page.tags if tag == "script"] == ["../static/page.js"]
    assert not any(
        name.startswith("on") or name == "style" for _, each in page.tags for name in each
    )
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7*7 }}" in page.text
    assert "<b>w</b>" in page.text
    assert "x" * 301 not in page.text
    assert sum(tag == "bdi" for tag, _ in page.tags) >= len(HOSTILE)


def test_nothing_comes_from_elsewhere(store: MemoryStore, call: Call) -> None:
    page = Elements(call("GET", experiment(store, 5)).raw)
    addresses = [
        each.get(name) or "" for _, each in page.tags for name in ("src", "href", "action")
    ]
    assert not [each for each in addresses if "//" in each]


def test_the_script_is_short_and_leaves_no_room_for_markup() -> None:
    script = files("shortlist.service.pages").joinpath("static", "page.js").read_text()
    assert len(script.splitlines()) < 200
    assert not re.search(r"\beval\b|Function\(|document\.write|outerHTML|innerHTML\s*=", script)


def test_a_page_says_what_a_decision_needs(store: MemoryStore, call: Call) -> None:
    page = Elements(call("GET", experiment(store, 5)).raw).text
    for each in ("Choose 2 of 5 arms", "Pulls told 200", "Under way 3", "Told per minute"):
        assert each in page
    for each in ("Workers", "The search asked for", "undecided", "Remaining 9,800 pulls"):
        assert each in page


def test_a_finished_experiment_shows_its_answer_with_the_guarantee(
    store: MemoryStore, call: Call
) -> None:
    path = experiment(store, 4, 1, 10**6, epsilon=0.4, budget=None)
    page = Elements(call("GET", path).raw).text
    assert "Finished: the result has the guarantee that was asked for." in page
    assert "Result" in page
    assert re.search(r"If you go with this one, you give up at most 0\.\d+ of average reward", page)


def test_a_stopped_experiment_says_why(store: MemoryStore, call: Call) -> None:
    stopped = Experiment.create(3, 1, store=store, budget=30, retries=0)
    stopped.fail(stopped.ask()[0], "no <u>network</u>")
    page = Elements(call("GET", "/experiments/experiment").raw)
    assert "the last time: no <u>network</u>" in page.text
    assert "u" not in {tag for tag, _ in page.tags}


@pytest.mark.parametrize("n_arms", [2, 5, FEW, FEW + 1, 5000])
def test_a_picture_is_of_few_elements_whatever_the_number_of_arms(
    store: MemoryStore, call: Call, n_arms: int
) -> None:
    path = experiment(store, n_arms, 1, n_arms)
    raw = call("GET", path).raw
    page = Elements(raw)
    assert len(page.tags) < 900
    assert len(raw) < 80_000
    assert sum(tag == "polygon" for tag, _ in page.tags) == (n_arms > FEW)
    for tag, each in page.tags:
        if tag in ("polygon", "polyline"):
            corners = [pair.split(",") for pair in str(each["points"]).split()]
            assert all(0 <= float(x) <= 1000 and 0 <= float(y) <= 1000 for x, y in corners)


def test_the_list_leads_to_every_experiment(store: MemoryStore, call: Call) -> None:
    assert "No experiments yet" in Elements(call("GET", "/").raw).text
    path = experiment(store, 5)
    page = Elements(call("GET", "/").raw)
    assert path[1:] in [each.get("href") for tag, each in page.tags if tag == "a"]
    assert "<i>n</i>" in page.text


@pytest.mark.parametrize(
    "more", [{"max_rounds": 3}, {"min_batch": 300}, {"max_rounds": 10, "budget": 900}]
)
def test_a_bound_before_the_first_pull_is_no_trouble(
    store: MemoryStore, call: Call, more: dict[str, Any]
) -> None:
    address = experiment(store, 30, 1, 400, **{"epsilon": 0.3, "budget": None, **more})
    assert Experiment.open(store, "<i>n</i>").history()[0][0] == 0
    assert call("GET", address).status == 200


def test_a_retired_arm_is_on_the_page(store: MemoryStore, call: Call) -> None:
    address = experiment(store, ["red", "blue", "green", "grey"], 1)
    Experiment.open(store, "<i>n</i>").retire("blue", "sold out")
    text = Elements(call("GET", address).raw).text
    assert "× retired: 1" in text
    assert "blue was retired: sold out" in text


def test_retiring_an_arm_gives_no_ticket_back_in_the_log(store: MemoryStore, call: Call) -> None:
    made = Experiment.create(["a", "b", "c"], 1, store=store, budget=30, algorithm="uniform")
    tickets = made.ask(9)
    made.retire("c")
    made.tell_many((each, 1.0) for each in tickets if each.arm == "b" and each.draw)
    made.ask(3)
    page = Elements(call("GET", "/experiments/experiment").raw).text
    assert "gave back" not in page
    assert "Not counted yet" in page


def broken(*_: object) -> None:
    """Fail as only a mistake does."""
    raise ZeroDivisionError("by 0")


def test_a_browser_gets_every_error_as_a_page_and_a_program_as_json(
    store: MemoryStore, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = experiment(store, 3, 1)
    monkeypatch.setattr(store, "read", broken)
    for path, status in ((address, 500), ("/experiments/none", 404), ("/elsewhere", 404)):
        page = call("GET", path, accept="text/html,*/*")
        assert (page.status, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert page.headers["content-security-policy"]
        elements = Elements(page.raw)
        assert ("a", {"href": "/"}) in elements.tags
        assert f"{status}: " in elements.text
        assert "ZeroDivisionError" not in elements.text
        reply = call("GET", path)
        assert reply.status == status
        assert reply.error[1] in elements.text
    wrong = call("PUT", "/", accept="text/html")
    assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD, OPTIONS")


def test_a_stream_reports_an_error_of_the_service(
    store: MemoryStore, url: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = experiment(store, 3, 1)
    assert call("GET", address).status == 200  # and it is open
    monkeypatch.setattr(store, "read", broken)
    with urllib.request.urlopen(f"{url}{address}/stream", timeout=120) as stream:
        lines = [stream.readline().decode().strip() for _ in range(4)]
    assert lines[2] == "event: trouble"
    assert "see its log" in lines[3]


def test_a_missing_experiment_has_an_error_page(call: Call) -> None:
    reply = call("GET", "/experiments/none", accept="text/html,*/*")
    assert (reply.status, b"there is no experiment" in reply.raw) == (404, True)


def test_downloads_are_inert_in_a_spreadsheet(store: MemoryStore, call: Call) -> None:
    reply = call("GET", f"{experiment(store, HOSTILE)}/arms.csv")
    rows = list(csv.DictReader(io.StringIO(reply.raw.decode())))
    assert [row["arm"] for row in rows] == ["'=1+1" if each == "=1+1" else each for each in HOSTILE]
    assert "attachment" in str(reply.headers["content-disposition"])


def luminance(colour: str) -> float:
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4 for each in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("ground", ["ground", "raised"])
def test_contrast_is_aa(theme: int, ground: str) -> None:
    style = files("shortlist.service.pages").joinpath("static", "page.css").read_text()
    themes = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", themes[theme]))
    back = luminance(colours[ground])
    for name in ("text", "quiet", "link", "in", "undecided", "out", "alarm"):
        front = luminance(colours[name])
        ratio = (max(front, back) + 0.05) / (min(front, back) + 0.05)
        assert ratio >= 4.5, (name, ratio)


def arms_of(means: list[float], radius: float, k: int = 1) -> ArmsTold:
    centres = np.array(means)
    size = centres.size
    return ArmsTold(
        labels=tuple(map(str, range(size))),
        pulls=np.full(size, 10),
        waiting=np.zeros(size, dtype=np.int64),
        means=centres,
        low=centres - radius,
        high=centres + radius,
        places=("undecided",) * size,
        to_go=np.zeros(size, dtype=np.int64),
        chances=np.full(size, np.nan),
        known=np.zeros(size, dtype=np.int64),
    )


def test_what_intervals_prove_is_the_worst_choice_they_allow() -> None:
    """Against all sets of k arms and all corners of the intervals."""
    from itertools import combinations

    rng = np.random.default_rng(3)
    for _ in range(200):
        size = int(rng.integers(2, 7))
        k = int(rng.integers(1, size))
        means = rng.random(size)
        low, high = means - rng.random(size) / 3, means + rng.random(size) / 3
        chosen = set(np.argsort(-means, kind="stable")[:k].tolist())
        worst = max(
            sum(high[arm] for arm in set(other) - chosen)
            - sum(low[arm] for arm in chosen - set(other))
            for other in combinations(range(size), k)
        )
        problem = Problem(size, k, FixedBudget(9))
        assert regret_bound(means, low, high, problem) == pytest.approx(max(0, worst) / k)
        mirrored = Problem(size, k, FixedBudget(9), minimize=True)
        assert regret_bound(-means, -high, -low, mirrored) == pytest.approx(max(0, worst) / k)


def test_a_course_is_the_same_whether_it_is_read_or_watched(store: MemoryStore) -> None:
    made = Experiment.create(3, 1, store=store, budget=300, algorithm="uniform", rewards="binary")
    watched = BoundHistory()
    while tickets := made.ask(10):
        made.tell_many((ticket, ticket.seed % 2) for ticket in tickets)
        watched.extend(made, made.status())
    read = BoundHistory.of(*made.pulls_counted(), made.settings.problem, np.ones(3, dtype=np.bool_))
    assert read.pulls[-1] == 300
    assert read.bounds[-1] == pytest.approx(watched.last)
    assert not watched.by_search


def test_a_search_that_proves_something_is_believed_before_the_intervals() -> None:
    made = Experiment.create(4, 1, epsilon=0.1, rewards="binary")
    for _ in range(30):
        made.tell_many((ticket, float(ticket.arm == 0)) for ticket in made.ask(20))
    course = BoundHistory()
    course.extend(made, made.status())
    assert (course.by_search, course.last) == (True, made.status().bound)
    arms = made.status().arms
    assert course.last < regret_bound(arms.means, arms.low, arms.high, made.settings.problem)


def test_a_course_of_nothing_is_empty() -> None:
    made = Experiment.create(3, 1, budget=300)
    everybody = np.ones(3, dtype=np.bool_)
    assert BoundHistory.of(*made.pulls_counted(), made.settings.problem, everybody).pulls == []
    assert bound_chart([], [], 0.1) is None


@pytest.mark.parametrize(
    "asked", [{}, {"rewards": "binary", "quotas": {"x": (1, 1)}}], ids=["undeclared", "quotas"]
)
def test_intervals_bound_nothing_of_undeclared_rewards_or_of_sets_that_may_not_be_chosen(
    asked: dict[str, Any],
) -> None:
    arms = [Arm(name, group=group) for name, group in ("ax", "bx", "cy")]
    made = Experiment.create(arms, 2, budget=300, **asked)
    while tickets := made.ask(100):
        made.tell_many([(ticket, ticket.id % 2) for ticket in tickets])
    told = made.status().arms
    assert regret_bound(told.means, told.low, told.high, made.settings.problem) == math.inf


def test_a_line_begins_where_it_falls_and_is_thin() -> None:
    drawn = bound_chart(range(1, 5001), [1.0] * 1000 + np.geomspace(1, 0.01, 4000).tolist(), 0.05)
    assert drawn is not None
    assert drawn.across[0].startswith("1,0")
    assert drawn.across[1] == "5,000 pulls"
    assert len(drawn.points.split()) < 600
    assert drawn.up[0] == "0.01"
    assert 0.95 < float(drawn.up[1]) <= 1


def test_arms_beyond_the_few_are_the_best_and_those_around_the_border() -> None:
    many = arms_of(np.linspace(1, 0, 1000).tolist(), 0.1)
    order, axis = best_first(many), Axis.of(many)
    shown = [[bar.rank for bar in group] for group in bars(many, order, axis, 500)]
    assert shown == [list(range(1, 31)), list(range(486, 516))]
    near = [[bar.rank for bar in group] for group in bars(many, order, axis, 20)]
    assert near == [list(range(1, 36))]
    drawn = band(many, order, axis, 500)
    assert drawn.border == 500
    assert sum(width for *_, width in drawn.strips) == pytest.approx(1000, abs=1)


def test_an_axis_is_never_a_point() -> None:
    assert Axis.of(arms_of([0.5, 0.5], 0.0)) == Axis(0.0, 1.0)
    assert Axis.of(arms_of([float("nan")] * 2, float("nan"))) == Axis(0.0, 1.0)


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.2, "1 second"),
        (90, "90 seconds"),
        (600, "10 minutes"),
        (9000, "2 hours"),
        (9e5, "10 days"),
    ],
)
def test_durations_are_for_people(seconds: float, said: str) -> None:
    assert words.duration(seconds) == said


@pytest.mark.parametrize(
    ("value", "said"), [(7, "7"), (123, "120"), (98765, "99,000"), (1e30, "very many")]
)
def test_counts_are_about_right(value: float, said: str) -> None:
    assert words.count(value) == said


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (Event(Kind.STEP, 0, 1200, "abc", 0.0), "The search asked for 1,200 pulls"),
        (Event(Kind.STEP, 9, 0, "abc", 0.0), "The search finished"),
        (
            Event(Kind.LEASE, 0, 1, "", 60.0),
            "A worker got ticket 0, due 1970-01-01 00:01:00",
        ),
        (Event(Kind.LEASE, 0, 3, "ann", 0.0), "ann gave back tickets 0 to 2"),
        (Event(Kind.FAIL, 7, 1, "rain", 0.0), "Ticket 7 failed: rain"),
        (Event(Kind.RESUME, 0, 0, "", 0.0), "The experiment was resumed"),
        (Event(Kind.RETIRE, 0, 1, "sold out", 0.0), "blue was retired: sold out"),
        (Event(Kind.COST, 7, 1, "0.25", 0.0), "Ticket 7 cost 0.25"),
        (Event(Kind.LATE, 3, 2, "", 0.0), "The lease of tickets 3 to 4 ended: counted as late"),
        (
            Event(Kind.UNUSED, 3, 1, "1.0", 0.0),
            "Ticket 3 was told after its arm was retired: not used",
        ),
        (Event(Kind.SPENT, 0, 0, "", 0.0), "The rest of the budget does not cover"),
    ],
)
def test_the_log_describes_every_kind_of_event(event: Event, said: str) -> None:
    assert words.event_text(event, ("red", "blue"))[1].startswith(said)


def test_no_kind_of_event_is_without_a_sentence() -> None:
    of_the_list = {Kind.CREATE, Kind.RENAME, Kind.ARCHIVE, Kind.RESTORE, Kind.DELETE}
    for kind in set(Kind) - of_the_list - {Kind.RETIRE}:
        assert words.event_text(Event(kind, 0, 1, "", 0.0), ("red",))[1]


@pytest.mark.parametrize(
    ("kind", "text", "said"),
    [
        (Kind.OPEN, "", "Block monday was opened"),
        (Kind.COUNTS, '{"counts":[]}', "Block monday was told"),
        (Kind.COUNTS, '{"refused":true}', "Block monday was refused: its visitors do not fit"),
        (Kind.COUNTS, '{"refused":true,"void":"lost"}', "Block monday is void: lost"),
        (Kind.ASSIGN, "", "A visitor was assigned in block monday"),
    ],
)
def test_the_log_calls_blocks_by_their_names(kind: Kind, text: str, said: str) -> None:
    seen = words.event_text(Event(kind, 0, 0, text, 0.0), ("red",), ["monday"])[1]
    assert seen.startswith(said)


def result(**more: Any) -> Result:
    facts: dict[str, Any] = {
        "top": ("a", "b"),
        "regret_bound": 0.02,
        "confidence": 0.95,
        "reached": True,
        "pulls": 100,
        "goal": FixedConfidence(0.02, 0.05),
        "algorithm": "certified",
        "seed": 0,
        "seconds": 1.0,
        "arms": (),
        "rewards": Binary(),
        "minimize": False,
        "evidence": {},
    }
    return Result(**{**facts, **more})


def test_a_guarantee_is_a_sentence_without_symbols() -> None:
    assert words.guarantee(result()) == (
        "If you go with these 2, you give up at most 0.02 of average reward compared with the best"
        " 2 of all arms. Of 100 such statements at most 5 are wrong."
    )
    surer = words.guarantee(result(regret_bound=0.0200001, confidence=1 - 1e-5))
    assert "at most 0.02001 of average reward" in surer
    assert surer.endswith("Of 100,000 such statements at most 1 is wrong.")
    surest = words.guarantee(result(confidence=1 - 1e-15))
    assert surest.endswith("Of 1,000,000,000,000 such statements at most 0.001 are wrong.")
    cheap = words.guarantee(result(minimize=True))
    assert cheap.startswith("If you go with these 2, you pay at most 0.02 too much on average")
    budget = FixedConfidence(0.02, 0.05, 100)
    early = words.guarantee(result(reached=False, regret_bound=0.3, goal=budget, spent=100))
    assert early.startswith(
        "The budget ended before the precision asked for was reached. If you go"
    )
    nothing = words.guarantee(result(regret_bound=None, confidence=None, goal=FixedBudget(9)))
    assert "there is no guarantee" in nothing


def test_what_is_still_expected_follows_from_the_bound(store: MemoryStore, call: Call) -> None:
    path = experiment(store, 4, 1, 400, epsilon=0.01, budget=None)
    page = Elements(call("GET", path).raw).text
    assert re.search(r"Remaining up to about [\d,]+ pulls, \d+ \w+", page)
    unknown = experiment(store, 4, 1, 0, epsilon=0.01, budget=None, name="new")
    assert "Remaining not known yet" in Elements(call("GET", unknown).raw).text


def expected_still(page: str) -> int:
    """The largest number of pulls that the page expects."""
    found = re.search(r"Remaining (?:up to )?(?:about )?([\d,]+) pulls", page)
    assert found is not None, page
    return int(found[1].replace(",", ""))


@pytest.mark.filterwarnings("ignore:limits of arms allow")
def test_no_more_is_expected_than_limits_and_arms_that_stay_allow(
    store: MemoryStore, call: Call
) -> None:
    arms = [Arm(f"a{number}", limit=20) for number in range(8)]
    for name, asked in (("sure", {"epsilon": 0.01}), ("all", {"algorithm": "uniform"})):
        both = {"budget": None if name == "sure" else 10_000, **asked}
        path = experiment(store, arms, 2, 27, name=name, **both)
        made = Experiment.open(store, name)
        told = made.status().told
        page = Elements(call("GET", path).raw).text
        assert f"Remaining up to {160 - told:,} pulls" in page
        made.retire("a3")
        made.retire("a5")
        pulls = made.status().arms.pulls + made.status().arms.waiting
        left = 120 - int(pulls.sum() - pulls[[3, 5]].sum())
        assert expected_still(Elements(call("GET", path).raw).text) == left


def test_no_more_is_expected_than_the_test_set_and_the_money_allow(
    store: MemoryStore, call: Call
) -> None:
    known = np.full((4, 50), np.nan)
    known[:, :30] = 1
    path = experiment(store, 4, 1, 0, items=50, scores=known, epsilon=0.001, budget=None)
    page = Elements(call("GET", path).raw).text
    assert "Remaining up to 80 pulls" in page
    assert "Scores known before 120" in page
    dear = [Arm("a", cost=2), Arm("b", cost=5)]
    path = experiment(store, dear, 1, 0, epsilon=0.001, budget=101, name="dear")
    assert expected_still(Elements(call("GET", path).raw).text) <= 50


def test_tickets_that_are_overdue_are_on_the_page(store: MemoryStore, call: Call) -> None:
    made = Experiment.create(4, 1, store=store, budget=100, lease=0.001)
    made.ask(3, worker="ann")
    assert "Overdue 3" in Elements(call("GET", "/experiments/experiment").raw).text


def test_what_json_has_no_word_for_is_null() -> None:
    from shortlist.service.replies import json_reply

    reply = json_reply({"bound": float("inf"), "means": [float("nan"), 0.5]})
    assert bytes(reply.body) == b'{"bound":null,"means":[null,0.5]}'
