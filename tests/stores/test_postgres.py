"""What PostgreSQL adds to what every store owes (tests/contracts/test_stores.py): servers that die,
answers that are lost, passwords, and tables that are not ours."""

import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from click.testing import CliRunner
from places import create
from postgres import PASSWORD, Server, shared_server
from proxies import Proxy, proxy

pytest.importorskip("psycopg", reason="pip install 'shortlist[postgres]'")

from shortlist.cli import main
from shortlist.engine import Experiment, verify
from shortlist.engine.locate import open_store
from shortlist.errors import (
    InvalidInput,
    StoreDamaged,
    StoreError,
    StoreExists,
    StoreInterrupted,
    StoreLocked,
    StoreMissing,
    StoreReadOnly,
    Unreachable,
)
from shortlist.stores import Event, Kind, RewardRow
from shortlist.stores import postgres as schema
from shortlist.stores.address import check_address, shown_place
from shortlist.stores.base import Scope, Token
from shortlist.stores.postgres import PostgresStore

REWARDS: list[RewardRow] = [(7, 3, 0.25, 1.5), (2, 0, 1.0, 2.5)]
LABELS = ["a", "b", "c"]
COMMIT = b"COMMIT\0"  # and not COMMITTED


@pytest.fixture(scope="module")
def mortal() -> Iterator[Server]:
    """A server that may be killed."""
    server = Server("-c", "fsync=off")
    yield server
    server.stop()


@pytest.fixture
def url() -> str:
    return shared_server().new_url()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url, "rwc", timeout=20)) as store:
        store.create("first", "{}")
        with store.exclusive():
            store.append("first", REWARDS)
        yield store


def told(store: Any, name: str = "first") -> list[RewardRow]:
    return list(store.read(name).told.rows())


def database(url: str) -> str:
    return url.rpartition("/")[2]


@contextmanager
def lossy(url: str) -> Iterator[tuple[Proxy, str]]:
    """A way to that database on which things get lost, and its address."""
    server = shared_server()
    with proxy(server.port) as way:
        yield way, f"postgresql://postgres@127.0.0.1:{way.port}/{database(url)}"


def test_a_store_is_made_by_a_new_experiment_only(url: str) -> None:
    for mode in ("ro", "rw"):
        with pytest.raises(StoreMissing, match="there is no store in postgresql://"):
            open_store(url, mode)
    Experiment.create(LABELS, 1, budget=30, store=url).close()
    with Experiment.open(url) as experiment:
        assert experiment.status().told == 0


def test_a_database_that_is_not_there_is_missing(url: str) -> None:
    with pytest.raises(StoreMissing, match='database "nowhere" does not exist'):
        PostgresStore(shared_server().url("nowhere"), "rwc")


