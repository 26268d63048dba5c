"""The final look: spend what is left of a budget on a bound, whatever it comes to."""

import math

import numpy as np

from shortlist.arrays import BoolArray, FloatArray, IntArray
from shortlist.certification.split import tuning
from shortlist.certification.split.answers import answer_of
from shortlist.certification.split.drafting import Draft, Drafter
from shortlist.certification.split.holdout import Holdout
from shortlist.exploration.posterior import Posterior
from shortlist.search import Answer, Progress, Search


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
    chosen, _ = posterior.split(rng)
    reach = posterior.rewards.widest_gap
    draft = _least_bound(posterior, chosen, holdout, budget, -math.log(delta), most)
    if draft is None:
        return Answer(np.flatnonzero(chosen))
    explored = posterior.spent
    yield from holdout.fill_up(draft.pulls, Progress(undecided=posterior.n_arms))
    certificate = draft.declare(delta, reach, posterior.rewards, holdout.blur)
    bound = min(certificate.bound(holdout.sums, holdout.squares), reach)
    return answer_of(draft, bound, delta, explored, holdout, looks)


def _least_bound(
    posterior: Posterior,
    chosen: BoolArray,
    holdout: Holdout,
    budget: int,
    threshold: float,
    most: IntArray | None,
) -> Draft | None:
    """The draft within `budget` whose bound is expected to be least; None: too few pulls left."""
    boundary = posterior.balance(chosen)
    reach = posterior.rewards.widest_gap
    drafter = Drafter(posterior, chosen, boundary, holdout.pulls, reach, most)
    strengths = 2 * threshold / (posterior.k * _guessed_regrets(budget))
    drafts = [drafter.draft(float(each), threshold, budget=budget) for each in strengths]
    possible = [each for each in drafts if each is not None]
    return min(possible, key=lambda each: each.expected, default=None)


def _guessed_regrets(budget: int) -> FloatArray:
    """Bounds that might come out: a certificate is tightest near the one its strength is for."""
    least = min(0.001, 1 / math.sqrt(budget + 1))
    return np.geomspace(least, 0.5, tuning.GUESSES)
