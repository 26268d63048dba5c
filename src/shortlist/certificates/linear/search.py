"""The linear search: a pilot settles a design, and fresh rewards of that design choose and prove.

When an arm retires, the fresh rewards so far are void as a proof and become pilot for the remaining
arms. If the test of lack of fit rejects the declaration, a certificate that does not need it takes
over, on a share of delta that was set aside."""

import math
from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certificates.frame import Retired, answered, continued
from shortlist.certificates.linear.bound import bound_over_ball, fit_of
from shortlist.certificates.linear.lack_of_fit import LackOfFit, lack_of_fit
from shortlist.certificates.linear.planning import (
    ArmSums,
    LinearDesign,
    LinearPilot,
    Wanted,
    best_arms,
    whole_pulls,
)
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.features import Features
from shortlist.formatting import bound_text, given_text
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

# These cost pulls or time; no bound rests on them.
FIRST_SHARE = 0.5  # of delta for the first look; later ones get this share of the rest
LOOK_GROWTH = 1.2  # fresh pulls of a look, as a multiple of those of the look before
DESIGN_LOOKS = 6  # looks of a design; then all rewards so far are the pilot of another one
MOST_LOOKS = 30  # then the search goes the way back
PILOT = 20  # pulls of the first pilot per dimension
PILOT_SHARE = 0.1  # of the fresh pulls that a pilot should have

SET_ASIDE = 0.1  # share of delta for the way back; the looks have the rest
UNLIMITED = 2**61  # pulls without a budget

WayBack = Callable[[Problem, Retired], Search]


def look_share(delta: float, look: int) -> float:
    """Alpha spending: the share of delta for look number `look`, from 0.

    The shares of all looks and of the way back add up to delta."""
    first = FIRST_SHARE
    return (1 - SET_ASIDE) * delta * first * (1 - first) ** look


@dataclass(frozen=True, eq=False, slots=True)
class _Look:
    """The set of a look, the bound on K R_T, and the test of lack of fit."""

    top: IntArray
    bound: float
    test: LackOfFit


@dataclass(frozen=True, eq=False, slots=True)
class _Task:
    """A problem with features that means are declared linear in, and how to continue without it."""

    problem: Problem
    rng: np.random.Generator
    retired: Retired
    way_back: WayBack

    @property
    def features(self) -> Features:
        """The features of the arms."""
        assert self.problem.features is not None
        return self.problem.features

    @property
    def misfit(self) -> float:
        """Distance of means from linear ones: declared, and by rounding."""
        return (self.features.misfit or 0.0) + self.problem.blur + self.features.rounding

    def unprovable(self, misfit: float) -> float:
        """The part of K R_T by misfit, which no pulls reduce (Theorem 3)."""
        return 2 * misfit * min(self.problem.k, self.problem.n_arms - self.problem.k)

    @property
    def target(self) -> float:
        """The K R_T to be proved."""
        return self.problem.k * self.problem.epsilon

    @property
    def budget(self) -> int:
        """Number of pulls allowed, each counted at the highest cost."""
        affordable = self.problem.most_affordable
        return UNLIMITED if affordable is None else affordable


def check_linear(problem: Problem, certificate: str = "auto") -> None:
    """Refuse the linear certificate where it does not apply, and others where it does."""
    features = problem.features
    if features is None or not features.declared:
        raise InvalidInput(
            "`certificate` is 'linear', but needs `features` and means that are declared linear in"
            " them: say `linear`"
        )
    if certificate not in ("auto", "linear"):
        raise InvalidInput(
            f"`certificate` is {certificate!r} and `linear` is declared, but only 'linear' rests on"
            " that: leave one of them out"
        )
    if not problem.rewards.knows_spread:
        raise UnsupportedGoal(
            "`linear` is declared and rewards have unknown variances, but the linear bound needs a"
            " range or a sigma"
        )
    if problem.limits is not None:
        raise InvalidInput(
            "arms have limits and `linear` is declared, but the design pulls few arms often"
        )
    most = problem.epsilon * problem.k / (2 * min(problem.k, problem.n_arms - problem.k))
    if (features.misfit or 0.0) + problem.blur >= most:
        allowed = given_text(features.misfit or 0.0)
        raise InvalidInput(
            f"`linear` allows means to be {allowed} (in units of the range of rewards, or of"
            f" 2 sigma) from linear ones, but epsilon can only be proved if that is less than"
            f" {bound_text(most)}"
        )


