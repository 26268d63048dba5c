"""What every store promises, whatever it is made of."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import STORES, opening
from waiting import until

from shortlist.errors import StoreError, StoreExists, StoreMissing
from shortlist.stores import Event, Kind, News, RewardRow, Store
from shortlist.stores.base import Scope, Token, TokenStore

LEASE = Event(Kind.LEASE, 0, 50, "a worker", 99.5)
REWARDS: list[RewardRow] = [(7, 3, 0.25, 1.5), (2, 0, 1.0, 2.5)]
Opener = Callable[[], Store]


@pytest.fixture(params=STORES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens the same store again and again, as other programs would."""
    opened: list[Store] = []
    open_ = opening(request.param, tmp_path)

    def another() -> Store:
        store = open_()
        opened.append(store)
        return store

    yield another
    for store in opened:
        store.close()


@pytest.fixture
def store(opener: Opener) -> Store:
    store = opener()
    store.create("first", '{"k": 1}')
    return store


def rows(news: News) -> list[RewardRow]:
    return list(news.told.rows())


def test_a_new_experiment_has_its_settings_and_an_empty_log(store: Store) -> None:
    assert store.names() == ["first"]
    assert store.settings("first") == '{"k": 1}'
    news = store.read("first")
    assert (rows(news), list(news.events), news.last) == ([], [], 0)


def test_experiments_are_listed_in_the_order_in_which_they_were_made(store: Store) -> None:
    for name in ("zebra", "été 'quoted' \"twice\"", "ant"):
        store.create(name, "{}")
    assert store.names() == ["first", "zebra", "été 'quoted' \"twice\"", "ant"]


def test_a_name_is_taken_once_and_the_first_stays(store: Store) -> None:
    with pytest.raises(StoreExists, match=r"there is an experiment 'first' in .* already"):
        store.create("first", '{"k": 2}')
    assert store.settings("first") == '{"k": 1}'


@pytest.mark.parametrize("method", ["settings", "read", "append"])
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(store: Store, method: str) -> None:
    with (
        store.exclusive(),
        pytest.raises(
            StoreMissing, match=r"there is no experiment 'second' in .*; it holds 'first'"
        ),
    ):
        getattr(store, method)("second")


def test_every_reader_sees_appended_rows_in_order(store: Store, opener: Opener) -> None:
    with store.exclusive():
        store.append("first", REWARDS, [LEASE])
        store.append("first", events=[Event(Kind.FAIL, 3, 1, "no\nluck", 4.0)])
    with store.exclusive():
        store.append("first", [(0, 1, -2.5, 5.0)])
    for reader in (store, opener()):
        news = reader.read("first")
        assert rows(news) == [*REWARDS, (0, 1, -2.5, 5.0)]
        assert list(news.events) == [LEASE, Event(Kind.FAIL, 3, 1, "no\nluck", 4.0)]


@pytest.mark.parametrize("again", [[REWARDS[0]], [(7, 3, 0.5, 9.0)], [(9, 1, 0, 1), (9, 1, 1, 1)]])
def test_a_second_reward_for_a_ticket_is_refused_and_nothing_of_its_block_is_written(
    store: Store, again: list[RewardRow]
) -> None:
    with store.exclusive():
        store.append("first", REWARDS)

    def twice() -> None:
        with store.exclusive():
            store.append("first", [(1, 1, 0.5, 3.0)])
            store.append("first", again)

    with pytest.raises(StoreError):
        twice()
    assert rows(store.read("first")) == REWARDS


def test_a_reader_never_sees_half_of_what_a_block_writes(store: Store, opener: Opener) -> None:
    seen: list[int] = []
    over = threading.Event()

    def look() -> None:
        reader = opener()
        while not over.is_set():
            seen.append(len(rows(reader.read("first"))))

    thread = threading.Thread(target=look)
    thread.start()
    until(lambda: seen, "the reader sees nothing")
    for block in range(30):
        with store.exclusive():
            for half in (2 * block, 2 * block + 1):
                store.append("first", [(half, 0, 1.0, 1.0)])
    until(lambda: seen[-1] == 60, "the reader does not see the last block")
    over.set()
    thread.join()
    assert {count % 2 for count in seen} == {0}


