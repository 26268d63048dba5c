"""The search with plans: a pilot chooses the plans, plans choose the set and prove the bound.

A look goes through stages. The plans of a later stage stop an arm only where those of the stage
before would stop it too, so that every arm continues from where it stopped. No stage depends on the
fresh rewards.

Where not every set of k arms may be chosen, arms have prices (docs/prices.md, Theorem 3). Arms with
the same price form a class, with a belief of their own about where the best of them begin. Every
arm follows a plan around its price. The chosen set is the best one for weights price + lead: one
call of the family's `best`. Leads and charges of an arm depend on the pilot and its own state
alone."""

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice

import numpy as np

from shortlist.arrays import FloatArray, IntArray, grouped, product
from shortlist.certificates.frame import Retired, boundary_evidence, continued, share_of
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.bound import NOT_THERE, Boundaries, Stakes
from shortlist.certificates.plans.planning import (
    CostPrediction,
    Plan,
    PlanDraft,
    PlanDrafts,
    above,
    cheapest_strength,
    predict_cost,
)
from shortlist.certificates.plans.stage import (
    AcceptanceCounts,
    AcceptanceThreshold,
    ArmBlock,
    PlanProof,
    PlanStage,
    SetCharges,
    beyond,
    ended_states,
    missing_pulls,
    places_of,
)
from shortlist.certificates.split.search import split_search_from
from shortlist.certificates.under_constraints import surplus
from shortlist.constraints import Constraint, best_set
from shortlist.exploration.expected_loss import explore_once
from shortlist.exploration.posterior import Posterior
from shortlist.exploration.prices import PricedPosterior, Prices, exploring, remaining
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

REWARD_ROUNDING = 1e-9  # of a reward that was moved from another range to [0, 1]
TIE = 1e-12  # by which ties between weights are broken at random
LEAST_BLUR = 1e-4  # of the score above which arms of a class are accepted


@dataclass(frozen=True, slots=True)
class PriceClass:
    """Arms that share a price, and the belief about them."""

    arms: IntArray
    belief: Belief


@dataclass(frozen=True, slots=True)
class PricedBelief:
    """All classes, and the price of every arm."""

    classes: list[PriceClass]
    constraint: Constraint
    k: int

    @classmethod
    def of(
        cls, posterior: PricedPosterior, rng: np.random.Generator, *, sharpen: bool
    ) -> "PricedBelief":
        """Classes of equal prices in exploration; the belief moves the price of each."""
        chosen, prices = posterior.priced(rng)
        values, of_arm = grouped(prices.of_arms)
        classes = []
        for number, guess in enumerate(values.tolist()):
            arms = np.flatnonzero(of_arm == number)
            inside = int(chosen[arms].sum())
            given = posterior.pulls[arms], posterior.sums[arms], inside, guess
            some = sharpen and 0 < inside < arms.size
            classes.append(PriceClass(arms, Belief(*given, sharpen=some)))
        return cls(classes, posterior.constraint, posterior.k)

    @property
    def many_share(self) -> bool:
        """Whether enough arms share a price that the numbers above it average out."""
        return self.n_arms >= tuning.FEWEST_SHARING * len(self.classes)

    @property
    def n_arms(self) -> int:
        """Number of arms in all."""
        return sum(each.arms.size for each in self.classes)

    @property
    def edge(self) -> float:
        """A factor that grows as fewer arms are to be chosen, or rejected."""
        result: float = (self.n_arms / min(self.k, self.n_arms - self.k)) ** tuning.EDGE_POWER
        return result

    @property
    def beliefs(self) -> list[Belief]:
        """The belief of every class."""
        return [each.belief for each in self.classes]

    @property
    def members(self) -> list[IntArray]:
        """The arms of every class."""
        return [each.arms for each in self.classes]


