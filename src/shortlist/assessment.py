"""What past results prove: `assess`."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from shortlist.arms import OwnLabel, labels_of, plain_label, shown_label
from shortlist.arrays import ROUNDED, FloatArray, IntArray, confidence_of
from shortlist.cells import check_scores, known_scores
from shortlist.certificates.certify import check_possible, on_unit_scale, student_unit
from shortlist.certificates.past.bound import PastBounds, bound_past
from shortlist.certificates.past.charges import (
    Evidence,
    MatrixBounds,
    Totals,
    matrix_bounds,
    settled,
)
from shortlist.constraints import Constraint, MatroidConstraint, Quotas
from shortlist.errors import InvalidInput, caution
from shortlist.formatting import Tabular, TextTable, bound_text, confidence_text, plain, plural
from shortlist.problem import FixedBudget, Problem
from shortlist.quotas import (
    ConstraintGiven,
    GroupsGiven,
    QuotasGiven,
    given_family,
    group_names,
    groups_of,
    table_of,
)
from shortlist.reading.counts import Counts, counts_of
from shortlist.reading.scores import named_scores
from shortlist.result import ArmResult, GroupResult
from shortlist.result.plots import frame_of_rows
from shortlist.result.result import CHOSEN_SHOWN, HEADER, arm_cells, by_tier, plain_tiers
from shortlist.reward_models import (
    Binary,
    Bounded,
    RewardModel,
    RewardsDeclared,
    Undeclared,
    model_of,
)
from shortlist.search import Tiers
from shortlist.validation import (
    RngGiven,
    check_choice,
    flag,
    library_of,
    number,
    seeded,
    shown,
    table,
    takes_rng,
    whole,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMED = 10  # arms of a tier that are named


@dataclass(frozen=True)
class Assessment(Tabular):
    """The K best arms of past results, and what these results prove.

    With probability at least `confidence`, both are true: the mean reward of `top`, averaged over
    its arms, is at most `regret_bound` below that of the best set of its size (that is allowed, if
    there are quotas or a constraint); and the tiers "in" and "out" are right: in or out of the best
    set.

    Example:
        >>> import shortlist
        >>> found = shortlist.assess({"blue": (400, 48), "red": (400, 9)}, k=1, fixed=True)
        >>> found.top, found.tiers["out"], found.confidence
        (('blue',), ('red',), 0.95)"""

    top: tuple[OwnLabel, ...]  #: the arms with the best mean rewards, best first
    regret_bound: float  #: what this choice loses at most, in units of the rewards; may be infinite
    confidence: float  #: the probability with which `regret_bound` and `tiers` hold together
    #: "in": among the K best; "out": not among them; "tied": not known. An arm in "in" has a mean
    #: of at least the K-th best one, an arm in "out" a mean of at most the (K+1)-th best
    tiers: Mapping[str, tuple[OwnLabel, ...]] = field(hash=False)
    fixed: bool  #: whether the pulls of every arm were fixed before any reward was seen
    pulls: int  #: rewards that it rests on
    #: all arms, in the order they were given; their intervals hold together with probability
    #: `confidence`, which is a statement of its own for counts
    arms: tuple[ArmResult, ...] = field(repr=False)
    rewards: RewardModel = field(repr=False)  #: what was declared about the rewards
    minimize: bool = field(repr=False)  #: whether small rewards are the good ones
    #: every group with a quota: chosen arms, quota, and the estimated price of the quota
    groups: tuple[GroupResult, ...] = field(default=(), repr=False)
    constrained: bool = field(default=False, repr=False)  #: whether not every set may be chosen
    items: int | None = None  #: number of items, where scores on a test set were given
    #: every K at which the K best arms are surely above all others, where scores were given
    separates_at: tuple[int, ...] = ()
    #: library of the data frame that was given ("pandas", "polars"): that of `to_frame`, too
    frames: str | None = field(default=None, repr=False, compare=False)

    @property
    def verdict(self) -> str:
        """What may be lost, in a sentence."""
        if self.items is not None and self.pulls == self.items * len(self.arms):
            return "All cells are known: the choice is the best one on these items."
        if not math.isfinite(self.regret_bound):
            few = "was never pulled" if self.rewards.knows_spread else "has fewer than two rewards"
            return f"Nothing is guaranteed about what this choice loses: an arm {few}."
        return (
            f"At most {bound_text(self.regret_bound)} of mean reward is lost, with"
            f" {confidence_text(self.confidence)} confidence."
        )

    @property
    def table(self) -> TextTable:
        """The chosen arms, best first, and below them the others."""
        chosen, others = self._best_first()
        return TextTable((*HEADER, "tier"), self._rows(chosen), self._rows(others))

    def tables(self) -> tuple[TextTable, ...]:
        """The table, with what it is of above, and the bound and the tiers below."""
        table = self.table
        below = "\n".join((self.verdict, *self._sure(), self._assumption))
        below = f"{below}\n" if self.groups else below
        arms = TextTable(table.header, table.rows, table.faint, self._title, below)
        return (arms, table_of(self.groups)) if self.groups else (arms,)

    def to_frame(self, library: str | None = None) -> Any:
        """All arms as a data frame with a row per arm.

        Args:
            library: "pandas" or "polars". Default: that of the data frame that was given, else the
                first that is installed.

        Returns:
            The data frame: arm, pulls, mean, low, high, chosen, tier.

        Raises:
            UnknownName: `library` is another name.
            InvalidInput: The library is not installed.

        Example:
            >>> import shortlist
            >>> ads = {"blue": (400, 48), "red": (400, 30)}
            >>> list(shortlist.assess(ads, k=1, fixed=True).to_frame("pandas")["arm"])
            ['blue', 'red']"""
        return frame_of_rows(self._records(), library or self.frames)

    def plot(self, ax: "Axes | None" = None) -> "Figure":
        """Draw the chosen arms against the rest, with intervals, into `ax` or a new figure.

        Filled circles are arms in tier "in", open circles are tied, crosses are "out".

        Args:
            ax: Axes of matplotlib to draw into; default: those of a new figure.

        Returns:
            The figure."""
        from shortlist.result.plots import Mark, draw

        chosen, others = self._best_first()
        tier = self._tier_of()
        marks = {
            arm.label: Mark(
                arm.chosen,
                f"{'chosen' if arm.chosen else 'not chosen'}, {tier[arm.label]}",
                shape="X" if tier[arm.label] == "out" else "o",
                filled=tier[arm.label] != "tied",
            )
            for arm in self.arms
        }
        title = "\n".join((self._title, self.verdict, self._assumption))
        return draw([*chosen, *others], title, "mean reward", ax, marks)

    def to_dict(self) -> dict[str, object]:
        """Everything as JSON has it; None for what is not known, as a mean without pulls."""
        return {
            "n_arms": len(self.arms),
            "k": len(self.top),
            "top": [plain_label(label) for label in self.top],
            "regret_bound": plain(self.regret_bound),
            "confidence": self.confidence,
            "tiers": plain_tiers(self.tiers),
            "fixed": self.fixed,
            "minimize": self.minimize,
            "pulls": self.pulls,
            "arms": plain(self._records()),
            **({"quotas": [asdict(each) for each in self.groups]} if self.groups else {}),
            **self._of_items(),
        }

    def _of_items(self) -> dict[str, object]:
        if self.items is None:
            return {}
        return {"items": self.items, "separates_at": list(self.separates_at)}

    def to_json(self) -> str:
        """`to_dict` as one line of JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    @property
    def _title(self) -> str:
        return (
            f"{len(self.top):,} of {len(self.arms):,} arms, the best"
            f" {'allowed set by the ' * self.constrained}mean rewards of {self.pulls:,} pulls"
        )

    @property
    def _assumption(self) -> str:
        if self.items is not None:
            return (
                f"This is about means over these {self.items:,} items. It holds if the items on"
                " which an arm has a score are a random sample of them, of a size that does not"
                " depend on scores."
            )
        if self.fixed:
            return "This holds if the pulls of every arm were fixed before any reward was seen."
        return "This holds however the pulls were shared out, and whenever they ended."

    def _sure(self) -> tuple[str, str, str]:
        """Which arms are in or out, a line each, and with which confidence."""
        k = len(self.top)
        best = "the best one" if k == 1 else f"among the best {k:,}"
        best = "in the best allowed set" if self.constrained else best
        confidence = f"With {confidence_text(self.confidence)} confidence"
        together, separately = "Bound and tiers hold together", "; the intervals separately"
        if self.items is not None:
            together, separately = "Bound, tiers and intervals hold together", ""
        return (
            f"{confidence} {best}: {_listed(self.tiers['in'])}.",
            f"{confidence} not {best}: {_listed(self.tiers['out'])}.",
            f"{together} {confidence.lower()}{separately}.",
        )

    def _best_first(self) -> tuple[list[ArmResult], list[ArmResult]]:
        """The chosen arms and the others, each from best to worst."""
        ordered = sorted(self.arms, key=self._rank)
        chosen = [arm for arm in ordered if arm.chosen]
        return chosen, [arm for arm in ordered if not arm.chosen]

    def _rank(self, arm: ArmResult) -> tuple[float, int]:
        """Small for the best; arms never pulled come last."""
        if arm.mean is None:
            return math.inf, 0
        return (arm.mean if self.minimize else -arm.mean), -arm.pulls

    def _records(self) -> list[dict[str, object]]:
        tier = self._tier_of()
        return [_record(arm, tier[arm.label]) for arm in self.arms]

    def _tier_of(self) -> dict[OwnLabel, str]:
        return {label: name for name, labels in self.tiers.items() for label in labels}

    def _rows(self, arms: Sequence[ArmResult]) -> list[tuple[str, ...]]:
        tier = self._tier_of()
        rows = [(*arm_cells(arm), tier[arm.label]) for arm in arms[:CHOSEN_SHOWN]]
        if len(arms) > CHOSEN_SHOWN:
            rows.append((f"... {len(arms) - CHOSEN_SHOWN:,} more", *[""] * len(HEADER)))
        return rows


