"""Copies of a store and of an export are damaged in every way that disks, networks and people know:
each is refused, or says what the original said.

    SHORTLIST_ATTACK_SCALE=25 pytest tests/attack/test_damaged_stores.py

is 10,000 copies of each. A copy that passes for something else is named by its number, which,
added to the seed, is the seed of its damage."""

import io
import random
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attack_scale import SCALE, SEED

from shortlist.engine import Experiment, export_lines, import_lines, verify
from shortlist.errors import InvalidInput, ShortlistError, StoreError
from shortlist.stores import Store
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore

COPIES = 400 * SCALE
Chance = random.Random
Damage = Callable[[bytearray, Chance], None]
Content = dict[str, tuple[str, list[Any], list[Any]]]


# What is damaged


def write_store(path: Path) -> None:
    """Two experiments, half-way, with labels, failures and leases."""
    for name, arms in (("first", 6), ("second", ["a", "ß", "c\n", "d"])):
        settings: dict[str, Any] = {"algorithm": "adaptive-top-k", "epsilon": 0.2, "name": name}
        with Experiment.create(arms, 2, store=path, clock=lambda: 1e9, **settings) as experiment:
            for batch in range(12):
                tickets = experiment.ask(20, f"worker {batch}")
                experiment.tell_many((ticket, (ticket.seed % 97) / 97) for ticket in tickets[2:])
                if batch < 2:
                    experiment.fail(tickets[batch], "rain")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("original") / "store.db"
    write_store(path)
    return path


def content(store: Store) -> Content:
    """All that a store says."""
    found = {}
    for name in store.names():
        news = store.read(name)
        found[name] = store.settings(name), list(news.told.rows()), list(news.events)
    return found


# How it is damaged


def flip_bits(data: bytearray, chance: Chance) -> None:
    for _ in range(chance.choice((1, 1, 1, 2, 5, 20))):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def change_byte(data: bytearray, chance: Chance) -> None:
    data[chance.randrange(len(data))] = chance.randrange(256)


def cut(data: bytearray, chance: Chance) -> None:
    del data[chance.randrange(len(data)) :]


def cut_out(data: bytearray, chance: Chance) -> None:
    start, length = stretch(data, chance)
    del data[start : start + length]


def zero(data: bytearray, chance: Chance) -> None:
    start, length = stretch(data, chance)
    data[start : start + length] = bytes(length)


def repeat(data: bytearray, chance: Chance) -> None:
    start, length = stretch(data, chance)
    data[start:start] = data[start : start + length]


def swap_bytes(data: bytearray, chance: Chance) -> None:
    swap(data, chance, chance.choice((1, 2, 8, 40, 300)), 1)


def stretch(data: bytearray, chance: Chance) -> tuple[int, int]:
    start = chance.randrange(len(data))
    return start, min(len(data) - start, chance.choice((1, 3, 16, 100, 512, 4096)))


