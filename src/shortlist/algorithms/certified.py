"""Certified selection: the default where a guarantee is wanted, whatever n and K are."""

from typing import get_args

import numpy as np

from shortlist.algorithms.algorithm import Count
from shortlist.certificates.frame import Retired, informed
from shortlist.certificates.items.search import item_race
from shortlist.certificates.pairs.search import swap_race
from shortlist.certificates.pairs_or_split import search_by_spread, worth_a_pilot
from shortlist.certificates.plans.search import plan_search
from shortlist.certificates.split.fallback import FixedSamples
from shortlist.certificates.split.search import split_search
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Search
from shortlist.spec import Certificate
from shortlist.validation import word

MOST_PAIRS = 300  # pairs of an arm inside and one outside up to which every swap is compared
# arms with limits, or with costs and a budget, up to which swaps are: they know a bound whenever
# they end, and what they cost
MOST_LIMITED = 1000
# arms with a range up to which a fixed design stands behind the split certificate, too; without
# a range it always does, as a sigma that is too small would let a run go on for ever
MOST_NETTED = 100
LEAST_PLANNED = 20  # arms to choose, and to leave out, from which on plans say what to do with all


def certified(
    problem: Problem,
    rng: np.random.Generator,
    *,
    certificate: str = "auto",
    min_batch: Count | None = None,
    max_rounds: Count | None = None,
) -> Search:
    """Choose k arms and prove, with the certificate that suits n and k, that they lose little.

    R_T <= epsilon with probability >= 1 - delta; with a budget, what could be proved by then. Where
    K (n - K) <= 300, or only one arm is to be chosen or left out, every swap of arms is bounded
    ("pairs", docs/pairs.md). Where more than 100 arms have rewards with a range and 20 or more are
    to be chosen, and to be left out, without a budget or limits, it is declared in advance what to
    do at every arm, so that the same rewards choose and prove ("plans", docs/plans.md); if rewards
    turn out not to be 0/1, plans give way to the split certificate. Elsewhere the choice is proved
    on fresh rewards, where the errors of many arms average out ("split", docs/certificate.md),
    unless arms have limits, or costs within a budget: pairs are bounded at any time, and so however
    these end it. That is settled before any reward is seen; only where rewards may be scores a
    pilot, on which nothing else rests, tells whether they scatter so little that the split
    certificate is better (certificates/pairs_or_split.py). A budget in another unit than pulls
    counts every pull as one of the dearest arm for the split certificate.

    When an arm retires the search continues with the others, and the bound is about them
    (docs/experiments.md, "Arms that leave").

    With items, every pair of arms is compared on shared items ("items", docs/items.md).

    For n <= 100 no run on 0/1 rewards takes more than 1.5 times the fixed design, ties included;
    nor does one on sub-Gaussian rewards, for any n, even if sigma is declared too small.
    docs/pairs.md says what holds for other rewards.
    Requests have at least `min_batch` pulls, unless fewer complete all samples; where split
    certificates are looked at, only those that explore. Pairs take at most `max_rounds` requests
    (one more if rewards that were all 0 or 1 turn out not to be)."""
    word("certificate", certificate, get_args(Certificate))
    retired = Retired(problem.n_arms)
    search = _search_by(problem, rng, retired, certificate, min_batch, max_rounds)
    return informed(search, retired)


def _search_by(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired,
    certificate: str,
    min_batch: int | None,
    max_rounds: int | None,
) -> Search:
    """The search of the certificate that is wanted, or of the one that suits the problem."""
    if problem.items is not None or certificate == "items":
        _check_items(problem, certificate)
        _refuse(
            "the certificate on items cannot be told", max_rounds=max_rounds, min_batch=min_batch
        )
        return item_race(problem, rng, retired)
    cut = min_batch is not None or max_rounds is not None
    taken = suitable(problem, cut=cut) if certificate == "auto" else certificate
    if taken == "pairs" and certificate == "auto" and not cut and worth_a_pilot(problem):
        return search_by_spread(problem, rng, _net(problem, rng), retired)
    if taken == "pairs":
        return swap_race(problem, rng, retired, least=min_batch, rounds=max_rounds)
    if taken == "split":
        _refuse(
            f"the split certificate, which {problem.n_arms} arms and k = {problem.k} need, looks"
            " as often as it must; `min_batch` makes its rounds fewer",
            max_rounds=max_rounds,
        )
        _check_dearest(problem)
        return split_search(problem, rng, _net(problem, rng), retired, least=min_batch or 0)
    _refuse("the plans certificate cannot be told", max_rounds=max_rounds, min_batch=min_batch)
    if not _plannable(problem):
        raise InvalidInput(
            "`certificate` is 'plans', but plans need rewards with a range, no budget and no limits"
        )
    return plan_search(problem, rng, retired)


def _check_items(problem: Problem, certificate: str) -> None:
    if problem.items is None or certificate not in ("auto", "items"):
        given = "are" if problem.items is not None else "are not"
        raise InvalidInput(
            f"`certificate` is {certificate!r} and items {given} given, but 'items' is the"
            " certificate where they are, and only there"
        )


def _check_dearest(problem: Problem) -> None:
    """Refuse a budget that does not pay for as many pulls of the dearest arm as there are arms."""
    if problem.most_affordable is not None and problem.most_affordable < problem.n_arms:
        raise InvalidInput(
            f"`budget` is {problem.goal.budget}, but the split certificate counts every pull as one"
            f" of the dearest arm and must pull each of the {problem.n_arms} arms once"
        )


def _refuse(rule: str, **given: int | None) -> None:
    """Refuse to cut pulls into requests where a search has its own way."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(f"`{name}` is {value}, but {rule}")


def suitable(problem: Problem, *, cut: bool = False) -> str:
    """The certificate that needs fewer pulls on most arms, by what is asked alone.

    Plans have their own way to `cut` pulls into requests."""
    inside, outside = problem.k, problem.n_arms - problem.k
    few = inside * outside <= MOST_PAIRS or min(inside, outside) == 1
    in_money = problem.costs is not None and problem.goal.budget is not None
    few |= (problem.limits is not None or in_money) and problem.n_arms <= MOST_LIMITED
    if few:
        return "pairs"
    many = min(inside, outside) >= LEAST_PLANNED and problem.n_arms > MOST_NETTED
    return "plans" if many and not cut and _plannable(problem) else "split"


def _plannable(problem: Problem) -> bool:
    """Whether plans know what to do: rewards that may be 0/1, no budget and no limits."""
    return problem.rewards.has_range and problem.goal.budget is None and problem.limits is None


def _net(problem: Problem, rng: np.random.Generator) -> FixedSamples | None:
    """The fixed design behind the split certificate, where it is wanted, can be paid for, and no
    limit ends its samples."""
    many = problem.n_arms > MOST_NETTED and problem.rewards.has_range
    if many or problem.limits is not None:
        return None
    try:
        return FixedSamples.of(problem, rng)
    except OverflowError:  # an epsilon so small that its samples could never be drawn
        return None