@dataclass(frozen=True, slots=True)
class PricedStage:
    """All that is declared before the fresh rewards of a look; it depends on earlier ones alone."""

    plans: list[Plan]
    belief: PricedBelief
    threshold: float  # ln(1/delta) of the stage
    strength: float
    reach: float

    def missing(self, pulls: IntArray, successes: IntArray) -> IntArray:
        """Pulls of every arm up to its next level; 0 where it stops."""
        return missing_pulls(self.plans, pulls, successes)

    def proof(
        self, pulls: IntArray, successes: IntArray, rng: np.random.Generator
    ) -> PlanProof | float:
        """A set whose bound is within the reach, or about the least possible bound."""
        ended = ended_states(self.plans, pulls, successes)
        if (ended == NOT_THERE).any():
            return math.inf
        parts = self._parts()
        rough = self._charged(parts, ended, roughly=True)
        prices = np.zeros(ended.size)
        for part in parts:
            prices[part.arms] = part.plan.policy.stakes.boundary
        ties = TIE * rng.permutation(ended.size)
        chosen = best_set(self.belief.constraint, prices + rough.leads + ties, self.belief.k)
        top = np.flatnonzero(chosen)
        exceeded = surplus(self.belief.constraint, chosen, Prices(prices))
        rest = exceeded + self.threshold / self.strength
        about = rough.by(top) + rest
        if not about <= (1 + tuning.ROUGH_ERROR) * self.reach:
            return beyond(self.reach, about)
        bound = self._charged(parts, ended, roughly=False).by(top) + rest
        if not 0 <= bound <= self.reach:
            return beyond(self.reach, bound)
        return PlanProof(top, bound, prices, exceeded)

    def _parts(self) -> list[ArmBlock]:
        """The arms of every plan, with the quantile of the mean that leads are made of."""
        parts = []
        for each in self.belief.classes:
            place = {arm: number for number, arm in enumerate(each.arms.tolist())}
            ahead = []
            for plan in self.plans:
                arms = plan.policy.group.arms
                if int(arms[0]) in place:
                    local = np.array([place[arm] for arm in arms.tolist()])
                    ahead.append(block_of(plan, arms, each.belief, local))
            threshold = class_threshold(ahead, each.belief)
            parts += [replace(part, places=places_of(part, threshold)) for part in ahead]
        return parts

    def _charged(self, parts: Sequence[ArmBlock], ended: IntArray, *, roughly: bool) -> SetCharges:
        """Charges of all arms, each around the price of its class."""
        inexact = tuning.ROUGH_ERROR if roughly else tuning.CHECKED_ERROR
        gap = inexact * self.strength * self.reach / ended.size
        leads = np.zeros(ended.size)
        total = 0.0
        for part in parts:
            stakes = Stakes(part.plan.policy.stakes.boundary, self.strength, self.reach)
            least, leads[part.arms] = part.charged(ended[part.arms], stakes, gap, roughly=roughly)
            total += least
        return SetCharges(total, leads)


def class_threshold(ahead: list[ArmBlock], belief: Belief) -> AcceptanceThreshold:
    """The score with k arms of a class expected above, and its uncertainty.

    The uncertainty is the change of the score if that number changes by a standard deviation."""
    counts = AcceptanceCounts.of(ahead, belief)
    score = float(np.interp(-belief.k, -counts.above, counts.thresholds))
    variance = 0.0
    for part in ahead:
        chance = float(above(np.array([score]), part.scores, part.state_probabilities[1])[0])
        variance += part.arms.size * chance * (1 - chance)
    off = max(math.sqrt(max(variance, 0.0)), 1.0)
    wanted = np.array([-belief.k - off, -belief.k + off])
    low, high = np.interp(wanted, -counts.above, counts.thresholds).tolist()
    return AcceptanceThreshold(score, max(tuning.CLASS_BLUR * abs(high - low), LEAST_BLUR))


def block_of(plan: Plan, arms: IntArray, belief: Belief, local: IntArray) -> ArmBlock:
    """Arms of one plan, which a belief knows by these numbers.

    They are accepted by all that the pilot says: it is larger than without constraints."""
    group_belief = belief.group_belief(belief.group(local))
    prior = (1 - tuning.CLASS_SOFT) * group_belief.sharp + tuning.CLASS_SOFT * belief.all_arms
    group_belief = replace(group_belief, prior=prior)
    posterior = group_belief.posterior(plan.states.pulls, plan.states.successes)
    scores = product(posterior, group_belief.grid[:, None])[:, 0]
    likely = plan.state_probabilities(group_belief)
    return ArmBlock(plan, arms, group_belief, None, likely, scores, scores)


