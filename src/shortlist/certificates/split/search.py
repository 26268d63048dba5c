"""The split search: explore freely, then prove the choice on fresh rewards.

`Looks` decides when to look, and which certificate to declare then; `final_look` spends the rest of
a budget on a bound, whatever it comes to.

`FixedSamples` is the fallback: a fixed design, at a share of delta, behind a search that may not
end soon. The first N exploration rewards of every arm are a fixed sample, whatever the search does
with them: pulls of exploration are decided before their rewards are seen, so they are N independent
rewards of every arm. If N is the fixed design at a share of delta, then the k best of these samples
lose at most epsilon but for that share, and the looks have the rest of delta. No arm is explored
beyond its sample, and the looks may take no more than the rest of `SLACK` times the design: so no
run takes more than that, whatever the means are, ties included."""

import math
from collections.abc import Generator
from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import (
    MOST_LOOKS,
    SLACK,
    Retired,
    boundary_evidence,
    continued,
    fixed_design,
    limited_pulls,
    log_swaps_of,
    share_after,
    share_for,
    share_of,
)
from shortlist.certificates.split.bound import Certificate, Holdout, bound_by_swaps
from shortlist.certificates.split.planning import (
    Choice,
    Draft,
    Drafter,
    StrengthSearch,
    at_stage,
    cost_of,
    score_strengths,
    usual_strengths,
)
from shortlist.constraints import Laminar, best_by
from shortlist.exploration.expected_loss import explore_once
from shortlist.exploration.posterior import Posterior
from shortlist.exploration.prices import PricedPosterior, exploring, remaining
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

# These cost pulls or time; no bound rests on them.
HOPED_LOSS = 0.35  # expected loss at which drafts begin, as a share of k epsilon
STALLED = 10  # drafts in a row without a smaller expected loss after which prices are given up
NEAR_COST = 1.5  # cost of a draft, in explored pulls, from which on better strengths are sought
PATIENCE = 0.3  # back-off: power of the excess by which exploration grows before the next draft ...
LONGEST_WAIT = 1.3  # ... and largest growth
AIM_FACTOR = 0.85  # of the aim after every look that failed ...
LEAST_AIM = 0.5  # ... and its least value, as a share of k epsilon
AFTER_FAILURE = 1.3  # growth of exploration after a look that failed, for matchings and the like
STAGED_AIM = 0.9  # factor of the aim where rewards are not 0 or 1
GUESSES = 10  # regrets for which a final certificate may be tuned
LOOK_PARTS = (0.7, 0.85, 1.0, 1.2, 1.45)  # parts of a look's pulls, where rewards are not 0 or 1
EARLY = 0.25  # first batches of exploration, as a share of all pulls so far
EXPLORED = 0.25  # largest share of the pulls that limits allow for exploration
EAGER_COST = 1.2  # cost of a certificate, in explored pulls, at which it is drawn ...
SLOW_COST = 2.0  # ... and once further exploration saves less than it costs


@dataclass(frozen=True, slots=True)
class FixedSamples:
    """Samples of `size` pulls per arm, their share of delta, and the pulls left to looks."""

    size: int
    share: float  # of delta
    explorable: int  # pulls of all samples together
    provable: int  # pulls that looks may take
    ties: IntArray  # equal sums rank by it; drawn before any reward is

    @classmethod
    def of(cls, problem: Problem, rng: np.random.Generator) -> "FixedSamples | None":
        """The smallest samples that leave the looks enough of delta; None beyond the budget."""
        n_arms, k, delta = problem.n_arms, problem.k, problem.delta
        epsilon = problem.sharp_epsilon
        swaps = log_swaps_of(problem)
        alone = fixed_design(n_arms, k, epsilon, delta, problem.rewards, swaps)
        most = int(SLACK * n_arms * alone)
        if problem.most_affordable is not None and problem.most_affordable < most:
            return None
        largest = int(SLACK * alone)
        share = share_for(n_arms, k, epsilon, delta, largest, problem.rewards, swaps)
        needed = fixed_design(n_arms, k, epsilon, share * delta, problem.rewards, swaps)
        size = min(largest, needed)
        explorable = n_arms * size
        provable = max(0, most - explorable)
        return cls(size, share, explorable, provable, rng.permutation(n_arms))

    def rest_of(self, problem: Problem) -> Problem:
        """The problem with what is left of delta for the looks."""
        goal = problem.goal
        assert isinstance(goal, FixedConfidence)
        # With nothing left no look can succeed; a delta must still be a number above 0.
        left = max(1 - self.share, 1e-9)
        return replace(problem, goal=replace(goal, delta=left * goal.delta))

    def among(self, arms: IntArray, drawn: int) -> "FixedSamples":
        """The samples of these arms only, where looks have taken this many pulls already.

        They are as large as before, and there are fewer swaps that they could get wrong."""
        return replace(
            self,
            explorable=arms.size * self.size,
            provable=max(0, self.provable - drawn),
            ties=self.ties[arms],
        )

    def answer(self, problem: Problem, posterior: Posterior, holdout: Holdout) -> Answer:
        """The k best of the samples, or the best feasible set by them, once all are complete."""
        assert (posterior.pulls == self.size).all()  # what the proof is about
        best_first = np.lexsort((self.ties, -posterior.sums))
        evidence = {
            "certificate": "split",
            "fallback design": True,
            "pulls explored": posterior.spent,
            "pulls certified": holdout.spent,
        }
        top = np.sort(best_first[: problem.k])
        if problem.constraint is not None:
            chosen = best_by(problem.constraint, posterior.sums, -self.ties, problem.k)
            top = np.flatnonzero(chosen)
        return Answer(top, problem.epsilon, 1 - problem.delta, evidence)


