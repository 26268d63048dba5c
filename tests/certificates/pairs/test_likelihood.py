"""Likelihood ratios of one arm against its rivals: fair on average, whoever is nominated when."""

from copy import deepcopy
from itertools import product
from math import fsum, log

import numpy as np
import pytest
from attack_scale import number_of_runs
from scipy.special import xlogy

from shortlist.arrays import FloatArray
from shortlist.certificates.pairs.bound import StageRewards
from shortlist.certificates.pairs.swap_bounds import FIRST_NOMINEE, Likelihood, largest_likelihood

GAP = 0.1
ARMS = 3
LENGTH = 12  # rewards in all
ENOUGH = 3.0  # wealth at which a course ends: the bound holds whenever one stops


def log_likelihood(
    good: FloatArray | float, bad: FloatArray | float, mean: FloatArray
) -> FloatArray:
    return np.asarray(xlogy(good, mean) + xlogy(bad, 1 - mean), dtype=np.float64)


def test_the_largest_likelihood_is_a_bound_and_close() -> None:
    rng = np.random.default_rng(1)
    grid = np.linspace(0, 1, 4001)
    for gap in (0.005, 0.09, 0.4):
        for _ in range(60):
            pulls = rng.integers(0, 150, 2).astype(float)
            good = np.rint(pulls * rng.choice([0.0, 1.0, rng.random()], 2))
            bad = pulls - good
            low = grid * (1 - gap)  # of the worse arm
            edge = log_likelihood(good[0], bad[0], low + gap)
            largest = (edge + log_likelihood(good[1], bad[1], low)).max()
            means = good / np.maximum(pulls, 1)
            if means[0] >= means[1] + gap:
                largest = log_likelihood(good, bad, means).sum()
            found = largest_likelihood((good[0], bad[0]), (good[1], bad[1]), gap)
            assert found >= largest - 1e-9
            assert found <= largest + 0.05


@pytest.mark.parametrize("mean", [0.3, 0.9])
def test_predictions_are_fair_for_rewards_between_0_and_1(mean: float) -> None:
    values = np.array([0.0, 0.4, 1.0])
    law = np.array([1 - mean - 0.6 * 0.1, 0.1, mean - 0.04])  # its mean is `mean`
    assert law @ values == pytest.approx(mean)
    terms = []
    for path in product(range(3), repeat=6):
        x = values[list(path)]
        likelihood = Likelihood(1)
        for some in (x[:1], x[1:3], x[3:]):  # batches
            known = StageRewards(
                np.array([likelihood._good[0] + likelihood._bad[0]]), likelihood._good, x
            )
            draws = StageRewards(np.array([some.size]), np.array([some.sum()]), some)
            likelihood.count(np.array([0]), draws, known, 0.6)
        total = float(log_likelihood(x.sum(), 6 - x.sum(), np.array(mean)))
        terms.append(np.prod(law[list(path)]) * np.exp(likelihood._predicted[0] - total))
    assert fsum(terms) <= 1 + 1e-12


def nominees(likelihood: Likelihood, best: int) -> list[int]:
    return [arm for arm in likelihood._before if arm != best]


def wealth(likelihood: Likelihood, best: int) -> float:
    """Of all nominees together, against "`best` is better by GAP"."""
    rival = np.array([best])
    arms = nominees(likelihood, best)
    return fsum(np.exp(likelihood.evidence(b, rival, GAP, best=True)[0]) for b in arms)


def courses(best: int) -> list[tuple[FloatArray, Likelihood]]:
    """Counts (arm, reward) and what is known at the end of every course of an adaptive search.

    It pulls the arm ahead more often than others, nominates it once it has three pulls, and ends
    when the wealth is large."""
    ends = []
    open_ = [(Likelihood(ARMS), np.zeros((ARMS, 2)))]
    while open_:
        likelihood, counts = open_.pop()
        pulls = counts.sum(1)
        means = (counts[:, 1] + 0.5) / (pulls + 1)
        ahead = int(np.argmax(means))
        if pulls[ahead] >= 3:
            likelihood.nominate(ahead)
        if pulls.sum() == LENGTH or wealth(likelihood, best) >= ENOUGH:
            ends.append((counts, likelihood))
            continue
        arm = ahead if pulls[ahead] < 2 * pulls.min() + 3 else int(np.argmin(pulls))
        for reward in (0, 1):
            after, more = deepcopy(likelihood), counts.copy()
            known = StageRewards(pulls.astype(np.int64), counts[:, 1], counts[:, 1])
            x = np.array([float(reward)])
            after.count(
                np.array([arm]), StageRewards(np.array([1]), x, x), known, float(means.mean())
            )
            more[arm, reward] += 1
            open_.append((after, more))
    return ends


