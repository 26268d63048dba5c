"""An experiment travels as lines of JSON and goes on where it stood."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from shortlist.algorithms import ALGORITHMS
from shortlist.engine import Experiment, export_lines, import_lines
from shortlist.errors import CannotReplay, InvalidInput, StoreExists
from shortlist.stores import Store
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore

LABELS = ["plain", 'tïtle, with "quotes"', "-n", "new\nline"]


@pytest.fixture
def store() -> Store:
    """An experiment in its second round, with open tickets and a failure."""
    store = MemoryStore()
    experiment = Experiment.create(
        LABELS, 1, store=store, epsilon=0.3, algorithm="adaptive-top-k-tight", clock=lambda: 7.25
    )
    tickets = experiment.ask(10_000)
    experiment.tell_many((ticket, (ticket.id % 10) / 10) for ticket in tickets)
    first, *_ = experiment.ask(5, "ann")
    experiment.fail(first, "no network")
    return store


def finish(experiment: Experiment) -> Any:
    while tickets := experiment.ask(100, "ann"):
        experiment.tell_many((ticket, (ticket.id % 7) / 7) for ticket in tickets)
    return experiment.result()


def test_an_imported_experiment_goes_on_where_it_stood(store: Store, tmp_path: Path) -> None:
    lines = list(export_lines(store, "experiment"))
    file = SQLiteStore(tmp_path / "store.db", "rwc")
    assert import_lines(lines, file) == "experiment"
    assert list(export_lines(file, "experiment")) == lines
    there, here = (Experiment.open(each, clock=lambda: 7.5) for each in (file, store))
    assert str(there.status()) == str(here.status())
    assert finish(there) == finish(here)
    file.close()


def test_an_import_may_be_given_another_name_and_never_replaces(store: Store) -> None:
    lines = list(export_lines(store, "experiment"))
    with pytest.raises(StoreExists):
        import_lines(lines, store)
    assert import_lines(lines, store, "copy") == "copy"
    assert store.names() == ["experiment", "copy"]


def test_lines_say_arms_by_their_labels(store: Store) -> None:
    head, *entries, end = (json.loads(line) for line in export_lines(store, "experiment"))
    assert (head["experiment"], head["settings"]["arms"], end) == (
        "experiment",
        LABELS,
        {"end": len(entries), "link": end["link"]},
    )
    rewards = [entry for entry in entries if "reward" in entry]
    assert [entry["arm"] for entry in rewards[:4]] == LABELS
    assert rewards[3] == {"reward": 0.3, "ticket": 3, "arm": "new\nline", "time": 7.25} | {
        "link": rewards[3]["link"]
    }
    assert {entry["event"] for entry in entries if "event" in entry} == {"step", "lease", "fail"}


def unlinked(lines: Iterable[str]) -> list[str]:
    """Lines without their links, to be changed and linked again."""
    return [re.sub(r', "link": "[0-9a-f]{8}"}$', "}", line) for line in lines]


def linked(lines: Iterable[str]) -> list[str]:
    """Lines with the links that belong to what they say now; those that are no JSON stay so."""
    link, done = 0, []
    for line in lines:
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            done.append(line)
            continue
        spelled = json.dumps(said, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        link = crc32(spelled.encode("utf-8", "surrogatepass"), link)
        done.append(f'{line[:-1]}, "link": "{link:08x}"}}')
    return done


def test_what_cannot_be_continued_can_be_exported(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = list(export_lines(store, "experiment"))
    monkeypatch.delitem(ALGORITHMS, "adaptive-top-k-tight")
    with pytest.raises(CannotReplay):
        Experiment.open(store)
    assert list(export_lines(store, "experiment")) == expected


@pytest.mark.parametrize(
    ("old", "new"), [("adaptive-top-k-tight", "gone"), ('"version": 1', '"version": 9')]
)
def test_what_another_version_made_can_be_imported_but_for_rewards_that_cannot_be(
    store: Store, old: str, new: str
) -> None:
    lines = [line.replace(old, new) for line in unlinked(export_lines(store, "experiment"))]
    assert import_lines(linked(lines), store, "copy") == "copy"
    with pytest.raises(
        InvalidInput, match=r"line 7 is .* is 25, but must be a number between 0 and 1"
    ):
        import_lines(linked(edited('"reward": 0.0', '"reward": 25')(lines)), store, "another")


def edited(old: str, new: str) -> Any:
    """Damage by replacing the first occurrence of a text."""
    return lambda lines: "".join(f"{line}\n" for line in lines).replace(old, new, 1).splitlines()


DAMAGES: list[tuple[Any, str]] = [
    (lambda lines: [], "line 1 is '', but must be a JSON object"),
    (lambda lines: lines[1:], "line 1 is .*, but must be .*experiment"),
    (lambda lines: lines[:-1], "the last line is missing: the export was cut off"),
    (lambda lines: lines[:20], "the last line is missing: the export was cut off"),
    (lambda lines: [*lines[:20], lines[20][:-7]], "line 21 is .*, but must be a JSON object"),
    (
        lambda lines: [*lines[:9], *lines[10:]],
        r"line \d+ ends an export of \d+ entries, but there are \d+",
    ),
    (lambda lines: [*lines, lines[-1]], "ends an export of"),
    (
        lambda lines: [*lines[:21], lines[20], *lines[21:]],
        "line 22 is .*: a second reward for a ticket",
    ),
    (
        lambda lines: [lines[0], '{"event": "party", "ticket": 1}'],
        "line 2 is .*, but must be an event or a reward",
    ),
    (
        lambda lines: [lines[0], '{"reward": 1, "ticket": 1, "arm": "plain", "time": 1}'],
        "line 2 .* never handed out",
    ),
    (edited('"arm": "plain"', '"arm": "who"'), "line 7 is .*: there is no arm 'who'"),
    (
        edited('"reward": 0.0', '"reward": 25'),
        r"line 7 is .* is 25, but must be a number between 0 and 1",
    ),
    (
        edited('"reward": 0.0', '"reward": NaN'),
        r"line 7 is .* is nan, but must be a number between 0 and 1",
    ),
    (
        edited('"reward": 0.0', f'"reward": {10**400}'),
        "line 7 is .* must be a number between 0 and 1",
    ),
    (
        edited('"ticket": 0, "arm"', '"ticket": 2.5, "arm"'),
        "line 7 is .*: `ticket` is 2.5, but must be a whole",
    ),
    (
        edited('"ticket": 0, "arm"', f'"ticket": {10**20}, "arm"'),
        "line 7 is .*: ticket 10+ was never handed out",
    ),
    (edited('"ticket": 0, "arm"', '"arm"'), "line 7 is .*: there is no 'ticket'"),
    (
        edited('"ticket": 0, "span"', '"ticket": -1, "span"'),
        "line 2 is .*: `ticket` is -1, but must be",
    ),
    (
        edited('"span": ', f'"span": {10**20}'),
        "line 2 is .*: ticket [0-9]+ was never handed out",
    ),
    (edited('"time": 7.25', '"time": Infinity'), "line 2 is .*: `time` is inf, but must be"),
    (edited('"k": 1', '"k": 9'), "the settings of line 1 make no sense: `k` is 9, but must be"),
    (
        edited('"budget": null', '"budget": "x"'),
        "the settings of line 1 make no sense: `budget` is 'x'",
    ),
    (edited('"seed": 0', '"seed": -4'), "the settings of line 1 make no sense: `seed` is -4"),
    (edited('"low": 0', '"low": 3'), "the settings of line 1 make no sense: `high` is 1"),
    (edited('"k": 1, ', ""), "the settings of line 1 cannot be read: .*'k'"),
    (edited('"plain"', '"\\ud800"'), "but must be valid Unicode"),
    (
        edited('"experiment": "experiment"', '"experiment": "\\ud800"'),
        "`name` is .*, but must be a text in UTF-8",
    ),
    (
        edited('"experiment": "experiment"', '"experiment": ""'),
        "`name` is '', but must be a text that is not empty",
    ),
    (lambda lines: ["[" * 100_000], "line 1 is .*, but must be a JSON object"),
    (lambda lines: ["", "\n", "x"], "line 3 is 'x', but must be a JSON object"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_lines_that_make_no_sense_are_refused_by_number_though_their_links_hold(
    store: Store, tmp_path: Path, damage: Any, message: str
) -> None:
    lines = linked(damage(unlinked(export_lines(store, "experiment"))))
    with pytest.raises(InvalidInput, match=message):
        import_lines(lines, tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        *(damage for damage, _ in DAMAGES),
        edited('"reward": 0.3', '"reward": 0.4'),
        edited('"time": 7.25', '"time": 7.5'),
        edited('"event": "lease"', '"event": "fail"'),
        edited('"text": "ann"', '"text": "Ann"'),
        edited('"format": 1, "settings"', '"format": 2, "settings"'),
        edited('"seed": 0', '"seed": 1'),
        lambda lines: [*lines[:8], lines[9], lines[8], *lines[10:]],
        lambda lines: [*lines[:8], *lines[9:-1], lines[-1].replace("end", "END")],
    ],
)
def test_any_change_of_an_export_is_refused_and_nothing_is_written(
    store: Store, tmp_path: Path, damage: Any
) -> None:
    lines = list(export_lines(store, "experiment"))
    assert damage(lines) != lines
    with pytest.raises(InvalidInput):
        import_lines(damage(lines), tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


def test_another_spelling_of_the_same_export_is_taken(store: Store) -> None:
    lines = [
        json.dumps(json.loads(line), sort_keys=True, indent=1).replace("\n", " ")
        for line in export_lines(store, "experiment")
    ]
    assert import_lines(["", *lines, " "], store, "copy") == "copy"
    assert store.read("copy").events == store.read("experiment").events


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (edited('"text": "', '"text": "0'), "other pulls in step 1 than it did"),
        (edited('"span": 1', '"span": 2'), "it takes other steps|never handed out"),
        (edited('"arm": "plain"', '"arm": "-n"'), "are not those asked for"),
    ],
)
def test_a_log_that_its_search_would_not_go_on_with_is_refused(
    store: Store, tmp_path: Path, damage: Any, message: str
) -> None:
    lines = linked(damage(unlinked(export_lines(store, "experiment"))))
    with pytest.raises(InvalidInput, match=f"the lines are no log of their search: .*({message})"):
        import_lines(lines, tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", [0, 2, "1", None])
def test_another_format_is_refused(store: Store, tmp_path: Path, other: object) -> None:
    first, *lines = unlinked(export_lines(store, "experiment"))
    changed = first.replace('"format": 1, "settings"', f'"format": {json.dumps(other)}, "settings"')
    with pytest.raises(InvalidInput, match=r'line 1 is .*, but must be .*"format": 1'):
        import_lines(linked([changed, *lines]), tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


def test_lines_without_links_are_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"line 1 is .*, but its link must be"):
        import_lines(unlinked(export_lines(store, "experiment")), tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []
