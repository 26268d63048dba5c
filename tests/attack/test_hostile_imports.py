"""Exports and stores that were made to hang, fill or fool whoever takes them: each is refused in
words, soon, and before much memory is asked for."""

import json
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shortlist.engine import Experiment, import_lines
from shortlist.engine.export import linked_lines
from shortlist.engine.ledger import MOST_UNDER_WAY
from shortlist.errors import InvalidInput, ShortlistError, StoreDamaged
from shortlist.reading import files
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore
from shortlist.validation import MOST_ARMS

HUGE = 4 * 10**18
MOST_MEMORY = 50e6  # bytes
Entry = dict[str, Any]


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Fail if what is done asks for much memory at any moment."""
    tracemalloc.start()
    yield
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < MOST_MEMORY


def entries() -> list[Entry]:
    """A small experiment, as an export says it."""
    experiment = Experiment.create(4, 1, budget=40, store=MemoryStore(), clock=lambda: 5.0)
    experiment.tell_many((ticket, 0.5) for ticket in experiment.ask(6, "ann"))
    settings, news = experiment.settings.to_json(), experiment.store.read("experiment")
    events = [{"event": event.kind, **event._asdict()} for event in news.events]
    rewards = [
        {"reward": reward, "ticket": ticket, "arm": arm, "time": time}
        for ticket, arm, reward, time in news.told.rows()
    ]
    head = {"experiment": "experiment", "format": 1, "settings": json.loads(settings)}
    return [head, *events, *rewards, {"end": len(events) + len(rewards)}]


def setting(**changes: Any) -> Callable[[list[Entry]], None]:
    def change(entries: list[Entry]) -> None:
        entries[0]["settings"] |= changes

    return change


def event(place: int, **changes: Any) -> Callable[[list[Entry]], None]:
    """Change the first event, the step, or the second, a lease."""

    def change(entries: list[Entry]) -> None:
        entries[place] |= changes

    return change


def reward(**changes: Any) -> Callable[[list[Entry]], None]:
    return lambda entries: entries[-2].update(changes)


def long_lease(entries: list[Entry]) -> None:
    """A search of a giant budget that has handed out all of it."""
    entries[0]["settings"]["budget"] = HUGE
    entries[1]["span"] = entries[2]["span"] = HUGE


def nested(entries: list[Entry]) -> None:
    inner: Any = []
    for _ in range(500):
        inner = [inner]
    entries[0]["settings"]["options"] = {"x": inner}


HOSTILE = [
    (setting(arms=10**10), "`arms` is 10000000000, but must be"),
    (setting(arms=MOST_ARMS + 1), "`arms` is 1000001, but must be"),
    (setting(arms=1e10), "the settings of line 1"),
    (setting(arms=-3), "the settings of line 1"),
    (setting(k=10**10), "`k` is"),
    (setting(k=10**30), "`k` is"),
    (setting(retries=-1), "`retries` is"),
    (setting(seed=-1), "`seed` is"),
    (setting(rewards={"kind": "bounded", "low": 0, "high": 10**400}), "the settings of line 1"),
    (setting(rewards={"kind": "os.system"}), "the settings of line 1"),
    (setting(algorithm=["uniform"]), "the settings of line 1"),
    (event(1, span=HUGE), "no log of their search"),
    (event(1, span=10**30), "never handed out"),
    (event(2, span=HUGE), "never handed out"),
    (event(1, text="0" * 16), "other pulls in step 1"),
    (event(1, text=""), "other pulls in step 1"),
    (event(1, ticket=1), "it takes other steps"),
    (event(2, kind="lease", time=10**400), "line 3"),
    (event(2, text=["ann"]), "line 3 .* is no text"),
    (long_lease, f"must be at most {MOST_UNDER_WAY}|budget"),
    (reward(ticket=HUGE), "never handed out"),
    (reward(arm=1.0), "there is no arm 1.0"),
    (reward(reward="0.5"), "must be a number"),
    (reward(reward=None), "must be a number"),
    (nested, "the settings of line 1"),
]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(("change", "message"), HOSTILE)
def test_a_hostile_export_is_refused_with_little_memory(
    tmp_path: Path, change: Callable[[list[Entry]], None], message: str
) -> None:
    hostile = entries()
    change(hostile)
    with pytest.raises(InvalidInput, match=message):
        import_lines(linked_lines(hostile), tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


def test_the_unmodified_export_is_accepted(tmp_path: Path) -> None:
    assert import_lines(linked_lines(entries()), tmp_path / "store.db") == "experiment"


@pytest.mark.usefixtures("little_memory")
def test_a_line_without_end_is_refused_before_all_of_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Endless:
        """A file of one line."""

        def readline(self, limit: int) -> str:
            return "[" * limit

    monkeypatch.setattr(files, "LONGEST_LINE", 1_000_000)
    endless: Any = Endless()
    with pytest.raises(InvalidInput, match="1,000,000 characters"):
        import_lines(files._lines(endless, "endless.jsonl"), MemoryStore())


STEP = Event(Kind.STEP, 0, 40, "", 1.0)
FORGED: list[tuple[list[Any], list[Event], str]] = [
    ([], [STEP, Event(Kind.LEASE, 0, HUGE, "ann", 1.0)], "are under way at a time"),
    ([], [Event(Kind.LEASE, 0, 50_000, "ann", 1.0)], "its search asked for"),
    ([], [Event(Kind.LEASE, -1, 5, "ann", 1.0)], "no such event can be"),
    ([], [Event(Kind.LEASE, 0, -5, "ann", 1.0)], "no such event can be"),
    ([(HUGE, 0, 0.5, 1.0)], [], "are under way at a time"),
    ([(-1, 0, 0.5, 1.0)], [], "are under way at a time"),
    ([(0, 4, 0.5, 1.0)], [], "of an arm below 4"),
    ([(0, -1, 0.5, 1.0)], [], "of an arm below 4"),
    ([(0, 0, 25.0, 1.0)], [], "is 25.0 of arm 0 .* must be a number between 0 and 1"),
    ([(0, 0, -1e308, 1.0)], [], "must be a number between 0 and 1"),
    ([(0, 0, 0.5, float("inf"))], [], "the reward of ticket 0"),
    ([], [STEP] * 50, "in 50 steps|than it did"),
]


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(("told", "events", "message"), FORGED)
def test_a_store_whose_links_are_right_and_whose_rows_are_not_is_refused(
    tmp_path: Path, told: list[Any], events: list[Event], message: str
) -> None:
    path = tmp_path / "store.db"
    Experiment.create(4, 1, budget=40, rewards=(0, 1), store=path).close()
    with closing(SQLiteStore(path)) as store, store.exclusive():
        store.append("experiment", told, events)
    with pytest.raises(ShortlistError, match=message):
        Experiment.open(path)


@pytest.mark.usefixtures("little_memory")
def test_a_store_with_settings_for_too_many_arms_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    made = Experiment.create(4, 1, budget=40).settings.to_json()
    with closing(SQLiteStore(path, "rwc")) as store:
        store.create("experiment", made.replace('"arms": 4', f'"arms": {10**10}'))
    with pytest.raises(StoreDamaged, match="`arms` is 10000000000, but must be"):
        Experiment.open(path)


def test_only_a_bounded_number_of_tickets_is_handed_out_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.modules["shortlist.engine.replay"], "MOST_UNDER_WAY", 10)
    experiment = Experiment.create(4, 1, budget=40, algorithm="uniform")
    tickets = experiment.ask(30)
    assert (len(tickets), tickets.state) == (10, "pending")
    experiment.tell(tickets[3], 0.5)
    assert len(experiment.ask(30)) == 1
