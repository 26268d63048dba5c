"""Certified selection: the default where a guarantee is wanted, whatever n and K are."""

import math
from dataclasses import replace
from typing import get_args

import numpy as np

from shortlist.algorithms.algorithm import Count, CountFrom0
from shortlist.arrays import FloatArray
from shortlist.certificates.charged.search import charged_search
from shortlist.certificates.differences.search import differences_search
from shortlist.certificates.drift.block_test import drift_search
from shortlist.certificates.frame import Retired, answered, informed, log_swaps_of
from shortlist.certificates.items.planning import Width
from shortlist.certificates.items.search import items_search
from shortlist.certificates.linear.search import check_linear, linear_search
from shortlist.certificates.pairs.planning import BatchSizes
from shortlist.certificates.pairs.search import PairsRace, pairs_search, run
from shortlist.certificates.plans.search import plans_search
from shortlist.certificates.split.search import FixedSamples, split_search
from shortlist.certificates.under_constraints import check_matroid
from shortlist.constraints import Laminar, MatroidConstraint, best_set
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Search, advance
from shortlist.spec import Certificate
from shortlist.validation import word

MOST_PAIRS = 300  # pairs of an arm inside and one outside up to which every swap is compared
MOST_COMPARED = 400  # arms of unknown variances up to which every pair of them is compared
# arms with limits, or with costs and a budget, up to which swaps are: they have a bound at any time
MOST_LIMITED = 1000
# arms with a range up to which the split certificate has a fallback; without a range it always
# has, as with a sigma that is too small a run would never end
MOST_WITH_FALLBACK = 100
# certificates that support constraints
CONSTRAINED: tuple[str, ...] = ("pairs", "plans", "split", "items")
GUIDED = ("split", "plans")  # certificates with features that guide; plans are better unguided
LEAST_PLANNED = 20  # arms to choose, and to reject, from which on plans are used


def certified(
    problem: Problem,
    rng: np.random.Generator,
    *,
    certificate: str = "auto",
    min_batch: Count | None = None,
    max_rounds: Count | None = None,
    window: CountFrom0 | None = None,
    min_items: Count | None = None,
) -> Search:
    """Choose k arms and prove, with the certificate that suits n and k, that they lose little.

    R_T <= epsilon with probability >= 1 - delta; with a budget, the bound reached by then.

    - "pairs" (docs/pairs.md) where K (n - K) <= 300, or only one arm is to be chosen or rejected:
      every swap of arms is bounded, at any time. Also where arms have limits, or costs within a
      budget, up to 1000 arms.
    - "plans" (docs/plans.md) where more than 100 arms have rewards with a range and 20 or more are
      to be chosen, and to be rejected, without a budget or limits: plans for all arms are declared
      in advance, so that the same rewards choose and prove. If rewards turn out not to be 0/1, the
      split certificate takes over.
    - "split" (docs/certificate.md) elsewhere: the choice is proved on fresh rewards, where the
      errors of many arms average out. It counts every pull of a budget at the highest cost.
    - "drift" (docs/drift.md) for live tests: arms are compared within blocks of visitors.
    - "differences" (docs/normal.md) where rewards are normal with unknown variances, or seeds are
      shared (docs/shared-seeds.md): pairs of arms are compared pull by pull, at any time. Many
      normal arms have a split certificate that charges their variances.
    - "items" (docs/items.md) with items: pairs of arms are compared on shared items.
    - "linear" (docs/linear.md) where means are declared linear in features: the regret is bounded
      over a ball of coefficients.

    The choice of the certificate depends on the problem alone; only where rewards may be scores, a
    pilot, which is used for nothing else, shows whether their variance is so small that split is
    better than pairs (`search_by_spread`). When an arm retires the search continues
    with the others, and the bound is about them (docs/retired.md).

    For n <= 100 and without "linear" no run on 0/1 rewards takes more than 1.5 times the fixed
    design, ties included;
    nor does one on sub-Gaussian rewards, for any n, even if sigma is declared too small.
    docs/pairs.md says what holds for other rewards. Batches have at least `min_batch` pulls, unless
    fewer complete all samples; of the split certificate, only those that explore. Pairs and items
    take at most `max_rounds` batches (pairs one more if rewards that were all 0 or 1 turn out not
    to be). Pairs and items plan batches ahead while at most `window` pulls are under way; then a
    batch of pairs has at least a sixth of them, unless `min_batch` says otherwise. On items an arm
    is scored on `min_items` items at a time after its first ones, or on all it has left."""
    word("certificate", certificate, get_args(Certificate))
    retired = Retired(problem.n_arms)
    if problem.items is not None or certificate == "items":
        _check_items(problem, certificate)
        _check_constraint(problem, "items")
        if problem.constraint is not None:
            check_matroid(problem.constraint)
        width = _width(min_batch, window, max_rounds, min_items)
        return informed(items_search(problem, rng, retired, width), retired)
    _refuse("there are no items", min_items=min_items)
    if window:
        search = _ahead(problem, rng, retired, certificate, min_batch, window, max_rounds)
    else:
        search = _search_by(problem, rng, retired, certificate, min_batch, max_rounds)
    return informed(search, retired)


