"""Which clock counts, and what is said of a reward that came after its lease by it."""

import logging
import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke
from postgres import shared_server
from services import serving

from shortlist import Client
from shortlist.engine import Experiment, Receipt
from shortlist.errors import InvalidInput
from shortlist.stores import base as clocks
from shortlist.stores.base import EVERY, LATEST, MachineClock, MemoryStore, ServerClock

LATE: dict[str, Any] = {"lease": 60, "on_late": 0.0}
# another program whose machine is two minutes ahead
AHEAD = """
import sys, time
right = time.time
time.time = lambda: right() + 120
from shortlist import Experiment
with Experiment.open(sys.argv[1]) as experiment:
    experiment.tell(0, 1.0)
"""


def test_a_program_whose_machine_is_ahead_discards_nothing_in_postgresql() -> None:
    pytest.importorskip("psycopg", reason="pip install 'shortlist[postgres]'")
    url = shared_server().new_url()
    with Experiment.create(2, 1, budget=10, store=url, **LATE) as experiment:
        experiment.ask(2)
        subprocess.run([sys.executable, "-c", AHEAD, url], check=True, timeout=60)
        tally = experiment.store.read("experiment").told
        assert list(zip(tally.tickets, tally.rewards, strict=True)) == [(0, 1.0)]
        assert abs(experiment.store.now() - time.time()) < 5


@pytest.mark.parametrize("wrong", [math.inf, -math.inf, math.nan, -1.0, 1e30, None, "noon"])
def test_a_clock_that_is_out_of_order_is_refused_and_harms_nothing(
    tmp_path: Path, wrong: Any
) -> None:
    path = tmp_path / "tests.db"
    with Experiment.create(2, 1, budget=10, store=path, **LATE) as experiment:
        (ticket,) = experiment.ask(1)
    with Experiment.open(path, clock=lambda: wrong) as broken:
        for act in (broken.ask, broken.status, lambda: broken.tell(ticket, 1.0)):
            with pytest.raises(InvalidInput, match="the clock says"):
                act()
    with Experiment.open(path) as experiment:
        assert experiment.tell(ticket, 1.0) == Receipt()
        assert experiment.status().told == 1


def test_the_latest_time_still_leaves_room_for_a_lease() -> None:
    experiment = Experiment.create(2, 1, budget=10, clock=lambda: LATEST)
    (ticket,) = experiment.ask(1, lease=1e300)
    assert math.isfinite(ticket.expires)
    assert experiment.tell(ticket, 1.0) == Receipt()


def test_tell_says_which_rewards_came_too_late(caplog: pytest.LogCaptureFixture) -> None:
    now = [1000.0]
    experiment = Experiment.create(2, 1, budget=10, clock=lambda: now[0], **LATE)
    tickets = experiment.ask(3)
    assert experiment.tell(tickets[0], 1.0) == Receipt()
    assert caplog.text == ""
    now[0] += 61
    assert experiment.tell_many([(tickets[1], 1.0), (tickets[2], 0.5)]) == Receipt(late=(1, 2))
    assert "ticket 1 and 1 more is discarded and 0.0 counts instead" in caplog.text
    assert experiment.tell(tickets[1], 1.0).late == (1,)
    assert experiment.tell(tickets[0], 1.0) == Receipt()
    assert experiment.tell(tickets[1], 0.0) == Receipt()  # it counts as it is told
    assert (experiment.status().told, experiment.status().late) == (1, 2)


def test_tell_says_which_rewards_are_not_needed_any_more() -> None:
    experiment = Experiment.create(["a", "b", "c"], 1, epsilon=0.3, rewards="binary")
    tickets = experiment.ask(3)
    gone = next(ticket for ticket in tickets if ticket.arm == "a")
    experiment.retire("a")
    experiment.ask(3)
    assert experiment.tell(gone, 1) == Receipt(unused=(gone.id,))


def test_the_clock_of_the_service_decides_and_its_clients_are_told() -> None:
    now = [1000.0]
    with serving(MemoryStore(), clock=lambda: now[0]) as url:
        client = Client(url)
        client.create(["a", "b", "c"], 1, budget=60, **LATE)
        one, two = client.ask(2)
        assert client.tell(one, 1.0) == Receipt()  # the clock of this program says 2026
        now[0] += 61
        assert client.tell(two, 1.0) == Receipt(late=(two.id,))
        assert client.tell_many([]) == Receipt()


def test_callers_who_are_served_together_hear_of_their_own_tickets() -> None:
    receipt = Receipt(late=(1, 4), unused=(2,))
    assert receipt.of([4, 7]) == Receipt(late=(4,))
    assert receipt.of([2]) == Receipt(unused=(2,))


def test_the_command_line_says_that_a_reward_is_discarded(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = str(tmp_path / "tests.db")
    with Experiment.create(2, 1, budget=10, store=place, clock=lambda: 1000.0, **LATE) as made:
        made.ask(1)
    assert invoke(["tell", "0", "1", "--store", place]).exit_code == 0
    assert "ticket 0 is discarded and 0.0 counts instead" in caplog.text


def test_a_clock_behind_the_log_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    experiment = Experiment.create(2, 1, budget=10, store=store, clock=lambda: 1000.0)
    one, two, three = experiment.ask(3)
    experiment.tell(one, 1.0)
    behind = Experiment.open(store, clock=lambda: 880.0)
    behind.tell(two, 1.0)
    behind.tell(three, 1.0)
    assert [each.message[:29] for each in caplog.records] == ["The clock is 120 s behind the"]


@pytest.mark.parametrize(("jump", "end"), [(120.0, "sooner"), (-120.0, "later")])
def test_setting_the_clock_of_the_machine_is_reported(
    jump: float,
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    wall, elapsed = [1000.0], [50.0]
    monkeypatch.setattr("shortlist.stores.base.time.time", lambda: wall[0])
    monkeypatch.setattr(clocks, "steady", lambda: elapsed[0])
    clock = MachineClock()
    for each in (0.0, 10.0, 1.0):
        wall[0] += each + 0.1  # a drift of tenths is none
        elapsed[0] += each
        assert clock() == wall[0]
    assert caplog.records == []
    wall[0] += jump
    assert clock() == clock() == wall[0]
    assert [each.levelno for each in caplog.records] == [logging.WARNING]
    assert f"120 s: leases end that much {end}" in caplog.text


def test_a_server_is_asked_now_and_then_and_the_machine_s_own_clock_never_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, elapsed, asked = [5000.0], [50.0], [0]

    def ask() -> float:
        asked[0] += 1
        return said[0]

    monkeypatch.setattr(clocks, "steady", lambda: elapsed[0])
    monkeypatch.setattr("shortlist.stores.base.time.time", lambda: 1.0)
    clock = ServerClock(ask)
    assert (clock(), asked[0]) == (5000.0, 1)
    elapsed[0] += EVERY - 1
    assert (clock(), asked[0]) == (5000.0 + EVERY - 1, 1)
    elapsed[0] += 2
    said[0] = 5031.5
    assert (clock(), asked[0]) == (5031.5, 2)
    said[0] = math.inf
    elapsed[0] += EVERY
    with pytest.raises(InvalidInput, match="the clock says"):
        clock()
