"""Verdicts follow from the data: made-up curves in a known order give the verdict they should."""

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from shortlist.reproduction import findings as claims
from shortlist.reproduction.design import ADAPTIVE, BOTH_FORMS, PANELS, SCALED, Panel, choose
from shortlist.reproduction.findings import (
    ALL,
    ALMOST_ALL,
    CLAIMS,
    MOST_CHECKS,
    Curve,
    Finding,
    Judge,
    Measured,
    first_decisions,
    judge,
)
from shortlist.reproduction.runs import decision

BUDGETS = np.array([int(1000 * 1.1**step) for step in range(60)])
DECIDED = {ADAPTIVE: 1_000_000, SCALED: 6_000}  # pulls before the first decision
Needs = Callable[[Panel], Mapping[str, float]]


def falling(method: str, need: float, runs: int) -> Curve:
    """A curve that is at 10 % where it should be."""
    rates = 1 / (1 + 9 * (BUDGETS / need) ** 12)
    return Curve(
        method, BUDGETS, np.round(rates * runs).astype(np.int64), np.full(BUDGETS.size, runs)
    )


def measured(
    needs: Needs, panels: tuple[Panel, ...] = tuple(PANELS.values()), runs: int = 1000
) -> Measured:
    found = {
        panel.name: {name: falling(name, need, runs) for name, need in needs(panel).items()}
        for panel in panels
    }
    decisions = {
        (panel.name, form.name): DECIDED[form.name] for panel in panels for form in BOTH_FORMS
    }
    return Measured(panels, found, decisions)


def always(adaptive: float, opt_mai: float, clucb: float) -> Needs:
    return lambda panel: {
        ADAPTIVE: adaptive,
        SCALED: adaptive,
        "opt-mai": opt_mai,
        "clucb-pac": clucb,
    }


def by_k(smallest: float, largest: float) -> Needs:
    """What OptMAI needs changes with K, from one multiple of the others' 20,000 to another."""

    def needs(panel: Panel) -> Mapping[str, float]:
        place = [100, 250, 500].index(panel.k) if panel.n == 1000 else [30, 50, 80].index(panel.k)
        factor = smallest + (largest - smallest) * place / 2
        return {ADAPTIVE: 20_000, SCALED: 20_000, "opt-mai": 20_000 * factor, "clucb-pac": 20_000}

    return needs


def by_p(half: float, one: float, six: float) -> Needs:
    factors = {"synthetic-0.5": half, "uniform": one, "synthetic-6": six}
    return lambda panel: {
        ADAPTIVE: 20_000,
        SCALED: 20_000,
        "opt-mai": 20_000 * factors.get(panel.dataset, 1),
    }


@pytest.mark.parametrize(
    ("true", "share", "verdict"),
    [
        (10, ALL, "holds"),
        (9, ALL, "holds in part"),
        (5, ALL, "holds in part"),
        (4, ALL, "does not hold"),
        (8, ALMOST_ALL, "holds"),
        (7, ALMOST_ALL, "holds in part"),
        (6, MOST_CHECKS, "holds"),
        (5, MOST_CHECKS, "holds in part"),
        (2, MOST_CHECKS, "does not hold"),
    ],
)
def test_a_verdict_requires_the_share_that_the_claim_states(
    true: int, share: float, verdict: str
) -> None:
    assert Finding([True] * true + [False] * (10 - true), "").verdict(share) == verdict


def test_without_checks_there_is_no_verdict() -> None:
    assert Finding([], "words").verdict(ALL) == "not measured"
    assert Finding([], "words").measured == "nothing"


@pytest.mark.parametrize(
    ("judged", "needs", "share_true"),
    [
        (claims.against_clucb, always(10_000, 10_000, 20_000), 1),
        (claims.against_clucb, always(20_000, 10_000, 10_000), 0),
        (claims.against_clucb, always(20_000, 10_000, 20_000), 0),  # a tie is no win
        (claims.opt_mai_at_small_k, always(20_000, 10_000, 20_000), 1),
        (claims.opt_mai_at_small_k, always(20_000, 20_000, 20_000), 1),  # a tie is best too
        (claims.opt_mai_at_small_k, always(20_000, 20_000, 10_000), 0),
        (claims.opt_mai_at_small_k, by_k(0.5, 2), 1),
        (claims.against_opt_mai_at_large_k, by_k(0.5, 2), 1),
        (claims.against_opt_mai_at_large_k, by_k(2, 0.5), 0),
        (claims.two_group, always(10_000, 20_000, 20_000), 1),
        (claims.two_group, always(10_000, 20_000, 5_000), 0.5),
        (claims.advantage_grows_with_k, by_k(1, 2), 1),
        (claims.advantage_grows_with_k, by_k(2, 1), 0),
        (claims.both_extremes, by_p(2, 1, 2), 1),
        (claims.both_extremes, by_p(2, 1, 0.5), 0.5),
        (claims.both_extremes, by_p(1, 2, 1), 0),
    ],
)
def test_checks_are_true_as_often_as_the_data_say(
    judged: Judge, needs: Needs, share_true: float
) -> None:
    checks = judged(measured(needs), ADAPTIVE).checks
    assert checks
    assert sum(checks) / len(checks) == share_true


def test_adaptivity_is_found_only_where_an_arm_is_decided_on_before_it_is_needed() -> None:
    panels = choose(["two-group"])
    assert (
        claims.two_group_by_adaptivity(measured(always(20_000, 1, 1), panels), ADAPTIVE).checks
        == [False] * 3
    )
    assert (
        claims.two_group_by_adaptivity(measured(always(20_000, 1, 1), panels), SCALED).checks
        == [True] * 3
    )


def test_a_decision_is_measured_once_and_read_from_its_row() -> None:
    """Until then a form of AdaptiveTopK has pulled every arm equally often."""
    panel = Panel("two-group", 20, 10, 0.1)
    rows = [decision(panel, form, seed=0) for form in BOTH_FORMS]
    found = first_decisions(rows)
    assert 0 < found[panel.name, SCALED] < found[panel.name, ADAPTIVE]
    assert all(pulls % panel.n == 0 for pulls in found.values())
    assert all(np.isnan(row.regret_mean) for row in rows)  # there is no answer yet


def test_too_few_runs_leave_a_comparison_open_instead_of_deciding_it() -> None:
    assert (
        claims.against_clucb(measured(always(10_000, 10_000, 40_000), runs=10), ADAPTIVE).checks
        == []
    )


def test_every_claim_is_judged_in_both_forms_and_what_is_not_there_is_not_measured() -> None:
    panels = choose(["rte-30"])
    judgements = judge(measured(always(10_000, 20_000, 20_000), panels))
    assert [each.sentence for each in judgements] == [claim.sentence for claim in CLAIMS]
    assert judgements[0].verdict == judgements[0].verdict_scaled == "holds"
    assert {each.verdict for each in judgements[1:]} == {"not measured"}


def test_the_scaled_form_is_judged_by_its_own_curve() -> None:
    def needs(panel: Panel) -> Mapping[str, float]:
        return {ADAPTIVE: 30_000, SCALED: 10_000, "opt-mai": 20_000, "clucb-pac": 20_000}

    first = judge(measured(needs))[0]
    assert (first.verdict, first.verdict_scaled) == ("does not hold", "holds")
