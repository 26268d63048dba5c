"""Explore freely, then prove the choice on fresh rewards by the split certificate."""

import math
from collections.abc import Generator
from dataclasses import replace

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certification.reachable import limited_pulls
from shortlist.certification.retired import Retired, continued
from shortlist.certification.split import tuning
from shortlist.certification.split.alpha_spending import MOST_LOOKS, share_after
from shortlist.certification.split.answers import answer_of
from shortlist.certification.split.drafting import Draft, at_stage
from shortlist.certification.split.final_look import final_look
from shortlist.certification.split.fixed_samples import FixedSamples
from shortlist.certification.split.holdout import Holdout
from shortlist.certification.split.looks import Looks
from shortlist.certification.split.strengths import cost_of
from shortlist.exploration.explore import explore_once
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Progress, Pulls, Rewards, Search

# pulls, where no budget is given: more than can be counted, which is an error on the way
UNLIMITED = 2**64


def split_search(
    problem: Problem,
    rng: np.random.Generator,
    samples: FixedSamples | None = None,
    retired: Retired | None = None,
    *,
    least: int = 0,
) -> Search:
    """Explore where the expected loss is largest, then certify the choice on fresh rewards.

    Exploration may do as it likes. When a certificate drafted on what it found costs little more
    than the exploration did, that many fresh pulls are drawn and the bound U of certificate.py is
    computed: if U <= epsilon, R_T <= U with probability >= 1 - delta. Otherwise exploration goes on
    and a later look, with its own share of delta, adds to the fresh pulls. With a budget, at most
    half of it is explored and the rest proves what can be proved. Where arms have limits, a quarter
    of all pulls that these allow is explored at most, and the look that ends it, if none before
    reached epsilon, is made with all of delta that is left.

    With `samples`, exploration ends when every arm has its fixed sample, and the k best of these
    are the answer: no look may leave too few pulls for that. Every batch that explores has at least
    `least` pulls.

    When an arm retires, the search continues with the others: what they gave in exploration is
    kept, and the fresh pulls so far, with the look they belong to, are void.

    docs/certificate.md has the theorem and its proof."""
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)
    return (yield from split_search_from(posterior, problem, rng, samples, retired, least=least))


def split_search_from(
    posterior: Posterior,
    problem: Problem,
    rng: np.random.Generator,
    samples: FixedSamples | None = None,
    retired: Retired | None = None,
    *,
    failed: int = 0,
    least: int = 0,
) -> Search:
    """The split search with what `posterior` knows already; `failed` looks had shares of delta."""
    retired = Retired(problem.n_arms) if retired is None else retired
    holdout = Holdout(problem.n_arms, problem.blur)
    limits = None if problem.limits is None else limited_pulls(problem)
    looks = Looks(problem if samples is None else samples.rest_of(problem), posterior, limits)
    looks.failed = failed
    budget = _budget(problem, limits)
    explorable = _explorable(problem, limits) if samples is None else samples.explorable
    provable = UNLIMITED if samples is None else samples.provable
    cap = _caps(samples, limits)
    explored = posterior.spent
    cost = math.inf  # of the draft after the batch before
    while not retired.any() and explored < (most := min(explorable, budget - holdout.spent)):
        before = explored
        yield from explore_once(
            posterior, most - before, rng, early=tuning.EARLY, cap=cap, least=least
        )
        explored = posterior.spent
        if retired.any():
            break  # what was drawn of the others still counts as exploration
        draft = looks.promising(holdout.pulls, rng, last=explored >= most)
        saved = cost - cost_of(draft)
        cost = cost_of(draft)
        due = _is_due(cost, saved, explored, explored - before)
        proving = holdout.spent + cost
        affordable = explored + proving <= budget and proving <= provable
        if draft is None or not due or not affordable or looks.failed == MOST_LOOKS:
            continue
        draft = looks.refined(draft)
        left = min(budget - explored, provable) - holdout.spent
        bound = yield from look(looks, draft, holdout, left, retired)
        if bound <= problem.epsilon:
            return answer_of(draft, bound, problem.delta, explored, holdout, looks.failed + 1)
        looks.failed += 1
    if retired.any():
        stay = retired.staying
        drawn = holdout.spent + int(posterior.pulls[retired.arms].sum())
        fewer = problem.among(stay, _budget_after(drawn, problem))
        fewer = replace(fewer, limits=_limits_after(holdout.pulls[stay], fewer))
        net = None if samples is None else samples.among(stay, holdout.spent)
        return (
            yield from continued(
                stay,
                lambda now: split_search_from(
                    posterior.among(stay), fewer, rng, net, now, failed=looks.failed, least=least
                ),
            )
        )
    if samples is not None:
        return samples.answer(problem, posterior, holdout)
    rest = share_after(problem.delta, looks.failed)
    left = max(0, budget - explored - holdout.spent)
    answer = yield from final_look(
        posterior, holdout, left, rest, rng, looks=looks.failed + 1, most=looks.most
    )
    # this look and those before fail with probability delta in all
    return replace(answer, confidence=None if answer.confidence is None else 1 - problem.delta)