def linear_search(
    problem: Problem, rng: np.random.Generator, retired: Retired, way_back: WayBack
) -> Search:
    """Pull few arms often by a design, and bound the regret over a ball of coefficients.

    A pilot, which may depend on anything, settles the share of pulls of every arm. Looks at N,
    1.3 N, 1.69 N ... pulls of these shares have shares of .9 delta. If the bound of a look is at
    most epsilon and the test of lack of fit does not reject the declaration, that is the answer.
    If it does reject it, `way_back` continues on .1 delta. docs/linear.md has theorem and proof."""
    task = _Task(problem, rng, retired, way_back)
    pilot = LinearPilot(task.features.basis, problem.declared_costs, rng)
    return (yield from _search_from(task, pilot, 0))


def _search_from(task: _Task, pilot: LinearPilot, looks: int) -> Search:
    """The search from a pilot; `looks` had shares of delta."""
    fresh = ArmSums.none(task.problem.n_arms)
    draft = yield from _piloted(task, pilot, looks)
    found: _Look | None = None
    last = min(looks + DESIGN_LOOKS, MOST_LOOKS)
    while draft is not None and looks < last and not _proved(task, found):
        left = task.budget - pilot.spent - fresh.spent
        more = min(_next_size(draft, fresh.spent), left)
        if more <= 0:
            break
        pulls = _batch(whole_pulls(draft.shares, more, task.rng), looks)
        fresh.add(pulls, (yield pulls))
        if task.retired.any():
            break
        found = _look(task, pilot.seen, fresh, look_share(task.problem.delta, looks))
        looks += 1
        if found is None:  # the design does not settle the coefficients
            break
    if draft is not None and found is not None and found.test.doubtful:
        found = yield from _tested_again(task, found, draft, pilot, fresh)
    if task.retired.any():
        begun = fresh.spent > 0  # a look that is void has had its share: rewards may have voided it
        return (yield from _among_remaining(task, pilot, fresh, looks + begun))
    ended = task.budget - pilot.spent - fresh.spent <= 0
    if found is not None and not found.test.rejected and (ended or _proved(task, found)):
        return _answer(task, found, pilot.spent, fresh, looks)
    if found is None or found.test.rejected or looks >= MOST_LOOKS:
        return (yield from _back(task, pilot, fresh.spent, found))
    pilot.seen = pilot.seen.plus(fresh)  # the design was too small: plan another one
    return (yield from _search_from(task, pilot, looks))


def _tested_again(
    task: _Task, found: _Look, draft: LinearDesign, pilot: LinearPilot, fresh: ArmSums
) -> Generator[Pulls, Rewards, _Look]:
    """Double the pulls of the design, as far as the budget allows, and test all rewards.

    The bound stays that of the look."""
    more = min(fresh.spent, task.budget - pilot.spent - fresh.spent)
    if more > 0 and not task.retired.any():
        pulls = _batch(whole_pulls(draft.shares, more, task.rng), 0)
        fresh.add(pulls, (yield pulls))
    return replace(found, test=_test(task, pilot.seen.plus(fresh)))


def _test(task: _Task, seen: ArmSums) -> LackOfFit:
    """Test all rewards for lack of fit."""
    rewards = task.problem.rewards
    binary = rewards.has_range and bool((seen.sums == seen.squares).all())
    return lack_of_fit(task.features.basis, seen, task.misfit, binary=binary)


def _proved(task: _Task, found: _Look | None) -> bool:
    return found is not None and found.bound <= task.target


def _next_size(draft: LinearDesign, spent: int) -> int:
    """Fresh pulls to add for the next look. They depend on the pilot alone."""
    return draft.size if spent == 0 else math.ceil((LOOK_GROWTH - 1) * spent)


def _batch(times: IntArray, looks: int) -> Pulls:
    arms = np.flatnonzero(times)
    return Pulls(arms, times[arms], Progress(round=looks, undecided=times.size))