def test_reading_continues_where_the_last_read_ended(store: Store, opener: Opener) -> None:
    other = opener()
    with store.exclusive():
        store.append("first", REWARDS, [LEASE])
    seen = other.read("first").last
    nothing = other.read("first", seen)
    assert (rows(nothing), list(nothing.events), nothing.last) == ([], [], seen)
    with store.exclusive():
        store.append("first", [(9, 0, 0.5, 6.0)], [LEASE])
    news = other.read("first", seen)
    assert (rows(news), list(news.events)) == ([(9, 0, 0.5, 6.0)], [LEASE])
    assert news.last > seen


def test_logs_of_different_experiments_do_not_mix(store: Store) -> None:
    store.create("second", "{}")
    with store.exclusive():
        store.append("first", REWARDS)
        store.append("second", REWARDS[:1], [LEASE])
    assert rows(store.read("first")) == REWARDS
    assert rows(store.read("second")) == REWARDS[:1]
    assert list(store.read("first").events) == []


def test_a_block_that_raises_leaves_no_trace(store: Store, opener: Opener) -> None:
    with store.exclusive():
        store.append("first", REWARDS)
    with pytest.raises(StoreExists), store.exclusive():  # noqa: PT012
        store.append("first", [(8, 0, 1.0, 7.0)], [LEASE])
        store.create("second", "{}")
        store.create("second", "{}")
    for reader in (store, opener()):
        assert reader.names() == ["first"]
        assert rows(reader.read("first")) == REWARDS
        assert list(reader.read("first").events) == []
    store.create("second", "{}")
    assert rows(store.read("second")) == []


def test_a_block_reads_its_own_writes(store: Store) -> None:
    with store.exclusive():
        before = store.read("first").last
        store.append("first", REWARDS)
        assert rows(store.read("first", before)) == REWARDS


def test_appending_without_the_lock_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="needs it"):
        store.append("first", REWARDS)


def test_calls_on_a_closed_store_raise_an_error(opener: Opener) -> None:
    store = opener()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.names()


def test_blocks_of_many_threads_follow_one_another(store: Store, opener: Opener) -> None:
    def count_up(own: Store) -> None:
        for _ in range(20):
            with own.exclusive():
                ticket = own.read("first").told.tickets.size
                own.append("first", [(ticket, 0, 1.0, 0.0)])

    threads = [
        threading.Thread(target=count_up, args=[each])
        for each in (store, store, opener(), opener())
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.read("first").told.tickets.tolist() == list(range(80))


@pytest.mark.parametrize("kind", STORES)
@settings(max_examples=30, deadline=None)
@given(
    rewards=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20),
    text=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    time=st.floats(0, 1e12),
)
def test_numbers_and_texts_are_read_back_unchanged(
    kind: str, rewards: list[float], text: str, time: float
) -> None:
    with TemporaryDirectory() as folder:
        check_round_trip(opening(kind, Path(folder))(), rewards, text, time)


def check_round_trip(store: Store, rewards: list[float], text: str, time: float) -> None:
    store.create(text, text)
    with store.exclusive():
        store.append(
            text,
            [(i, 0, value, time) for i, value in enumerate(rewards)],
            [Event(Kind.FAIL, 0, 1, text, time)],
        )
    news = store.read(text)
    assert np.array_equal(news.told.rewards, rewards)
    assert list(news.events) == [Event(Kind.FAIL, 0, 1, text, time)]
    assert store.settings(text) == text
    store.close()


TOKEN = Token("ann", Scope.WORK, "ab" * 32, 1.5)


def keeper(opener: Opener) -> TokenStore:
    store = opener()
    assert isinstance(store, TokenStore)
    return store


def test_tokens_are_kept_in_the_order_in_which_they_were_made(opener: Opener) -> None:
    store = keeper(opener)
    assert list(store.tokens()) == []
    others = [
        TOKEN._replace(name=name, scope=scope) for name, scope in zip("zab", Scope, strict=True)
    ]
    for token in others:
        store.add_token(token)
    assert list(keeper(opener).tokens()) == others


def test_a_token_is_revoked_once_and_keeps_its_name(opener: Opener) -> None:
    store = keeper(opener)
    store.add_token(TOKEN)
    for now in (5.0, 6.0):
        store.revoke_token("ann", now)
    assert list(keeper(opener).tokens()) == [TOKEN._replace(revoked=5.0)]
    with pytest.raises(StoreExists, match=r"there is a token 'ann' in .* already"):
        store.add_token(TOKEN)
    with pytest.raises(StoreMissing, match=r"there is no token 'ben' in .*; it holds 'ann'"):
        store.revoke_token("ben", 7.0)
