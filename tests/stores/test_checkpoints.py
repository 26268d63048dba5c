"""Checkpoints make opening fast and are never believed over the log."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attack_scale import SEED
from places import opening

from shortlist.engine import Experiment, verify
from shortlist.engine.log_entries import written_by
from shortlist.stores import News, Store, sql, sqlite
from shortlist.stores.checksums import Head, packed, unpacked
from shortlist.stores.sqlite import SQLiteStore

ROWS = 50


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql, "ROWS", ROWS)


def grown(store: Store, name: str = "experiment") -> Experiment:
    """An experiment whose log has rewards out of order, costs, failures and a retired arm."""
    experiment = Experiment.create(
        ["a", "b", "c", "d"], 1, store=store, name=name, budget=2000, algorithm="uniform"
    )
    chance = random.Random(7)
    for turn in range(12):
        tickets = list(experiment.ask(30, f"worker {turn}\0é"))
        chance.shuffle(tickets)
        with written_by("ann" if turn % 2 else ""):
            experiment.tell_many((ticket, chance.random(), 1.5) for ticket in tickets[:-2])
            experiment.fail(tickets[-1], "no network")
        if turn == 5:
            experiment.retire("d", "sold out")
    return experiment


def plain(news: News) -> Any:
    return list(news.told), list(news.events), news.last


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_log_is_the_same_with_and_without_checkpoints(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ = opening(kind, tmp_path)
    store: Any = open_()
    grown(store)
    count = "SELECT count(*) FROM checkpoints"
    ((made,),) = store._database.query(count)
    position = store.read("experiment").last
    assert made == position // ROWS > 5
    again: Any = open_()
    read: list[int] = []
    _read = sql.SQLStore._read

    def counted(self: sql.SQLStore, name: str, before: Head, head: Head) -> News:
        read.append(before.position)
        return _read(self, name, before, head)

    monkeypatch.setattr(sql.SQLStore, "_read", counted)
    hinted = plain(again.read("experiment", hints=True))
    assert read == [made * ROWS]
    assert hinted == plain(again.read("experiment"))
    quick = Experiment.open(open_())
    with store.exclusive():
        store._database.query("DELETE FROM checkpoints")
    slow = Experiment.open(open_())
    assert quick.status().summary() == slow.status().summary()
    assert quick.result(partial=True).to_dict() == slow.result(partial=True).to_dict()
    for each in (store, again, quick.store, slow.store):
        each.close()


def damaged(raw: bytes, chance: random.Random) -> bytes:
    """Some bits flipped, bytes lost, doubled, moved or added."""
    content = bytearray(raw)
    place, length = chance.randrange(len(content)), chance.randint(1, 40)
    match chance.randrange(6):
        case 0:
            content[place] ^= 1 << chance.randrange(8)
        case 1:
            del content[place : place + length]
        case 2:
            content[place:place] = content[place : place + length] or b"x"
        case 3:
            content[place : place + length] = chance.randbytes(length)
        case 4:
            del content[place:]
        case 5:
            content += chance.randbytes(length)
    return bytes(content)


def test_a_damaged_checkpoint_is_never_believed(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "a.db", "rwc")
    grown(store)
    news = store.read("experiment", 0, ROWS)
    before, head = store._before("experiment", 0), store._before("experiment", ROWS)
    raw = packed(news, before, head)
    found = unpacked(raw, before, head)
    assert found is not None
    assert plain(found) == plain(news)
    chance = random.Random(SEED)
    believed = 0
    for _ in range(10_000):
        changed = damaged(raw, chance)
        believed += changed != raw and unpacked(changed, before, head) is not None
    assert believed == 0
    for other in (Head(0, head.link), Head(ROWS, head.link ^ 1), Head(ROWS + 1, head.link)):
        assert unpacked(raw, before, other) is None
        assert unpacked(raw, other, head) is None
    assert unpacked(None, before, head) is unpacked("text", before, head) is None
    store.close()


def test_a_store_with_damaged_or_foreign_checkpoints_reads_its_log(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SQLiteStore(path, "rwc")
    grown(store)
    grown(store, "other")
    truth = plain(store.read("experiment"))
    store.close()
    chance = random.Random(SEED)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        rows = database.execute("SELECT * FROM checkpoints WHERE experiment = 1").fetchall()
        for turn in range(60):
            database.execute("DELETE FROM checkpoints WHERE experiment = 1")
            for experiment, first, last, link, content in rows:
                worse = damaged(content, chance) if chance.random() < 0.3 else content
                moved = first + (chance.random() < 0.05)
                row = (experiment, moved, last, link ^ (chance.random() < 0.05), worse)
                database.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?)", row)
            if turn == 0:  # those of another log
                database.execute("DELETE FROM checkpoints WHERE experiment = 1")
                database.execute(
                    "INSERT INTO checkpoints SELECT 1, first, last, link, content"
                    " FROM checkpoints WHERE experiment = 2"
                )
            again = SQLiteStore(path, "ro")
            assert plain(again.read("experiment", hints=True)) == truth
            again.close()


def test_damage_under_a_checkpoint_is_found_by_verify(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    store = SQLiteStore(path, "rwc")
    grown(store)
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        (made,) = database.execute(
            "SELECT sql FROM sqlite_schema WHERE name = 'rewards_refuse_UPDATE'"
        ).fetchone()
        database.execute("DROP TRIGGER rewards_refuse_UPDATE")
        database.execute("UPDATE rewards SET reward = 0.25 WHERE ticket = 3")
        database.execute(made)
    (verdict,) = verify(path)
    assert "was changed or lost" in verdict.damage
    assert sqlite.VERSION == 1
