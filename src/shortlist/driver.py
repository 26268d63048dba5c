"""Drive a search: convert units, count pulls, hand over the outcome.

A driver only has to find rewards for one batch after another. `caution_about` drives a search on
evenly spread arms before it starts, and warns of an epsilon that any choice reaches, or that a
budget or limits hardly reach."""

import math
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.algorithms.certified import MOST_LIMITED
from shortlist.arrays import ROUNDED, SUREST, FloatArray, IntArray
from shortlist.certificates.frame import fixed_design
from shortlist.errors import InvalidInput, InvalidReward, caution
from shortlist.formatting import bound_text, given_text
from shortlist.interim import Tally, scored, shown_answer
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import FARTHEST, Undeclared
from shortlist.search import Answer, Dialogue, Progress, Pulls, Rewards, advance, total_before

FARTHEST_NORMAL = 1e12  # from 0, in units of epsilon: beyond, rewards are rounded by too much
MOST_PULLS = 2.0**62  # counts are 64-bit
COUNTABLE = (
    f"at most {MOST_PULLS:.1e} can be counted; a larger `epsilon` or a smaller `budget` asks for"
    " fewer"
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a search answered, and per arm what it spent and what that gave."""

    answer: Answer
    pulls: IntArray
    sums: FloatArray
    rounds: int = 0  # batches
    spending: FloatArray | None = None  # per arm what its pulls cost; None if as declared
    waiting: IntArray | None = None  # per arm rewards that are not counted; None if all are
    complete: bool = True  # whether all pulls are counted, except those of retired arms
    ahead: IntArray | None = None  # per arm pulls asked for and not answered when it ended

    def means(self, problem: Problem) -> FloatArray:
        """The mean of every arm, known scores included; NaN where there is nothing."""
        return problem.means(self.pulls, self.sums)


Run = Generator[Pulls, Rewards, Outcome]


def counted(
    algorithm: Algorithm, problem: Problem, rng: np.random.Generator, **options: object
) -> Run:
    """The search of `algorithm` in the user's units: rewards come as they are, the bound returns as
    it is meant."""
    with _countable(algorithm.name):
        search = algorithm.start(problem, rng, **options)
    left = _cells_left(problem)
    pulls = np.zeros(problem.n_arms, dtype=np.int64)
    sums = np.zeros(problem.n_arms)
    spending = np.zeros(problem.n_arms)
    prices = problem.declared_costs
    asked = 0.0
    rounds = 0
    unanswered: deque[Pulls] = deque()
    reply: Rewards | None = None
    while True:
        with _countable(algorithm.name):
            turn = advance(search, reply)
            if isinstance(turn, Answer):
                answer = to_user_scale(turn, problem)
                ahead = _total(unanswered, problem.n_arms)
                return Outcome(answer, pulls, sums, rounds, spending, ahead=ahead)
            if isinstance(problem.rewards, Undeclared):  # nothing is proved
                turn = replace(turn, progress=replace(turn.progress, bound=None))
            asked += float(turn.times.sum(dtype=np.float64))
            _check_countable(asked)
            np.subtract.at(left, turn.arms, turn.times)
            _check_cells(algorithm.name, left)
        if turn.total or not unanswered:
            unanswered.append(turn)
            rounds += 1
        rewards = yield turn
        if turn.more:
            reply = None
            continue
        batch = unanswered.popleft()
        batch = replace(batch, times=rewards.counted(batch.times))
        _check_near(rewards, batch, problem)
        if not pulls.any() and isinstance(problem.rewards, Undeclared):
            _check_apart(rewards.sums / np.maximum(batch.times, 1))
        np.add.at(pulls, batch.arms, batch.times)
        np.add.at(sums, batch.arms, rewards.sums)
        costs = batch.times * prices[batch.arms] if rewards.costs is None else rewards.costs
        np.add.at(spending, batch.arms, costs)
        reply = to_unit_scale(rewards, batch, problem)


def _total(batches: Iterable[Pulls], n_arms: int) -> IntArray:
    """Pulls of every arm in some batches: (n,)."""
    total = np.zeros(n_arms, dtype=np.int64)
    for each in batches:
        np.add.at(total, each.arms, each.times)
    return total


def present_outcome(problem: Problem, tally: Tally, progress: Progress, seed: int) -> Outcome:
    """What a search would have come to if it ended now, in the user's units as the tally is."""
    unit, rng = unit_tally(problem, tally), np.random.default_rng(seed)
    answer = shown_answer(problem.unit(), unit, progress, rng)
    answer = to_user_scale(answer, problem)
    return Outcome(answer, tally.pulls, tally.sums, waiting=tally.waiting, complete=False)


def unit_tally(problem: Problem, tally: Tally) -> Tally:
    """The same on the unit scale, where large rewards are the good ones.

    On a test set the scores that were known before are counted, too."""
    everything = Pulls(np.arange(problem.n_arms), tally.pulls)
    unit = Tally(problem.n_arms)
    rewards = to_unit_scale(Rewards(tally.sums, tally.squares), everything, problem)
    unit.add(everything.arms, everything.times, rewards)
    return scored(problem.unit(), unit)


def finish(run: Run, pull: Callable[[Pulls], Rewards]) -> Outcome:
    """Answer every request by `pull` until the run is over."""
    dialogue = Dialogue(run)
    while dialogue.result is None:
        dialogue.reply(pull(dialogue.unanswered[0]))
    return dialogue.result


def to_unit_scale(rewards: Rewards, request: Pulls, problem: Problem) -> Rewards:
    """The same rewards as (x - shift) / scale; turned round where small ones are the good ones."""
    model = problem.rewards
    unit = rewards
    if model.shift != 0 or model.scale != 1:
        unit = _moved(rewards, request.times, model.shift, model.scale, model.distance)
    if not problem.minimize:
        return unit
    # 1 - x where rewards have a range, so that they stay in it, and -x otherwise
    top = 1.0 if model.has_range else 0.0
    return _moved(unit, request.times, top, -1.0, top)


def _moved(
    rewards: Rewards, times: IntArray, shift: float, scale: float, distance: float
) -> Rewards:
    """The same rewards as (x - shift) / scale, from rewards up to `distance` scales from 0.

    Squares far from 0 lose their digits: they are rounded up, so that no variance is too small. But
    they stay equal to the sums where they are, for so 0/1 rewards are recognised; no more is
    possible."""
    sums = (rewards.sums - times * shift) / scale
    squares = (rewards.squares - 2 * shift * rewards.sums + times * shift**2) / scale**2
    each = None if rewards.each is None else (rewards.each - shift) / scale
    rounded = 4 * ROUNDED * distance**2 * times
    squares = np.where(squares == sums, squares, squares + rounded)
    return Rewards(sums, squares, each, rewards.costs, rewards.retired, rewards.void)


def to_user_scale(answer: Answer, problem: Problem) -> Answer:
    """The same answer with its bound in the user's units, and with a confidence below 1.

    1 - delta is 1 as a float if delta is below 2^-54, and nothing random is certain. Of rewards
    that were not declared nothing is proved, whatever the search says."""
    if isinstance(problem.rewards, Undeclared):
        return Answer(answer.top, evidence=answer.evidence)
    bound = answer.regret_bound
    bound = None if bound is None else bound * problem.rewards.scale
    sure = None if answer.confidence is None else min(answer.confidence, SUREST)
    return Answer(answer.top, bound, sure, answer.evidence, answer.tiers)


def _check_near(rewards: Rewards, request: Pulls, problem: Problem) -> None:
    """Refuse rewards without a range whose means are too far from 0, wherever they come from."""
    if problem.rewards.has_range:  # it was refused when it was declared
        return
    means = rewards.sums / np.maximum(request.times, 1)  # none counts if all seeds were void
    admitted, rule = np.asarray(problem.rewards.admits(means)), problem.rewards.rule
    if not problem.rewards.knows_spread and isinstance(problem.goal, FixedConfidence):
        farthest = FARTHEST_NORMAL * problem.goal.epsilon
        admitted &= np.abs(means) <= farthest
        rule = f"at most {FARTHEST_NORMAL:g} epsilon = {farthest:.15g} from 0: subtract a constant"
    wrong = np.flatnonzero(~admitted)
    if wrong.size:
        raise InvalidReward(
            f"the mean of what arm {request.arms[wrong[0]]} gave is {means[wrong[0]]:.15g}, but"
            f" rewards must be {rule}"
        )


def _check_apart(means: FloatArray) -> None:
    """Refuse rewards that floats hardly tell apart, by the means of the first request."""
    farthest = float(np.abs(means).max())
    apart = float(np.ptp(means))
    if 0 < apart < farthest / FARTHEST:
        raise InvalidReward(
            f"the first means are only {apart:.2g} apart, but must be at least 1/{FARTHEST:g} of"
            f" how far they are from 0, {farthest:.2g}: subtract a constant from the rewards"
        )


@contextmanager
def _countable(name: str) -> Iterator[None]:
    """Raise an error if a search asks for more pulls than can be counted."""
    try:
        yield
    except OverflowError as error:
        raise InvalidInput(f"{name} asks for too many pulls: {COUNTABLE}") from error


def _check_countable(pulls: float) -> None:
    if pulls > MOST_PULLS:
        raise OverflowError(f"{pulls:.1e} pulls")


def _cells_left(problem: Problem) -> FloatArray:
    """How often every arm can be pulled: for ever, or once an item that is not known yet."""
    if problem.items is None:
        return np.full(problem.n_arms, np.inf)
    unknown = np.isnan(problem.items.by_position(problem.n_arms))
    left: FloatArray = unknown.sum(1, dtype=np.float64)
    return left


def _check_cells(name: str, left: FloatArray) -> None:
    if (left < 0).any():
        arm = int(np.flatnonzero(left < 0)[0])
        raise InvalidInput(f"{name} asks for more pulls of arm {arm} than it has items left")


LIKELY_MEANT = 0.5  # a larger delta may be a confidence
MOST_REQUESTS = 200  # of a search within limits that is tried out: limits of a few hundred pulls
MANY_PAIRS = 300  # arms with limits from which on trying takes long
MOST_TRIED = 10_000  # arms for which a search is tried out before it starts: part of a second


def caution_about(problem: Problem, algorithm: Algorithm, options: dict[str, object]) -> None:
    """Warn of a delta or an epsilon that can hardly be meant."""
    goal, model = problem.goal, problem.rewards
    if not isinstance(goal, FixedConfidence):
        return
    if goal.delta > LIKELY_MEANT:
        caution(
            f"`delta` is {given_text(goal.delta)}, the probability that the choice loses more than"
            f" epsilon: for {given_text(goal.delta)} confidence, give"
            f" {given_text(round(1 - goal.delta, 12))}"
        )
    most = model.widest_gap * model.scale * min(problem.k, problem.n_arms - problem.k) / problem.k
    if goal.epsilon >= most:
        percent = "; 5 percent are 0.05 or '5%'" if goal.epsilon >= 1 >= model.scale else ""
        caution(
            f"`epsilon` is {given_text(goal.epsilon)}, but no choice of {problem.k} of"
            f" {problem.n_arms} arms can lose more than {bound_text(most)}: any will do{percent}"
        )
    elif (goal.budget is not None or _may_bind(problem)) and _can_try(problem, algorithm):
        _caution_about_end(problem, goal, algorithm, options)


def _may_bind(problem: Problem) -> bool:
    """Whether limits may end a search: not if all of them allow for a fixed design."""
    if problem.limits is None or not problem.rewards.has_range:
        return False
    unit = problem.unit()
    try:
        design = fixed_design(unit.n_arms, unit.k, unit.sharp_epsilon, unit.delta, unit.rewards)
    except OverflowError:
        return True
    return bool((problem.most_pulls < design).any())


def _can_try(problem: Problem, algorithm: Algorithm) -> bool:
    """Whether the search can be tried out on simulated arms."""
    usual = problem.rewards.has_range and problem.items is None and problem.features is None
    usual &= not problem.shared_seeds and problem.traffic is None
    # between these every pair of arms is compared, which takes seconds
    usual &= problem.limits is None or not MANY_PAIRS <= problem.n_arms <= MOST_LIMITED
    return usual and algorithm.name == "certified" and problem.n_arms <= MOST_TRIED


def _caution_about_end(
    problem: Problem, goal: FixedConfidence, algorithm: Algorithm, options: dict[str, object]
) -> None:
    """Try the search on evenly spread arms, and warn if it ends before epsilon is proved."""
    run = counted(algorithm, problem, np.random.default_rng(0), **options)
    try:
        bound = finish(run, EvenlySpread(problem).pull).answer.regret_bound
    except TooLong:
        return
    if bound is not None and bound <= goal.epsilon:
        return
    proved = "nothing" if bound is None else f"a regret of {bound_text(bound, 2)}"
    usual = "on 0/1 rewards whose means are spread evenly over the range"
    missed = f"{proved}, and not `epsilon` = {given_text(goal.epsilon)}"
    if goal.budget is None:
        most = sum(limit or 0 for limit in problem.limits or ())
        whole = f"{most:,} pulls in all" if None not in (problem.limits or ()) else "their pulls"
        caution(
            f"limits of arms allow {whole}, but {usual} these prove {missed}: raise the limits or"
            " `epsilon`; `shortlist forecast --limit` says what they prove on arms like yours"
        )
        return
    much = "these pulls prove" if problem.costs is None else "pulls for that prove"
    much = much if problem.limits is None else much.replace(" prove", " within the limits prove")
    caution(
        f"`budget` is {goal.budget:,}, but {usual} {much} {missed};"
        " `shortlist forecast` says how many it takes"
    )


class TooLong(Exception):
    """A search within limits takes too many batches to be tried out to its end."""


class EvenlySpread:
    """Arms with means spread evenly over the range and rewards at its ends, without noise."""

    def __init__(self, problem: Problem) -> None:
        self.low, self.high = problem.rewards.support
        self.means: FloatArray = (np.arange(problem.n_arms) + 0.5) / problem.n_arms  # (arms,)
        if problem.limits is not None:  # limits may be sorted
            self.means = np.random.default_rng(0).permutation(self.means)
        self.pulls = np.zeros(problem.n_arms, dtype=np.int64)
        self._requests = 0
        self._most = math.inf if problem.limits is None else MOST_REQUESTS

    def pull(self, request: Pulls) -> Rewards:
        """The rewards of a batch."""
        self._requests += 1
        if self._requests > self._most:
            raise TooLong
        arms, times = request.arms, request.times
        before = self.pulls[arms] + total_before(arms, times)
        best = np.rint((before + times) * self.means[arms]) - np.rint(before * self.means[arms])
        np.add.at(self.pulls, arms, times)
        worst = times - best
        squares = best * self.high**2 + worst * self.low**2
        return Rewards(best * self.high + worst * self.low, squares)
