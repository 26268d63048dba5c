"""What happens to results that are late, and that it does not change the law of what counts."""

import heapq
import itertools
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from shortlist import SubGaussian
from shortlist.engine import Experiment, Receipt, State, Ticket, export_lines, import_lines
from shortlist.engine.tickets import FOREVER
from shortlist.errors import (
    ConflictingReward,
    InvalidInput,
    InvalidReward,
    StoreDamaged,
    StoreExists,
)
from shortlist.stores import Event, Kind, Store
from shortlist.stores.base import MemoryStore
from shortlist.stores.sqlite import SQLiteStore

LEASE = 100.0
RUNS, PULLS = 40, 50  # PULLS of every arm in a run
GOOD, BETTER = 0.5, 0.75  # means of two arms, and of the third
# reward and seconds that it takes
Outcome = tuple[float, float]
Evaluate = Callable[[str, np.random.Generator], Outcome]


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    kept: Store = (
        MemoryStore() if request.param == "memory" else SQLiteStore(tmp_path / "store.db", "rwc")
    )
    yield kept
    kept.close()


def new(store: Store, clock: Clock, **settings: Any) -> Experiment:
    chosen: dict[str, Any] = {"budget": 30, "algorithm": "uniform", "lease": LEASE, **settings}
    return Experiment.create(["a", "b", "c"], 1, store=store, clock=clock, **chosen)


# The law of what counts


def simulate(experiment: Experiment, clock: Clock, evaluate: Evaluate, seed: int) -> None:
    """As many workers as there are tickets; every evaluation is told when it ends."""
    rng, numbers = np.random.default_rng(seed), itertools.count()
    under_way: list[tuple[float, int, Ticket, float]] = []  # when it ends, a tie-breaker, the rest
    while (handout := experiment.ask(1000)).state is State.PENDING:
        for ticket in handout:
            reward, seconds = evaluate(str(ticket.arm), rng)
            heapq.heappush(under_way, (clock.now + seconds, next(numbers), ticket, reward))
        clock.now = min(clock.now + LEASE, under_way[0][0])
        while under_way and under_way[0][0] <= clock.now:
            _, _, ticket, reward = heapq.heappop(under_way)
            with suppress(ConflictingReward):  # another result was quicker
                experiment.tell(ticket, reward)


def slow_means_bad(arm: str, rng: np.random.Generator) -> Outcome:
    """ "a" and "b" succeed half of the time and take long when they fail; "c" is better."""
    if arm == "c":
        return float(rng.random() < BETTER), 1.0
    good = rng.random() < GOOD
    return float(good), 1.0 if good else 20 * LEASE


def slow_means_nothing(arm: str, rng: np.random.Generator) -> Outcome:
    mean = BETTER if arm == "c" else GOOD
    return float(rng.random() < mean), float(rng.choice([1.0, 3 * LEASE]))


def wrong_choices(evaluate: Evaluate, **settings: Any) -> int:
    wrong = 0
    for seed in range(RUNS):
        clock = Clock()
        arms = np.random.default_rng(seed).permutation(["a", "b", "c"]).tolist()
        chosen: dict[str, Any] = {"budget": 3 * PULLS, "algorithm": "uniform", "lease": LEASE}
        experiment = Experiment.create(arms, 1, clock=clock, **chosen, **settings)
        simulate(experiment, clock, evaluate, seed)
        wrong += experiment.result().top != ("c",)
    return wrong


def chance_of_a_wrong_choice() -> float:
    """That "c" is not alone in front when every reward counts, by all counts of successes."""
    counts = np.arange(PULLS + 1)
    both_less = binom.cdf(counts - 1, PULLS, GOOD) ** 2
    return float(1 - binom.pmf(counts, PULLS, BETTER) @ both_less)


@pytest.mark.no_cover
@pytest.mark.parametrize(("late", "wrong"), [("wait", 1), (0, 1), ("again", RUNS)])
def test_a_choice_where_slow_means_bad_is_as_wrong_as_docs_late_says(late: Any, wrong: int) -> None:
    assert wrong_choices(slow_means_bad, on_late=late) == wrong
    fair = binomtest(wrong, RUNS, chance_of_a_wrong_choice(), alternative="greater").pvalue > 1e-3
    assert fair == (late != "again")


@pytest.mark.no_cover
@pytest.mark.parametrize("late", ["wait", "again"])
def test_a_choice_where_slow_means_nothing_is_right_either_way(late: Any) -> None:
    wrong, chance = wrong_choices(slow_means_nothing, on_late=late), chance_of_a_wrong_choice()
    assert binomtest(wrong, RUNS, chance, alternative="greater").pvalue > 1e-3


def test_a_choice_waits_unless_something_else_is_said() -> None:
    assert new(MemoryStore(), Clock()).settings.on_late == "wait"


# What is waited for


def test_a_late_ticket_is_waited_for_and_its_own_result_counts(store: Store, clock: Clock) -> None:
    experiment = new(store, clock)
    (slow,) = experiment.ask(1, "slow")
    rest = experiment.ask(100, "quick")
    experiment.tell_many((ticket, 1) for ticket in rest)
    clock.now += 1000 * LEASE
    for each in (experiment, Experiment.open(store, clock=clock)):
        handout = each.ask(5, "quick")
        assert (handout, handout.state) == ([], State.PENDING)
        assert (each.status().held, each.status().overdue) == (1, 1)
        said = " ".join(str(each.status()).split())
        assert "29 pulls told (9 not counted yet), waits for 1 more" in said
        assert "1 of them under way and 1 of those overdue" in said
    experiment.tell(slow, 0)
    assert experiment.result().pulls == 30


def test_the_due_time_of_a_ticket_is_that_of_the_log_whatever_the_clock_says(
    store: Store, clock: Clock
) -> None:
    clock.now = 1_763_300_000.123456789
    experiment = new(store, clock)
    (ticket,) = experiment.ask(1, "a")
    assert ticket.expires == pytest.approx(clock.now + LEASE, abs=1e-3)
    assert Experiment.open(store, clock=clock).ask(1, "a")[0].expires == ticket.expires
    experiment.fail(ticket, "it rained")  # the terms are still those of the ticket
    assert experiment.status().failures == 1


def test_a_worker_that_restarts_gets_back_what_is_waited_for(store: Store, clock: Clock) -> None:
    experiment = new(store, clock)
    mine = experiment.ask(2, "me")
    clock.now += 10 * LEASE
    again = Experiment.open(store, clock=clock).ask(2, "me")
    assert [ticket.id for ticket in again] == [ticket.id for ticket in mine]
    assert again[0].expires == clock.now + LEASE


def test_who_promised_to_be_alive_and_is_not_is_not_waited_for(store: Store, clock: Clock) -> None:
    experiment = new(store, clock)
    experiment.ask(2, "dead", alive=5)
    experiment.ask(1, "alive", alive=5)
    for _ in range(4):
        clock.now += 4
        assert [ticket.id for ticket in experiment.ask(1, "alive", alive=5)] == [2]
    assert [ticket.id for ticket in experiment.ask(3, "another")] == [0, 1, 3]
    assert experiment.status().overdue == 0


@pytest.mark.parametrize("worker", [None, ""])
def test_only_somebody_with_a_name_can_promise_to_be_alive(
    store: Store, clock: Clock, worker: str | None
) -> None:
    experiment = new(store, clock)
    with pytest.raises(InvalidInput, match="`alive` is 5, but needs a `worker`, who asks again"):
        experiment.ask(1, worker, alive=5)
    with pytest.raises(InvalidInput, match="`alive` is 0, but must be a finite number greater"):
        experiment.ask(1, "me", alive=0)


def test_a_lease_of_any_length_can_be_kept(store: Store, clock: Clock) -> None:
    experiment = new(store, clock, on_late="again", lease=1e300)
    experiment.ask()
    clock.now += 1e9
    assert experiment.ask()[0].id == 1


# What counts as a reward when it is late


def test_what_is_late_counts_as_was_agreed_and_what_comes_later_does_not(
    store: Store, clock: Clock
) -> None:
    experiment = new(store, clock, on_late=0)
    late, punctual = experiment.ask(2)
    clock.now += LEASE - 1
    experiment.tell(punctual, 1)
    clock.now += 1
    experiment.tell_many([(late, 1), (punctual, 1)])
    experiment.tell(late.id, 0.5)
    status = experiment.status()
    assert (status.told, status.late, status.held) == (1, 1, 0)
    assert status.arms.means[:2].tolist() == [0, 1]
    assert [ticket.id for ticket in Experiment.open(store, clock=clock).ask(2)] == [2, 3]


def test_a_second_reward_is_refused_where_the_first_was_in_time_and_is_what_late_counts_as(
    store: Store, clock: Clock
) -> None:
    experiment = new(store, clock, on_late=0)
    bad, good, slow = experiment.ask(3)
    experiment.tell_many([(bad, 0), (good, 1)])
    clock.now += LEASE
    assert experiment.tell(slow, 1) == Receipt(late=(slow.id,))
    copied = MemoryStore()
    import_lines(export_lines(store, "experiment"), copied)
    for place in (store, copied):
        opened = Experiment.open(place, clock=clock)
        for told, other in ((bad, 1), (good, 0)):
            with pytest.raises(ConflictingReward, match="before, which stays"):
                opened.tell(told.id, other)
        assert opened.tell_many([(bad.id, 0), (good.id, 1)]) == Receipt()
        assert opened.tell(slow.id, 1) == Receipt(late=(slow.id,))


def test_status_does_not_call_told_what_nobody_told(store: Store, clock: Clock) -> None:
    experiment = new(store, clock, on_late=0)
    first, *_ = experiment.ask(5)
    experiment.tell(first, 1)
    clock.now += LEASE
    experiment.ask(1)
    for each in (experiment, Experiment.open(store, clock=clock)):
        status = each.status()
        assert (status.told, status.late, status.spent) == (1, 4, 5)
        assert status.summary()["late"] == 4
        assert "1 pull told, 4 counted as late, waits for 25 more" in " ".join(str(status).split())


def test_a_log_in_which_a_ticket_is_late_and_not_told_is_damaged(
    store: Store, clock: Clock
) -> None:
    experiment = new(store, clock, on_late=0)
    experiment.ask(3)
    with store.exclusive():
        store.append("experiment", events=[Event(Kind.LATE, 0, 10**15, "", clock.now)])
    with pytest.raises(StoreDamaged, match="the lateness of ticket 0"):
        experiment.status()


def test_what_failed_or_was_given_back_is_not_late(store: Store, clock: Clock) -> None:
    experiment = new(store, clock, on_late=0)
    failed, lost = experiment.ask(2, "me")
    experiment.fail(failed, "it rained")
    experiment.release(tickets=[lost])
    clock.now += 2 * LEASE
    assert [ticket.id for ticket in experiment.ask(2)] == [failed.id, lost.id]
    assert experiment.status().told == 0


def test_a_search_goes_on_without_anybody_telling_what_is_late(store: Store, clock: Clock) -> None:
    experiment = new(store, clock, on_late=0.25)
    while experiment.ask(1000).state is not State.BUDGET:
        clock.now += LEASE
    assert [arm.mean for arm in experiment.result().arms] == [0.25] * 3


def test_a_method_that_raises_keeps_what_is_late_and_nothing_else(
    store: Store, clock: Clock
) -> None:
    experiment = new(store, clock, on_late=0)
    (late,) = experiment.ask()
    clock.now += LEASE
    (other,) = experiment.ask()
    with pytest.raises(InvalidReward):
        experiment.tell_many([(other, 1), (other, float("inf"))])
    for each in (experiment, Experiment.open(store, clock=clock)):
        assert (each.status().told, each.status().late) == (0, 1)
    experiment.tell_many([(late, 1), (other, 1)])
    assert (experiment.status().told, experiment.status().late) == (1, 1)


