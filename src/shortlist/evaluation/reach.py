"""What may be asked, but makes no sense: an epsilon that any choice keeps to, or that a budget
hardly reaches."""

import numpy as np

from shortlist.algorithms import Algorithm
from shortlist.arrays import FloatArray
from shortlist.caution import caution
from shortlist.digits import bound_text, given_text
from shortlist.driver import counted, finish
from shortlist.grouping import total_before
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Pulls, Rewards

MOST_ARMS = 10_000  # for which a search is tried out before it begins: a fraction of a second


def caution_about(problem: Problem, algorithm: Algorithm, options: dict[str, object]) -> None:
    """Warn of an epsilon that is too large or too small to mean anything."""
    goal, model = problem.goal, problem.rewards
    if not isinstance(goal, FixedConfidence):
        return
    most = model.widest_gap * model.scale * min(problem.k, problem.n_arms - problem.k) / problem.k
    if goal.epsilon >= most:
        caution(
            f"`epsilon` is {given_text(goal.epsilon)}, but no choice of {problem.k} of"
            f" {problem.n_arms} arms can lose more than {bound_text(most)}: any will do"
        )
    elif goal.budget is not None and _can_try(problem, algorithm):
        _caution_about_budget(problem, goal, goal.budget, algorithm, options)


def _can_try(problem: Problem, algorithm: Algorithm) -> bool:
    """Whether it is known what a search of the package's own would prove of usual arms."""
    usual = problem.rewards.has_range and problem.items is None
    return usual and algorithm.name == "certified" and problem.n_arms <= MOST_ARMS


def _caution_about_budget(
    problem: Problem,
    goal: FixedConfidence,
    budget: float,
    algorithm: Algorithm,
    options: dict[str, object],
) -> None:
    run = counted(algorithm, problem, np.random.default_rng(0), **options)
    bound = finish(run, EvenlySpread(problem).pull).answer.regret_bound
    if bound is None or bound > goal.epsilon:
        proved = "nothing" if bound is None else f"a regret of {bound_text(bound, 2)}"
        much = "so many pulls prove" if problem.costs is None else "pulls for that prove"
        caution(
            f"`budget` is {budget:,}, but on 0/1 rewards whose means are spread evenly over the"
            f" range {much} {proved}, and not `epsilon` = {given_text(goal.epsilon)};"
            " `shortlist forecast` says how many it takes"
        )


class EvenlySpread:
    """Arms with means spread evenly over the range that give the worst and the best reward, as
    often as can be expected."""

    def __init__(self, problem: Problem) -> None:
        self.low, self.high = problem.rewards.support
        self.means: FloatArray = (np.arange(problem.n_arms) + 0.5) / problem.n_arms  # (arms,)
        self.pulls = np.zeros(problem.n_arms, dtype=np.int64)

    def pull(self, request: Pulls) -> Rewards:
        """What a request gives."""
        arms, times = request.arms, request.times
        before = self.pulls[arms] + total_before(arms, times)
        best = np.rint((before + times) * self.means[arms]) - np.rint(before * self.means[arms])
        np.add.at(self.pulls, arms, times)
        worst = times - best
        squares = best * self.high**2 + worst * self.low**2
        return Rewards(best * self.high + worst * self.low, squares)
