"""The race on differences: pull all arms in doubt equally often until the choice is proved.

docs/normal.md has the theorems and their proofs. Every batch pulls each arm in play equally often,
so that the promise holds for independent arms of any one shape, not for normal rewards alone.

A budget on shared seeds (`shared_budget_search`) comes without a guarantee. theta_j - theta_i is
estimated by the arm effects that fit all mean differences (`Comparisons.effects`), with the
variance of *differences* on shared seeds, divided by the seeds that both arms have seen. As on a
test set (exploration/items.py),

    loss_i = E[(theta_j - theta_i)_+],   j the best arm outside for an arm i inside the choice,

and the mirror image for one outside, j the last one chosen. Arms whose loss per cost and pull is
not far below the largest are run on the next seeds together: a seed that one arm alone has seen
tells nothing of a difference."""

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.differences import planning
from shortlist.certificates.differences.bound import PairSums, RowSums, pair_level, row_sums
from shortlist.certificates.differences.fallback import TwoStageSample
from shortlist.certificates.differences.planning import (
    Comparisons,
    best_first,
    clocks_for,
    next_rows,
    ranged_clocks,
    sharp_clocks,
)
from shortlist.certificates.frame import Retired, answered
from shortlist.certificates.items.bound import largest_matching
from shortlist.certificates.items.planning import open_pairs
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

ROUNDING = 2.0**-51  # of a reward, and of a mean of rewards
CUT = 2.0  # times K epsilon at which bounds are cut to find the open pairs
# they cost regret only: `python benchmarks/shared_seeds.py --budget`
FIRST_SHARED = 5  # seeds that all arms are run on first
BATCHES = 60  # number of batches, about
NEAR = 0.1  # loss from which on an arm is run, as a share of the largest
EVENNESS = 0.7  # power of the pulls of an arm by which its loss is divided


@dataclass
class Course:
    """What was spent, how far rewards are from 0, and how much arms have in common."""

    batches: int = 0
    rows: int = 0
    farthest: float = 0.0  # in units of epsilon
    own: float = 0.0  # squared deviations of rewards, as many times as they are in pairs
    paired: float = 0.0  # squared deviations of differences

    def compare(self, rows: FloatArray) -> None:
        """Add up deviations within a batch, (rows, arms)."""
        around = rows - rows.mean(axis=0)
        total = float((around**2).sum())
        self.own += (rows.shape[1] - 1) * total
        self.paired += rows.shape[1] * total - float((around.sum(axis=1) ** 2).sum())

    @property
    def correlation(self) -> float | None:
        """Mean correlation of two arms in a row, by variances; None if rewards do not vary."""
        return 1 - self.paired / self.own if self.own else None