def answer_of(
    draft: Draft, bound: float, delta: float, explored: int, holdout: Holdout, looks: int
) -> Answer:
    """The set of a draft with its bound, after this many looks."""
    evidence = {
        "certificate": "split",
        **boundary_evidence(draft.boundary, draft.surplus),
        "strength": draft.strength,
        "pulls explored": explored,
        "pulls certified": holdout.spent,
        "looks": looks,
    }
    return Answer(np.flatnonzero(draft.chosen), bound, 1 - delta, evidence)


class Looks:
    """The looks at the holdout, one after the other, each with its own share of delta.

    They know the pulls of the holdout, never its rewards: so what is drafted, and when, depends on
    exploration rewards alone."""

    def __init__(
        self, problem: Problem, posterior: Posterior, limits: IntArray | None = None
    ) -> None:
        """`limits` are the most pulls of every arm, explored or fresh; None without limits."""
        self.problem = problem
        self.posterior = posterior
        self._limits = limits
        self.reach = problem.k * problem.epsilon
        self.failed = 0  # looks that did not reach epsilon
        self._of_bits, self._of_scores = usual_strengths(), score_strengths()
        self._wait_until = 0.0  # exploration pulls before the next draft
        self._least_loss = math.inf
        self._not_fallen = 0  # times that the expected loss was no less than before

    @property
    def strengths(self) -> StrengthSearch:
        """The search for the best strength, for the kind of rewards seen so far."""
        return self._of_scores if self.posterior.graded else self._of_bits

    @property
    def delta(self) -> float:
        """The share of delta for the present look."""
        return share_of(self.problem.delta, self.failed)

    def promising(self, made: IntArray, rng: np.random.Generator, *, last: bool) -> Draft | None:
        """A draft to certify the present choice, of about the best strength.

        `made` are the holdout's pulls. None if there is no draft, or if it is too early for one and
        this is not the `last` chance."""
        explored = self.posterior.spent
        if explored < self._wait_until and not last:
            return None
        drafter = self._hopeful(made, rng)
        if drafter is None:
            return None
        found = self.strengths.begin(lambda strength: self._draft(drafter, strength))
        if found is None:
            return None
        affordable = NEAR_COST * explored
        if found.cost > affordable:
            self._back_off(found.cost / affordable)
            return found
        return self.strengths.step()

    def refined(self, found: Draft) -> Draft:
        """The draft of the best strength, downhill from that of `found`, which `promising` gave."""
        return self.strengths.descend() or found

    @property
    def hopeless(self) -> bool:
        """Whether the prices that were found for a family do not become any better."""
        priced = self.problem.constraint is not None
        return priced and self._not_fallen >= STALLED

    @property
    def most(self) -> IntArray | None:
        """Fresh pulls that limits leave to every arm: (n,); None without limits."""
        return None if self._limits is None else self._limits - self.posterior.pulls

    def declared(self, draft: Draft) -> Certificate:
        """The certificate of the present look."""
        problem = self.problem
        # of a perfect matching, the bound by swaps takes care of the surplus
        reach = self.reach - (draft.surplus if draft.reference is None else 0.0)
        return draft.declare(self.delta, reach, problem.rewards, problem.blur)

    def bound(self, draft: Draft, holdout: Holdout) -> float:
        """The bound of the present look."""
        certificate = self.declared(draft)
        if draft.reference is None:
            return certificate.bound(holdout.sums, holdout.squares)
        assert self.problem.constraint is not None
        return bound_by_swaps(certificate, holdout, self.problem.constraint, draft.reference)

    def _hopeful(self, made: IntArray, rng: np.random.Generator) -> Drafter | None:
        """A drafter for the present choice, unless its expected loss is too large."""
        choice = Choice.of(self.posterior, rng)
        loss = choice.loss + choice.surplus
        hoped = HOPED_LOSS * self.reach
        fallen = loss < self._least_loss or loss <= hoped
        self._not_fallen = 0 if fallen else self._not_fallen + 1
        self._least_loss = min(loss, self._least_loss)
        if loss > hoped:
            self._back_off(loss / hoped)
            return None
        return choice.drafter(self.posterior, made, self.reach - choice.surplus, self.most)

    def fail(self) -> None:
        """Count a look that failed; explore more before the next one where prices are many."""
        self.failed += 1
        if not isinstance(self.problem.constraint, Laminar | None):
            self._wait_until = self.posterior.spent * AFTER_FAILURE

    def _back_off(self, excess: float) -> None:
        """Draft again after more exploration, the more the larger the `excess` factor."""
        growth = min(excess**PATIENCE, LONGEST_WAIT)
        self._wait_until = self.posterior.spent * growth

    def _draft(self, drafter: Drafter, strength: float) -> Draft | None:
        """A draft of this strength, in units of ln(1/delta) / (k epsilon)."""
        threshold = -math.log(self.delta)
        aim = max(AIM_FACTOR**self.failed, LEAST_AIM)
        if self.posterior.graded:
            aim *= STAGED_AIM
        return drafter.draft(strength * threshold / self.reach, threshold, target=self.reach * aim)