def _record(arm: ArmResult, tier: str) -> dict[str, object]:
    kept = ("pulls", "mean", "low", "high", "chosen")
    figures = {name: value for name, value in asdict(arm).items() if name in kept}
    return {"label": plain_label(arm.label), **figures, "tier": tier}


def _listed(labels: Sequence[OwnLabel]) -> str:
    """The first of some arms by their names, and how many more there are."""
    if not labels:
        return "none"
    more = f" and {len(labels) - NAMED:,} more" if len(labels) > NAMED else ""
    return ", ".join(shown_label(label) for label in labels[:NAMED]) + more


ROWS = "a row per arm, all of the same length"
MOST_ASSESSED = 2000  # arms: all pairs of them are compared
LEAST_DELTA = 1e-200  # shares of less are no numbers any more
MOST_PULLS = 10**9  # of an arm: tails of more are not computed to enough digits
NOT_GIVEN = (
    "`fixed` is not given, but must be True, if the pulls of every arm were fixed before any reward"
    " was seen, or False, if they were not or you are not sure"
)


@takes_rng
def assess(
    counts: Any = None,
    k: int | None = None,
    *,
    scores: Any = None,
    fixed: bool | None = None,
    delta: float = 0.05,
    rewards: RewardsDeclared | None = None,
    minimize: bool = False,
    groups: Mapping[Any, Any] | GroupsGiven | None = None,
    quotas: QuotasGiven | None = None,
    constraint: ConstraintGiven | None = None,
    seed: int = 0,
    rng: RngGiven | None = None,  # noqa: ARG001  # `takes_rng` makes a seed of it
) -> Assessment:
    """Find the K best arms of past results, and bound what this choice can lose.

    The bound is right although the same rewards chose the arms: it holds for all sets of K arms at
    once. Rewards must be independent of each other, and the results complete: no arm and no reward
    left out because of its value.

    Args:
        counts: Past results: a mapping {arm: (pulls, successes)}, or {arm: (pulls, sum, squares)}
            with the sum of the rewards and of their squares; a data frame or the name of a CSV file
            with columns arm, pulls, and successes or sum, and perhaps squares. Squares make the
            bound smaller where rewards vary little.
        scores: Instead of counts, scores on a test set: a matrix with a row per arm and a column
            per item, NaN where there is none; a data frame, or a CSV or Parquet file of such a
            matrix or with columns arm, item, score; or results of a harness: a file, a list of
            files or a folder, docs/harnesses.md. The means are those over all its items. The items
            on which an arm has a score must be a random sample of them, of a size that does
            not depend on scores. So cells of a search do not qualify, because it scores good
            arms on more items: use the bound of its result.
        k: Number of arms to keep, from 1 to one less than there are.
        fixed: True if the pulls of every arm were fixed before any reward was seen. False if they
            were not: you stopped when it looked good, or pulled good arms more often. If you are
            not sure, False. Has no default; not for scores.
        delta: Probability that the bound or a tier is wrong. The intervals are a separate
            statement: the probability that any of them is wrong is at most delta, too. Default
            0.05.
        rewards: What rewards can be: "binary", a range (low, high), `SubGaussian(sigma)`, or
            "normal", of unknown variances: squares are needed then, and fixed pulls. Default:
            binary where successes are counted, that is in a column `successes` or in pairs of a
            mapping; else (0, 1).
        minimize: Whether the best arms are those of the smallest mean rewards. Default False.
        groups: Group of every arm: a mapping {arm: group}, or a list in the order of `counts`.
            Default: a column `group` of the file or data frame, if there is one.
        quotas: Least and most arms to keep per group, {"meta": (1, 3)}; groups that are not named
            are free. The bound is then about the best set that keeps to them. Default: none.
        constraint: Another family of sets, instead of quotas, such as `Matching`. Its arms are in
            the order of `counts`. Default: all sets of k arms.
        seed: Random seed of the order in which scores with missing cells are looked at.
        rng: Instead of `seed`: a seed, a sequence of seeds, or a `numpy.random.Generator`,
            `BitGenerator` or `SeedSequence`. A generator moves on, so that a second call differs.

    Returns:
        The arms to keep, the bound, the tiers "in", "out" and "tied", and an interval for every
        mean. It prints as a table.

    Raises:
        InvalidInput: If `fixed` is not given, or a value breaks its rule; of a file, with the line.

    Example:
        >>> import shortlist
        >>> ads = {"blue": (400, 48), "red": (400, 30), "green": (400, 9)}
        >>> found = shortlist.assess(ads, k=1, fixed=True)
        >>> found.top, found.tiers["out"]
        (('blue',), ('green',))
        >>> found.regret_bound < 0.02
        True
    """
    if k is None:
        raise InvalidInput("`k` is not given, but is needed")
    if (counts is None) == (scores is None):
        given_both = "neither" if counts is None else "both"
        rule = "of `counts` and `scores` given, but it must be one of them"
        raise InvalidInput(f"{given_both} {rule}")
    if scores is not None:
        if fixed is not None:
            raise InvalidInput(f"`fixed` is {shown(fixed)}, but is about counts, not about scores")
        for name, value in (("groups", groups), ("quotas", quotas), ("constraint", constraint)):
            if value is not None:
                raise InvalidInput(f"`{name}` is given, but goes with counts, not with scores")
        found_there = assess_scores(scores, k, delta, rewards, minimize=minimize, seed=seed)
        return replace(found_there, frames=library_of(scores))
    given = counts_of(counts)
    if fixed is None:
        raise InvalidInput(NOT_GIVEN)
    fixed, minimize = flag("fixed", fixed), flag("minimize", minimize)
    delta = number("delta", delta, above=LEAST_DELTA, below=1)
    labels = _labels(given)
    k = whole("k", k, at_least=1)
    check_choice(len(labels), k)
    model = _model(rewards, given, fixed=fixed)
    _check(given, model)
    squared = given.squares is not None
    evidences = settled(model, given.pulls, fixed=fixed, squared=squared)
    unit = _unit(given, model)
    totals = evidences[0].mirrored(unit.totals) if minimize else unit.totals
    family = _family(given, labels, groups, quotas, constraint, k)
    if not (model.knows_spread or family is None or isinstance(family, MatroidConstraint)):
        raise InvalidInput(
            f"`constraint` is {shown(constraint)}, but for normal rewards must be a matroid"
        )
    found = bound_past(totals, k, delta, evidences, family)
    made = _assessment(given, labels, model, unit, found, evidences[0], delta, minimize)
    made = replace(made, frames=library_of(counts))
    if family is None:
        return made
    means = (-1 if minimize else 1) * np.where(given.pulls > 0, given.sums, np.nan)
    means = means / np.maximum(given.pulls, 1)
    own: tuple[GroupResult, ...] = ()
    if isinstance(family, Quotas):
        own = groups_of(family, np.flatnonzero(found.chosen), means)
    return replace(made, groups=own, constrained=True)


