"""A pilot that chooses the plans, plans that choose the set and prove it."""

import math
from collections.abc import Generator
from functools import partial

import numpy as np

from shortlist.certification.plans import tuning
from shortlist.certification.plans.beliefs import Belief
from shortlist.certification.plans.look import Look
from shortlist.certification.plans.sketches import sketched
from shortlist.certification.plans.stage import Proof
from shortlist.certification.retired import Retired, continued
from shortlist.certification.split.alpha_spending import share_of
from shortlist.certification.split.split_search import split_search_from
from shortlist.exploration.explore import explore_once
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Answer, Pulls, Rewards, Search


def plan_search(
    problem: Problem, rng: np.random.Generator, retired: Retired | None = None
) -> Search:
    """Explore a little, declare a plan for every arm, and let the plans choose and prove.

    For 0/1 rewards, declared or not. The pilot says where the boundary may be and which arms are
    near it; plans are declared from it, and their fresh rewards choose the set and give the bound
    U of docs/plans.md: if U <= K epsilon, R_T <= U / K with probability >= 1 - delta. If not, all
    rewards so far are the pilot of the next look, which has its own share of delta. After some
    looks, or with the first reward that is neither 0 nor 1, the split certificate takes over, all
    rewards so far being exploration.

    A look in which an arm retires is void: it proves nothing, its share of delta is lost, and all
    its rewards are pilot for the next one, which is about the arms that stay."""
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)
    retired = Retired(problem.n_arms) if retired is None else retired
    yield from _pilot(posterior, tuning.FIRST * problem.n_arms, rng)
    return (yield from _plans_from(posterior, problem, rng, retired))


def _plans_from(
    posterior: Posterior,
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired,
    *,
    rounds: int = 0,
    failed: int = 0,
) -> Search:
    """Plans after a pilot; `failed` looks had shares of delta."""
    while failed < tuning.LOOKS and _is_binary(posterior) and not retired.any():
        belief = _belief(problem, posterior, rng, sharpen=failed == 0)
        delta = share_of(problem.delta, failed)
        small = _is_small(posterior)
        sketch = sketched(belief, _reach(problem), delta, usual=small)
        if math.isinf(sketch.pulls) and not small:
            break
        wanted = _wanted(sketch.pulls, posterior, belief)
        if posterior.spent < tuning.NEARLY * wanted:
            yield from _pilot(posterior, int(wanted), rng)
            continue
        sketch = sketched(belief, _reach(problem), delta) if small else sketch
        look = Look(belief, sketch.stakes, delta, retired)
        if not look.promising:
            break
        proof = yield from look.prove(rng, rounds)
        rounds += len(look.record)
        if proof is not None:
            return _answer(problem, look, proof, posterior.spent, failed + 1)
        failed += 1
        for pulls, rewards in look.record:
            posterior.add(pulls, rewards)
        posterior.refresh()
    if not retired.any():
        return (yield from split_search_from(posterior, problem, rng, None, retired, failed=failed))
    stay = retired.staying
    some, fewer = posterior.among(stay), problem.among(stay, None)
    rest = partial(_plans_from, some, fewer, rng, rounds=rounds, failed=failed)
    return (yield from continued(stay, rest))


def _pilot(
    posterior: Posterior, until: int, rng: np.random.Generator
) -> Generator[Pulls, Rewards, None]:
    """Explore until so many pulls are spent, in few requests.

    Where rewards may be scores, the first one is that of the split certificate."""
    if posterior.spent == 0:
        first = until if posterior.rewards.is_binary else 0
        yield from explore_once(posterior, until, rng, least=first)
    while posterior.spent < until and _is_binary(posterior):
        batch = math.ceil(tuning.GROWTH * posterior.spent)
        yield from explore_once(posterior, until - posterior.spent, rng, least=batch)


def _wanted(fresh: float, posterior: Posterior, belief: Belief) -> float:
    """Pulls that a pilot should have whose plans are predicted to take so many `fresh` ones.

    By their root: what a larger pilot saves grows with them and falls with its own pulls. More
    where few arms are to be chosen, or to be left out: the boundary is at the edge of all means,
    and k epsilon is small beside what it costs to have it wrong. All within shares of the fresh
    pulls, of which the smaller one falls with the number of arms: few say little together."""
    n_arms = posterior.n_arms
    if math.isinf(fresh):  # too small a pilot to promise anything
        return tuning.PILOT * n_arms
    least = tuning.LEAST_SHARE / math.cbrt(n_arms) * fresh
    if _is_small(posterior):
        return min(max(tuning.PILOT * n_arms, least), fresh)
    wanted = tuning.PILOT_PART * belief.edge * math.sqrt(fresh * n_arms)
    wanted = min(max(wanted, least), tuning.MOST_SHARE * fresh)
    return min(wanted, tuning.LARGER * posterior.spent)


def _is_small(posterior: Posterior) -> bool:
    """Whether the pilot is too small to predict more than a few pulls an arm."""
    return posterior.spent < tuning.NEARLY * tuning.PILOT * posterior.n_arms


def _is_binary(posterior: Posterior) -> bool:
    """Whether all rewards so far were 0 or 1: of rewards in [0, 1], only these are their square."""
    return bool((posterior.sums == posterior.squares).all())


def _belief(
    problem: Problem, posterior: Posterior, rng: np.random.Generator, *, sharpen: bool
) -> Belief:
    chosen, _ = posterior.split(rng)
    guess = posterior.balance(chosen)
    return Belief(posterior.pulls, posterior.sums, problem.k, guess, sharpen=sharpen)


def _reach(problem: Problem) -> float:
    """K epsilon, less what rounding may have moved two means by."""
    return problem.k * (problem.epsilon - 2 * problem.blur)


def _answer(problem: Problem, look: Look, proof: Proof, explored: int, looks: int) -> Answer:
    evidence = {
        "certificate": "plans",
        "boundary": proof.boundary,
        "strength": look.strength,
        "pulls explored": explored,
        "pulls certified": int(look.pulls.sum()),
        "looks": looks,
    }
    regret = proof.bound / problem.k + 2 * problem.blur
    regret = min(regret, problem.epsilon)  # dividing may have rounded up
    return Answer(proof.chosen, regret, 1 - problem.delta, evidence)
