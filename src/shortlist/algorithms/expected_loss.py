"""Expected loss: the least regret for a given number of pulls."""

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certification.split.final_look import final_look
from shortlist.certification.split.holdout import Holdout
from shortlist.errors import InvalidInput
from shortlist.exploration.explore import explore
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Answer, RunUpTo, Search
from shortlist.validation import number


def expected_loss(
    problem: Problem, rng: np.random.Generator, *, holdout: float = 0.0, delta: float = 0.05
) -> Search:
    """Pull where the expected loss per pull spent is largest; return the k best posterior means.

    loss_i = E[(c - theta_i)_+] for an arm inside the present choice, E[(theta_i - c)_+] for one
    outside, with c halfway between the k-th and the next posterior mean, under an empirical-Bayes
    posterior with tempered likelihood. Fixed budget; no guarantee, unless a share `holdout` of the
    budget is set aside: its fresh pulls then give a bound on the regret that holds with probability
    at least 1 - `delta`."""
    if not 0 <= holdout < 1:
        raise InvalidInput(f"`holdout` is {holdout}, but must be at least 0 and less than 1")
    number("delta", delta, above=0, below=1)
    if holdout == 0:
        return (yield from expected_loss_anytime(problem, rng)(problem.budget))
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)
    explorable = max(problem.n_arms, int((1 - holdout) * problem.budget))
    yield from explore(posterior, explorable, rng, _caps(problem))
    left = problem.budget - posterior.spent
    return (yield from final_look(posterior, Holdout(problem.n_arms), left, delta, rng))


def expected_loss_anytime(problem: Problem, rng: np.random.Generator) -> RunUpTo:
    """The same exploration, to be run up to one number of pulls after another."""
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)

    def run_up_to(pulls: int) -> Search:
        yield from explore(posterior, pulls, rng, _caps(problem))
        chosen, _ = posterior.split(rng)
        return Answer(np.flatnonzero(chosen))

    return run_up_to


def _caps(problem: Problem) -> IntArray | None:
    return None if problem.limits is None else problem.most_pulls