def draw_means(best: int, rng: np.random.Generator) -> FloatArray:
    """Means of which that of `best` is larger by GAP at least."""
    means = rng.beta(0.7, 0.7, ARMS)
    means[best] = rng.uniform(GAP, 1)
    below = means[best] - GAP * (np.arange(ARMS) != best)
    result: FloatArray = np.clip(np.minimum(means, below), 1e-9, 1 - 1e-9)
    return result


def chances_of(counts: FloatArray, means: FloatArray) -> FloatArray:
    law = np.stack([1 - means, means], axis=1)  # (arm, reward)
    chances: FloatArray = np.prod(law**counts, axis=(1, 2))
    assert fsum(chances) == pytest.approx(1)
    return chances


@pytest.mark.rates
@pytest.mark.parametrize("best", [0, 2])
def test_wealth_of_all_nominees_is_at_most_one_on_average(best: int) -> None:
    ends = courses(best)
    counts = np.array([seen for seen, _ in ends])
    wealths = np.array([wealth(known, best) for _, known in ends])
    assert wealths.max() >= ENOUGH
    rng = np.random.default_rng(2)
    for _ in range(number_of_runs(30, 2000)):
        assert fsum(chances_of(counts, draw_means(best, rng)) * wealths) <= 1 + 1e-12


def true_wealth(known: Likelihood, best: int, means: FloatArray) -> float:
    """Shares times ratios at the true means, with the share of those who are not nominated yet."""

    def ratio(arm: int, before: tuple[float, float, float]) -> float:
        good, bad, predicted = (x - y for x, y in zip(known._of(arm), before, strict=True))
        return float(predicted - log_likelihood(good, bad, means[arm]))

    own = ratio(best, (0.0, 0.0, 0.0))
    shares = {arm: np.exp(share) for arm, share in known._log_shares.items()}
    others = {arm: 0.0 if arm == best else ratio(arm, known._before[arm]) for arm in shares}
    parts = [share * np.exp(own + others[arm]) for arm, share in shares.items()]
    return fsum([*parts, (1 - fsum(shares.values())) * np.exp(own)])


def test_at_the_true_means_wealth_is_one_on_average() -> None:
    """With nothing to spare: so any reward that counted twice, or too large a share, would show."""
    ends = courses(0)
    counts = np.array([seen for seen, _ in ends])
    rng = np.random.default_rng(3)
    for _ in range(4):
        means = draw_means(0, rng)
        wealths = np.array([true_wealth(known, 0, means) for _, known in ends])
        assert fsum(chances_of(counts, means) * wealths) == pytest.approx(1, abs=1e-9)


def counted(good: list[float], bad: list[float]) -> Likelihood:
    likelihood = Likelihood(len(good))
    none = np.zeros(len(good))
    times = (np.array(good) + np.array(bad)).astype(np.int64)
    known = StageRewards(none.astype(np.int64), none, none)
    likelihood.count(np.arange(len(good)), StageRewards(times, np.array(good), none), known, 0.5)
    return likelihood


def test_to_leave_one_arm_out_is_the_mirror_image_of_choosing_one() -> None:
    rivals = np.array([1, 2])
    chosen, left_out = counted([0, 4, 9], [0, 6, 3]), counted([0, 6, 3], [0, 4, 9])
    for likelihood, good in ((chosen, 18.0), (left_out, 2.0)):
        likelihood.nominate(0)
        draws = StageRewards(np.array([20]), np.array([good]), np.array([good]))
        known = StageRewards(np.zeros(3, dtype=np.int64), np.zeros(3), np.zeros(3))
        likelihood.count(np.array([0]), draws, known, 0.5)
    found = chosen.evidence(0, rivals, GAP, best=True)
    assert found == pytest.approx(left_out.evidence(0, rivals, GAP, best=False))


def test_what_a_nominee_gave_before_counts_only_as_a_prediction() -> None:
    likelihood = counted([30, 5], [0, 15])
    likelihood.nominate(0)
    likelihood.nominate(1)
    rivals = np.array([1])
    alone = counted([0, 5], [0, 15])
    alone.nominate(0)
    assert likelihood.evidence(0, rivals, GAP, best=True) == alone.evidence(
        0, rivals, GAP, best=True
    )
    likelihood.nominate(0)  # once only
    shares = likelihood._log_shares
    assert shares == pytest.approx(
        {0: log(FIRST_NOMINEE), 1: log(FIRST_NOMINEE * (1 - FIRST_NOMINEE))}
    )