def _family(
    counts: Counts,
    labels: tuple[OwnLabel, ...],
    groups: Mapping[Any, Any] | GroupsGiven | None,
    quotas: object,
    constraint: object,
    k: int,
) -> Constraint | None:
    """The sets that may be chosen; None if all may."""
    own = counts.groups
    if groups is not None and quotas is None:
        raise InvalidInput(f"`groups` is {shown(groups)}, but only goes with `quotas`")
    if isinstance(groups, Mapping):
        unknown = next((label for label in groups if label not in labels), None)
        if unknown is not None:
            raise InvalidInput(f"`groups` names arm {shown(unknown)}, but there is none")
        own = group_names([groups.get(label) for label in labels])
    elif groups is not None:
        own = group_names(groups)
    family = given_family(own, quotas, constraint, k)
    if family is None:
        return None
    return Problem(len(labels), k, FixedBudget(1), constraint=family).constraint


def assess_scores(
    scores: Any,
    k: int,
    delta: float,
    rewards: RewardsDeclared | None,
    *,
    minimize: bool,
    seed: int,
) -> Assessment:
    """`assess` of scores on a test set."""
    minimize = flag("minimize", minimize)
    delta = number("delta", delta, above=LEAST_DELTA, below=1)
    rng = np.random.default_rng(seeded(seed))
    named = named_scores(scores, repeats=None)
    matrix = table("scores", scores if named is None else named.scores, ROWS)
    if matrix.ndim != 2:
        raise InvalidInput(f"`scores` has shape {matrix.shape}, but must have {ROWS}")
    _check_number("`scores`", len(matrix))
    labels = labels_of(len(matrix) if named is None or named.arms is None else named.arms)
    k = whole("k", k, at_least=1)
    check_choice(len(labels), k)
    model = Bounded() if rewards is None else model_of(rewards)
    if not model.has_range:
        raise InvalidInput(f"`rewards` is {shown(rewards)}, but scores on items need a range")
    n_arms, n_items = matrix.shape
    if named is not None and named.items is not None:
        check_scores(matrix, labels, named.items, model)
    known = known_scores(matrix, n_arms, n_items, model)
    if named is not None and named.exported and np.isnan(matrix).any():
        caution(
            f"{named.path} has the cells of a search, which scores good arms on more items: they"
            " are no random sample, so the bound, the tiers and the intervals may be wrong."
            " Continue with select(scores=)"
        )
    assert known is not None
    unit = (known - model.shift) / model.scale
    moved = minimize or model.shift != 0 or model.scale != 1
    blur = ROUNDED * (1 + model.distance) if moved else 0.0
    found = matrix_bounds(1 - unit if minimize else unit, delta, rng, blur)
    return _of_matrix(found, known, labels, k, model, delta, minimize)