def test_where_what_is_late_counts_nobody_can_prolong_a_lease(store: Store, clock: Clock) -> None:
    experiment = new(store, clock, on_late=0)
    (ticket,) = experiment.ask(1, "me")
    clock.now += LEASE / 2
    given: list[dict[str, Any]] = [{}, {"alive": 10 * LEASE}]
    for more in given:
        assert experiment.ask(1, "me", **more) == [ticket]
    with pytest.raises(InvalidInput, match="`lease` is 5, but where what is late counts as 0"):
        experiment.ask(lease=5)
    experiment.release("me")
    assert experiment.ask(1, "me")[0].expires == clock.now + LEASE  # it is begun anew


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"on_late": "soon"}, "`on_late` is 'soon', but must be 'wait', 'again' or a reward"),
        (
            {"on_late": 7, "rewards": (0, 1)},
            "`on_late` is 7, but must be a number between 0 and 1",
        ),
        ({"on_late": None}, "`on_late` is None, but must be a number at most"),
        (
            {"on_late": 0, "lease": None},
            "`on_late` is 0.0, but counts after a `lease`",
        ),
        (
            {"on_late": 0, "rewards": SubGaussian(1)},
            "`on_late` is 0.0, but only rewards with a range may count so",
        ),
    ],
)
def test_what_late_cannot_be_is_refused(
    clock: Clock, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        new(MemoryStore(), clock, **settings)


def test_late_is_a_setting_and_a_lease_that_is_not_named_is_not_compared(
    store: Store, clock: Clock
) -> None:
    made = new(store, clock, on_late=0)
    assert Experiment.open(store).settings == made.settings
    with pytest.raises(StoreExists, match=r"made with on_late = 0.0 and not wait$"):
        new(store, clock, exist_ok=True)
    with pytest.raises(StoreExists, match=r"made with lease = 100.0 and not 5.0$"):
        new(store, clock, on_late=0, lease=5, exist_ok=True)
    other = new(store, clock, name="other")
    again = new(store, clock, name="other", lease=None, exist_ok=True)
    assert again.settings == other.settings


# Giving back


def test_tickets_are_given_back_by_worker_by_number_and_by_how_long_they_are_overdue(
    store: Store, clock: Clock
) -> None:
    experiment = new(store, clock)
    anns, bens = experiment.ask(2, "ann"), experiment.ask(1, "ben")
    clock.now += LEASE / 2
    experiment.ask(2)
    assert experiment.release("nobody") == 0
    assert experiment.release(tickets=[anns[0], bens[0].id], overdue=0) == 0
    clock.now += LEASE / 2
    assert experiment.release("ann", overdue=1) == 0
    assert experiment.release(tickets=[anns[0]]) == 1
    assert experiment.release(tickets=[anns[0], anns[0].id]) == 0  # nobody's any more
    assert experiment.release(overdue=0) == 2
    assert experiment.release("") == 2
    assert (experiment.status().held, experiment.status().told) == (0, 0)
    assert [ticket.id for ticket in experiment.ask(9, "new")] == list(range(9))
    experiment.tell(anns[1], 1)  # not gone after all


def test_a_ticket_on_former_terms_gives_nothing_back(store: Store, clock: Clock) -> None:
    experiment = new(store, clock)
    (former,) = experiment.ask(1, "ann")
    experiment.release("ann")
    clock.now += 1
    (present,) = experiment.ask(1, "ben")
    assert experiment.release(tickets=[former]) == 0
    assert experiment.release(tickets=[present]) == 1


def test_what_is_to_be_given_back_must_be_said(store: Store, clock: Clock) -> None:
    experiment = new(store, clock)
    with pytest.raises(InvalidInput, match="no `worker`, `tickets` or `overdue` is given"):
        experiment.release()
    with pytest.raises(InvalidInput, match="`overdue` is -1, but must be at least 0 seconds"):
        experiment.release(overdue=-1)
    with pytest.raises(InvalidInput, match="`tickets` is 5, but must be a list of tickets"):
        experiment.release(tickets=5)  # type: ignore[arg-type]


# Names of workers


@pytest.mark.parametrize("worker", [5, b"ann", ["ann"], 0, 1.5, True])
def test_a_worker_has_a_text_for_a_name_on_every_store(
    store: Store, clock: Clock, worker: Any
) -> None:
    experiment = new(store, clock)
    for use in (lambda: experiment.ask(1, worker), lambda: experiment.release(worker)):
        with pytest.raises(InvalidInput, match=r"`worker` is .*, but must be a text"):
            use()
    with pytest.raises(InvalidInput, match=r"`worker` is .*, but must be a text"):
        experiment.run(lambda arm: 1.0, worker=worker, progress=False)
    assert experiment.status().held == 0


def test_a_name_that_is_no_valid_text_is_refused_on_every_store(store: Store, clock: Clock) -> None:
    experiment = new(store, clock)
    with pytest.raises(InvalidInput, match="must be a text in UTF-8"):
        experiment.ask(1, "\ud800")
    with pytest.raises(InvalidInput, match="must be a text in UTF-8"):
        new(store, clock, name="\ud800")


def test_a_failure_is_noted_whatever_its_words_are(store: Store, clock: Clock) -> None:
    experiment = new(store, clock, retries=0)
    experiment.fail(experiment.ask()[0], "half \ud800")
    assert experiment.status().trouble.endswith(r"half \ud800")


# How long pulls take


def test_a_lease_that_nobody_chose_fits_how_long_pulls_take(store: Store, clock: Clock) -> None:
    experiment = new(store, clock, lease=None)
    (ticket,) = experiment.ask(1, "me")
    assert ticket.expires == clock.now + 3600
    for _ in range(3):
        clock.now += 1000
        experiment.ask(1, "me")  # it is not begun anew
    experiment.tell(ticket, 1)
    assert experiment.ask(1)[0].expires == clock.now + 4 * 3000


@pytest.mark.parametrize(
    ("late", "consequence"),
    [
        ("wait", "is called overdue, and waited for"),
        ("again", "is made again, which is fair only if slow says nothing about the reward"),
        (0, "counts as 0"),
    ],
)
@pytest.mark.parametrize("reopened", [False, True])
def test_a_pull_that_comes_near_the_end_of_its_lease_is_worth_one_warning(
    store: Store,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    late: Any,
    consequence: str,
    reopened: bool,
) -> None:
    experiment = new(store, clock, on_late=late)
    tickets = experiment.ask(3)
    if reopened:
        experiment = Experiment.open(store, clock=clock)
    clock.now += 0.4 * LEASE
    experiment.tell(tickets[0], 1)
    assert caplog.messages == []
    clock.now += 0.2 * LEASE
    experiment.tell_many([(tickets[1], 1), (tickets[2], 1)])
    assert caplog.messages == [
        f"A pull took 60 s of its lease of 100 s; a pull that takes longer {consequence}."
    ]


def test_a_pull_that_is_kept_alive_or_was_given_back_is_not_near_any_end(
    store: Store, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    experiment = new(store, clock)
    (alive,) = experiment.ask(1, "alive", alive=5 * LEASE)
    (freed,) = Experiment.open(store, clock=clock).ask(1, "freed")
    experiment.release("freed")
    clock.now += 2 * LEASE
    experiment.tell_many([(alive, 1), (freed, 1)])
    assert caplog.messages == []


def test_only_so_many_beginnings_are_remembered(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortlist.engine.tickets.REMEMBERED", 2)
    experiment = new(MemoryStore(), clock, lease=None)
    first, *_, last = experiment.ask(4)
    clock.now += 3000
    experiment.tell(first, 1)
    assert experiment.ask()[0].expires == clock.now + 3600
    experiment.tell(last, 1)
    assert experiment.ask()[0].expires == clock.now + 12_000


def test_a_run_says_that_it_waits_for_as_long_as_it_takes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("shortlist.engine.workers.PAUSE", 0.001)
    monkeypatch.setattr("shortlist.engine.workers.PATIENCE", 0.01)
    experiment = new(MemoryStore(), Clock())
    (ticket,) = experiment.ask(1, "a person")

    def told_at_last(record: logging.LogRecord) -> bool:
        experiment.tell(ticket, 1)
        return True

    logger = logging.getLogger("shortlist.engine")
    logger.addFilter(told_at_last)
    try:
        experiment.run(lambda arm: 1.0, progress=False)
    finally:
        logger.removeFilter(told_at_last)
    assert caplog.messages == [
        "Waiting for 1 pull that another worker holds; `release` those of one who is gone."
    ]


def test_what_is_waited_for_is_held_beyond_all_clocks() -> None:
    store = MemoryStore()
    Experiment.create(2, 1, budget=9, store=store).ask()
    lease = store.read("experiment").events[-1]
    assert lease.time > FOREVER