def final_look(
    posterior: Posterior,
    holdout: Holdout,
    budget: int,
    delta: float,
    rng: np.random.Generator,
    looks: int = 1,
    most: IntArray | None = None,
) -> Search:
    """Spend `budget` fresh pulls on the least bound for the present choice; `most` of every arm.

    Without a target the exponential moment must be right for every mean, so the reach is as large
    as a distance can be. Where not every arm can be pulled, nothing is claimed."""
    choice = Choice.of(posterior, rng)
    reach = posterior.rewards.widest_gap
    draft = _least_bound(posterior, choice, holdout, budget, -math.log(delta), most)
    if draft is None:
        return Answer(np.flatnonzero(choice.chosen))
    explored = posterior.spent
    yield from holdout.fill_up(draft.pulls, Progress(undecided=posterior.n_arms))
    certificate = draft.declare(delta, reach, posterior.rewards, holdout.blur)
    bound = min(certificate.bound(holdout.sums, holdout.squares), reach)
    if isinstance(posterior, PricedPosterior):
        bound = min(bound, bound_by_swaps(certificate, holdout, posterior.constraint))
    return answer_of(draft, bound, delta, explored, holdout, looks)


def _least_bound(
    posterior: Posterior,
    choice: Choice,
    holdout: Holdout,
    budget: int,
    threshold: float,
    most: IntArray | None,
) -> Draft | None:
    """The draft within `budget` whose bound is expected to be least; None: too few pulls left."""
    drafter = choice.drafter(posterior, holdout.pulls, posterior.rewards.widest_gap, most)
    strengths = 2 * threshold / (posterior.k * _guessed_regrets(budget))
    drafts = [drafter.draft(float(each), threshold, budget=budget) for each in strengths]
    possible = [each for each in drafts if each is not None]
    return min(possible, key=lambda each: each.expected, default=None)


def _guessed_regrets(budget: int) -> FloatArray:
    """Bounds to tune for: a certificate is tightest near the one its strength is for."""
    least = min(0.001, 1 / math.sqrt(budget + 1))
    return np.geomspace(least, 0.5, GUESSES)


GAVE_UP = "no prices were found at which the best set is nearly best: epsilon is out of reach"
UNLIMITED = 2**64  # pulls without a budget: more than can be counted


