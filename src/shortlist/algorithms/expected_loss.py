"""Expected loss: the least regret for a given number of pulls."""

import numpy as np

from shortlist.algorithms.algorithm import Count
from shortlist.arrays import IntArray
from shortlist.budget import Budget
from shortlist.certificates.differences.search import shared_budget_search
from shortlist.certificates.split.bound import Holdout
from shortlist.certificates.split.search import final_look
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.exploration.expected_loss import explore
from shortlist.exploration.items import explore_items
from shortlist.exploration.posterior import Posterior
from shortlist.exploration.prices import exploring
from shortlist.problem import Problem
from shortlist.reward_models import Undeclared, check_spread
from shortlist.search import Answer, RunUpTo, Search
from shortlist.validation import number, shown


def expected_loss(
    problem: Problem,
    rng: np.random.Generator,
    *,
    holdout: float = 0.0,
    delta: float = 0.05,
    min_batch: Count = 1,
    max_rounds: Count | None = None,
) -> Search:
    """Pull where the expected loss per pull and per cost is largest; return the k best means.

    Under a constraint c is the price of the arm, and the best feasible set by posterior means is
    returned.

    loss_i = E[(c - theta_i)_+] for an arm inside the present choice, E[(theta_i - c)_+] for one
    outside, with c halfway between the k-th and the next posterior mean, under an empirical-Bayes
    posterior with tempered likelihood. On items, no cell is scored twice (exploration/items.py).
    On shared seeds arms are compared by their differences (certificates/differences/search.py).
    Fixed budget; no guarantee, unless a share `holdout` of the budget is set aside: its fresh pulls
    then give a bound on the regret that holds with probability at least 1 - `delta`.

    Batches have at least `min_batch` pulls, or the rest of the budget and of the limits of arms,
    and there are at most `max_rounds` of them; the pulls set aside are one more batch, of any
    size."""
    if not 0 <= holdout < 1:
        raise InvalidInput(f"`holdout` is {shown(holdout)}, but must be at least 0 and less than 1")
    delta = number("delta", delta, above=0, below=1)
    if holdout > 0:  # the proof needs a range or a sigma
        check_spread(problem.rewards, "a holdout")
    if holdout > 0 and isinstance(problem.rewards, Undeclared):
        raise InvalidInput(
            f"`holdout` is {holdout}, but a bound needs to know what rewards can be: say `rewards`"
        )
    if holdout > 0 and max_rounds == 1:
        raise InvalidInput("`max_rounds` is 1, but a holdout is a round of its own")
    if problem.items is not None:
        _check_items(holdout, min_batch, max_rounds)
        return (yield from explore_items(problem, rng))
    if problem.shared_seeds:
        _check_shared(problem, holdout, max_rounds)
        return (yield from shared_budget_search(problem, rng, min_batch))
    posterior = exploring(problem)
    budget = Budget(problem)
    if holdout > 0:
        budget = Budget(problem, _explorable(problem, holdout))
        max_rounds = None if max_rounds is None else max_rounds - 1
    least = min_batch if min_batch > 1 else 0
    yield from explore(posterior, budget, rng, _caps(problem), least=least, rounds=max_rounds)
    if holdout == 0:
        return _choice(posterior, rng)
    # fresh pulls are not shared out by their costs: each counts at the highest cost
    left = int((Budget(problem).left - budget.spent) / budget.most)
    fresh = Holdout(problem.n_arms, problem.blur)
    return (yield from final_look(posterior, fresh, left, delta, rng))


def _explorable(problem: Problem, holdout: float) -> float:
    """The budget before the holdout: at least a pull of every arm."""
    budget = problem.goal.budget
    assert budget is not None
    if problem.costs is None:
        return max(problem.n_arms, int((1 - holdout) * budget))
    return max(sum(problem.costs), (1 - holdout) * budget)


def expected_loss_anytime(problem: Problem, rng: np.random.Generator) -> RunUpTo:
    """The same exploration, to be run up to one budget after another."""
    posterior = exploring(problem)
    return _anytime(posterior, Budget(problem), rng, _caps(problem))


def _anytime(
    posterior: Posterior, budget: Budget, rng: np.random.Generator, caps: IntArray | None
) -> RunUpTo:
    def run_up_to(pulls: int) -> Search:
        budget.total = pulls
        yield from explore(posterior, budget, rng, caps)
        return _choice(posterior, rng)

    return run_up_to


def _check_items(holdout: float, min_batch: int, max_rounds: int | None) -> None:
    if holdout > 0:
        raise InvalidInput(f"`holdout` is {holdout}, but must be 0 where there are items")
    if min_batch > 1 or max_rounds is not None:
        name, value = ("min_batch", min_batch) if max_rounds is None else ("max_rounds", max_rounds)
        raise InvalidInput(f"`{name}` is {value}, but a search on items sets it itself")


def _check_shared(problem: Problem, holdout: float, max_rounds: int | None) -> None:
    """Refuse options that need independent arms, and constraints."""
    if problem.constraint is not None:
        raise UnsupportedGoal(
            "expected-loss does not support constraints on shared seeds, only on own"
        )
    if holdout > 0:
        raise InvalidInput(f"`holdout` is {holdout}, but must be 0 on shared seeds")
    if max_rounds is not None:
        raise InvalidInput(
            f"`max_rounds` is {shown(max_rounds)}, but on shared seeds only `min_batch` makes"
            " rounds fewer"
        )


def _caps(problem: Problem) -> IntArray | None:
    return None if problem.limits is None else problem.most_pulls


def _choice(posterior: Posterior, rng: np.random.Generator) -> Answer:
    chosen, _ = posterior.split(rng)
    return Answer(np.flatnonzero(chosen))
