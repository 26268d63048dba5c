"""One look: the stages of its plans, their fresh rewards, and what these prove.

The plans of a later stage stop an arm nowhere that those of the stage before would not, so that
every arm goes on from where it stopped. No stage depends on the fresh rewards.

A pilot that chooses the plans, plans that choose the set and prove it."""

import math
from collections.abc import Generator
from functools import cached_property, partial
from itertools import islice

import numpy as np

from shortlist.arrays import FloatArray, IntArray
from shortlist.certificates.frame import Retired, continued
from shortlist.certificates.plans import tuning
from shortlist.certificates.plans.belief import Belief
from shortlist.certificates.plans.bound import Boundaries, Stakes
from shortlist.certificates.plans.planning import Draft, Drafts, sketched
from shortlist.certificates.plans.stage import Proof, Stage
from shortlist.certificates.split.bound import share_of
from shortlist.certificates.split.search import split_search_from
from shortlist.exploration.expected_loss import explore_once
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Answer, Progress, Pulls, Rewards, Search

ROUNDING = 1e-9  # of a reward that was moved from another range to [0, 1]


class Look:
    """All stages, which depend on the rewards before alone, and the fresh rewards so far."""

    def __init__(
        self, belief: Belief, stakes: Stakes, delta: float, retired: Retired | None = None
    ) -> None:
        self.retired = Retired(belief.row.size) if retired is None else retired
        self.belief = belief
        self.reach = stakes.reach
        middle = belief.middle, belief.error
        self.boundaries = [Boundaries.around(*middle, delta * each) for _, each in tuning.STAGES]
        self.strength = stakes.strength
        charges = self.boundaries[0].left_for_charges(stakes)
        self._stages = Drafts(belief, stakes, charges).stages(charges)
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
        """Whether it can prove nothing any more: (*) is about 0/1 rewards and plans that end."""
        return not self.binary or self.retired.any()

    @cached_property
    def drafts(self) -> list[Draft]:
        """Of all stages: whenever they are made, they depend on the rewards before alone."""
        return [*self._first, *self._stages]

    def prove(
        self, rng: np.random.Generator, rounds: int
    ) -> Generator[Pulls, Rewards, Proof | None]:
        """Go through the stages until one of them proves a set."""
        number: int | None = 0
        while number is not None:
            stage = self.stage(number)
            yield from self.draw(stage, rounds)
            if self.void:
                return None
            proof = stage.proof(self.pulls, self.successes, rng)
            if isinstance(proof, Proof):
                return proof
            self.bound = proof
            number = self._next(number)
        return None

    def _next(self, drawn: int) -> int | None:
        """The first later stage that should do, or the last one if it may do; None without hope."""
        if self.bound > tuning.WRONG * self.reach:
            return None
        expected = self._expected()
        predicted = self.bound * (expected / expected[drawn]) ** self._kept
        later = np.arange(expected.size) > drawn
        should = np.flatnonzero(later & (predicted <= self.reach))
        if should.size:
            return int(should[0])
        may = later[-1] and predicted[-1] <= tuning.HOPELESS * self.reach
        return expected.size - 1 if may else None

    @property
    def _kept(self) -> float:
        """What is realised of the logarithm of a predicted improvement."""
        weak = tuning.WEAK * self.boundaries[0].least_threshold
        return 1.0 if self.strength * self.reach < weak else tuning.KEPT

    def _expected(self) -> FloatArray:
        """The bound that is expected after every stage."""
        charges = np.array([each.charges.sum() for each in self.drafts])
        least = [each.least_threshold for each in self.boundaries[: charges.size]]
        result: FloatArray = charges + np.array(least) / self.strength
        return result

    def stage(self, number: int) -> Stage:
        """What is declared for stage `number`: plans that stop later the larger it is."""
        draft = self.drafts[number] if number else self._first[0]
        declared = self.boundaries[number], self.strength, self.reach
        return Stage(draft.plans, self.belief, *declared)

    def draw(self, stage: Stage, rounds: int) -> Generator[Pulls, Rewards, None]:
        """Let every arm follow its plan; arms wait for nobody, requests only are made together."""
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
            whole = np.abs(rewards.sums - successes) <= ROUNDING * (1 + pulls.times)
            self.binary = bool((whole & (rewards.sums == rewards.squares)).all())
            self.pulls[arms] += pulls.times
            self.successes[arms] += successes.astype(np.int64)


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