class StagedLook(ABC):
    """The stages of a look, which depend on the rewards before alone, and its fresh rewards so far.

    A kind of look says which stage is declared from a draft."""

    def __init__(
        self,
        n_arms: int,
        stakes: Stakes,
        thresholds: list[float],
        stages: Iterator[PlanDraft],
        retired: Retired | None,
    ) -> None:
        """`thresholds` are ln(1/delta) of the largest share in every stage."""
        self.retired = Retired(n_arms) if retired is None else retired
        self.reach = stakes.reach
        self.strength = stakes.strength
        self.thresholds = thresholds
        self._stages = stages
        self._first = list(islice(self._stages, 1))
        self.pulls: IntArray = np.zeros(n_arms, dtype=np.int64)  # (arms,)
        self.successes: IntArray = np.zeros(n_arms, dtype=np.int64)  # (arms,)
        self.binary = True  # no reward was anything but 0 or 1
        self.bound = math.inf  # on K R_T, about, after the last stage that was drawn
        self.wrong = tuning.WRONG_BOUND
        self.record: list[tuple[Pulls, Rewards]] = []

    @property
    def promising(self) -> bool:
        """Whether it is expected to succeed at all."""
        return len(self._first) > 0

    @property
    def void(self) -> bool:
        """Whether it cannot prove anything: (*) is about 0/1 rewards and plans that end."""
        return not self.binary or self.retired.any()

    @cached_property
    def drafts(self) -> list[PlanDraft]:
        """Drafts of all stages; they depend on earlier rewards alone."""
        return [*self._first, *self._stages]

    def prove(
        self, rng: np.random.Generator, rounds: int
    ) -> Generator[Pulls, Rewards, PlanProof | None]:
        """Go through the stages until one of them proves a set."""
        number: int | None = 0
        while number is not None:
            stage = self.stage(number)
            yield from self.draw(stage, rounds)
            if self.void:
                return None
            proof = stage.proof(self.pulls, self.successes, rng)
            if isinstance(proof, PlanProof):
                return proof
            self.bound = proof
            number = self._next(number)
        return None

    def _next(self, drawn: int) -> int | None:
        """The first later stage that should suffice, or the last one if it may; else None."""
        if self.bound > self.wrong * self.reach:
            return None
        expected = self._expected()
        predicted = self.bound * (expected / expected[drawn]) ** self._kept
        later = np.arange(expected.size) > drawn
        should = np.flatnonzero(later & (predicted <= self.reach))
        if should.size:
            return int(should[0])
        may = later[-1] and predicted[-1] <= tuning.HOPELESS_BOUND * self.reach
        return expected.size - 1 if may else None

    @property
    def _kept(self) -> float:
        """Share of the logarithm of a predicted improvement that is realised."""
        weak = tuning.WEAK_LOOK * self.thresholds[0]
        return 1.0 if self.strength * self.reach < weak else tuning.REALISED

    def _expected(self) -> FloatArray:
        """The bound that is expected after every stage."""
        charges = np.array([each.charges.sum() for each in self.drafts])
        least = self.thresholds[: charges.size]
        return charges + np.array(least) / self.strength

    def draft_of(self, number: int) -> PlanDraft:
        """The draft of stage `number`: plans stop later in later stages."""
        return self.drafts[number] if number else self._first[0]

    @abstractmethod
    def stage(self, number: int) -> PlanStage | PricedStage:
        """The declared stage `number`."""

    def draw(self, stage: PlanStage | PricedStage, rounds: int) -> Generator[Pulls, Rewards, None]:
        """Let every arm follow its plan, all arms in common batches."""
        while not self.void:
            times = stage.missing(self.pulls, self.successes)
            arms = np.flatnonzero(times)
            if arms.size == 0:
                return
            progress = Progress(round=rounds + len(self.record), undecided=arms.size)
            pulls = Pulls(arms, times[arms], progress)
            rewards = yield pulls
            self.record.append((pulls, rewards))
            successes = np.rint(rewards.sums)
            whole = np.abs(rewards.sums - successes) <= REWARD_ROUNDING * (1 + pulls.times)
            self.binary = bool((whole & (rewards.sums == rewards.squares)).all())
            self.pulls[arms] += pulls.times
            self.successes[arms] += successes.astype(np.int64)


