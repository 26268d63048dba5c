"""When to look, and which certificate to declare then."""

import math

import numpy as np

from shortlist.arrays import IntArray
from shortlist.certification.split import tuning
from shortlist.certification.split.alpha_spending import share_of
from shortlist.certification.split.certificate import Certificate
from shortlist.certification.split.drafting import Draft, Drafter
from shortlist.certification.split.strengths import (
    StrengthSearch,
    score_strengths,
    usual_strengths,
)
from shortlist.exploration.posterior import Posterior
from shortlist.problem import Problem


class Looks:
    """The looks at the holdout, one after the other, each with its own share of delta.

    It sees how often the holdout was pulled, never what that gave: so what is drafted, and when, is
    fixed by exploration rewards alone."""

    def __init__(
        self, problem: Problem, posterior: Posterior, limits: IntArray | None = None
    ) -> None:
        """`limits` are the most pulls of every arm, explored or fresh; None without limits."""
        self.problem = problem
        self.posterior = posterior
        self._limits = limits
        self.reach = problem.k * problem.epsilon
        self.failed = 0  # looks that did not certify
        self._of_tosses, self._of_scores = usual_strengths(), score_strengths()
        self._wait_until = 0.0  # exploration pulls before the next draft is worth its time

    @property
    def strengths(self) -> StrengthSearch:
        """Where the search for the best strength stands, for the rewards seen so far."""
        return self._of_scores if self.posterior.scattered else self._of_tosses

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
        affordable = tuning.NEAR * explored
        if found.cost > affordable:
            self._back_off(found.cost / affordable)
            return found
        return self.strengths.step()

    def refined(self, found: Draft) -> Draft:
        """The draft of the best strength, downhill from that of `found`, which `promising` gave."""
        return self.strengths.descend() or found

    @property
    def most(self) -> IntArray | None:
        """Fresh pulls that limits leave to every arm: (n,); None without limits."""
        return None if self._limits is None else self._limits - self.posterior.pulls

    def declared(self, draft: Draft) -> Certificate:
        """The certificate of the present look."""
        problem = self.problem
        return draft.declare(self.delta, self.reach, problem.rewards, problem.blur)

    def _hopeful(self, made: IntArray, rng: np.random.Generator) -> Drafter | None:
        """What drafts for the present choice, unless that must be expected to lose too much."""
        chosen, _ = self.posterior.split(rng)
        boundary = self.posterior.balance(chosen)
        loss = self.posterior.expected_loss(chosen, boundary)
        hoped = tuning.HOPE * self.reach
        if loss > hoped:
            self._back_off(loss / hoped)
            return None
        return Drafter(self.posterior, chosen, boundary, made, self.reach, self.most)

    def _back_off(self, excess: float) -> None:
        """Draft again after more exploration, the more the farther off: `excess` times too much."""
        growth = min(excess**tuning.PATIENCE, tuning.LONGEST)
        self._wait_until = self.posterior.spent * growth

    def _draft(self, drafter: Drafter, strength: float) -> Draft | None:
        """A draft of this strength, in units of ln(1/delta) / (k epsilon)."""
        threshold = -math.log(self.delta)
        aim = max(tuning.CAUTION**self.failed, tuning.LEAST_AIM)
        if self.posterior.scattered:
            aim *= tuning.STAGED_AIM
        return drafter.draft(strength * threshold / self.reach, threshold, target=self.reach * aim)
