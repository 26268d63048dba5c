"""Arms that retire during a race on items: the bound about the others, in exact arithmetic."""

from itertools import permutations

import numpy as np
import pytest

from shortlist.arrays import FloatArray
from shortlist.certificates.frame import Retired, informed
from shortlist.certificates.items import race as items_race
from shortlist.certificates.items.race import ItemsRace, PairedEvidence, SingleEvidence
from shortlist.certificates.items.search import items_search
from shortlist.problem import FixedConfidence, Items, Problem
from shortlist.regret import aggregate_regret
from shortlist.search import Answer, Pulls, advance, rewards_of

DELTA = 0.5


def answered(
    scores: FloatArray, k: int, epsilon: float, arm: int, batch: int
) -> tuple[Answer, bool]:
    """What a race answers where items stand in this order and `arm` leaves in a batch; whether it
    did."""
    n, size = scores.shape
    problem = Problem(n, k, FixedConfidence(epsilon, DELTA), items=Items(size))
    retired = Retired(n)
    search = informed(items_search(problem, np.random.default_rng(0), retired), retired)
    drawn, batches = np.zeros(n, dtype=np.int64), 0
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        assert not retired.arms[turn.arms].any()
        each = []
        for one, times in zip(turn.arms.tolist(), turn.times.tolist(), strict=True):
            each.append(scores[one, drawn[one] : drawn[one] + times])
            drawn[one] += times
        entries = np.repeat(np.arange(turn.arms.size), turn.times)
        left = np.array([arm]) if batches >= batch else None
        turn = advance(search, rewards_of(np.concatenate(each), entries, turn.arms.size, left))
        batches += 1
    return turn, batches > batch


def some_leaving_is_wrong(scores: FloatArray, k: int, epsilon: float) -> bool:
    """Whether any arm, leaving in any batch, makes the bound about the others wrong."""
    for arm in range(len(scores)):
        stay = np.delete(np.arange(len(scores)), arm)
        for batch in range(scores.shape[1]):
            answer, left = answered(scores, k, epsilon, arm, batch)
            if not left:
                break
            top = np.searchsorted(stay, answer.top).tolist()
            assert answer.regret_bound is not None
            if aggregate_regret(scores[stay].mean(axis=1), top) > answer.regret_bound + 1e-9:
                return True
    return False


SETS = [
    (1, False, [[1, 1, 1, 1], [0.4, 0.4, 0.4, 0.4], [1, 0, 0, 0]]),
    (1, True, [[1, 1, 1, 1], [0.4, 0.4, 0.4, 0.4], [1, 0, 0, 0]]),
    (2, False, [[1, 1, 1, 1], [0.9, 1, 1, 1], [0.6, 0.6, 0.6, 0.6], [1, 1, 0, 0]]),
]


@pytest.mark.parametrize(("k", "single", "rows"), SETS)
def test_an_opponent_who_knows_the_order_makes_the_bound_wrong_with_probability_delta_at_most(
    k: int, single: bool, rows: list[list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(items_race, "FIRST_ITEMS", 1)
    monkeypatch.setattr(items_race, "SINGLE_FIRST", 1)
    monkeypatch.setattr(items_race, "MANY_ARMS", 1 if single else 100)
    scores = np.array(rows, dtype=np.float64)
    orders = list(permutations(range(scores.shape[1])))
    wrong = sum(some_leaving_is_wrong(scores[:, order], k, 0.05) for order in orders)
    assert wrong <= DELTA * len(orders)


@pytest.mark.parametrize(("n", "k"), [(6, 1), (6, 2), (7, 4), (12, 1), (50, 7)])
def test_evidence_is_that_of_a_race_among_the_arms_that_stay(n: int, k: int) -> None:
    """Bets are made again as if the others had never been there; only the level is higher."""
    rng = np.random.default_rng(n + k)
    scores, gone = rng.random((n, 40)), np.array([1, 4])
    problem = Problem(n, k, FixedConfidence(0.02, 0.1), items=Items(40))
    retired = Retired(n)
    race = ItemsRace(problem, np.random.default_rng(0), retired)
    first = race.evidence.first
    race.take(np.full(n, first), scores[:, :first].ravel())
    variance = race.evidence.variance
    retired.arms[gone] = True
    reached = np.full(n, 30)
    reached[gone] = first + 3
    fresh = [scores[arm, first : reached[arm]] for arm in range(n)]
    race.take(reached, np.concatenate(fresh))

    assert race.arms.tolist() == np.delete(np.arange(n), gone).tolist()
    assert race.problem.n_arms == n - 2
    mine = race.evidence
    assert mine.variance == variance
    if isinstance(mine, SingleEvidence):
        assert mine.above == pytest.approx((race.problem.k + 2) / (items_race.ABOVE * 0.1))
        return
    assert isinstance(mine, PairedEvidence)
    again = PairedEvidence(race.problem, race.cells)
    again.variance = variance
    again.take(race.cells, np.zeros(n - 2, dtype=np.int64))
    assert np.array_equal(mine.wealth.by_stake, again.wealth.by_stake)
    assert mine.proved.level == pytest.approx((k + 2) * (n - k) / 0.1)


def test_an_arm_that_only_a_retired_arm_put_out_is_no_longer_out() -> None:
    scores = np.vstack([np.ones(60), np.full(60, 0.5), np.tile([1.0, 0.0, 0.0], 20)])
    problem = Problem(3, 1, FixedConfidence(0.05, 0.1), items=Items(60))
    retired = Retired(3)
    race = ItemsRace(problem, np.random.default_rng(0), retired)
    race.take(np.full(3, 30), scores[:, :30].ravel())
    assert race.evidence.out[1]
    retired.arms[0] = True
    race.take(np.array([31, 31, 31]), scores[:, 30])
    assert not race.evidence.out[0]  # of the two that stay
    race.choose()
    assert race.chosen.tolist() == [1]


@pytest.mark.parametrize(("n", "k"), [(6, 1), (50, 7)])
def test_scores_made_up_for_a_retired_arm_affect_no_stake(n: int, k: int) -> None:
    problem = Problem(n, k, FixedConfidence(0.02, 0.1), items=Items(40))
    variances = set()
    for made_up in (0, 3, 5):
        retired = Retired(n)
        race = ItemsRace(problem, np.random.default_rng(0), retired)
        first = race.evidence.first
        scores = np.random.default_rng(1).random((n, first))
        scores[2, first - made_up :] = 0.0
        retired.arms[2] = True
        race.take(np.full(n, first), scores.ravel())
        variances.add(race.evidence.variance)
    assert len(variances) == 1
