"""Rounds and days of a forecast."""

from typing import Any

import numpy as np
import pytest

import shortlist
from shortlist.errors import InvalidInput
from shortlist.forecasting.days import indifference

MEANS = (0.7, 0.5, 0.3)


def forecast(**given: object) -> shortlist.Forecast:
    return shortlist.forecast(
        k=1,
        means=MEANS,
        epsilon=0.1,
        runs=4,
        algorithms=["certified", "uniform"],
        **given,  # type: ignore[arg-type]
    )


def test_a_round_waits_for_the_last_of_its_rewards() -> None:
    prospect = forecast(per_day=100, delay=3, max_rounds=2).prospect("certified")
    assert prospect.rounds.max() <= 2
    assert prospect.days is not None
    assert np.allclose(prospect.days, prospect.pulls / 100 + 3 * prospect.rounds)
    assert "days" in prospect.summary()


def test_algorithms_without_these_options_are_forecast_as_they_are() -> None:
    found = forecast(min_batch=100)
    assert (found.prospect("uniform").rounds == 1).all()
    assert found.prospect("certified").rounds.max() < 20
    assert found.prospect("uniform").days is None
    assert "days" not in str(found)
    assert "rounds" in str(found)
    told = forecast(certificate="split")
    assert (told.prospect("uniform").pulls == found.prospect("uniform").pulls).all()
    with pytest.raises(InvalidInput, match="`certificate` is 'x', but must be one of auto, pairs"):
        forecast(certificate="x")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"delay": 2}, "`delay` is 2, but days need `per_day`, too"),
        ({"delay": -1, "per_day": 5}, "`delay` is -1, but must be at least 0 days"),
        ({"per_day": 0}, "`per_day` is 0"),
    ],
)
def test_a_pace_that_makes_no_sense_is_refused(given: dict[str, float], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        forecast(**given)


def test_a_live_test_is_forecast_next_to_certified_unless_drift_is_denied() -> None:
    settings: dict[str, Any] = {"k": 1, "means": [0.6, 0.4], "epsilon": 0.1, "runs": 3}
    settings |= {"algorithms": ["certified"], "per_day": 500.4, "delay": 1.5}
    made = shortlist.forecast(**settings)
    live = made.prospect("live test")
    assert live.days is not None
    assert (live.days == live.rounds).all()
    assert live.days.min() >= 3
    assert "days p90" in str(made)
    denied = shortlist.forecast(**settings, drift=False)
    assert [each.algorithm for each in denied.prospects] == ["certified"]
    cut = shortlist.forecast(**settings, min_batch=100)
    assert [each.algorithm for each in cut.prospects] == ["certified"]
    limited = shortlist.forecast(**settings, limits=5000)
    assert [each.algorithm for each in limited.prospects] == ["certified"]
    longer = shortlist.forecast(**settings, skip_blocks=2, min_blocks=5).prospect("live test")
    assert longer.rounds.min() >= 8


def test_tests_of_fixed_size_are_shown_next_to_a_live_test() -> None:
    """The table of Bechhofer (1954), and a z-test by hand."""
    for n_arms, constant in ((2, 2.3262), (4, 2.9162), (10, 3.4182)):
        assert indifference(n_arms, 1, 0.05) == pytest.approx(constant, abs=1e-4)
    assert indifference(5, 2, 0.1) == pytest.approx(indifference(5, 3, 0.1), abs=1e-6)
    settings: dict[str, Any] = {"k": 1, "means": [0.5, 0.5], "epsilon": 0.1, "runs": 1}
    settings |= {"algorithms": ["certified"], "per_day": 100, "delay": 2}
    made = shortlist.forecast(**settings)
    z_test, zone = made.sizes
    assert z_test.per_arm == 393  # (1.95996 + 0.84162)^2 * 2 * 0.25 / 0.01, rounded up
    assert zone.per_arm == 136  # 2.3262^2 * 0.25 / 0.01, rounded up
    assert (zone.pulls, zone.days) == (272, 5)
    assert "indifference zone" in str(made)
    assert made.summary()["sizes"][0]["days"] == 10  # type: ignore[index]
    assert shortlist.forecast(**{**settings, "per_day": None, "delay": 0}).sizes == ()


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"drift": True}, "`drift` is True, but goes with `per_day` only"),
        ({"skip_blocks": 3}, "`skip_blocks` is 3, but goes with `per_day` only"),
        ({"min_blocks": 3, "per_day": 10, "drift": False}, "`min_blocks` is 3, but needs `drift`"),
    ],
)
def test_blocks_are_forecast_with_visitors_only(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        shortlist.forecast(k=1, means=[0.6, 0.4], epsilon=0.1, runs=1, **given)