def _budget_after(drawn: int, problem: Problem) -> float | None:
    """What is left of a budget, every pull counted as one of the dearest arm; one such at least."""
    budget = problem.goal.budget
    if budget is None:
        return None
    dearest = 1 if problem.costs is None else max(problem.costs)
    return max(dearest, budget - drawn * dearest)


def _limits_after(void: IntArray, problem: Problem) -> tuple[int | None, ...] | None:
    """Limits less the fresh pulls of every arm that are void; at least 1."""
    if problem.limits is None:
        return None
    each = zip(problem.limits, void.tolist(), strict=True)
    return tuple(None if limit is None else max(1, limit - gone) for limit, gone in each)


def look(
    looks: Looks, draft: Draft, holdout: Holdout, left: int, retired: Retired
) -> Generator[Pulls, Rewards, float]:
    """Draw fresh pulls as drafted and return the bound; in stages where rewards are not 0 or 1.

    A look in which an arm retires is void: its bound is infinite.

    The bets of a draft are valid at any stopping time, so the first stage whose bound will do
    counts, and no delta is shared among them. A look that fails has gone through all of them: what
    is drawn by then depends on nothing but exploration."""
    progress = Progress(round=looks.failed + 1, undecided=draft.pulls.size)
    stages = [at_stage(draft, part, holdout.pulls) for part in tuning.STAGES]
    last = stages[-1].pulls
    beyond = looks.most is not None and bool((last > looks.most).any())
    if not looks.posterior.scattered or beyond or int((last - holdout.pulls).sum()) > left:
        stages = [draft]
    bound = math.inf
    for stage in stages:
        yield from holdout.fill_up(stage.pulls, progress)
        if retired.any():
            return math.inf
        bound = looks.declared(stage).bound(holdout.sums, holdout.squares)
        if bound <= looks.problem.epsilon:
            break
    return bound


def _budget(problem: Problem, limits: IntArray | None) -> int:
    """Pulls that may be made in all."""
    allowed = UNLIMITED if limits is None else sum(limits.tolist())
    return min(problem.most_affordable or UNLIMITED, allowed)


def _explorable(problem: Problem, limits: IntArray | None) -> int:
    """Pulls that exploration may take: half of the budget and a share of all limits, but one of
    every arm."""
    affordable = UNLIMITED if problem.most_affordable is None else problem.most_affordable // 2
    allowed = UNLIMITED if limits is None else int(tuning.EXPLORED * sum(limits.tolist()))
    return max(problem.n_arms, min(affordable, allowed))


def _caps(samples: FixedSamples | None, limits: IntArray | None) -> int | IntArray | None:
    """How often an arm is explored at most: half of its limit at least is left to prove."""
    if limits is not None:
        return np.maximum(1, limits // 2)
    return None if samples is None else samples.size


def _is_due(cost: float, saved: float, explored: int, batch: int) -> bool:
    """Whether to certify now: it costs little, or the last batch saved less than it cost."""
    if cost <= tuning.EAGER * explored:
        return True
    return cost <= tuning.SLOW * explored and saved < batch