def _ahead(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired,
    certificate: str,
    least: int | None,
    window: int,
    max_rounds: int | None,
) -> Search:
    """The pairs certificate with batches that are planned ahead; another one is refused."""
    taken = certificate if certificate != "auto" else _unless_pairs(problem)
    if taken != "pairs":
        _refuse(
            f"batches are planned ahead by the certificates 'pairs' and 'items', and not by"
            f" {taken!r}, which this problem needs",
            window=window,
        )
    if problem.limits is not None:
        _refuse("where arms have limits, every batch waits for the one before", window=window)
    _refuse(f"`window` is {window}: batches planned ahead have no rounds", max_rounds=max_rounds)
    _width(least, window, max_rounds, None)  # its check
    swaps = log_swaps_of(problem)
    if swaps is not None and not swaps:
        return _only_set(problem)
    _check_constraint(problem, taken)
    _check_features(problem, taken)
    return pairs_search(problem, rng, retired, least=least, window=window)


def plans_ahead(problem: Problem, certificate: str) -> bool:
    """Whether pairs of arms are compared, so that batches may be planned ahead."""
    taken = certificate if certificate != "auto" else _unless_pairs(problem)
    return taken == "pairs" and problem.items is None and problem.limits is None


def _unless_pairs(problem: Problem) -> str:
    """The certificate that the problem needs."""
    if problem.features is not None and problem.features.declared:
        return "linear"
    if problem.traffic is not None:
        return "drift"
    if problem.shared_seeds or not problem.rewards.knows_spread:
        return "differences"
    return suitable(problem)


def _search_by(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired,
    certificate: str,
    min_batch: int | None,
    max_rounds: int | None,
) -> Search:
    """The search of the requested certificate, or of the one that suits the problem."""
    if certificate == "linear" or (problem.features is not None and problem.features.declared):
        return _linear(problem, rng, retired, certificate, min_batch, max_rounds)
    if problem.traffic is not None or certificate == "drift":
        _check_drift(problem, certificate)
        _refuse(
            "a test with drift has one batch per block", max_rounds=max_rounds, min_batch=min_batch
        )
        return drift_search(problem, rng)
    if problem.shared_seeds or not problem.rewards.knows_spread or certificate == "differences":
        _refuse(
            "where variances are unknown or seeds are shared, only `min_batch` makes rounds fewer",
            max_rounds=max_rounds,
        )
        return _search_of_differences(problem, rng, retired, certificate, min_batch)
    swaps = log_swaps_of(problem)
    if swaps is not None and not swaps:
        return _only_set(problem)
    cut = min_batch is not None or max_rounds is not None
    taken = suitable(problem, cut=cut) if certificate == "auto" else certificate
    _check_constraint(problem, taken)
    _check_features(problem, taken)
    if taken == "pairs" and certificate == "auto" and not cut and worth_a_pilot(problem):
        return search_by_spread(problem, rng, _fallback(problem, rng), retired)
    if taken == "pairs":
        return pairs_search(problem, rng, retired, least=min_batch, rounds=max_rounds)
    if taken == "split":
        _refuse(
            f"the split certificate, which {problem.n_arms} arms and k = {problem.k} need, looks"
            " as often as it must; `min_batch` makes its rounds fewer",
            max_rounds=max_rounds,
        )
        _check_highest_cost(problem)
        return split_search(problem, rng, _fallback(problem, rng), retired, least=min_batch or 0)
    _refuse("the plans certificate sets it itself", max_rounds=max_rounds, min_batch=min_batch)
    if not _plannable(problem):
        raise InvalidInput(
            "`certificate` is 'plans', but plans need rewards with a range, no budget and no limits"
        )
    return plans_search(replace(problem, features=None), rng, retired)


def _check_features(problem: Problem, taken: str) -> None:
    if problem.features is not None and taken not in GUIDED:
        raise UnsupportedGoal(
            f"`features` are given, but the certificate {taken!r}, which {problem.n_arms} arms and"
            f" k = {problem.k} need, is not guided by them; 'linear' rests on them: say `linear`"
        )


