"""Certified selection: the default where a guarantee is wanted, whatever n and K are."""

import numpy as np

from shortlist.algorithms.options import Count
from shortlist.certification.pairs.swap_race import swap_race
from shortlist.certification.split.fixed_samples import FixedSamples
from shortlist.certification.split.split_search import split_search
from shortlist.errors import InvalidInput
from shortlist.problem import Problem
from shortlist.search import Search

CERTIFICATES = ("auto", "pairs", "split")
MOST_PAIRS = 300  # pairs of an arm inside and one outside up to which every swap is compared
MOST_NETTED = 100  # arms up to which a fixed design stands behind the split certificate, too


def certified(
    problem: Problem,
    rng: np.random.Generator,
    *,
    certificate: str = "auto",
    least: Count | None = None,
    rounds: Count | None = None,
) -> Search:
    """Choose k arms and prove, with the certificate that suits n and k, that they lose little.

    R_T <= epsilon with probability >= 1 - delta; with a budget, what could be proved by then. Where
    K (n - K) <= 300, or only one arm is to be chosen or left out, every swap of arms is bounded
    ("pairs", docs/pairs.md). Elsewhere the choice is proved on fresh rewards, where the errors of
    many arms average out ("split", docs/certificate.md). That is settled before any reward is seen.

    For n <= 100 and without a budget no run on 0/1 rewards takes more than 1.5 times the fixed
    design, ties included; docs/pairs.md says what holds for other rewards.
    Requests have at least `least` pulls, unless fewer complete all samples; where split
    certificates are looked at, only those that explore. Pairs take at most `rounds` requests (one
    more if rewards that were all 0 or 1 turn out not to be)."""
    if certificate not in CERTIFICATES:
        known = ", ".join(CERTIFICATES)
        raise InvalidInput(f"`certificate` is {certificate!r}, but must be one of {known}")
    if suitable(problem) == "pairs" if certificate == "auto" else certificate == "pairs":
        return swap_race(problem, rng, least=least, rounds=rounds)
    if rounds is not None:
        raise InvalidInput(
            f"`rounds` is {rounds}, but the split certificate, which {problem.n_arms} arms and"
            f" k = {problem.k} need, looks as often as it must; `least` makes its rounds fewer"
        )
    return split_search(problem, rng, _net(problem, rng), least=least or 0)


def suitable(problem: Problem) -> str:
    """The certificate that needs fewer pulls on most arms, by n and k alone."""
    inside, outside = problem.k, problem.n_arms - problem.k
    few = inside * outside <= MOST_PAIRS or min(inside, outside) == 1
    return "pairs" if few else "split"


def _net(problem: Problem, rng: np.random.Generator) -> FixedSamples | None:
    """The fixed design behind the split certificate, where there are few arms and no budget."""
    if problem.n_arms > MOST_NETTED or problem.goal.budget is not None:
        return None
    try:
        return FixedSamples.of(problem, rng)
    except OverflowError:  # an epsilon so small that its samples could never be drawn
        return None
