"""What a stage proves: for one set, by claims that were checked, and only within the reach."""

import math
from dataclasses import replace

import numpy as np
import pytest
from plan_looks import asked, small_look, tape

from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.planning import Plan
from shortlist.certificates.plans.search import PlanLook
from shortlist.certificates.plans.stage import (
    CombinedBounds,
    PlanProof,
    PlanStage,
    SetCharges,
    StoppedArms,
    best,
)


def test_a_look_proves_nothing_where_no_set_has_a_small_bound() -> None:
    look = small_look()
    asked(look, tape(np.full(30, 0.5), 3), [0])
    stage = look.stage(0)
    stage.boundaries.thresholds[:] = 1e9

    proof = stage.proof(look.pulls, look.successes, np.random.default_rng(0))

    assert isinstance(proof, float)
    assert proof > 1e6


@pytest.mark.parametrize("far", [1.001, 2.0])
def test_what_is_rough_proves_nothing(far: float, monkeypatch: pytest.MonkeyPatch) -> None:
    look = small_look()
    asked(look, tape(np.linspace(0.9, 0.1, 30), 3))
    stage = look.stage(len(look.drafts) - 1)
    ended = look.pulls, look.successes
    proof = stage.proof(*ended, np.random.default_rng(0))
    assert isinstance(proof, PlanProof)
    rough = PlanStage.charged

    def dearer(
        stage: PlanStage, ended: StoppedArms, j: int, *, roughly: bool = False
    ) -> SetCharges:
        charged = rough(stage, ended, j, roughly=roughly)
        return charged if roughly else replace(charged, least=charged.least + far * stage.reach)

    monkeypatch.setattr(PlanStage, "charged", dearer)

    assert isinstance(stage.proof(*ended, np.random.default_rng(0)), float)


def test_a_state_that_was_left_out_proves_nothing() -> None:
    look = small_look()
    asked(look, tape(np.linspace(0.9, 0.1, 30), 3), [0])
    look.pulls[4] = 10**6

    assert look.stage(0).proof(look.pulls, look.successes, np.random.default_rng(0)) == np.inf


def proving_look() -> PlanLook:
    """A look whose last stage proves a set."""
    look = small_look()
    asked(look, tape(np.linspace(0.9, 0.1, 30), 3))
    return look


def proved(look: PlanLook) -> PlanProof | float:
    stage = look.stage(len(look.drafts) - 1)
    return stage.proof(look.pulls, look.successes, np.random.default_rng(0))


def test_all_claims_are_about_the_set_that_is_returned_and_none_counts_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[CombinedBounds] = []

    def reluctant(claims: CombinedBounds, reach: float) -> float:
        """The first track is never enough, all of them always are."""
        made.append(claims)
        return reach * (1 + 1e-9) if len(made) == 1 else reach / 2

    monkeypatch.setattr(CombinedBounds, "bound", reluctant)
    monkeypatch.setattr(tuning, "FEW_ARMS", 1)
    look = small_look()
    asked(look, tape(np.full(30, 0.5), 3), [0])
    stage = look.stage(0)
    proof = stage.proof(look.pulls, look.successes, np.random.default_rng(0))

    assert isinstance(proof, PlanProof)
    first, claims = made
    assert first is claims
    assert len({(id(each.track), each.j) for each in claims.all}) == len(claims.all)
    tracks = {id(each.track): each.track.share for each in claims.all}
    assert sum(tracks.values()) == pytest.approx(1)
    assert np.exp(-claims.boundaries.thresholds).sum() <= 0.2 * tuning.STAGE_AIMS[0][1] * (1 + 1e-9)
    preferred = set()
    for claim in claims.all:
        charged = stage.charged(claim.track, claim.j)
        assert claims.check(claim.track, claim.j) == charged.by(proof.chosen)
        preferred.add(tuple(best(charged.leads, np.arange(30), 10).tolist()))
    assert len(preferred) > 1  # they are about this set, though not all of them prefer it


@pytest.mark.parametrize("bound", [1 + 1e-9, 1.01, 3.0, math.nan, math.inf, -0.1])
def test_no_bound_outside_the_reach_is_a_proof(
    bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CombinedBounds, "bound", lambda _, reach: bound * reach)

    assert not isinstance(proved(proving_look()), PlanProof)


@pytest.mark.parametrize("exactly", [True, False])
def test_a_state_that_is_charged_infinitely_proves_nothing(
    exactly: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = proving_look()
    charged = PlanStage.charged

    def infinite(
        stage: PlanStage, ended: StoppedArms, j: int, *, roughly: bool = False
    ) -> SetCharges:
        usual = charged(stage, ended, j, roughly=roughly)
        return usual if exactly and roughly else replace(usual, least=math.inf)

    monkeypatch.setattr(PlanStage, "charged", infinite)

    assert proved(look) == math.inf


def test_charges_of_which_none_is_a_number_are_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = small_look().stage(0).plans[0]
    monkeypatch.setattr(Plan, "_q", lambda plan, *_: np.full(plan.states.pulls.size, math.nan))
    stakes = plan.policy.stakes

    charges = plan.charges(np.zeros(plan.states.pulls.size), stakes, 1e-3, plan.likely)

    assert (charges == math.inf).all()
