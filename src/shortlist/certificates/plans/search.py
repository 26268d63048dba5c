"""The search with plans: a pilot chooses the plans, plans choose the set and prove the bound.

A look goes through stages. The plans of a later stage stop an arm only where those of the stage
before would stop it too, so that every arm continues from where it stopped. No stage depends on the
fresh rewards."""

import math
from collections.abc import Generator
from functools import cached_property, partial
from itertools import islice

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import Retired, continued, share_of
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.bound import Boundaries, Stakes
from shortlist.certificates.plans.planning import PlanDraft, PlanDrafts, predict_cost
from shortlist.certificates.plans.stage import PlanProof, PlanStage
from shortlist.certificates.split.search import split_search_from
from shortlist.exploration.expected_loss import explore_once
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

REWARD_ROUNDING = 1e-9  # of a reward that was moved from another range to [0, 1]


class PlanLook:
    """All stages, which depend on the rewards before alone, and the fresh rewards so far."""

    def __init__(
        self, belief: Belief, stakes: Stakes, delta: float, retired: Retired | None = None
    ) -> None:
        self.retired = Retired(belief.row.size) if retired is None else retired
        self.belief = belief
        self.reach = stakes.reach
        middle = belief.middle, belief.error
        self.boundaries = [
            Boundaries.around(*middle, delta * each) for _, each in tuning.STAGE_AIMS
        ]
        self.strength = stakes.strength
        charges = self.boundaries[0].left_for_charges(stakes)
        self._stages = PlanDrafts(belief, stakes, charges).stages(charges)
        self._first = list(islice(self._stages, 1))
        self.pulls: IntArray = np.zeros(belief.row.size, dtype=np.int64)  # (arms,)
        self.successes: IntArray = np.zeros(belief.row.size, dtype=np.int64)  # (arms,)
        self.binary = True  # no reward was anything but 0 or 1
        self.bound = math.inf  # on K R_T, about, after the last stage that was drawn
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
        if self.bound > tuning.WRONG_BOUND * self.reach:
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
        weak = tuning.WEAK_LOOK * self.boundaries[0].least_threshold
        return 1.0 if self.strength * self.reach < weak else tuning.REALISED

    def _expected(self) -> FloatArray:
        """The bound that is expected after every stage."""
        charges = np.array([each.charges.sum() for each in self.drafts])
        least = [each.least_threshold for each in self.boundaries[: charges.size]]
        return charges + np.array(least) / self.strength

    def stage(self, number: int) -> PlanStage:
        """The declared stage `number`: plans stop later in later stages."""
        draft = self.drafts[number] if number else self._first[0]
        declared = self.boundaries[number], self.strength, self.reach
        return PlanStage(draft.plans, self.belief, *declared)

    def draw(self, stage: PlanStage, rounds: int) -> Generator[Pulls, Rewards, None]:
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


def plans_search(
    problem: Problem, rng: np.random.Generator, retired: Retired | None = None
) -> Search:
    """Explore a little, declare a plan for every arm, and let the plans choose and prove.

    For 0/1 rewards, declared or not. The pilot estimates the boundary and which arms are near it;
    plans are declared from it, and their fresh rewards choose the set and give the bound U of
    docs/plans.md: if U <= K epsilon, R_T <= U / K with probability >= 1 - delta. If not, all
    rewards so far are the pilot of the next look, which has its own share of delta. After some
    looks, or with the first reward that is neither 0 nor 1, the split certificate takes over, with
    all rewards so far as exploration.

    A look in which an arm retires is void: it proves nothing, its share of delta is lost, and all
    its rewards are pilot for the next one, which is about the arms that stay."""
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)
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
        delta = share_of(problem.delta, failed)
        small = _is_small(posterior)
        prediction = predict_cost(belief, _reach(problem), delta, usual=small)
        if math.isinf(prediction.pulls) and not small:
            break
        wanted = _wanted(prediction.pulls, posterior, belief)
        if posterior.spent < tuning.PILOT_ENOUGH * wanted:
            yield from _pilot(posterior, int(wanted), rng)
            continue
        prediction = predict_cost(belief, _reach(problem), delta) if small else prediction
        look = PlanLook(belief, prediction.stakes, delta, retired)
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
    """Explore up to this many pulls, in few batches.

    Where rewards may be scores, the first batch is that of the split certificate."""
    if posterior.spent == 0:
        first = until if posterior.rewards.is_binary else 0
        yield from explore_once(posterior, until, rng, least=first)
    while posterior.spent < until and _is_binary(posterior):
        batch = math.ceil(tuning.PILOT_GROWTH * posterior.spent)
        yield from explore_once(posterior, until - posterior.spent, rng, least=batch)


def _wanted(fresh: float, posterior: Posterior, belief: Belief) -> float:
    """Pulls of a pilot whose plans are predicted to take this many `fresh` ones.

    Proportional to their root: the saving of a larger pilot grows with them and falls with its own
    pulls. More where few arms are to be chosen, or rejected: the boundary is at the edge of all
    means, and k epsilon is small compared with the cost of a wrong one. All within shares of the
    fresh pulls; the lower one falls with the number of arms."""
    n_arms = posterior.n_arms
    if math.isinf(fresh):  # too small a pilot to promise anything
        return tuning.PILOT * n_arms
    least = tuning.LEAST_PILOT_SHARE / math.cbrt(n_arms) * fresh
    if _is_small(posterior):
        return min(max(tuning.PILOT * n_arms, least), fresh)
    wanted = tuning.PILOT_PART * belief.edge * math.sqrt(fresh * n_arms)
    wanted = min(max(wanted, least), tuning.MOST_PILOT_SHARE * fresh)
    return min(wanted, tuning.PILOT_FACTOR * posterior.spent)


def _is_small(posterior: Posterior) -> bool:
    """Whether the pilot is too small to predict more than a few pulls per arm."""
    return posterior.spent < tuning.PILOT_ENOUGH * tuning.PILOT * posterior.n_arms


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
    """K epsilon, less the rounding errors of two means."""
    return problem.k * (problem.epsilon - 2 * problem.blur)


def _answer(
    problem: Problem, look: PlanLook, proof: PlanProof, explored: int, looks: int
) -> Answer:
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
