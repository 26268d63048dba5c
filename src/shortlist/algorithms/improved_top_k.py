"""ImprovedTopK: ln 1/epsilon in place of ln n, at a constant only theory can pay (Alg. 5).

Its subroutines come first. EstKthArm estimates the mean of the k-th best arm (Algorithm 2) by
halving. Elim and ReverseElim (Algorithms 3, 4) put a tenth of the arms aside, with hardly a
mistake. EpsSplit chooses k arms where a gap near rank k makes that easy (Lemma "gap")."""

from collections.abc import Generator
from dataclasses import dataclass
from math import ceil, floor, inf, log

import numpy as np

from shortlist.algorithms.steps import Sorting, best, sample
from shortlist.algorithms.uniform import subset_union_count
from shortlist.arrays import IntArray
from shortlist.certificates.frame import mirrored
from shortlist.problem import Problem
from shortlist.search import NO_PROGRESS, Answer, Progress, Pulls, Rewards, Search

Estimate = Generator[Pulls, Rewards, float]
Halves = Generator[Pulls, Rewards, tuple[IntArray, IntArray]]


def pulls_for(phi: float, failure: float) -> int:
    """(2/phi^2) ln(2/failure): then a mean is off by phi/2 with probability `failure` at most.

    Either side alone fails with half that probability (Hoeffding)."""
    if phi**2 == 0 or failure == 0:
        raise OverflowError(
            f"accuracy {phi:g} with failure {failure:g} needs more pulls than a float can say"
        )
    return ceil(2 / phi**2 * log(2 / failure))