class DifferencesRace:
    """Bounds on all leads, the present choice, and the arms in play; all in units of epsilon."""

    def __init__(
        self, problem: Problem, rng: np.random.Generator, retired: Retired | None = None
    ) -> None:
        n, k = problem.n_arms, problem.k
        self.problem = problem
        self.retired = Retired(n) if retired is None else retired
        # the two-stage sample needs independent normal arms
        shared = problem.shared_seeds
        self.fallback = None if shared else TwoStageSample(n, k, problem.delta)
        share = 0.0 if self.fallback is None else self.fallback.share
        self.level = pair_level(n, k, problem.delta * (1 - share))
        sharp = 0.0 if problem.rewards.has_range else planning.SHARP_WEIGHT
        self.sums = PairSums(n, np.array(planning.GAP_WEIGHTS), sharp)
        self.compared = Comparisons(n)
        self.ties: IntArray = rng.permutation(n)
        self.course = Course()
        self.budget = Budget(problem)
        self.play: IntArray = np.arange(n)
        unseen = best_first(np.zeros(n), self.ties)
        self.top: IntArray = np.sort(unseen[:k])
        self.outside: IntArray = np.sort(unseen[k:])
        self.raced: FloatArray = np.full((k, n - k), np.inf)  # bounds by the race alone,
        self.bounds: FloatArray = self.raced  # and with the samples

    def take(self, arms: IntArray, rewards: FloatArray) -> None:
        """Bet on rows of these arms, (rows, arms), and choose again.

        The first batch is not bet on: it only fixes clocks. Rewards of retired arms are made up."""
        stay = ~self.retired.arms[arms]
        if stay.any():
            self._add(arms[stay], rewards[:, stay])
        self.choose()

    def _add(self, arms: IntArray, rewards: FloatArray) -> None:
        rows = rewards / self.problem.epsilon
        self.course.farthest = max(self.course.farthest, float(np.abs(rows).max()))
        told = row_sums(rows)
        if self.course.rows:
            self._bet(arms, rewards, told)
        self.compared.add(arms, told)
        self.course.compare(rows - rows.mean())
        self.course.rows += len(rows)
        if self.fallback is not None:
            for place, arm in enumerate(arms.tolist()):
                self.fallback.take(arm, rows[:, place])

    def _bet(self, arms: IntArray, rewards: FloatArray, told: RowSums) -> None:
        """Bet on rows of these arms; clocks and centres rest on earlier batches."""
        pairs, k, epsilon = np.ix_(arms, arms), self.problem.k, self.problem.epsilon
        variances = self.compared.variances()[pairs]
        if not self.problem.rewards.has_range:
            clocks = clocks_for(variances, k)
            self.sums.bet(arms, told, clocks)
            if self.course.rows > planning.EXACT_ROWS:
                self.sums.exact.ended = True
            else:
                sharp = sharp_clocks(self.compared, arms)[:, :, None]
                both = np.concatenate([clocks, sharp], axis=2)
                self.sums.exact.bet(arms, rewards / epsilon, both)
            return
        centres = np.clip(epsilon * self.compared.mean_leads()[pairs], -1, 1)
        clocks = ranged_clocks(variances, centres, k, epsilon)
        self.sums.bet_ranged(arms, rewards, clocks, centres, epsilon)

    def choose(self) -> None:
        """Choose by the effects, or as the samples say if that loses less."""
        gone = self.retired.arms
        if (gone != self.sums.retired).any():
            self.sums.retire(gone)
        ranked = best_first(self.compared.effects(gone), self.ties)
        by_effects = ranked[: self.problem.k]
        self._divide(by_effects)
        loss = self.loss()
        if self.fallback is None or loss <= self.problem.k:
            return
        by_samples = self._chosen_by_samples(self.fallback)
        if np.setdiff1d(by_samples, by_effects).size:
            self._divide(by_samples)
            if not self.loss() < loss:
                self._divide(by_effects)

    def _chosen_by_samples(self, sample: TwoStageSample) -> IntArray:
        """The choice, with the places of arms with complete samples given to the best of these."""
        done = sample.complete & ~self.retired.arms
        kept = self.top[~done[self.top]]
        ranked = best_first(np.where(done, sample.means(), -np.inf), self.ties)
        return np.append(kept, ranked[: self.problem.k - kept.size])

    def _divide(self, top: IntArray) -> None:
        """Choose these arms, and bound the leads of all others over them."""
        self.top = np.sort(top)
        self.outside = np.setdiff1d(self.retired.staying, top)
        self.raced = self.sums.update(self.top, self.outside, self.level)
        self.bounds = self.raced
        if self.fallback is not None:
            sampled = self.fallback.bounds(self.top, self.outside)
            self.bounds = np.minimum(self.raced, sampled)

    @property
    def blur(self) -> float:
        """What rounding of the rewards can add to the loss in all."""
        mean = ROUNDING * self.course.farthest + self.problem.blur / self.problem.epsilon
        return 2 * mean * self.problem.k

    def loss(self) -> float:
        """The largest loss of the choice in all, K R_T, in units of epsilon."""
        raced = self._worst(self.raced)
        return raced if raced <= self.problem.k else self._worst(self.bounds)

    @property
    def proof(self) -> str:
        """What the bound rests on: samples only where the race alone proves less."""
        return "race" if self._worst(self.raced) <= self.loss() else "two-stage sample"

    def _worst(self, bounds: FloatArray) -> float:
        """The most that a matching of bounds amounts to."""
        finite = np.isfinite(bounds)
        far = 1e6 * (1 + np.abs(bounds[finite]).sum())
        total = largest_matching(np.where(finite, bounds, far))
        return total + self.blur if total < far else np.inf

    def choose_arms(self) -> None:
        """Put the arms of open pairs in play."""
        allowed = self.problem.k - self.blur
        cut = np.minimum(self.bounds, CUT * self.problem.k)
        doubt = open_pairs(cut, allowed)
        if not doubt.any():  # less than rounding is missing
            doubt[:] = True
        self.play = np.sort(
            np.concatenate([self.top[doubt.any(axis=1)], self.outside[doubt.any(axis=0)]])
        )


