"""A budget on shared seeds: arms meet the same seeds, and are compared by their differences.

No guarantee. theta_j - theta_i is estimated by the arm effects that fit all mean differences
(`Comparisons.effects`), with the variance of *differences* on shared seeds, divided by the seeds
that both arms have seen. As on a test set (exploration/items.py),

    loss_i = E[(theta_j - theta_i)_+],   j the best arm outside for an arm i inside the choice,

and the mirror image for one outside, j the last one chosen. Arms whose loss per cost and pull is
not far below the largest are run on the next seeds together: a seed that one arm alone has seen
tells nothing of a difference."""

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.budget import Budget
from shortlist.certificates.differences.bound import row_sums
from shortlist.certificates.differences.planning import Comparisons, best_first
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

# they cost regret only: `python benchmarks/shared_seeds.py --budget`
FIRST_SHARED = 5  # seeds that all arms are run on first
BATCHES = 60  # number of batches, about
NEAR = 0.1  # loss from which on an arm is run, as a share of the largest
EVENNESS = 0.7  # power of the pulls of an arm by which its loss is divided


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
        return best_first(self.compared.effects(), self.ties)

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
        assert reply.each is not None, "drivers send single rewards on shared seeds"
        state.budget.pay(pulls, reply)
        state.take(arms, reply.each.reshape(arms.size, rows).T)
        arms = state.next_arms()
        rows = state.rows_for(arms) if arms.size > 1 else 0
    return Answer(np.sort(state.ranked()[: problem.k]))