def split_search(
    problem: Problem,
    rng: np.random.Generator,
    samples: FixedSamples | None = None,
    retired: Retired | None = None,
    *,
    least: int = 0,
) -> Search:
    """Explore where the expected loss is largest, then certify the choice on fresh rewards.

    When a certificate drafted from exploration costs little more than the exploration did, that
    many fresh pulls are drawn and the bound U of bound.py is computed: if U <= epsilon, R_T <= U
    with probability >= 1 - delta. Otherwise exploration continues, and a later look, with its own
    share of delta, adds to the fresh pulls. With a budget, at most half of it is explored, and a
    final look spends the rest. Where arms have limits, at most a quarter of all pulls that these
    allow is explored, and the final look has the rest of delta.

    With `samples`, exploration ends when every arm has its fixed sample, and the k best of these
    are the answer: no look may leave too few pulls for that. Every batch that explores has at least
    `least` pulls.

    When an arm retires, the search continues with the others: their exploration rewards are kept,
    and the fresh pulls so far, with the look they belong to, are void.

    docs/certificate.md has the theorem and its proof."""
    posterior = exploring(problem)
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
    """The split search from a posterior; `failed` looks had shares of delta."""
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
        yield from explore_once(posterior, most - before, rng, early=EARLY, cap=cap, least=least)
        explored = posterior.spent
        if retired.any():
            break  # the rewards of the others still count as exploration
        draft = looks.promising(holdout.pulls, rng, last=explored >= most)
        if looks.hopeless and samples is None:  # which prove epsilon once they are complete
            budget = min(budget, 2 * explored + holdout.spent)
            break
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
        looks.fail()
    if retired.any():
        stay = retired.staying
        drawn = holdout.spent + int(posterior.pulls[retired.arms].sum())
        fewer = problem.among(stay, _budget_after(drawn, problem))
        fewer = replace(fewer, limits=_limits_after(holdout.pulls[stay], fewer))
        some = remaining(posterior, stay, fewer)
        net = None if samples is None else samples.among(stay, holdout.spent)
        return (
            yield from continued(
                stay,
                lambda now: split_search_from(
                    some, fewer, rng, net, now, failed=looks.failed, least=least
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
    evidence = dict(answer.evidence)
    if looks.hopeless:
        evidence["gave up"] = GAVE_UP
    # this look and those before fail with probability delta in all
    confidence = None if answer.confidence is None else 1 - problem.delta
    return replace(answer, confidence=confidence, evidence=evidence)


def _budget_after(drawn: int, problem: Problem) -> float | None:
    """The rest of a budget, every pull counted at the highest cost; at least one such pull."""
    budget = problem.goal.budget
    if budget is None:
        return None
    highest = 1 if problem.costs is None else max(problem.costs)
    return max(highest, budget - drawn * highest)


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

    The bets of a draft are valid at any stopping time, so the first stage with a small enough bound
    counts, and delta is not shared among stages. A look that fails has gone through all of them:
    the pulls made by then depend on exploration alone."""
    progress = Progress(round=looks.failed + 1, undecided=draft.pulls.size)
    stages = [at_stage(draft, part, holdout.pulls) for part in LOOK_PARTS]
    last = stages[-1].pulls
    beyond = looks.most is not None and bool((last > looks.most).any())
    if not looks.posterior.graded or beyond or int((last - holdout.pulls).sum()) > left:
        stages = [draft]
    bound = math.inf
    for stage in stages:
        yield from holdout.fill_up(stage.pulls, progress)
        if retired.any():
            return math.inf
        bound = looks.bound(stage, holdout)
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
    allowed = UNLIMITED if limits is None else int(EXPLORED * sum(limits.tolist()))
    return max(problem.n_arms, min(affordable, allowed))


def _caps(samples: FixedSamples | None, limits: IntArray | None) -> int | IntArray | None:
    """How often an arm is explored at most: half of its limit at least is left to prove."""
    if limits is not None:
        return np.maximum(1, limits // 2)
    return None if samples is None else samples.size


def _is_due(cost: float, saved: float, explored: int, batch: int) -> bool:
    """Whether to certify now: it costs little, or the last batch saved less than it cost."""
    if cost <= EAGER_COST * explored:
        return True
    return cost <= SLOW_COST * explored and saved < batch