def _piloted(
    task: _Task, pilot: LinearPilot, looks: int
) -> Generator[Pulls, Rewards, LinearDesign | None]:
    """Pull until the pilot is large enough for the design that it drafts; None if there is none.

    With a budget, the pilot has a share of it at most."""
    problem, rank = task.problem, task.features.rank
    least = PILOT * (rank + 1)
    most = min(task.budget, max(rank + 2, int(PILOT_SHARE * task.budget)))
    allowed = task.target - task.unprovable(task.misfit)
    delta = look_share(problem.delta, looks)
    wanted = Wanted(problem.k, allowed, delta, task.misfit)
    if rank == 0 or allowed <= 0:
        return None
    shares, size = pilot.spread(), least
    draft: LinearDesign | None = None
    while pilot.spent < min(size, most) and not task.retired.any():
        more = min(min(size, most) - pilot.spent, max(least, pilot.spent))
        pulls = _batch(whole_pulls(shares, more, task.rng), 0)
        pilot.seen.add(pulls, (yield pulls))
        draft = pilot.draft(wanted, task.rng)
        if draft is None:
            return None
        shares, size = draft.shares, max(least, int(PILOT_SHARE * draft.size))
    return draft if draft is not None else pilot.draft(wanted, task.rng)


def _look(task: _Task, before: ArmSums, fresh: ArmSums, delta: float) -> _Look | None:
    """Choose the best arms of the fit, bound their regret, and test the fit.

    Rewards of the pilot, `before`, only count in the test."""
    problem, basis = task.problem, task.features.basis
    fit = fit_of(basis, fresh.pulls, fresh.means)
    if fit is None:
        return None
    values = basis @ fit.coefficients
    chosen = best_arms(values, problem.k, task.rng)
    # the basis is rounded, and errors grow with the spread of the means
    misfit = task.misfit + task.features.rounding * max(0.0, 2 * float(np.ptp(values)) - 1)
    radius = fit.radius(delta, misfit)
    bound = bound_over_ball(basis, chosen, fit.coefficients, fit.factor, radius).total
    most = problem.rewards.widest_gap * min(problem.k, problem.n_arms - problem.k)
    test = _test(task, before.plus(fresh))
    return _Look(np.flatnonzero(chosen), min(bound + task.unprovable(misfit), most), test)


def _answer(task: _Task, found: _Look, explored: int, fresh: ArmSums, looks: int) -> Answer:
    evidence = {
        "certificate": "linear",
        "dimension": task.features.rank,
        "misfit": task.features.misfit,
        "arms pulled": int((fresh.pulls > 0).sum()),
        "pulls explored": explored,
        "pulls certified": fresh.spent,
        "looks": looks,
        **_tested(found.test),
    }
    return answered(task.problem, found.top, found.bound, evidence)


def _tested(test: LackOfFit) -> dict[str, object]:
    return {"lack of fit": test.p_value, "arms tested": test.arms}


def _among_remaining(task: _Task, pilot: LinearPilot, fresh: ArmSums, looks: int) -> Search:
    """Continue with the arms that did not retire: all rewards so far are their pilot."""
    stay, problem = task.retired.staying, task.problem
    seen = pilot.seen.plus(fresh)
    gone = int(seen.pulls[task.retired.arms].sum())
    fewer = problem.among(stay, _budget_after(problem, gone))
    assert fewer.features is not None
    rest = LinearPilot(fewer.features.basis, fewer.declared_costs, task.rng, seen.among(stay))

    def remaining(now: Retired) -> Search:
        return _search_from(_Task(fewer, task.rng, now, task.way_back), rest, looks)

    return (yield from continued(stay, remaining))


def _budget_after(problem: Problem, spent: int) -> float | None:
    """The rest of a budget, every pull counted at the highest cost; at least one such pull."""
    budget = problem.goal.budget
    highest = 1 if problem.costs is None else max(problem.costs)
    return None if budget is None else max(highest, budget - spent * highest)


def _back(task: _Task, pilot: LinearPilot, proving: int, found: _Look | None) -> Search:
    """Continue without the declaration, on the share of delta that was set aside.

    Where the rest of a budget does not pay for a pull of every arm, nothing is proved."""
    problem, spent = task.problem, pilot.spent + proving
    test = LackOfFit(None, 0) if found is None else found.test
    why = "lack of fit" if test.rejected else "out of reach of the linear certificate"
    known = {**_tested(test), "way back": why}
    if task.budget - spent < problem.n_arms:
        top = found.top if found is not None else np.flatnonzero(pilot.best(problem.k, task.rng))
        return Answer(top, evidence={"certificate": "linear", **known})
    goal = FixedConfidence(
        problem.epsilon, SET_ASIDE * problem.delta, _budget_after(problem, spent)
    )
    free = replace(problem, goal=goal, features=task.features.guiding())
    answer = yield from task.way_back(free, task.retired)
    return replace(answer, evidence={**answer.evidence, **known})
