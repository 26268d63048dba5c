"""Leads that change over a live test are noted, and steady ones rarely are."""

import re
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs

from shortlist.arrays import FloatArray
from shortlist.engine import Experiment
from shortlist.engine.block_replay import FADING, UNLIKELY, line_of, trend_notes

PAGES = ["a", "b", "c"]
STEADY = np.array([0.048, 0.04, 0.04])


def live(rates: Any, days: int, seed: int, visitors: int = 8640, **more: Any) -> Experiment:
    """A test with these rates, by the day, until it ends or the days are over."""
    rng = np.random.default_rng([9, seed])
    settings: Any = {"epsilon": 0.005, "delta": 0.1, "per_day": visitors, "rewards": "binary"}
    test = Experiment.create(PAGES, 1, **settings | more)
    for day in range(days):
        opened = test.shares(f"day {day}")
        if not opened.block:
            break
        shares = np.array(list(opened.percent.values())) / 100
        times = rng.multinomial(visitors, shares)
        sums = rng.binomial(times, rates(day))
        rows = zip(PAGES, times.tolist(), sums.tolist(), strict=True)
        test.tell_counts(opened.block, {page: (came, won) for page, came, won in rows})
    return test


def novel(day: float) -> FloatArray:
    """One of the worse arms begins at 5.6 %; half of the excess is gone every two days."""
    rates: FloatArray = STEADY * (1 + np.array([0, 0, 0.4]) * 0.5 ** ((day + 0.5) / 2))
    return rates


def changes(test: Experiment) -> list[str]:
    return [note for note in test.result(partial=True).notes if "seems to have changed" in note]


def test_a_lead_that_fades_is_noted_with_its_size_at_both_ends() -> None:
    fading = live(lambda day: STEADY + np.array([0, 0, 0.03 - 0.003 * day]), 12, 0, min_blocks=12)
    assert any(
        "the lead of c over the other arms seems to have changed, from 0.02" in note
        for note in changes(fading)
    )
    assert all("look at the days" in note for note in changes(fading))


def test_a_short_test_says_that_it_is_too_short_to_see_changes() -> None:
    notes = live(lambda _: STEADY, 2, 0).result(partial=True).notes
    assert any("2 blocks count, which is too few" in note for note in notes)
    assert live(lambda _: STEADY, 0, 0).result(partial=True).notes == ()


def test_notes_have_the_unit_of_the_test() -> None:
    steps = live(lambda day: STEADY + np.array([0, 0, 0.03 - 0.003 * day]), 12, 0, unit="%")
    assert any(
        re.search(r"from 2\.\d+ to -?\d\S* percentage points", each) for each in changes(steps)
    )
    assert any("less than" in each and "percentage points" in each for each in short_notes(5))
    assert any("1 block counts, which" in each for each in short_notes(1))


def short_notes(days: int) -> tuple[str, ...]:
    test = live(lambda _: STEADY, days, 0, unit="%")
    notes: tuple[str, ...] = test.result(partial=True).notes
    return notes


def test_arms_without_visitors_or_retired_within_a_block_have_no_line() -> None:
    test = live(lambda _: STEADY, 2, 0, epsilon=1e-4)
    test.shares("open")
    test.retire("c")
    test.tell_counts("open", {"a": (2900, 130), "b": (2850, 120), "c": (2890, 0)})
    blocks: Any = test._known.blocks  # type: ignore[attr-defined]
    problem = test.settings.problem
    assert line_of(blocks.counted, 0, problem) is not None
    assert line_of(blocks.counted, 2, problem) is None
    assert len(trend_notes(blocks.counted, PAGES, problem)) >= 1


@pytest.mark.rates
def test_steady_leads_are_noted_rarely() -> None:
    runs = number_of_runs(60, 400)
    noted = sum(
        bool(
            changes(
                live(lambda day: STEADY * (0.7 + 0.3 * (day % 2)), 10, seed, 3000, epsilon=1e-4)
            )
        )
        for seed in range(runs)
    )
    rate = UNLIKELY + FADING
    assert noted <= rate * runs + 4 * np.sqrt(rate * runs)


def test_two_arms_have_one_lead_and_it_is_that_of_the_choice() -> None:
    test = Experiment.create(["old", "new"], 1, epsilon="0.5%", per_day=20_000, unit="%")
    told = [(310, 431), (296, 418), (305, 366), (211, 243), (302, 315)]
    for day, (old, new) in enumerate(told):
        test.shares(f"{day}")
        test.tell_counts(f"{day}", {"old": (10_000, old), "new": (10_000, new)})
    (note,) = changes(test)
    assert note.startswith("the lead of new over the other arms seems to have changed, from 1.3")
    assert "to 0.08 percentage points" in note  # with as many digits as the change has


@pytest.mark.rates
def test_a_skipped_week_keeps_a_novelty_from_winning_and_a_short_test_is_noted() -> None:
    runs = number_of_runs(20, 100)
    late = [live(novel, 60, seed, skip_blocks=7).result().top for seed in range(runs)]
    assert sum(top != ("a",) for top in late) <= 0.02 * runs
    early = [live(novel, 60, seed).result() for seed in range(runs)]
    assert sum(result.top != ("a",) for result in early) <= 0.2 * runs  # a week by default
    noted = [any("lead" in note and "chang" in note for note in result.notes) for result in early]
    assert sum(noted) >= 0.9 * runs


def test_a_fading_lead_of_the_choice_is_noted_sooner_than_one_of_another_arm() -> None:
    """The excess of one arm is halved twice in the week, 1.5 to 2 standard errors."""
    fading = live(
        lambda day: STEADY + np.array([0, 0, 0.012 * 0.5 ** (day / 1.75)]), 7, 6, epsilon=1e-4
    )
    blocks: Any = fading._known.blocks  # type: ignore[attr-defined]
    given = blocks.counted, PAGES, fading.settings.problem
    decay = line_of(blocks.counted, 2, fading.settings.problem, halvings=4)
    assert decay is not None
    assert 1.3 < decay.fall < 2.4
    assert not any("seems to have changed" in note for note in trend_notes(*given))
    (note, *_) = trend_notes(*given, chosen=[2])
    assert note.startswith("the lead of c over the other arms seems to have changed, from 0.0")


def test_a_short_test_says_how_large_a_change_it_could_have_seen() -> None:
    sizes = []
    for visitors in (8640, 34_560):
        (note,) = live(lambda _: STEADY, 7, 3, visitors).result(partial=True).notes
        found = re.search(r"whether a lead changes by less than ([\d.]+) over them", note)
        assert found is not None
        sizes.append(float(found[1]))
    assert 0.012 < sizes[0] < 0.025
    assert sizes[1] < 0.7 * sizes[0]
    long = live(lambda _: STEADY, 14, 3, min_blocks=14).result().notes
    assert not any("too few" in note for note in long)