def _of_matrix(
    found: MatrixBounds,
    known: FloatArray,
    labels: tuple[OwnLabel, ...],
    k: int,
    model: RewardModel,
    delta: float,
    minimize: bool,
) -> Assessment:
    """What was found, in labels and in units of the rewards."""
    counts = (~np.isnan(known)).sum(axis=1)
    ranked = np.lexsort((-counts, -np.nan_to_num(found.means, nan=-np.inf)))
    chosen = np.isin(np.arange(counts.size), ranked[:k])
    inside, outside = found.tiers(k)
    sums = np.where(np.isnan(known), 0.0, known).sum(axis=1)
    means = sums / np.maximum(counts, 1)
    complete = counts == known.shape[1]
    low, high = (np.where(complete, means, end) for end in _user_ends(found, model, minimize))
    arms = tuple(_arms(labels, counts, sums, low, high, chosen.tolist()))
    return Assessment(
        top=tuple(labels[arm] for arm in ranked[:k].tolist()),
        regret_bound=found.regret(chosen) * model.scale,
        confidence=confidence_of(delta),
        tiers=by_tier(labels, Tiers(inside & chosen, outside & ~chosen)),
        fixed=True,
        pulls=int(counts.sum()),
        arms=arms,
        rewards=model,
        minimize=minimize,
        items=known.shape[1],
        separates_at=found.separates_at(),
    )


