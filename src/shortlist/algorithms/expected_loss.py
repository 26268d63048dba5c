"""Expected loss: the least regret for a given number of pulls."""

import numpy as np

from shortlist.algorithms.options import Count
from shortlist.certification.split.final_look import final_look
from shortlist.certification.split.holdout import Holdout
from shortlist.errors import InvalidInput
from shortlist.exploration.explore import explore
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem
from shortlist.search import Answer, RunUpTo, Search
from shortlist.validation import number


def expected_loss(
    problem: Problem,
    rng: np.random.Generator,
    *,
    holdout: float = 0.0,
    delta: float = 0.05,
    least: Count = 1,
    rounds: Count | None = None,
) -> Search:
    """Pull where the expected loss per pull spent is largest; return the k best posterior means.

    loss_i = E[(c - theta_i)_+] for an arm inside the present choice, E[(theta_i - c)_+] for one
    outside, with c halfway between the k-th and the next posterior mean, under an empirical-Bayes
    posterior with tempered likelihood. Fixed budget; no guarantee, unless a share `holdout` of the
    budget is set aside: its fresh pulls then give a bound on the regret that holds with probability
    at least 1 - `delta`.

    Requests have at least `least` pulls, or what is left of the budget, and there are at most
    `rounds` of them; the pulls set aside are one more request, of whatever size."""
    if not 0 <= holdout < 1:
        raise InvalidInput(f"`holdout` is {holdout}, but must be at least 0 and less than 1")
    number("delta", delta, above=0, below=1)
    if holdout > 0 and rounds == 1:
        raise InvalidInput("`rounds` is 1, but a holdout is a round of its own")
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)
    explorable = max(problem.n_arms, int((1 - holdout) * problem.budget))
    exploring = rounds if rounds is None or holdout == 0 else rounds - 1
    yield from explore(
        posterior, explorable, rng, least=least if least > 1 else 0, rounds=exploring
    )
    if holdout == 0:
        return _choice(posterior, rng)
    left = problem.budget - posterior.spent
    return (yield from final_look(posterior, Holdout(problem.n_arms), left, delta, rng))


def expected_loss_anytime(problem: Problem, rng: np.random.Generator) -> RunUpTo:
    """The same exploration, to be run up to one number of pulls after another."""
    posterior = Posterior(problem.n_arms, problem.k, problem.rewards)

    def run_up_to(pulls: int) -> Search:
        yield from explore(posterior, pulls, rng)
        return _choice(posterior, rng)

    return run_up_to


def _choice(posterior: Posterior, rng: np.random.Generator) -> Answer:
    chosen, _ = posterior.split(rng)
    return Answer(np.flatnonzero(chosen))