def swap(data: bytearray, chance: Chance, size: int, step: int) -> None:
    """Exchange two stretches of that size which begin at multiples of `step`."""
    one, two = (chance.randrange((len(data) - size) // step + 1) * step for _ in range(2))
    data[one : one + size], data[two : two + size] = (
        data[two : two + size],
        data[one : one + size],
    )


BYTES: tuple[Damage, ...] = (flip_bits, change_byte, cut, cut_out, zero, repeat, swap_bytes)


def swap_pages(data: bytearray, chance: Chance) -> None:
    swap(data, chance, 4096, 4096)


def copy_page(data: bytearray, chance: Chance) -> None:
    one, two = (chance.randrange(len(data) // 4096) * 4096 for _ in range(2))
    data[one : one + 4096] = data[two : two + 4096]


def change_cell(data: bytearray, chance: Chance) -> None:
    """Hit the head of a page, where SQLite counts its cells and says where they are."""
    data[chance.randrange(len(data) // 4096) * 4096 + chance.randrange(40)] = chance.randrange(256)


PAGES: tuple[Damage, ...] = (*BYTES, swap_pages, copy_page, change_cell)

ROWS = (  # what a program could do to the tables of a store
    "DELETE FROM {log} WHERE rowid_ = {row}",
    "UPDATE {log} SET time = time + 1 WHERE rowid_ = {row}",
    "UPDATE {log} SET ticket = ticket + 1000 WHERE rowid_ = {row}",
    "UPDATE {log} SET link = link + 1 WHERE rowid_ = {row}",
    "UPDATE {log} SET seq = seq + 100000 WHERE rowid_ = {row}",
    "UPDATE {log} SET seq = {row} WHERE seq = {other} AND experiment = {experiment}",
    "UPDATE rewards SET ticket = {row} WHERE ticket = {other} AND experiment = {experiment}",
    "DELETE FROM {log} WHERE seq >= {row}",
    "UPDATE rewards SET reward = 1 - reward WHERE rowid_ = {row}",
    "UPDATE rewards SET reward = 25 WHERE rowid_ = {row}",
    "UPDATE rewards SET arm = (arm + 1) % 4 WHERE rowid_ = {row}",
    "UPDATE events SET text = text || '!' WHERE rowid_ = {row}",
    "UPDATE events SET span = 4000000000000000000 WHERE rowid_ = {row}",
    "UPDATE heads SET last = last - 1 WHERE experiment = {experiment}",
    "UPDATE heads SET link = link - 1 WHERE experiment = {experiment}",
    "UPDATE heads SET first = first - 1 WHERE experiment = {experiment}",
    "DELETE FROM heads WHERE experiment = {experiment}",
    "UPDATE experiments SET settings = replace(settings, '0.2', '0.3') WHERE id = {experiment}",
    "UPDATE experiments SET name = name || '2' WHERE id = {experiment}",
    "DELETE FROM experiments WHERE id = {experiment}",
    "UPDATE {log} SET experiment = 3 - experiment WHERE rowid_ = {row}",
)


def change_rows(path: Path, chance: Chance) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        triggers = database.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        kept = triggers.fetchall()
        for name, _ in kept:
            database.execute(f"DROP TRIGGER {name}")
        where = "experiment = {experiment} AND seq = {row}"
        for _ in range(chance.choice((1, 1, 2))):
            statement = chance.choice(ROWS).replace("rowid_ = {row}", where)
            hit = {
                "log": chance.choice(("rewards", "events")),
                "experiment": chance.choice((1, 2)),
                "row": chance.randrange(1, 250),
                "other": chance.randrange(1, 250),
            }
            try:
                database.execute(statement.format(**hit))
            except sqlite3.Error:  # the tables refuse it
                continue
        for _, text in kept:
            database.execute(text)


# What must be true


def damaged_copies(original: Path, folder: Path, every: int = 1) -> Iterator[tuple[int, Path]]:
    """The copies with their numbers, or one in so many of them."""
    intact = original.read_bytes()
    for number in range(0, COPIES, every):
        chance, path = random.Random(SEED + number), folder / "copy.db"
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        data = bytearray(intact)
        if number % 3:
            chance.choice(PAGES)(data, chance)
        path.write_bytes(data)
        if number % 3 == 0:
            change_rows(path, chance)
        yield number, path


def read_store(path: Path, chance: Chance) -> Content:
    """What is found in it, whichever way it is opened."""
    mode = chance.choice(("ro", "rw"))
    with closing(SQLiteStore(path, "ro" if mode == "ro" else "rw", timeout=1)) as store:
        found = content(store)
        for name in found:
            Experiment.open(store, name, clock=lambda: 1e9).status()
    return found


def test_a_damaged_store_is_refused_or_read_unchanged(original: Path, tmp_path: Path) -> None:
    with closing(SQLiteStore(original, "ro")) as store:
        expected = content(store)
    ends: Counter[str] = Counter()
    for number, path in damaged_copies(original, tmp_path):
        try:
            found = read_store(path, random.Random(SEED + number))
        except StoreError as error:
            ends[type(error).__name__] += 1
        except BaseException as error:
            raise AssertionError(f"copy {number} raises {error!r}") from error
        else:
            assert found == expected, f"copy {number} says something else"
            ends["the same"] += 1
    print(f"{COPIES} damaged stores:", dict(ends))
    assert ends["StoreDamaged"] > COPIES // 3


def test_rewards_told_to_a_damaged_store_are_refused_or_kept(
    original: Path, tmp_path: Path
) -> None:
    """Damage that reading does not meet, of an index, must not lose what comes after it."""
    with closing(SQLiteStore(original, "ro")) as store:
        told = store.read("second").told.tickets.size
    kept = 0
    for number, path in damaged_copies(original, tmp_path, every=5):
        try:
            with Experiment.open(path, "second", clock=lambda: 1e9) as experiment:
                tickets = experiment.ask(3)
                experiment.tell_many((ticket, 0.25) for ticket in tickets)
            with Experiment.open(path, "second", clock=lambda: 1e9) as experiment:
                assert experiment.status().told == told + len(tickets), f"copy {number}"
            kept += 1
        except ShortlistError:
            continue
    assert kept > 0


def test_the_original_is_verified_and_a_changed_row_is_named(
    original: Path, tmp_path: Path
) -> None:
    assert [verdict.damage for verdict in verify(original)] == ["", ""]
    path = tmp_path / "copy.db"
    path.write_bytes(original.read_bytes())
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("DROP TRIGGER rewards_refuse_UPDATE")
        ((row,),) = database.execute("SELECT max(seq) FROM rewards WHERE experiment = 2")
        database.execute("UPDATE rewards SET reward = 0.5 WHERE experiment = 2 AND seq = ?", (row,))
        database.execute(
            """CREATE TRIGGER rewards_refuse_UPDATE BEFORE UPDATE ON rewards
            BEGIN SELECT RAISE (ABORT, 'the log is append-only'); END"""
        )
    first, second = verify(path)
    assert first.damage == ""
    assert f"row {row} of experiment 'second'" in second.damage


# Exports


def damaged_text(lines: list[str], chance: Chance) -> str:
    """An export with lines, or bytes, that are not as they were."""
    if chance.random() < 0.5:
        data = bytearray("".join(f"{line}\n" for line in lines).encode())
        chance.choice(BYTES)(data, chance)
        return data.decode()
    lines = list(lines)
    for _ in range(chance.choice((1, 1, 2, 4))):
        one, two = chance.randrange(len(lines)), chance.randrange(len(lines))
        chance.choice(LINES)(lines, one, two, chance)
    return "".join(f"{line}\n" for line in lines)


def change_digit(lines: list[str], one: int, _: int, chance: Chance) -> None:
    digits = [place for place, letter in enumerate(lines[one]) if letter.isdigit()]
    if digits:
        place = chance.choice(digits)
        lines[one] = lines[one][:place] + str(chance.randrange(10)) + lines[one][place + 1 :]


def move_line(lines: list[str], one: int, two: int, _: Chance) -> None:
    lines.insert(two, lines.pop(one))


def drop_line(lines: list[str], one: int, _: int, __: Chance) -> None:
    if len(lines) > 1:
        del lines[one]


def double_line(lines: list[str], one: int, two: int, _: Chance) -> None:
    lines.insert(two, lines[one])


def take_half_of_another(lines: list[str], one: int, two: int, chance: Chance) -> None:
    place = chance.randrange(len(lines[one]))
    lines[one] = lines[one][:place] + lines[two][place:]


LINES = (change_digit, move_line, drop_line, double_line, take_half_of_another)


def test_a_damaged_export_is_refused_or_read_unchanged(original: Path) -> None:
    lines = list(export_lines(original, "second"))
    before = MemoryStore()
    import_lines(lines, before)
    expected, ends = content(before), Counter[str]()
    for number in range(COPIES):
        store = MemoryStore()
        try:
            import_lines(io.StringIO(damaged_text(lines, random.Random(SEED + number))), store)
        except (InvalidInput, UnicodeDecodeError):  # of the second the command line makes the first
            ends["refused"] += 1
        except BaseException as error:
            raise AssertionError(f"copy {number} raises {error!r}") from error
        else:
            assert content(store) == expected, f"copy {number} says something else"
            ends["the same"] += 1
    print(f"{COPIES} damaged exports:", dict(ends))
    assert ends["refused"] > COPIES // 2