def test_programs_that_make_a_store_at_once_make_one(url: str) -> None:
    made: list[PostgresStore] = []
    threads = [
        threading.Thread(target=lambda: made.append(PostgresStore(url, "rwc"))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    made[0].create("only", "{}")
    assert [store.names() for store in made] == [["only"]] * 4
    for store in made:
        store.close()


def test_who_only_reads_writes_nothing(store: PostgresStore, url: str) -> None:
    with closing(PostgresStore(url, "ro")) as reader:
        assert told(reader) == REWARDS
        with pytest.raises(StoreReadOnly, match="can be read, but not written"):
            reader.create("second", "{}")
    with Experiment.create(LABELS, 1, budget=30, store=url, name="third"):
        pass
    with (
        Experiment.open(url, "third", readonly=True) as looking,
        pytest.raises(StoreReadOnly, match="can be read, but not written"),
    ):
        looking.ask()


def test_tables_of_another_program_are_left_alone(url: str) -> None:
    shared_server().execute(url, "CREATE SCHEMA shortlist; CREATE TABLE shortlist.x (y text)")
    with pytest.raises(StoreDamaged, match="has tables of another program in its schema"):
        PostgresStore(url, "rwc")


def test_a_schema_that_an_administrator_made_is_used(url: str) -> None:
    shared_server().execute(url, "CREATE SCHEMA shortlist")
    with closing(PostgresStore(url, "rwc")) as store:
        assert store.names() == []


def test_a_store_of_a_later_version_is_refused(store: PostgresStore, url: str) -> None:
    shared_server().execute(url, "UPDATE shortlist.version SET version = 99")
    with pytest.raises(
        StoreError, match="has schema version 99, but this version of shortlist knows at most 1"
    ):
        PostgresStore(url)


def test_tables_that_cannot_be_made_leave_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema, "TABLES", (*schema.TABLES, "this is no statement"))
    with pytest.raises(StoreError, match="syntax error"):
        PostgresStore(url, "rwc")
    monkeypatch.undo()
    with pytest.raises(StoreMissing, match="there is no store"):
        PostgresStore(url)
    with closing(PostgresStore(url, "rwc")) as store:
        assert store.names() == []


def test_a_database_in_another_encoding_is_refused() -> None:
    server = shared_server()
    make = "CREATE DATABASE latin ENCODING LATIN1 LOCALE 'C' TEMPLATE template0"
    server.execute(server.url("postgres"), make)
    with pytest.raises(StoreError, match="has the encoding LATIN1, but must be a database in UTF8"):
        PostgresStore(server.url("latin"), "rwc")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE shortlist.rewards SET reward = 0",
        "DELETE FROM shortlist.events",
        "TRUNCATE shortlist.rewards",
        "UPDATE shortlist.experiments SET name = 'x'",
        "DELETE FROM shortlist.tokens",
        "UPDATE shortlist.tokens SET scope = 'admin'",
    ],
)
def test_the_database_itself_refuses_to_change_what_was_written(
    store: PostgresStore, url: str, change: str
) -> None:
    store.add_token(Token("ann", Scope.READ, "ab", 1.0))
    with pytest.raises(Exception, match=r"append-only|only ever revoked|never removed"):
        shared_server().execute(url, change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("UPDATE rewards SET reward = 0 WHERE seq = 1", "row 1 of experiment 'first'"),
        ("DELETE FROM rewards WHERE seq = 2", "the log ends after row 1"),
        (
            "UPDATE heads SET last = 1 WHERE experiment = 1",
            "has a row 2 after the end of experiment 1",
        ),
        ("UPDATE experiments SET settings = '[]'", "the settings of experiment 'first'"),
        ("DELETE FROM experiments", "its list of experiments is incomplete"),
        (
            "INSERT INTO rewards VALUES (1, 9, 9, 0, 1, 1, 1)",
            "has a row 9 after the end of experiment 1",
        ),
    ],
)
def test_damage_is_found_and_named(store: PostgresStore, url: str, change: str, words: str) -> None:
    harm = f"SET session_replication_role = replica; SET search_path = shortlist; {change}"
    shared_server().execute(url, harm)
    try:
        found = " ".join(verdict.damage for verdict in verify(url))
    except StoreDamaged as error:
        found = str(error)
    assert words in found


def test_writers_of_one_experiment_wait_and_those_of_others_do_not(
    store: PostgresStore, url: str
) -> None:
    store.create("second", "{}")
    with closing(PostgresStore(url, timeout=2)) as other, store.exclusive():
        store.append("first", [(1, 0, 1.0, 1.0)])
        with other.exclusive():
            other.append("second", [(1, 0, 1.0, 1.0)])
        locked = r"was locked by another program for more than 2 s"
        with pytest.raises(StoreLocked, match=locked), other.exclusive():
            other.append("first", [(3, 0, 1.0, 1.0)])
    assert told(store, "second") == [(1, 0, 1.0, 1.0)]
    assert told(store) == [*REWARDS, (1, 0, 1.0, 1.0)]