def _user_ends(
    found: MatrixBounds, model: RewardModel, minimize: bool
) -> tuple[FloatArray, FloatArray]:
    """Ends of intervals in units of the rewards, rounded outward."""
    low, high = (1 - found.high, 1 - found.low) if minimize else (found.low, found.high)
    if model.shift == 0 and model.scale == 1 and not minimize:
        return low, high
    blur = ROUNDED * (1 + model.distance)
    least, most = model.support
    low = np.maximum((low - blur) * model.scale + model.shift, least)
    return low, np.minimum((high + blur) * model.scale + model.shift, most)


def _check_number(source: str, size: int) -> None:
    """Refuse too many arms, and too few."""
    if size > MOST_ASSESSED:
        raise InvalidInput(f"{source} has {size:,} arms, but must have at most {MOST_ASSESSED:,}")
    if size < 2:
        raise InvalidInput(f"{source} has {plural(size, 'arm')}, but must have at least 2")


def _labels(counts: Counts) -> tuple[OwnLabel, ...]:
    size = len(counts.where)
    _check_number(counts.source, size)
    return labels_of(size if counts.labels is None else counts.labels)


def _model(rewards: RewardsDeclared | None, counts: Counts, *, fixed: bool) -> RewardModel:
    if rewards is None:
        return Binary() if counts.counted else Bounded()
    model = model_of(rewards)
    if isinstance(model, Undeclared):
        raise InvalidInput(f"`rewards` is {shown(rewards)}, but must be declared to prove anything")
    if not model.knows_spread and not fixed:
        raise InvalidInput(
            "`fixed` is False, but where rewards are normal the pulls of every arm must have been"
            " fixed before any reward was seen"
        )
    if not model.knows_spread and counts.squares is None:
        raise InvalidInput(
            f"{counts.source} has no squares, but where rewards are normal the sum of the squared"
            " rewards of every arm is needed"
        )
    return model