def _width(
    min_batch: int | None, window: int | None, max_rounds: int | None, min_items: int | None
) -> Width:
    """How many cells of a test set are asked for at a time."""
    least, ahead = min_batch or 1, window or 0
    if 0 < ahead < least:
        raise InvalidInput(
            f"`window` is {ahead}, but must be 0 or at least `min_batch` = {least}: a batch is"
            " planned ahead if there is room for it"
        )
    return Width(least, ahead, max_rounds, min_items or 1)


def _only_set(problem: Problem) -> Search:
    """The answer where the constraint allows one set only: nothing is pulled."""
    assert problem.constraint is not None
    top = np.flatnonzero(best_set(problem.constraint, np.zeros(problem.n_arms), problem.k))
    return answered(problem, top, 0.0, {"certificate": "the only feasible set"})
    yield  # a search that asks for nothing


def _check_drift(problem: Problem, certificate: str) -> None:
    if problem.traffic is None or certificate not in ("auto", "drift"):
        given = "is" if problem.traffic is not None else "is not"
        raise InvalidInput(
            f"`certificate` is {certificate!r} and `drift` {given} given, but 'drift' is the"
            " certificate of live tests that are created with it, and only of these"
        )


def _check_items(problem: Problem, certificate: str) -> None:
    if problem.items is None or certificate not in ("auto", "items"):
        given = "are" if problem.items is not None else "are not"
        raise InvalidInput(
            f"`certificate` is {certificate!r} and items {given} given, but 'items' is the"
            " certificate where they are, and only there"
        )


def _search_of_differences(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired,
    certificate: str,
    least: int | None,
) -> Search:
    """The search where variances are unknown or seeds are shared."""
    _check_differences(problem, certificate)
    many = not _few(problem) or problem.n_arms > MOST_COMPARED
    alone = not problem.shared_seeds
    if certificate == "split" or (certificate == "auto" and many and alone):
        return charged_search(problem, rng, least or 0, retired)
    if problem.n_arms > MOST_COMPARED:
        raise InvalidInput(
            f"there are {problem.n_arms} arms, but the certificate on differences supports at most"
            f" {MOST_COMPARED}"
        )
    return differences_search(problem, rng, least, retired)


def _check_differences(problem: Problem, certificate: str) -> None:
    if problem.shared_seeds and certificate not in ("auto", "differences"):
        raise InvalidInput(
            f"`certificate` is {certificate!r} and `seeds` is 'shared', but its proof needs arms"
            " that are independent of each other; 'differences' does not"
        )
    unknown = not problem.rewards.knows_spread
    if unknown and certificate not in ("auto", "differences", "split"):
        raise InvalidInput(
            f"`certificate` is {certificate!r} and rewards are normal with unknown variances, but"
            " must be 'differences' or 'split' then"
        )
    if not unknown and not problem.shared_seeds:
        raise InvalidInput(
            f"`certificate` is {certificate!r}, but is for rewards declared 'normal' or for shared"
            " seeds"
        )
    if problem.constraint is not None:
        raise UnsupportedGoal(
            "the certificate 'differences' does not support constraints; on own seeds, declare a"
            " range (low, high) or SubGaussian(sigma), or give a budget without epsilon"
        )
    if problem.limits is not None or problem.features is not None:
        given = "`features` are given" if problem.limits is None else "arms have limits"
        raise InvalidInput(
            f"{given}, but unknown variances do not support them: declare a range (low, high) or"
            " SubGaussian(sigma), or give a budget without epsilon"
        )


def _check_constraint(problem: Problem, certificate: str) -> None:
    if problem.constraint is not None and certificate not in CONSTRAINED:
        raise UnsupportedGoal(f"the certificate {certificate!r} does not support constraints")


def _linear(
    problem: Problem,
    rng: np.random.Generator,
    retired: Retired,
    certificate: str,
    min_batch: int | None,
    max_rounds: int | None,
) -> Search:
    """The linear search; if its declaration is refuted, the search that suits without it."""
    _refuse("the linear certificate sets it itself", max_rounds=max_rounds, min_batch=min_batch)
    check_linear(problem, certificate)
    _check_highest_cost(problem)

    def way_back(free: Problem, now: Retired) -> Search:
        if suitable(free) not in GUIDED:
            free = replace(free, features=None)
        return _search_by(free, rng, now, "auto", None, None)

    return linear_search(problem, rng, retired, way_back)


def _check_highest_cost(problem: Problem) -> None:
    """Refuse a budget that does not pay for one pull per arm at the highest cost."""
    if problem.most_affordable is not None and problem.most_affordable < problem.n_arms:
        raise InvalidInput(
            f"`budget` is {problem.goal.budget}, but the split certificate counts every pull as one"
            f" of the highest-cost arm and must pull each of the {problem.n_arms} arms once"
        )


def _refuse(rule: str, **given: int | None) -> None:
    """Refuse options on batches where a search does not support them."""
    for name, value in given.items():
        if value is not None:
            raise InvalidInput(f"`{name}` is {value}, but {rule}")