def halve(
    arms: IntArray,
    k: int,
    tau: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Halves:
    """Keep the better half until `k` arms are left; return them, and the others best guess first.

    With probability >= 1 - delta/4 at most tau*delta*k/4 of the kept lie more than phi below the
    k-th best (Lemma "few-remain"). Widths phi/4 (3/4)^r add up to phi, shares tau/4 (3/4)^r to tau,
    probabilities delta/8 2^-r to delta/4. Chen, Chen, Zhang, Zhou (2017), Algorithm 2, lines 1-7;
    about a quarter of the pulls printed, as the proof asks only that a mean is off by phi_r/2 with
    probability at most tau_r delta_r delta / 16 (E6)."""
    kept, dropped = arms, [arms[:0]]
    tau_r, phi_r, delta_r = tau / 4, phi / 4, delta / 8
    while kept.size > k:
        means = yield from sample(kept, pulls_for(phi_r, tau_r * delta_r * delta / 16), progress)
        order = kept[best(means, kept.size, rng)]
        size = max(k, ceil(kept.size / 2))
        kept, dropped = order[:size], [order[size:], *dropped]
        tau_r, phi_r, delta_r = 3 / 4 * tau_r, 3 / 4 * phi_r, delta_r / 2
    return kept, np.concatenate(dropped)


def est_kth_arm(
    arms: IntArray,
    k: int,
    tau: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Estimate:
    """Estimate the mean of the k-th best of `arms`, give or take a few ranks.

    The value lies in [theta_k - phi, theta_j + phi], j = ceil((1 - tau) k), with probability >= 1 -
    delta. The k best by halving are sampled once more, one of the tau*k/2 lowest is drawn, and its
    mean is taken from fresh pulls. Chen, Chen, Zhang, Zhou (2017), Algorithm 2 and Theorem "estK".

    Where we depart: the last means are sampled at all (E6); exactly floor(tau*k/2) + 1 arms can be
    drawn, ties broken at random (E7); the answer is a number, so arm and mean get phi/2 and delta/2
    each (E8). A rank below 1 has value +inf and one above |arms| has -inf: with no range of rewards
    in mind that is all one can say of it."""
    if not 1 <= k <= arms.size:
        return inf if k < 1 else -inf
    kept, _ = yield from halve(arms, k, tau, phi / 2, delta / 2, rng, progress)
    means = yield from sample(kept, pulls_for(phi / 2, tau * (delta / 2) / 16), progress)  # E6
    lowest = kept[best(-means, floor(tau * k / 2) + 1, rng)]  # E7
    drawn = rng.choice(lowest, size=1)
    mean = yield from sample(drawn, pulls_for(phi, delta / 2), progress)  # E8
    return float(mean[0])


Removal = Generator[Pulls, Rewards, IntArray]


def elim(
    arms: IntArray,
    gamma: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Removal:
    """The tenth of `arms`, at least one, with the smallest means.

    Means are those of (2/phi^2) ln(2/(gamma delta)) pulls.

    Let a fifth of the arms, at least two, lie phi or more below the k-th best, and gamma <= 1/2.
    Then with probability >= 1 - delta at most gamma*k of the returned are among the k best: such an
    arm must be off by phi/2, which more than gamma*k of the k best are with probability <= delta/2;
    or else enough of the low fifth are off by phi/2 that fewer than a tenth remain, with
    probability <= 2 gamma delta/2 <= delta/2.

    Chen, Chen, Zhang, Zhou (2017), Algorithm 3, with its constant c = 2 (E13) and never an empty
    answer (E12)."""
    means = yield from sample(arms, pulls_for(phi, gamma * delta), progress)
    return arms[best(-means, max(1, arms.size // 10), rng)]


def reverse_elim(
    arms: IntArray,
    gamma: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Removal:
    """The tenth of `arms`, at least one, with the largest means: `elim` seen from below.

    Let a fifth of the arms, at least two, lie phi or more above the k-th best, and gamma <= 1/2.
    Then with probability >= 1 - delta at most gamma*(|arms| - k) of the returned are not among the
    k best. Algorithm 4 (E12, E13)."""
    means = yield from sample(arms, pulls_for(phi, gamma * delta), progress)
    return arms[best(means, max(1, arms.size // 10), rng)]


def eps_split(
    arms: IntArray,
    k: int,
    core: int,
    tau: float,
    phi: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Generator[Pulls, Rewards, IntArray]:
    """Halve `arms` down to `core` <= k of them and fill up to `k` with the best of those dropped.

    If theta_core - theta_{m+1} > phi for a rank m >= k (or m = |arms|), then with probability >= 1
    - delta/4 at most (m - k) + (k - core) + tau*delta*core/4 of the chosen are not among the k
    best: those kept between the ranks k and m, those filled in, and those kept below the gap.

    Chen, Chen, Zhang, Zhou (2017), Lemma "gap". The printed proof takes core = (1 - tau) k and m =
    (1 + tau) k and does not count the arms filled in (E9)."""
    kept, dropped = yield from halve(arms, core, tau, phi, delta, rng, progress)
    return np.concatenate([kept, dropped[: k - core]])


LARGEST_EPSILON = 0.2  # E9
FEWEST_ARMS = 20  # E12: a tenth of fewer is not worth the estimates


def improved_top_k(problem: Problem, rng: np.random.Generator) -> Search:
    """Put aside a tenth of the arms at a time, allowing a few mistakes, until the rest is easy.

    R_T <= epsilon with probability >= 1 - delta. The paper's O((ln 1/epsilon + ln 1/delta)
    H^(t,epsilon)) pulls are 10^9 to 10^12 for 1000 arms, so only simulations run it. Chen, Chen,
    Zhang, Zhou (2017), Algorithm 5. More than half of the arms are chosen by finding the others, on
    rewards 1 - x.

    Write s = |S|, K' = K - |A|, w = floor(epsilon^2 K), S[i] for the i-th best mean of S. One pass
    of the loop is at accuracy phi = 2^-rho in round r, with p ~ S[K' + w + 1] and q ~ S[K' - w]
    from EstKthArm at tau = epsilon^2 / (100 r^2), so that p <= S[K' + 1] + phi (tau (K' + w + 1)
    moves it by at most w ranks) and q >= S[K'] - phi. It ends the search, or a round (r + 1), or it
    halves phi (rho + 1).

    Probability. Pass z = r + rho = 2, 3, ... calls EstKthArm three times at delta / (100 z^2);
    round r calls Elim or ReverseElim once at delta / (100 r^2); the end, and for sub-Gaussian
    rewards the beginning, may fail with delta/100 each. In all at most (3 * 0.645 + 1.645 + 2)
    delta / 100 < 0.06 delta.

    Loss. Let V be the sum of A's means and of the K' best of S: K R_T is what V loses. The means of
    S span at most 1, so an arm put on the wrong side costs V at most 1.
    - Elim (K' <= s/2) is called if p exceeds the estimate of S[(s + K')/2] by 3 phi. Then S[K']
      exceeds the true one by phi, a quarter of the arms is no better than that, and at most tau K'
      mistakes are made; ReverseElim (K' > s/2) likewise. All rounds together make fewer than
      epsilon^2 K / 60, as the sum of 1/r^2 is below 10/6.
    - The last stage loses at most (epsilon - epsilon^2/30) K, which leaves twice as much as the
      rounds need.
    - EpsSplit at q - p > 3 phi: S[core] - S[K' + w + 1] > phi for core = ceil((1 - tau)(K' - w)),
      hence at most w + (w + tau K') + (2w + 1) delta/400 mistakes, in all less than 2.1 epsilon^2 K
      <= 0.42 epsilon K.

    Where we depart. Only one side is put aside per round, which keeps K'/s within 5/9 (E10, E11).
    Small S goes to the last stage (E12), and so does the exit on phi, at the accuracy that is left
    rather than phi (E14). There uniform sampling proves the same as OptMAI: ln(s/K') more in the
    order of pulls, but a far smaller constant. epsilon is at most 0.2 (E9). Sub-Gaussian means have
    no range, so one round of AdaptiveTopK, O(n ln(n/delta)) pulls, first puts aside what is clearly
    far from the boundary."""
    if 2 * problem.k > problem.n_arms:
        return mirrored(_improved_top_k(problem.complement(), rng), problem.n_arms)
    return _improved_top_k(problem, rng)


def _improved_top_k(problem: Problem, rng: np.random.Generator) -> Search:
    epsilon = min(problem.epsilon, LARGEST_EPSILON)
    state = Sorting.start(problem)
    if not problem.rewards.has_range:
        yield from _put_far_arms_aside(state, problem.delta / 100)
    rest = yield from _choose_rest(state, epsilon, problem.delta, rng)
    evidence = {
        "epsilon": epsilon,
        "accepted early": state.accepted.size,
        "undecided": state.undecided.size,
    }
    return Answer(np.concatenate([state.accepted, rest]), epsilon, 1 - problem.delta, evidence)


def _put_far_arms_aside(state: Sorting, delta: float) -> Generator[Pulls, Rewards, None]:
    """Accept and reject until the means of S span less than 1.

    All are known to within 1/8, so S spans at most 6/8."""
    means = yield from state.pull(pulls_for(2 / 8, delta / state.n_arms), 0)
    state.sort(means, 1 / 8)


def _choose_rest(
    state: Sorting, epsilon: float, delta: float, rng: np.random.Generator
) -> Generator[Pulls, Rewards, IntArray]:
    """The loop of Algorithm 5: sort arms into A and B, then return the K' arms that go with A."""
    if state.settled:
        return state.undecided[: state.wanted]
    allowed = epsilon * state.k
    spare = floor(epsilon**2 * state.k)  # w; K_L = K - w, K_R = K + w + 1
    r = 1
    rho = 1
    while True:
        now = Pass(
            arms=state.undecided,
            wanted=state.wanted,
            phi=2.0**-rho,
            tau=epsilon**2 / (100 * r**2),
            delta=delta / (100 * (r + rho) ** 2),
            rng=rng,
            progress=state.progress(r),
        )
        if now.is_easy(epsilon, allowed):  # E12
            left = (1 - epsilon / 30) * allowed / now.wanted  # E14
            return (
                yield from last_stage(now.arms, now.wanted, left, delta / 100, rng, now.progress)
            )
        p = yield from now.mean_at(now.wanted + spare + 1)
        q = yield from now.mean_at(now.wanted - spare)
        if q - p > 3 * now.phi:
            return (yield from now.split_at_the_gap(spare, delta / 100))
        removed = yield from now.put_aside(p, q, delta / (100 * r**2))
        if removed is None:  # not told apart at this accuracy
            rho += 1
            continue
        state.undecided = np.setdiff1d(now.arms, removed)
        if not now.is_low:
            state.accepted = np.concatenate([state.accepted, removed])
        r += 1


@dataclass(frozen=True)
class Pass:
    """One pass of the loop: S, K', the accuracy phi, and the shares tau and delta of mistakes."""

    arms: IntArray  # S
    wanted: int  # K'
    phi: float
    tau: float
    delta: float  # of each of the three calls of EstKthArm
    rng: np.random.Generator
    progress: Progress

    @property
    def is_low(self) -> bool:
        """Whether K' <= s/2: then the worst arms are put aside, otherwise the best (E10, E11)."""
        return 2 * self.wanted <= self.arms.size

    def is_easy(self, epsilon: float, allowed: float) -> bool:
        """Whether S is small, K' is, or phi is: uniform sampling then does the rest (E12)."""
        few_arms = self.arms.size < FEWEST_ARMS
        few_wanted = self.wanted <= 2 * epsilon * allowed + 1
        return few_arms or few_wanted or 10 * self.wanted * self.phi < allowed

    def mean_at(self, rank: int) -> Estimate:
        """Estimate the mean of that rank in S."""
        return est_kth_arm(self.arms, rank, self.tau, self.phi, self.delta, self.rng, self.progress)

    def split_at_the_gap(self, spare: int, delta: float) -> Generator[Pulls, Rewards, IntArray]:
        """K' arms of S where q - p > 3 phi: few of those near rank K' can be mistaken."""
        core = ceil((1 - self.tau) * (self.wanted - spare))
        share = (2 * spare + 1) / self.wanted
        return eps_split(
            self.arms, self.wanted, core, share, self.phi, delta, self.rng, self.progress
        )

    def put_aside(
        self, p: float, q: float, delta: float
    ) -> Generator[Pulls, Rewards, IntArray | None]:
        """A tenth of S that is on one side of rank K', if a quarter of S is clearly beyond it."""
        if self.is_low:
            beyond = yield from self.mean_at(ceil((self.arms.size + self.wanted) / 2))
            gap = p - beyond
        else:
            beyond = yield from self.mean_at(ceil(self.wanted / 2))
            gap = beyond - q
        if gap <= 3 * self.phi:
            return None
        remove = elim if self.is_low else reverse_elim
        return (yield from remove(self.arms, self.tau, self.phi, delta, self.rng, self.progress))


def last_stage(
    arms: IntArray,
    k: int,
    epsilon: float,
    delta: float,
    rng: np.random.Generator,
    progress: Progress = NO_PROGRESS,
) -> Generator[Pulls, Rewards, IntArray]:
    """The k best of equally many pulls each; they lose k*epsilon at most, but for delta."""
    means = yield from sample(arms, subset_union_count(arms.size, k, epsilon, delta), progress)
    return arms[best(means, k, rng)]
