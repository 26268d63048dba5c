"""The fallback: a fixed design, at a share of delta, behind a search that may not end soon.

The first N exploration rewards of every arm are a fixed sample, whatever the search does with them:
pulls of exploration are decided before their rewards are seen, so they are N independent rewards of
every arm. If N is the fixed design at a share of delta, then the k best of these samples lose at
most epsilon but for that share, and the looks have the rest of delta. No arm is explored beyond its
sample, and the looks may take no more than the rest of `SLACK` times the design: so no run takes
more than that, whatever the means are, ties included."""

from dataclasses import dataclass, replace

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certificates.exchange import log_swaps_of
from shortlist.certificates.frame import SLACK, fixed_design, share_for
from shortlist.certificates.split.bound import Holdout
from shortlist.constraints import best_by
from shortlist.exploration.posterior import Posterior
from shortlist.problem import FixedConfidence, Problem
from shortlist.search import Answer


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