def suitable(problem: Problem, *, cut: bool = False) -> str:
    """The certificate that needs fewer pulls on most problems, by the problem alone.

    Plans do not support options on batches (`cut`)."""
    inside, outside = problem.k, problem.n_arms - problem.k
    swaps = log_swaps_of(problem)
    pairs = inside * outside if swaps is None else math.exp(swaps[0])
    few = pairs <= MOST_PAIRS or min(inside, outside) == 1
    in_money = problem.costs is not None and problem.goal.budget is not None
    few |= (problem.limits is not None or in_money) and problem.n_arms <= MOST_LIMITED
    linked = problem.constraint is None or isinstance(problem.constraint, MatroidConstraint)
    if few and linked:
        return "pairs"
    many = min(inside, outside) >= LEAST_PLANNED and problem.n_arms > MOST_WITH_FALLBACK
    many &= problem.constraint is None or isinstance(problem.constraint, Laminar)
    return "plans" if many and not cut and _plannable(problem) else "split"


def _few(problem: Problem) -> bool:
    """Whether there are few pairs of an arm inside and one outside, or one arm on a side."""
    inside, outside = problem.k, problem.n_arms - problem.k
    return inside * outside <= MOST_PAIRS or min(inside, outside) == 1


def _plannable(problem: Problem) -> bool:
    """Whether plans apply: rewards that may be 0/1, no budget and no limits."""
    return problem.rewards.has_range and problem.goal.budget is None and problem.limits is None


def _fallback(problem: Problem, rng: np.random.Generator) -> FixedSamples | None:
    """The fallback of the split certificate, if the budget pays for it and no arm has a limit."""
    many = problem.n_arms > MOST_WITH_FALLBACK and problem.rewards.has_range
    if many or problem.limits is not None:
        return None
    try:
        return FixedSamples.of(problem, rng)
    except OverflowError:  # an epsilon so small that its samples could never be drawn
        return None


LEAST_PAIRS = 16  # pairs of an arm inside and one outside from which a pilot is worth its pulls
SMALL_DEVIATION = 0.01  # times the root of the pairs: below, the split certificate is used


def worth_a_pilot(problem: Problem) -> bool:
    """Whether the variance of scores may favour the split certificate."""
    inside, outside = problem.k, problem.n_arms - problem.k
    may_be_scores = problem.rewards.has_range and not problem.rewards.is_binary
    free = problem.goal.budget is None and problem.limits is None and problem.constraint is None
    return may_be_scores and free and min(inside, outside) > 1 and inside * outside >= LEAST_PAIRS


def search_by_spread(
    problem: Problem,
    rng: np.random.Generator,
    fallback: FixedSamples | None,
    retired: Retired | None = None,
) -> Search:
    """The pairs certificate, unless its first rewards are scores of small variance.

    A bet on one arm may stake no more than its wealth, so a pair of arms is told apart no sooner
    however small the variance of their scores is; the split certificate has one wealth for all
    arms. Where the variance is small it needs fewer pulls, down to a quarter (docs/pairs.md,
    "Scores"). A pilot of two pulls per arm decides. Only this choice depends on its rewards: given
    them, each certificate keeps its promise with the rewards that follow, and so does the one that
    is used.

    R_T <= epsilon with probability >= 1 - delta. One pull per arm is not bet on where rewards are
    0/1, two where they are scores."""
    race = PairsRace(problem, rng, BatchSizes(), retired, pilot_apart=True)
    raced = run(race)
    first = advance(raced, None)
    # Where all of delta belongs to the fixed design, or epsilon asks for nothing, no pilot is made.
    if not race.racing or isinstance(first, Answer):
        return (yield from _rest_of(raced, first))
    given = yield first
    if (given.sums == given.squares).all():
        return (yield from _rest_of(raced, advance(raced, given)))
    again = yield Pulls(first.arms, first.times, Progress(2, undecided=problem.n_arms))
    pairs = problem.k * (problem.n_arms - problem.k)
    if _deviation(given.sums, again.sums) < SMALL_DEVIATION * math.sqrt(pairs):
        raced.close()
        return (yield from split_search(problem, rng, fallback, retired))
    return (yield from _rest_of(raced, advance(raced, given)))


def _deviation(one: FloatArray, other: FloatArray) -> float:
    """The deviation within arms, from two rewards of each: (arm,) both."""
    return float(np.sqrt(((one - other) ** 2).mean() / 2))


def _rest_of(raced: Search, turn: Pulls | Answer) -> Search:
    """The rest of a race whose next turn is known."""
    while isinstance(turn, Pulls):
        turn = advance(raced, (yield turn))
    return turn