def _check(counts: Counts, model: RewardModel) -> None:
    """Refuse what no such rewards can give."""
    if counts.pulls.max() > MOST_PULLS:
        arm = int(counts.pulls.argmax())
        raise InvalidInput(
            f"{counts.where[arm]} says {counts.pulls[arm]:,} pulls, but must say at most"
            f" {MOST_PULLS:,}"
        )
    check_possible(counts.where, counts.pulls, counts.sums, counts.squares, model)


class _Unit(NamedTuple):
    """Results as (x - shift) / scale, with what rounding may have done to them."""

    totals: Totals
    shift: float
    scale: float


def _unit(counts: Counts, model: RewardModel) -> _Unit:
    """The results on the unit scale."""
    pulls, shift, scale = counts.pulls, model.shift, model.scale
    if model.knows_spread:
        sums, squares = on_unit_scale(pulls, counts.sums, counts.squares, model)
        far = 1 + model.distance + float(np.abs(sums / np.maximum(pulls, 1)).max())
    else:
        assert counts.squares is not None
        sums, squares, shift, scale = student_unit(pulls, counts.sums, counts.squares)
        far = 1 + abs(shift) / scale
    blur = 0.0 if model.is_binary else ROUNDED * far
    return _Unit(Totals(pulls, sums, squares, blur), shift, scale)


def _assessment(
    counts: Counts,
    labels: tuple[OwnLabel, ...],
    model: RewardModel,
    unit: _Unit,
    found: PastBounds,
    evidence: Evidence,
    delta: float,
    minimize: bool,
) -> Assessment:
    """What was found, in labels and in units of the rewards."""
    low, high = found.low, found.high
    if minimize:
        low, high = evidence.mirror - high, evidence.mirror - low
    low, high = (end * unit.scale + unit.shift for end in (low, high))
    arms = tuple(_arms(labels, counts.pulls, counts.sums, low, high, found.chosen.tolist()))
    sign = 1 if minimize else -1
    top = sorted((arm for arm in arms if arm.chosen), key=lambda arm: sign * (arm.mean or 0.0))
    return Assessment(
        top=tuple(arm.label for arm in top),
        regret_bound=found.regret_bound * unit.scale,
        confidence=confidence_of(delta),
        tiers=by_tier(labels, Tiers(found.inside, found.outside)),
        fixed=evidence.fixed,
        pulls=int(counts.pulls.sum()),
        arms=arms,
        rewards=model,
        minimize=minimize,
    )


def _arms(
    labels: tuple[OwnLabel, ...],
    pulls: IntArray,
    sums: FloatArray,
    low: FloatArray,
    high: FloatArray,
    chosen: list[bool],
) -> list[ArmResult]:
    columns = (pulls.tolist(), sums.tolist(), low.tolist(), high.tolist(), chosen)
    return [
        ArmResult(label, times, total / times if times else None, below, above, own)
        for label, times, total, below, above, own in zip(labels, *columns, strict=True)
    ]