class PlanLook(StagedLook):
    """A look with one boundary for all arms, or with each of several."""

    def __init__(
        self, belief: Belief, stakes: Stakes, delta: float, retired: Retired | None = None
    ) -> None:
        self.belief = belief
        middle = belief.middle, belief.error
        self.boundaries = [
            Boundaries.around(*middle, delta * each) for _, each in tuning.STAGE_AIMS
        ]
        charges = self.boundaries[0].left_for_charges(stakes)
        stages = PlanDrafts(belief, stakes=stakes, charges=charges).stages(charges)
        thresholds = [each.least_threshold for each in self.boundaries]
        super().__init__(belief.row.size, stakes, thresholds, stages, retired)

    def stage(self, number: int) -> PlanStage:
        """The declared stage `number`."""
        declared = self.boundaries[number], self.strength, self.reach
        return PlanStage(self.draft_of(number).plans, self.belief, *declared)


class PricedLook(StagedLook):
    """A look where arms have prices: one claim per stage."""

    def __init__(
        self, belief: PricedBelief, stakes: Stakes, delta: float, retired: Retired | None = None
    ) -> None:
        self.belief = belief
        thresholds = [-math.log(delta * each) for _, each in tuning.STAGE_AIMS]
        left = stakes.reach - thresholds[0] / stakes.strength
        charges = tuning.PRICED_ROOM * left
        drafts = PlanDrafts(*belief.beliefs, stakes=stakes, charges=charges, members=belief.members)
        super().__init__(belief.n_arms, stakes, thresholds, drafts.stages(charges), retired)
        self.wrong = tuning.PRICED_WRONG

    def stage(self, number: int) -> PricedStage:
        """The declared stage `number`."""
        declared = self.thresholds[number], self.strength, self.reach
        return PricedStage(self.draft_of(number).plans, self.belief, *declared)


def plans_search(
    problem: Problem, rng: np.random.Generator, retired: Retired | None = None
) -> Search:
    """Explore a little, declare a plan for every arm, and let the plans choose and prove.

    For 0/1 rewards, declared or not. The pilot estimates the boundary and which arms are near it;
    plans are declared from it, and their fresh rewards choose the set and give the bound U of
    docs/plans.md: if U <= K epsilon, R_T <= U / K with probability >= 1 - delta. Under quotas arms
    have prices (docs/prices.md); where few arms share a price, the split certificate takes over
    after the pilot. If U is larger, all rewards so far are the pilot of the next look, which has
    its own share of delta. After some looks, or with the first reward that is neither 0 nor 1, the
    split certificate takes over, with all rewards so far as exploration.

    A look in which an arm retires is void: it proves nothing, its share of delta is lost, and all
    its rewards are pilot for the next one, which is about the remaining arms."""
    posterior = exploring(problem)
    retired = Retired(problem.n_arms) if retired is None else retired
    yield from _pilot(posterior, tuning.FIRST_PILOT * problem.n_arms, rng)
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
    while failed < tuning.PLAN_LOOKS and _is_binary(posterior) and not retired.any():
        belief = _belief(problem, posterior, rng, sharpen=failed == 0)
        if isinstance(belief, PricedBelief) and not belief.many_share:
            break
        delta = share_of(problem.delta, failed)
        small = _is_small(posterior)
        prediction = _predicted(belief, _reach(problem), delta, usual=small)
        if math.isinf(prediction.pulls) and not small:
            break
        wanted = _wanted(prediction.pulls, posterior, belief)
        if posterior.spent < tuning.PILOT_ENOUGH * wanted:
            yield from _pilot(posterior, int(wanted), rng)
            continue
        prediction = _predicted(belief, _reach(problem), delta) if small else prediction
        look = _look(belief, prediction.stakes, delta, retired)
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
    fewer = problem.among(stay, None)
    some = remaining(posterior, stay, fewer)
    rest = partial(_plans_from, some, fewer, rng, rounds=rounds, failed=failed)
    return (yield from continued(stay, rest))