def test_one_of_two_who_wait_for_each_other_begins_again(store: PostgresStore, url: str) -> None:
    store.create("second", "{}")
    both = threading.Barrier(2, timeout=60)
    met = threading.Event()

    def write(own: PostgresStore, names: tuple[str, str], ticket: int) -> None:
        from shortlist.stores.base import retry

        def step() -> None:
            with own.exclusive():
                own.append(names[0], [(ticket, 0, 1.0, 1.0)])
                if not met.is_set():
                    both.wait()
                    met.set()
                own.append(names[1], [(ticket, 0, 1.0, 1.0)])

        retry(step)

    with closing(PostgresStore(url)) as other:
        threads = [
            threading.Thread(target=write, args=(store, ("first", "second"), 100)),
            threading.Thread(target=write, args=(other, ("second", "first"), 101)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert sorted(row[0] for row in told(store, "second")) == [100, 101]
    assert sorted(row[0] for row in told(store)) == [2, 7, 100, 101]


def test_a_statement_that_was_refused_and_passed_over_writes_nothing(store: PostgresStore) -> None:
    def passed_over() -> None:
        with store.exclusive():
            store.append("first", [(50, 0, 1.0, 1.0)])
            with pytest.raises(Exception, match="one_reward_a_ticket"):
                store.append("first", REWARDS)

    with pytest.raises(StoreError, match="nothing was written"):
        passed_over()
    assert told(store) == REWARDS


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_a_store_that_is_carried_into_another_process_is_refused(store: PostgresStore) -> None:
    child = os.fork()
    if child == 0:
        try:
            store.names()
        except StoreError as error:
            os._exit(0 if "open the experiment again in every process" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    assert told(store) == REWARDS


@pytest.mark.parametrize("arrives", [False, True])
def test_a_commit_whose_answer_was_lost_is_made_once(
    store: PostgresStore, url: str, arrives: bool
) -> None:
    with lossy(url) as (way, through), closing(PostgresStore(through)) as far:
        attempts = []

        def tell() -> None:
            with far.exclusive():
                attempts.append(1)
                far.append("first", [(1, 0, 1.0, 1.0)], [Event(Kind.FAIL, 3, 1, "no", 4.0)])

        way.cut_at(COMMIT, arrives=arrives)
        if arrives:
            tell()
        else:
            with pytest.raises(StoreInterrupted, match="nothing of this step was written"):
                tell()
            tell()
        assert way.cuts == 1
    assert told(store) == [*REWARDS, (1, 0, 1.0, 1.0)]
    assert len(store.read("first").events) == 1


@pytest.mark.parametrize("arrives", [False, True])
@pytest.mark.parametrize("word", [COMMIT, b"INSERT", b"UPDATE", b"BEGIN", b"FOR UPDATE"])
def test_an_experiment_asks_and_tells_once_whatever_is_lost(
    url: str, word: bytes, arrives: bool
) -> None:
    Experiment.create(LABELS, 1, budget=30, algorithm="uniform", store=url).close()
    with lossy(url) as (way, through), Experiment.open(through) as experiment:
        way.cut_at(word, arrives=arrives)
        tickets = experiment.ask(4)  # of nobody: who asks again would get others
        assert [ticket.id for ticket in tickets] == [0, 1, 2, 3]
        way.cut_at(word, arrives=arrives)
        experiment.tell_many((ticket, 0.5) for ticket in tickets)
        assert way.cuts == 2
        assert experiment.status().told == 4
        assert experiment.status().held == 0
    with Experiment.open(url) as other:
        assert other.status().told == 4
        assert [ticket.id for ticket in other.ask(2)] == [4, 5]


@pytest.mark.parametrize("arrives", [False, True])
def test_experiments_and_tokens_are_made_once_whatever_is_lost(url: str, arrives: bool) -> None:
    PostgresStore(url, "rwc").close()
    with lossy(url) as (way, through), closing(PostgresStore(through)) as store:
        way.cut_at(COMMIT, arrives=arrives)
        create(LABELS, 1, budget=30, store=store)
        way.cut_at(COMMIT, arrives=arrives)
        store.add_token(Token("ann", Scope.READ, "ab", 1.0))
        way.cut_at(COMMIT, arrives=arrives)
        store.revoke_token("ann", 2.0)
        assert way.cuts == 3
        with pytest.raises(StoreExists):
            store.add_token(Token("ann", Scope.READ, "cd", 1.0))
        assert store.names() == ["experiment"]
        assert [token.revoked for token in store.tokens()] == [2.0]


def test_a_server_that_is_killed_and_comes_back_is_waited_for(mortal: Server) -> None:
    with Experiment.create(
        LABELS, 1, budget=60, algorithm="uniform", store=mortal.new_url()
    ) as experiment:
        (first, second, *_) = experiment.ask(6, worker="ann")
        experiment.tell(first, 0.5)
        mortal.kill()
        back = threading.Timer(0.3, mortal.start)
        back.start()
        experiment.tell(second, 0.25)
        back.join()
        mortal.kill()
        mortal.start()
        assert experiment.status().told == 2
        assert len(experiment.ask(9, worker="ann")) == 9


def test_a_server_that_stays_away_is_an_error_that_names_it(mortal: Server) -> None:
    url = mortal.new_url()
    with closing(PostgresStore(url, "rwc")) as store:
        store.create("first", "{}")
    with closing(PostgresStore(url, timeout=2)) as store:
        mortal.kill()
        try:
            with pytest.raises(Unreachable, match=re.escape(url)):
                store.read("first")
            with pytest.raises(Unreachable, match=re.escape(url)), store.exclusive():
                pass
            with pytest.raises(Unreachable, match="does not answer"):
                PostgresStore(url, timeout=0.1)
        finally:
            mortal.start()
        assert store.names() == ["first"]


@pytest.fixture
def secret_url(url: str) -> str:
    return url.replace("postgres@", f"ann:{PASSWORD}@")


def test_a_password_is_used_and_never_shown(
    secret_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    run = CliRunner().invoke
    environment = {"SHORTLIST_STORE": secret_url}
    said = ""
    for line in (
        "create - -k 1 --budget 30",
        "create - -k 1 --budget 30",
        "ask --limit 2",
        "status",
        "status --name nobody",
        "tokens create ann --scope read",
        "tokens create ann --scope read",
        "list",
        "verify",
    ):
        given = [*line.split(), *([secret_url] if line in ("list", "verify") else [])]
        result = run(main, given, input="a\nb\nc\n", env=environment)
        said += result.output + repr(result.exception)
    with closing(open_store(secret_url, "ro")) as store:
        said += repr(store) + repr(vars(store)["_connections"].place)
    with pytest.raises(StoreError, match="authentication failed") as caught:
        PostgresStore(secret_url.replace(PASSWORD, f"{PASSWORD}X"))
    said += str(caught.value) + caplog.text
    assert "postgresql://ann@127.0.0.1" in said
    assert PASSWORD not in said


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ann:hush@hush@host/db",
        "postgresql://ann:hush/hush@host/db",
        "postgresql://ann:hush?hush@host/db",
        "postgresql://ann:hush#hush@host/db",
        "postgresql://ann:hush%hush@host/db",
        "postgresql://ann:hush%00@host/db",
        "postgresql://ann:hush hush@host/db",
        "postgresql://host:hush/db",
        "postgresql://ann:hush@host/db?passwordhush",
        "postgresql://ann:hush@host/db?nothing=hush&password=hush",
    ],
)
def test_an_address_that_can_be_misread_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(InvalidInput, match=r"`store` is postgresql://") as caught:
        PostgresStore(address)
    shown = str(caught.value).replace("passwordhush", "")
    assert "hush" not in shown
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("postgres://ann:hush@host:5432/db?sslmode=require", "postgresql://ann@host:5432/db"),
        ("postgresql://[::1]:5432/db", "postgresql://[::1]:5432/db"),
        ("postgresql://h1:1,h2:2/db", "postgresql://h1:1,h2:2/db"),
        ("postgresql:///db?host=/run/pg&password=hush", "postgresql:///db"),
        ("postgresql://ann:p%40ss@host/db", "postgresql://ann@host/db"),
        ("tests.db", "tests.db"),
    ],
)
def test_an_address_is_shown_without_password_and_settings(address: str, shown: str) -> None:
    assert shown_place(address) == shown
    if address != shown:
        check_address(address)


def test_without_the_driver_the_error_names_the_extra() -> None:
    """In a process of its own: a module imported twice here would break other tests."""
    code = """if True:
        import sys
        sys.modules["psycopg"] = None
        import shortlist
        try:
            shortlist.Experiment.create(3, 1, budget=30, store="postgresql://ann:hush@host/db")
        except shortlist.errors.InvalidInput as error:
            print(error)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "psycopg is not installed" in done.stdout
    assert "shortlist[postgres]" in done.stdout
    assert "hush" not in done.stdout
