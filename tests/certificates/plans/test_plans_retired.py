"""Plans and arms that retire: why a look is void then, in exact arithmetic, and that it is."""

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from plan_looks import small_look, tape

from shortlist.arrays import IntArray
from shortlist.certificates.frame import Retired, informed
from shortlist.certificates.plans import search as plans_search_module
from shortlist.certificates.plans.bound import Stakes
from shortlist.certificates.plans.search import PlanLook, plans_search
from shortlist.certificates.plans.stage import ArmBlock, PlanProof, stopped_arms
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Binary
from shortlist.search import Answer, Pulls, Rewards, advance

MEANS = [Fraction(each, 20) for each in (1, 6, 11, 12, 13, 19)]
State = tuple[int, int]  # pulls and successes


class Following:
    """An arm on its plan, pull by pull; an opponent may let it leave after any of them.

    `left` says what exp(strength * (loss - charge)) counts if the arm leaves, as a function of the
    state in which it would stop if all its rewards from then on were 0."""

    def __init__(
        self, part: ArmBlock, stakes: Stakes, mean: Fraction, left: Callable[[float, float], float]
    ) -> None:
        leads = stakes.capped(part.places - stakes.boundary)
        charges = part.plan.charges(leads, stakes, 1e-3, part._likely(stakes.boundary))
        lost = stakes.losses(np.array([float(mean)]), leads)[0]
        weights = np.exp(stakes.strength * (lost - charges))
        states = part.plan.states
        counts = np.stack([states.pulls, states.successes]).astype(np.int64)
        keys = [(pulls, successes) for pulls, successes in counts.T.tolist()]
        self.plan, self.mean = part.plan, mean
        self.weight = dict(zip(keys, map(Fraction, weights.tolist()), strict=True))
        gone = [left(*each) for each in zip(charges.tolist(), leads.tolist(), strict=True)]
        self.left = dict(zip(keys, map(Fraction, gone), strict=True))

    def stops(self, state: State) -> bool:
        pulls, successes = (np.array([each]) for each in state)
        return state[0] > 0 and not self.plan.missing(pulls, successes)[0]

    @property
    def worst(self) -> Fraction:
        """The largest expectation of that factor, over all rules to leave by what was seen."""
        return self._worst()((0, 0))

    def _worst(self) -> Callable[[State], Fraction]:
        @cache
        def zeros(state: State) -> Fraction:
            """Where an arm ends whose rewards are 0 from here on."""
            if self.stops(state):
                return self.left.get(state, Fraction(0))
            return zeros((state[0] + 1, state[1]))

        @cache
        def worst(state: State) -> Fraction:
            if self.stops(state):
                return self.weight.get(state, Fraction(0))
            won, lost = (state[0] + 1, state[1] + 1), (state[0] + 1, state[1])
            stays = self.mean * worst(won) + (1 - self.mean) * worst(lost)
            return max(stays, zeros(state))

        return worst


@cache
def parts_of_a_look() -> list[tuple[ArmBlock, Stakes]]:
    """The parts of the first track of a small look, where every arm stopped with its likeliest
    state."""
    look = small_look()
    stage = look.stage(0)
    pulls, successes = np.zeros(30, dtype=np.int64), np.zeros(30, dtype=np.int64)
    for plan in stage.plans:
        at = int(plan.likely.argmax())
        pulls[plan.policy.group.arms] = int(plan.states.pulls[at])
        successes[plan.policy.group.arms] = int(plan.states.successes[at])
    track = next(stopped_arms(stage.plans, stage.belief, pulls, successes))
    middle = stage.boundaries.values[stage.boundaries.values.size // 2]
    stakes = Stakes(float(middle), stage.strength, stage.reach)
    short = [part for part in track.parts if part.plan.states.pulls.max() <= 64]
    return [(part, stakes) for part in short[:4]]


def test_no_rule_to_leave_lifts_the_moment_above_1_because_such_a_look_counts_nothing() -> None:
    for part, stakes in parts_of_a_look():
        for mean in MEANS:
            assert Following(part, stakes, mean, left=lambda *_: 0.0).worst <= 1 + Fraction(
                1, 10**6
            )


def test_if_leavers_were_charged_by_worst_rewards_the_moment_would_exceed_1() -> None:
    """A charge may be negative, so to leave in time would be a proof of nothing."""
    largest = Fraction(0)
    for part, stakes in parts_of_a_look():
        strength = stakes.strength

        def left(charge: float, lead: float, strength: float = strength) -> float:
            return float(np.exp(-strength * (charge + max(lead, 0.0))))

        largest = max(largest, *(Following(part, stakes, mean, left).worst for mean in MEANS))
    assert largest > 2


def proved(look: PlanLook, leaves: int | None) -> tuple[PlanProof | None, int]:
    """What a look proves where arm 29 leaves in batch number `leaves`, and how many it makes."""
    stream, batches = tape(np.linspace(0.9, 0.1, 30), 3), 0
    search = look.prove(np.random.default_rng(0), 0)
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        if batches == leaves:
            look.retired.arms[29] = True
        turn = advance(search, stream(turn))
        batches += 1
    return turn, batches


def test_a_look_in_which_an_arm_retires_proves_nothing_and_asks_for_no_more() -> None:
    proof, batches = proved(small_look(), None)
    assert proof is not None
    for leaves in {0, batches - 1}:
        assert proved(small_look(), leaves) == (None, leaves + 1)


class Spied(PlanLook):
    """A look that counts how many there were."""

    made = 0

    def __init__(self, *declared: object) -> None:
        super().__init__(*declared)  # type: ignore[arg-type]
        type(self).made += 1


def test_the_look_after_a_void_one_is_about_the_arms_that_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plans_search_module, "PlanLook", Spied)
    monkeypatch.setattr(Spied, "made", 0)
    means = np.repeat([0.9, 0.1], [7, 5])
    problem = Problem(12, 6, FixedConfidence(0.15, 0.3), Binary())
    retired = Retired(12)
    search = informed(plans_search(problem, np.random.default_rng(2), retired), retired)
    stream, gone = tape(means, 5), np.array([0])
    turn: Pulls | Answer = advance(search, None)
    while isinstance(turn, Pulls):
        assert Spied.made == 0 or not retired.any() or 0 not in turn.arms
        turn = advance(search, _told(stream(turn), gone if Spied.made else None))
    assert 0 not in turn.top
    assert turn.top.size == 6
    assert turn.evidence["looks"] == Spied.made == 2


def _told(reply: Rewards, retired: IntArray | None) -> Rewards:
    return Rewards(reply.sums, reply.squares, retired=retired)
