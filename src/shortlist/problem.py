"""The problem: how many arms, how many to choose, the goal, the kind of rewards, and a test set.

A test set is a number of items in a random order that all arms go through. The driver knows which
item is where in the order. A search asks for further pulls of an arm, and pull t of an arm is its
score on the t-th item of the order that is not known yet."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral
from os import PathLike
from typing import NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from shortlist.arrays import RESOLVED, ROUNDED, FloatArray, IntArray
from shortlist.constraints import Constraint, best_set, check_family, complement_of, family_among
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.features import Features, shuffled
from shortlist.formatting import bound_text
from shortlist.regret import aggregate_regret
from shortlist.reward_models import Bounded, RewardModel, as_seen
from shortlist.spec import Order
from shortlist.validation import (
    COUNTABLE,
    LARGEST,
    SMALLEST,
    check_choice,
    flag,
    number,
    plain,
    real,
    shown,
    whole,
    word,
)

NOT_LIVE = "a test with drift compares pairs of arms within blocks of visitors, and nothing else"
MOST_IN_BLOCKS = 1000  # arms of a live test: every pair of them is compared


@dataclass(frozen=True, slots=True)
class Traffic:
    """A live test: visitors come in blocks, such as days, and are assigned to arms at random.

    The level of all arms may drift; only differences within blocks are compared (docs/drift.md)."""

    per_day: int | None = None  # visitors per block; None if not known
    delay: int = 0  # blocks that pass before the results of one are complete
    skip_blocks: int = 0  # first blocks that do not count
    min_blocks: int = 0  # blocks that count before the test may end


# a row per arm and a column per item, NaN: unknown; or the name of a file
ScoresGiven = npt.ArrayLike | PathLike[str]


class KnownScores(NamedTuple):
    """Number and sum of the known scores of every arm: (n,) each."""

    counts: IntArray
    sums: FloatArray


@dataclass(frozen=True, eq=False, slots=True)
class Items:
    """`size` items; every arm is scored on each at most once, and its mean over all counts.

    `known` are scores known before, by the position in the order: (arms, size), NaN: unknown. The
    search uses them when it reaches their position. `widths` are the numbers of cells that are
    drawn together, such as the questions of a document, in the order of positions; None: every cell
    is drawn on its own. `sampled`: the items are a sample, and the promise is about the
    distribution that they come from."""

    size: int
    known: FloatArray | None = None
    widths: IntArray | None = None
    sampled: bool = False

    def __post_init__(self) -> None:
        plain(self, size=whole("items", self.size, at_least=1))

    @property
    def draws(self) -> int:
        """Number of cells or groups of cells that are drawn."""
        return self.size if self.widths is None else self.widths.size

    @property
    def fullness(self) -> float:
        """The mean size of a group as a share of the largest one; 1 if cells are not in groups."""
        if self.widths is None:
            return 1.0
        return self.size / (self.widths.size * int(self.widths.max()))

    def reached(self, pulls: IntArray) -> IntArray:
        """Positions of every arm before its first cell without a score, after this many pulls."""
        if self.known is None:
            return pulls
        unknown = np.cumsum(np.isnan(self.known), axis=1)  # (arms, size)
        covered: IntArray = (unknown <= pulls[:, None]).sum(axis=1)
        return covered

    def by_position(self, n_arms: int) -> FloatArray:
        """The known scores, to be filled in: (arms, size)."""
        if self.known is None:
            return np.full((n_arms, self.size), np.nan)
        return self.known.copy()

    def cells(self, n_arms: int) -> int:
        """Number of unknown scores."""
        known = 0 if self.known is None else int((~np.isnan(self.known)).sum())
        return n_arms * self.size - known

    def known_scores(self, n_arms: int) -> KnownScores:
        """Scores of every arm known before the first pull."""
        if self.known is None:
            return KnownScores(np.zeros(n_arms, dtype=np.int64), np.zeros(n_arms))
        counts: IntArray = (~np.isnan(self.known)).sum(1, dtype=np.int64)
        return KnownScores(counts, np.nansum(self.known, 1))

    def means(self, pulls: IntArray, sums: FloatArray) -> FloatArray:
        """An estimate of every arm's mean over all items: (n,), NaN where nothing is known.

        With K scores known, of sum S, and N items, it is (S + (N - K) x) / N, x the mean of the
        pulls. These are a random sample of the unknown cells, so the estimate is unbiased for any
        fixed number of them. The mean of all scores would not be: the known cells are no random
        sample. Without pulls x is the mean of the known scores. Once every cell has its score, this
        is the exact mean."""
        known = self.known_scores(pulls.size)
        rest = self.size - known.counts
        drawn = np.full(pulls.size, np.nan)
        np.divide(known.sums, known.counts, out=drawn, where=known.counts > 0)
        np.divide(sums, pulls, out=drawn, where=pulls > 0)
        filled = np.where(pulls == rest, sums, rest * drawn)
        return np.where(known.counts > 0, (known.sums + filled) / self.size, drawn)

    def worth(self, pulls: IntArray) -> IntArray:
        """Number of independent rewards that are worth as much as all scores of an arm: (n,).

        The estimate of `means` has ((N - K) / N)^2 times the variance that the mean of the pulls
        has. An arm without pulls counts as if it had one; never more than the number of items."""
        known = self.known_scores(pulls.size).counts
        share = np.maximum(1, self.size - known) / self.size
        worth = np.minimum(self.size, np.maximum(1, pulls) / share**2).astype(np.int64)
        return np.where(known > 0, worth, pulls)

    def squared(self) -> "Items":
        """The same items with the squares of the known scores."""
        return self if self.known is None else replace(self, known=self.known**2)

    def unit(self, shift: float, scale: float) -> "Items":
        """The same items with scores on the unit scale."""
        if self.known is None:
            return self
        return replace(self, known=(self.known - shift) / scale)

    def among(self, arms: IntArray) -> "Items":
        """The same items for these arms only."""
        return self if self.known is None else replace(self, known=self.known[arms])

    def check(self, n_arms: int) -> None:
        """Refuse known scores that are not of these arms and items."""
        if self.known is not None and self.known.shape != (n_arms, self.size):
            raise InvalidInput(
                f"known scores are of shape {self.known.shape}, but must be of {n_arms} arms and"
                f" {self.size} items"
            )


def checked_order(order: object) -> str:
    """Return the name of an order, if there is such a one."""
    return word("order", order, get_args(Order))


UNIT = Bounded()
LEAST_COST, MOST_COST = 1e-9, 1e12  # of a pull: sums of them must not lose one of them


@dataclass(frozen=True, slots=True)
class FixedConfidence:
    """Lose at most `epsilon` with probability at least 1 - `delta`, with as few pulls as possible.

    Args:
        epsilon: Allowed regret, above 0, in units of the rewards.
        delta: Probability of losing more, between 0 and 1.
        budget: The search stops there at the latest, with the bound reached by then. In pulls, or
            in the unit of the costs where arms have costs. Default None: no budget.

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import shortlist
        >>> shortlist.FixedConfidence(0.05, 0.01).budget is None
        True
    """

    epsilon: float
    delta: float
    budget: float | None = None

    def __post_init__(self) -> None:
        plain(self, epsilon=number("epsilon", self.epsilon, above=0))
        plain(self, delta=number("delta", self.delta, above=0, below=1))
        if self.delta < SMALLEST:
            raise InvalidInput(f"`delta` is {self.delta!r}, but must be at least {SMALLEST:g}")
        if self.budget is not None:
            plain(self, budget=budget_of(self.budget))


@dataclass(frozen=True, slots=True)
class FixedBudget:
    """Lose as little as possible within a budget.

    Args:
        budget: In pulls, or in the unit of the costs where arms have costs; above 0.

    Raises:
        InvalidInput: If the budget is not above 0.

    Example:
        >>> import shortlist
        >>> shortlist.FixedBudget(1000)
        FixedBudget(budget=1000)
    """

    budget: float

    def __post_init__(self) -> None:
        plain(self, budget=budget_of(self.budget))


Goal = FixedConfidence | FixedBudget


def budget_of(budget: object) -> float:
    """A budget as a plain number: an int if it is whole, so that pulls are counted exactly."""
    value = real(budget)
    if isinstance(budget, Integral) or not 0 < value < LARGEST:
        return whole("budget", budget, at_least=1)
    return int(value) if value.is_integer() and value <= COUNTABLE else value


def goal_of(
    epsilon: float | None, delta: float, budget: float | None, *, capped: bool = True
) -> Goal:
    """The goal that these arguments name.

    With an epsilon, a budget is a cap; for an algorithm that is not `capped` it is the goal, and
    epsilon only says which runs count as failures."""
    if epsilon is not None:
        confidence = FixedConfidence(epsilon, delta, budget)
        return confidence if budget is None or capped else FixedBudget(budget)
    number("delta", delta, above=0, below=1)
    if budget is None:
        raise InvalidInput("neither `epsilon` nor `budget` is given, but a goal needs one of them")
    return FixedBudget(budget)


@dataclass(frozen=True, slots=True)
class Problem:
    """The problem that a search solves: choose the `k` best of `n_arms` arms.

    Searches work on the unit scale: rewards in [0, 1], or sub-Gaussian with sigma = 1/2, which is
    all that Hoeffding's inequality uses of rewards in [0, 1]. The driver of a search converts with
    `unit()`.

    Args:
        n_arms: Number of arms, at least 2.
        k: Number of arms to choose, from 1 to n_arms - 1.
        goal: `FixedConfidence` or `FixedBudget`.
        rewards: Reward model. Default: rewards in [0, 1].
        minimize: Whether the best arms are those of the smallest means. Default False.
        blur: Rounding error of a mean on the way to the unit scale. Default 0.
        items: A test set. Default None: arms can be pulled without limit.
        limits: The most pulls per arm, None for no limit. Default None: no arm has a limit.
        costs: Cost of a pull per arm. Default None: every pull costs 1, and a budget counts pulls.
        constraint: The sets that may be chosen. Default None: all sets of k arms.
        features: Known features of the arms. Default None: there are none.
        traffic: How visitors of a live test come, whose level may drift. Default None: it does not.
        shared_seeds: Whether all arms in a batch run on the same seeds. Default False: every pull
            has a seed of its own, and arms are independent.

    Raises:
        InvalidInput: If a value breaks its rule.

    Example:
        >>> import shortlist
        >>> problem = shortlist.Problem(10, 3, shortlist.FixedConfidence(0.1, 0.05))
        >>> problem.epsilon, problem.delta
        (0.1, 0.05)
    """

    n_arms: int
    k: int
    goal: Goal
    rewards: RewardModel = UNIT
    minimize: bool = False  # whether the best arms are those of the least means
    blur: float = 0.0  # of a mean, by rounding, on the way to the unit scale
    items: Items | None = None  # a test set; None if arms can be pulled without limit
    # the most pulls per arm, None: no limit; None if no arm has a limit
    limits: tuple[int | None, ...] | None = None
    # the cost of a pull per arm; None if every pull costs 1, and a budget counts pulls
    costs: tuple[float, ...] | None = None
    constraint: Constraint | None = None  # the sets that may be chosen; None: all sets of k arms
    features: Features | None = None  # known features of the arms; None if there are none
    traffic: Traffic | None = None  # of a live test whose level may drift; None for all others
    shared_seeds: bool = False  # whether the r-th pulls of all arms in a batch have one seed

    def __post_init__(self) -> None:
        check_choice(self.n_arms, self.k)
        if not isinstance(self.goal, FixedConfidence | FixedBudget):
            raise InvalidInput(f"`goal` is {shown(self.goal)}, but must be a goal")
        if not isinstance(self.rewards, RewardModel):
            raise InvalidInput(f"`rewards` is {shown(self.rewards)}, but must be a reward model")
        plain(self, n_arms=int(self.n_arms), k=int(self.k))
        plain(self, minimize=flag("minimize", self.minimize))
        if self.items is not None:
            self.items.check(self.n_arms)
            if not self.rewards.has_range:
                raise InvalidInput(
                    "`rewards` have no range, but scores on items need one: say (low, high)"
                )
        if self.limits is not None:
            plain(self, limits=_checked_limits(self.limits, self.n_arms))
        if self.items is not None and self.limits is not None:
            raise InvalidInput("arms have limits and items are given, but items are limits enough")
        if self.costs is not None:
            plain(self, costs=_checked_costs(self.costs, self.n_arms))
        if self.constraint is not None:
            check_family(self.constraint, self.n_arms, self.k)
            if getattr(self.constraint, "is_free", False):  # all sets of k arms: no constraint
                plain(self, constraint=None)
        if self.traffic is not None:
            self._check_live()
        if self.features is not None:
            self.features.check(self.n_arms)
            if self.items is not None:
                rule = "only guide pulls without a test set"
                raise InvalidInput(f"`features` and `items` are given, but features {rule}")
            if self.constraint is not None and self.features.declared:
                rule = "the linear bound is about all sets of k arms"
                raise InvalidInput(f"`linear` and a constraint are given, but {rule}")
        if self.shared_seeds:
            self._check_shared()
        if self.costs is None and isinstance(self.goal.budget, float):
            rule = "must be a whole number of at least 1 where arms have no costs"
            raise InvalidInput(f"`budget` is {shown(self.goal.budget)}, but {rule}")

    def _check_live(self) -> None:
        """Refuse what a live test with drift does not support."""
        absent = {
            "items are": self.items,
            "limits are": self.limits,
            "a budget is": self.goal.budget,
            "a constraint is": self.constraint,
            "features are": self.features,
            "shared seeds are": self.shared_seeds or None,
        }
        for name, value in absent.items():
            if value is not None:
                raise InvalidInput(f"`drift` is True and {name} given, but {NOT_LIVE}")
        if not self.rewards.has_range:
            rule = "must have a range in a test with `drift`: cap them, and say (low, high)"
            raise InvalidInput(f"`rewards` have no range, but {rule}")
        if self.n_arms > MOST_IN_BLOCKS:
            raise InvalidInput(
                f"`arms` are {self.n_arms}, but must be at most {MOST_IN_BLOCKS} with `drift`"
            )

    def _check_shared(self) -> None:
        """Refuse what has no meaning, or no proof, on shared seeds."""
        others = {"items": self.items, "limits of arms": self.limits, "features": self.features}
        for name, value in others.items():
            if value is not None:
                raise InvalidInput(f"`seeds` is 'shared', but does not go with {name}")
        if self.rewards.knows_spread and not self.rewards.has_range:
            raise InvalidInput(
                "`seeds` is 'shared', but rewards must have a range or be 'normal': differences of"
                " dependent sub-Gaussian rewards gain nothing"
            )

    @property
    def most_pulls(self) -> IntArray:
        """The most pulls of every arm: (n,)."""
        limits = self.limits or (None,) * self.n_arms
        return np.array([COUNTABLE if limit is None else limit for limit in limits])

    @property
    def most_in_all(self) -> IntArray:
        """The most pulls of every arm, by its limit or by its unknown cells: (n,)."""
        if self.items is None:
            return self.most_pulls
        return self.items.size - self.known_scores.counts

    @property
    def known_scores(self) -> KnownScores:
        """Scores of every arm that were known before the first pull; none without a test set."""
        return (self.items or Items(1)).known_scores(self.n_arms)

    def means(self, pulls: IntArray, sums: FloatArray) -> FloatArray:
        """The mean reward of every arm; on a test set an estimate of that over all items, to which
        scores known before belong: (n,), NaN where nothing is known.

        Args:
            pulls: Number of rewards per arm.
            sums: Sum of the rewards per arm.

        Returns:
            The means: (n,)."""
        if self.items is not None:
            return self.items.means(pulls, sums)
        means = np.full(self.n_arms, np.nan)
        np.divide(sums, pulls, out=means, where=pulls > 0)
        return means

    @property
    def declared_costs(self) -> FloatArray:
        """Cost of a pull per arm: (n,)."""
        return np.ones(self.n_arms) if self.costs is None else np.array(self.costs)

    def regret(self, means: FloatArray, top: IntArray) -> float:
        """R_T of the arms `top` against the best feasible set, where large means are good.

        Args:
            means: True means of all arms.
            top: Numbers of the chosen arms.

        Returns:
            The regret, at least 0."""
        if self.constraint is None:
            return aggregate_regret(means, top)
        best = best_set(self.constraint, means, self.k)
        return max(0.0, float(means[best].sum() - means[top].sum()) / self.k)

    @property
    def sign(self) -> int:
        """Factor that makes large rewards the good ones."""
        return -1 if self.minimize else 1

    def seen(self, least: float, most: float) -> "Problem":
        """The same problem, as it turned out: the least and the largest reward are these.

        Args:
            least: Smallest reward so far.
            most: Largest reward so far.

        Returns:
            The problem with that range of rewards."""
        return replace(self, rewards=as_seen(self.rewards, least, most))

    def unit(self) -> "Problem":
        """The same problem on the unit scale."""
        goal = self.goal
        if isinstance(goal, FixedConfidence):
            epsilon = unit_epsilon(goal.epsilon, self.n_arms, self.k, self.rewards)
            goal = replace(goal, epsilon=epsilon)
        # 1 - x is rounded once more; without a unit scale it is -x, which is exact
        turned = ROUNDED if self.minimize and self.rewards.knows_spread else 0.0
        blur = self.blur + ROUNDED * self.rewards.distance + turned
        items, rewards = self._unit_items(), self.rewards.unit()
        features = None if self.features is None else self.features.unit(self.rewards.scale)
        return replace(
            self,
            goal=goal,
            rewards=rewards,
            minimize=False,
            blur=blur,
            items=items,
            features=features,
        )

    def _unit_items(self) -> Items | None:
        if self.items is None:
            return None
        items = self.items.unit(self.rewards.shift, self.rewards.scale)
        return items.unit(1.0, -1.0) if self.minimize else items

    def among(self, arms: IntArray, budget: float | None) -> "Problem":
        """The same problem for these arms only, with this budget.

        Args:
            arms: Numbers of the arms that remain.
            budget: Budget of the smaller problem.

        Returns:
            The smaller problem."""
        numbers = arms.tolist()
        limits = None if self.limits is None else tuple(self.limits[arm] for arm in numbers)
        costs = None if self.costs is None else tuple(self.costs[arm] for arm in numbers)
        if budget is not None and set(costs or (1.0,)) == {1.0}:
            budget = int(budget)  # of pulls
        goal = FixedConfidence(self._confidence_goal().epsilon, self.delta, budget)
        items = None if self.items is None else self.items.among(arms)
        family = self.constraint
        if family is not None and not np.array_equal(arms, np.arange(self.n_arms)):
            family = family_among(family, arms)
        return replace(
            self,
            n_arms=arms.size,
            goal=goal,
            items=items,
            limits=limits,
            costs=costs,
            constraint=family,
            features=shuffled(self.features, arms),
        )

    def complement(self) -> "Problem":
        """The problem of finding the n - k worst arms instead, with the same total loss allowed."""
        rest = self.n_arms - self.k
        goal = self.goal
        if isinstance(goal, FixedConfidence):
            goal = replace(goal, epsilon=goal.epsilon * self.k / rest)
        family = None if self.constraint is None else complement_of(self.constraint, self.n_arms)
        return replace(self, k=rest, goal=goal, constraint=family)

    def mirrored(self) -> "Problem":
        """The same problem on the unit scale with scores 1 - x."""
        items = self.items
        if items is not None:
            items = items.unit(1.0, -1.0)
        return replace(self, items=items)

    @property
    def epsilon(self) -> float:
        """The regret allowed, at most 1: a bound that is never wrong, since more than 1 is never
        needed. Rewards of unknown spread have no unit scale, and no such limit."""
        epsilon = self._confidence_goal().epsilon
        return min(1.0, epsilon) if self.rewards.knows_spread else epsilon

    @property
    def single_rewards(self) -> bool:
        """Whether a search is sent every reward, not only sums: on items and on shared seeds, and
        where variances are unknown, as sums of squares lose their digits far from 0."""
        return self.items is not None or self.shared_seeds or not self.rewards.knows_spread

    @property
    def sharp_epsilon(self) -> float:
        """The regret allowed by means without blur: two that are compared may both be blurred."""
        return self.epsilon - 2 * self.blur

    @property
    def delta(self) -> float:
        """The probability with which the bound may fail."""
        return self._confidence_goal().delta

    @property
    def budget(self) -> int:
        """The number of pulls allowed."""
        if self.most_affordable is None:
            raise UnsupportedGoal("the goal has no budget, but this search needs one")
        return self.most_affordable

    @property
    def counted_budget(self) -> int | None:
        """The budget where it counts pulls; None if there is none, or it is in another unit."""
        return None if self.costs is not None else self.most_affordable

    @property
    def most_affordable(self) -> int | None:
        """Pulls that the budget pays for, whichever arms they are of; None without a budget.

        Where arms have costs, every pull counts at the highest cost; a `Budget` counts actual
        ones."""
        budget = self.goal.budget
        if budget is None or self.costs is None:
            return None if budget is None else int(budget)
        return int(min(budget / max(self.costs), COUNTABLE))

    def _confidence_goal(self) -> FixedConfidence:
        if isinstance(self.goal, FixedBudget):
            raise UnsupportedGoal("the goal is a budget, but this search needs epsilon and delta")
        return self.goal


def unit_epsilon(epsilon: float, n_arms: int, k: int, rewards: RewardModel) -> float:
    """`epsilon` on the unit scale, if it is more than rounding can make up.

    Rounding moves the mean of an arm by ROUNDED * (1 + distance) at most, and every arm adds to
    the loss of a choice of k."""
    if not rewards.knows_spread:  # the driver compares rewards with epsilon
        return epsilon
    least = RESOLVED * (1 + rewards.distance) * n_arms / k * rewards.scale
    if epsilon < least:
        raise InvalidInput(
            f"`epsilon` is {epsilon!r}, but must be at least {bound_text(least, 2)}: less is lost"
            " in the rounding of such rewards"
        )
    return min(epsilon / rewards.scale, LARGEST)


def _checked_limits(limits: object, n_arms: int) -> tuple[int | None, ...] | None:
    """A limit for every arm; None if there is none at all."""
    if not isinstance(limits, Sequence) or len(limits) != n_arms:
        raise InvalidInput(f"`limits` is {shown(limits)}, but must be {n_arms} limits, one per arm")
    each = tuple(limit if limit is None else whole("limit", limit, at_least=1) for limit in limits)
    return None if set(each) == {None} else each


def _checked_costs(costs: object, n_arms: int) -> tuple[float, ...] | None:
    """A cost for every arm; None if every pull costs 1."""
    if not isinstance(costs, Sequence) or len(costs) != n_arms:
        raise InvalidInput(f"`costs` is {shown(costs)}, but must be {n_arms} costs, one per arm")
    each = tuple(number("cost", cost, above=0) for cost in costs)
    for cost in (min(each), max(each)):
        if not LEAST_COST <= cost <= MOST_COST:
            raise InvalidInput(
                f"`cost` is {cost!r}, but must be between {LEAST_COST:g} and {MOST_COST:g}"
            )
    return None if set(each) == {1.0} else each