def differences_search(
    problem: Problem,
    rng: np.random.Generator,
    least: int | None = None,
    retired: Retired | None = None,
) -> Search:
    """Pull arms in doubt equally often until no matching of bounds exceeds K epsilon.

    R_T <= its bound with probability >= 1 - delta, whenever it ends, for normal rewards of any
    variances, and on shared seeds for rewards with a range. Batches have at least `least` pulls.
    Pairs with retired arms end."""
    race = DifferencesRace(problem, rng, retired)
    yield from _pull(race, _affordable(race, planning.FIRST_ROWS, least))
    while True:
        bound = race.loss()
        if bound <= problem.k:
            return _answer(race, bound)
        race.choose_arms()
        if race.fallback is not None and race.fallback.due(race.play):
            completed = yield from _complete(race, race.fallback)
            if completed:
                continue
        rows = _affordable(race, next_rows(race.course.rows), least)
        if not rows:
            return _answer(race, bound)
        yield from _pull(race, rows, bound)


def _affordable(race: DifferencesRace, rows: int, least: int | None) -> int:
    """Rows of the next batch: with at least this many pulls, and as the budget pays for."""
    if least is not None:
        rows = max(rows, -(-least // race.play.size))
    if race.budget.total is None:
        return rows
    cost = race.budget.price(race.play, np.ones_like(race.play)).sum()
    return int(min(rows, race.budget.left // cost))


def _pull(
    race: DifferencesRace, rows: int, bound: float = np.inf
) -> Generator[Pulls, Rewards, None]:
    """Draw rows of the arms in play."""
    arms = race.play
    reply = yield from _drawn(race, arms, np.full(arms.size, rows), bound)
    drawn = reply.rows(arms.size)
    if drawn.size:  # else all seeds were void
        race.take(arms, drawn)


def _drawn(
    race: DifferencesRace, arms: IntArray, times: IntArray, bound: float
) -> Generator[Pulls, Rewards, Rewards]:
    """The reply to a batch, with every reward, entry by entry, in units of the problem."""
    course, epsilon = race.course, race.problem.epsilon
    course.batches += 1
    proved = (None, None) if np.isinf(bound) else (bound * epsilon / race.problem.k, race.top)
    progress = Progress(course.batches, 0, 0, arms.size, *proved)
    pulls = Pulls(arms, times, progress)
    reply = yield pulls
    race.budget.pay(pulls, reply)
    return reply


def _complete(race: DifferencesRace, sample: TwoStageSample) -> Generator[Pulls, Rewards, bool]:
    """Complete the samples of the arms in play; False if they are, or the budget is too small."""
    arms = race.play[sample.missing[race.play] > 0]
    times = sample.missing[arms]
    if not arms.size or not race.budget.affords(arms, times).all():
        return False
    reply = yield from _drawn(race, arms, times, race.loss())
    assert reply.each is not None, "drivers send single rewards where rewards are normal"
    parts = np.split(reply.each, np.cumsum(times)[:-1])
    for arm, own in zip(arms.tolist(), parts, strict=True):
        if not race.retired.arms[arm]:
            sample.take(arm, own / race.problem.epsilon)
    race.choose()
    return True


def _answer(race: DifferencesRace, bound: float) -> Answer:
    evidence: dict[str, object] = {
        "certificate": "differences",
        "proof": race.proof,
        "rows": race.course.rows,
    }
    if race.problem.shared_seeds:
        evidence["correlation"] = race.course.correlation
    before = None if race.retired.any() else race.sums.bounds < -race.blur
    return answered(race.problem, race.top, bound * race.problem.epsilon, evidence, before)


class SharedBudget:
    """What was spent, and what is known of all differences; in units of their deviation."""

    def __init__(self, problem: Problem, rng: np.random.Generator, least: int) -> None:
        self.problem = problem
        self.least = least  # pulls per batch
        self.budget = Budget(problem)
        self.compared = Comparisons(problem.n_arms)
        self.ties: IntArray = rng.permutation(problem.n_arms)
        self.pulls: IntArray = np.zeros(problem.n_arms, dtype=np.int64)
        self.scale = 0.0
        self.batches = 0

    def take(self, arms: IntArray, rows: FloatArray) -> None:
        """Add rows of these arms, (rows, arms)."""
        around = rows - rows.mean(axis=1, keepdims=True)
        self.scale = self.scale or float(around.std()) or 1.0
        self.compared.add(arms, row_sums(around / self.scale))
        self.pulls[arms] += len(rows)

    def ranked(self) -> IntArray:
        """All arms, best first."""
        seen = self.pulls.any()
        effects = self.compared.effects() if seen else np.zeros(self.pulls.size)
        return best_first(effects, self.ties)

    def losses(self, ranked: IntArray) -> FloatArray:
        """The expected loss of every arm for its place in the choice: (n,)."""
        from scipy.special import ndtr

        k, effects = self.problem.k, self.compared.effects()
        rival = np.full(effects.size, ranked[k - 1])  # of an arm outside: the last one chosen
        rival[ranked[:k]] = ranked[k]
        arms = np.arange(effects.size)
        shared = np.maximum(self.compared.rows[arms, rival], 1)
        deviation = np.sqrt(self.compared.variances()[arms, rival] / shared)
        ratio = np.abs(effects - effects[rival]) / deviation
        density = np.exp(-0.5 * ratio**2) / np.sqrt(2 * np.pi)
        losses: FloatArray = deviation * np.maximum(density - ratio * ndtr(-ratio), 0.0)
        return losses

    def next_arms(self) -> IntArray:
        """The arms to run next, those of the k-th place and the one after it among them."""
        ranked = self.ranked()
        arms = np.arange(ranked.size)
        value = self.losses(ranked) / self.budget.price(arms, np.ones_like(arms))
        value /= self.pulls**EVENNESS
        near = ranked[self.problem.k - 1 : self.problem.k + 1]
        wanted = np.union1d(np.flatnonzero(value >= NEAR * value.max()), near)
        return self._paid_for(wanted, near, value)

    def _paid_for(self, wanted: IntArray, near: IntArray, value: FloatArray) -> IntArray:
        """As many of these arms, the most valuable first, as the budget pays a row of."""
        others = np.setdiff1d(wanted, near)
        order = np.concatenate([near, others[np.argsort(-value[others], kind="stable")]])
        paid = np.cumsum(self.budget.price(order, np.ones_like(order))) <= self.budget.left
        return np.sort(order[paid])

    def rows_for(self, arms: IntArray) -> int:
        """Rows of the next batch of these arms."""
        cost = float(self.budget.price(arms, np.ones_like(arms)).sum())
        total = self.budget.total
        assert total is not None
        usual = max(1, int(total / BATCHES / cost), -(-self.least // arms.size))
        return min(usual, int(self.budget.left / cost))


def shared_budget_search(problem: Problem, rng: np.random.Generator, least: int = 1) -> Search:
    """Spend the budget on shared seeds where it lowers the expected loss; no guarantee."""
    state = SharedBudget(problem, rng, least)
    arms: IntArray = np.arange(problem.n_arms)
    cost = float(state.budget.price(arms, np.ones_like(arms)).sum())
    rows = max(1, min(FIRST_SHARED, int(state.budget.left / cost)))
    while arms.size > 1 and rows:
        state.batches += 1
        progress = Progress(state.batches, undecided=arms.size)
        pulls = Pulls(arms, np.full(arms.size, rows), progress)
        reply: Rewards = yield pulls
        state.budget.pay(pulls, reply)
        drawn = reply.rows(arms.size)
        if drawn.size:  # else all seeds were void, and the same arms are run on others
            state.take(arms, drawn)
            arms = state.next_arms()
        rows = state.rows_for(arms) if arms.size > 1 else 0
    return Answer(np.sort(state.ranked()[: problem.k]))