def _predicted(
    belief: Belief | PricedBelief, reach: float, delta: float, *, usual: bool = False
) -> CostPrediction:
    """The strength of a look and its predicted cost."""
    if isinstance(belief, Belief):
        return predict_cost(belief, reach, delta, usual=usual)
    threshold = -math.log(delta * tuning.STAGE_AIMS[0][1])
    return cheapest_strength(belief.beliefs, threshold, reach, usual=usual)


def _look(
    belief: Belief | PricedBelief, stakes: Stakes, delta: float, retired: Retired
) -> StagedLook:
    if isinstance(belief, Belief):
        return PlanLook(belief, stakes, delta, retired)
    return PricedLook(belief, stakes, delta, retired)


def _pilot(
    posterior: Posterior, until: int, rng: np.random.Generator
) -> Generator[Pulls, Rewards, None]:
    """Explore up to this many pulls, in few batches.

    Where rewards may be scores, the first batch is that of the split certificate."""
    if posterior.spent == 0:
        first = until if posterior.rewards.is_binary else 0
        yield from explore_once(posterior, until, rng, least=first)
    while posterior.spent < until and _is_binary(posterior):
        batch = math.ceil(tuning.PILOT_GROWTH * posterior.spent)
        yield from explore_once(posterior, until - posterior.spent, rng, least=batch)


def _wanted(fresh: float, posterior: Posterior, belief: Belief | PricedBelief) -> float:
    """Pulls of a pilot whose plans are predicted to take this many `fresh` ones.

    Proportional to their root: the saving of a larger pilot grows with them and falls with its own
    pulls. More where few arms are to be chosen, or rejected: the boundary is at the edge of all
    means, and k epsilon is small compared with the cost of a wrong one. All within shares of the
    fresh pulls; the lower one falls with the number of arms."""
    n_arms = posterior.n_arms
    if math.isinf(fresh):  # too small a pilot to promise anything
        return _least_pilot(posterior)
    least = tuning.LEAST_PILOT_SHARE / math.cbrt(n_arms) * fresh
    if _is_small(posterior):
        return min(max(_least_pilot(posterior), least), fresh)
    wanted = tuning.PILOT_PART * belief.edge * math.sqrt(fresh * n_arms)
    wanted = min(max(wanted, least), tuning.MOST_PILOT_SHARE * fresh)
    return min(wanted, tuning.PILOT_FACTOR * posterior.spent)


def _least_pilot(posterior: Posterior) -> int:
    """Pulls of a pilot, unless fewer fresh ones are predicted."""
    priced = isinstance(posterior, PricedPosterior)
    return (tuning.PRICED_PILOT if priced else tuning.PILOT) * posterior.n_arms


def _is_small(posterior: Posterior) -> bool:
    """Whether the pilot is too small to predict more than a few pulls per arm."""
    return posterior.spent < tuning.PILOT_ENOUGH * _least_pilot(posterior)


def _is_binary(posterior: Posterior) -> bool:
    """Whether all rewards so far were 0 or 1: of rewards in [0, 1], only these are their square."""
    return bool((posterior.sums == posterior.squares).all())


def _belief(
    problem: Problem, posterior: Posterior, rng: np.random.Generator, *, sharpen: bool
) -> Belief | PricedBelief:
    if isinstance(posterior, PricedPosterior):
        return PricedBelief.of(posterior, rng, sharpen=sharpen)
    chosen, _ = posterior.split(rng)
    guess = posterior.balance(chosen)
    return Belief(posterior.pulls, posterior.sums, problem.k, guess, sharpen=sharpen)


def _reach(problem: Problem) -> float:
    """K epsilon, less the rounding errors of two means."""
    return problem.k * (problem.epsilon - 2 * problem.blur)


def _answer(
    problem: Problem, look: StagedLook, proof: PlanProof, explored: int, looks: int
) -> Answer:
    evidence = {
        "certificate": "plans",
        **boundary_evidence(proof.boundary, proof.surplus),
        "strength": look.strength,
        "pulls explored": explored,
        "pulls certified": int(look.pulls.sum()),
        "looks": looks,
    }
    regret = proof.bound / problem.k + 2 * problem.blur
    regret = min(regret, problem.epsilon)  # dividing may have rounded up
    return Answer(proof.chosen, regret, 1 - problem.delta, evidence)
