"""An A/B test as it is: results come days later, some never, and visitors do not wait."""

from collections import defaultdict

import numpy as np
import pytest
from attack_scale import number_of_runs

import shortlist
from shortlist.engine import Ticket

DAY = 86_400.0
VISITORS = 8_640  # a day
PAGES = {"old": 0.04, "new": 0.045, "bold": 0.05}
EPSILON = 0.005
NEVER = 0.02  # share of results that never arrive
LEASE = 3.5 * DAY  # after which a result counts as 0


def decided_after(
    seed: int, max_rounds: int | None = None, min_batch: int | None = None
) -> tuple[float, shortlist.Experiment]:
    """Days until the experiment is over, and the experiment.

    Visitors come in blocks of a quarter of a day; a result comes one to three days later."""
    rng = np.random.default_rng(seed)
    now = [0.0]
    labels = rng.permutation(list(PAGES)).tolist()
    experiment = shortlist.Experiment.create(
        labels,
        1,
        epsilon=EPSILON,
        delta=0.05,
        seed=seed,
        lease=LEASE,
        on_late=0.0,
        clock=lambda: now[0],
        max_rounds=max_rounds,
        min_batch=min_batch,
    )
    due: dict[int, list[tuple[Ticket, bool]]] = defaultdict(list)  # by quarter of a day
    for quarter in range(4 * 200):
        now[0] = quarter * DAY / 4
        experiment.tell_many(due.pop(quarter, []))
        tickets = experiment.ask(VISITORS // 4)
        if tickets.state in ("finished", "budget"):
            return now[0] / DAY, experiment
        if tickets.state == "pending":
            assert tickets.meanwhile in PAGES
        clicked = rng.random(len(tickets)) < [PAGES[str(ticket.arm)] for ticket in tickets]
        delays = rng.integers(4, 13, len(tickets))
        arrives = rng.random(len(tickets)) >= NEVER
        for ticket, click, delay, comes in zip(tickets, clicked, delays, arrives, strict=True):
            if comes:
                due[quarter + int(delay)].append((ticket, bool(click)))
    return 200.0, experiment


@pytest.mark.rates
def test_three_pages_are_decided_in_weeks_though_results_are_days_late() -> None:
    days, lost = [], []
    for seed in range(number_of_runs(2, 20)):
        took, experiment = decided_after(seed, min_batch=VISITORS)
        days.append(took)
        top = experiment.result().top[0]
        lost.append(max(PAGES.values()) - PAGES[top])
        assert experiment.result().reached

    assert np.median(days) <= 60
    assert max(lost) <= EPSILON + 1e-9


@pytest.mark.parametrize("seed", [1, 2])
def test_with_few_rounds_it_is_a_matter_of_days_too(seed: int) -> None:
    took, experiment = decided_after(seed, max_rounds=5)
    assert took <= 60
    assert experiment.status().progress.round <= 5


def test_nobody_is_served_an_arm_that_left() -> None:
    experiment = shortlist.Experiment.create(["a", "b", "c"], 1, epsilon=0.3, min_batch=40)
    held = experiment.ask(10_000)
    experiment.tell_many((each, each.arm == "b") for each in held[:-3])
    assert experiment.ask(1).meanwhile == "b"
    experiment.retire("b", "sold out")
    assert experiment.ask(1).meanwhile in ("a", "c")
