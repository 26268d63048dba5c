"""The settings of a search or an experiment: a spec that was checked, and the problem, the search
and the test set that follow from it.

    arguments   checks every setting that a door takes, by the rule of the spec
    Settings    an experiment's settings; what the engine and its stores use
    body_of     the arguments of `Client.create`, as JSON holds them"""

import json
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from decimal import Decimal, InvalidOperation
from math import isnan
from numbers import Real
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec

from shortlist.algorithms import AUTOMATIC, Algorithm, AlgorithmLike, find, name_to_keep
from shortlist.algorithms.certified import plans_ahead
from shortlist.arms import (
    Arm,
    OwnLabel,
    arms_of,
    labels_of,
    labels_to_keep,
    position_of,
    unknown_arm,
)
from shortlist.cells import (
    Cells,
    Drawn,
    ItemsGiven,
    check_cells,
    check_scores,
    checked_clusters,
    item_labels,
)
from shortlist.driver import caution_about
from shortlist.errors import (
    CannotReplay,
    InvalidInput,
    InvalidReward,
    StoreDamaged,
    StoreExists,
    UnknownName,
)
from shortlist.features import Features, checked_linear, features_of
from shortlist.formatting import given_text
from shortlist.problem import (
    FixedConfidence,
    Goal,
    Problem,
    ScoresGiven,
    Traffic,
    budget_of,
    goal_of,
)
from shortlist.quotas import checked_quotas, constraint_record, given_family
from shortlist.reading.scores import named_scores
from shortlist.reward_models import (
    MODELS,
    RewardModel,
    Undeclared,
    check_spread,
    declared,
    model_of,
)
from shortlist.spec import (
    FIELDS,
    FIELDS_OF,
    ArmRecord,
    Door,
    Json,
    OnFailure,
    OnLate,
    Percent,
    RewardRecord,
    Spec,
    UnitName,
)
from shortlist.validation import (
    MOST_RETRIES,
    flag,
    named,
    number,
    real,
    seeded,
    shown,
    text,
    whole,
    word,
)

FORMAT = 1  # how tickets are numbered and seeded; another number means another replay
WEEK = 7  # days that a live test lasts at least, unless it is told otherwise
MOST_METRICS = 10  # next to the rewards
LONGEST_METRIC = 100  # characters of the name of one
CUTS = (
    "max_rounds",
    "min_batch",
    "certificate",
    "window",
)  # settings that are options of an algorithm


def arguments(values: Mapping[str, Any], door: Door) -> dict[str, Any]:
    """The settings among the arguments of a door, checked. Pass `locals()`."""
    asked = {name: checked(name, values[name]) for name in FIELDS_OF[door]}
    if "rewards" in asked and _in_percent(values.get("epsilon")):
        _check_percent(values["epsilon"], declared(rewards_of(asked["rewards"])))
    return asked


def checked(name: str, value: Any) -> Any:
    """A value that keeps to the rule of its setting.

    Types that are no plain numbers or words (arms, rewards, items …) are checked where they are
    used."""
    field = FIELDS[name]
    if name == "linear":
        return value if value is False else checked_linear(value)
    if not field.plain or (value is None and field.optional):
        return value
    if name in OWN_RULES:
        return OWN_RULES[name](value)
    if field.words:
        return word(name, value, field.words)
    if field.kind is bool:
        return flag(name, value)
    rule = field.rule
    if field.kind is int:
        return whole(name, value, at_least=0 if rule.ge is None else int(rule.ge))
    limits = {"above": rule.gt, "below": rule.lt}
    return number(name, value, **{end: at for end, at in limits.items() if at is not None})


def _retries(value: object) -> int:
    return whole("retries", value, at_least=0, at_most=MOST_RETRIES)


def _in_percent(value: object) -> bool:
    text = isinstance(value, str) and value.strip().endswith("%")
    return text or isinstance(value, Percent)


def _check_percent(epsilon: object, model: RewardModel) -> None:
    """Refuse an epsilon in percent unless rewards are shares: it is not relative to the mean."""
    low, high = model.support
    if low < -1 or high > 1:
        raise InvalidInput(
            f"`epsilon` is {shown(epsilon)}, but percent are for rewards between -1 and 1; it is"
            " never relative to the mean: give a number in the unit of the rewards"
        )


def fraction(name: str, value: object, **limits: float) -> float:
    """A number that may be given in percent: "0.2%" is 0.002."""
    given = value
    if isinstance(value, str) and value.strip().endswith("%"):
        # as decimals: "0.2%" is the same number as 0.002
        with suppress(InvalidOperation):
            given = float(Decimal(value.strip().removesuffix("%")).scaleb(-2))
    try:
        return number(name, given, **limits)
    except InvalidInput:
        if isinstance(value, str) and isnan(real(given)):
            rule = "must be a number such as 0.002, or a text such as '0.2%'"
            raise InvalidInput(f"`{name}` is {shown(value)}, but {rule}") from None
        return number(name, value, **limits)  # named as it was given


OWN_RULES: dict[str, Callable[[object], Any]] = {
    "epsilon": lambda value: fraction("epsilon", value, above=0),
    "budget": budget_of,  # an int if it is whole
    "seed": seeded,
    "retries": _retries,
}


@dataclass(frozen=True)
class Settings:
    """The problem, the search, and how tickets are handled."""

    labels: tuple[OwnLabel, ...]
    problem: Problem
    algorithm: str
    version: int  # of the algorithm
    options: dict[str, Any]  # of the algorithm, with those of `CUTS`
    seed: int
    lease: float | None  # seconds; None for one that fits the duration of pulls
    retries: int
    on_late: OnLate
    on_failure: OnFailure
    cells: Cells | None  # of a test set
    control: OwnLabel | None  # the arm that all others are compared with
    timezone: str | None  # of the days of a live test; None for UTC
    guardrails: Mapping[str, float]  # how much worse than the control metrics may be
    unit: UnitName | None  # that means and differences are shown in
    identity: str  # different for every experiment; empty for settings that are not stored
    spec: Spec | None  # None: labels or a search that JSON cannot hold
    search: Algorithm | None  # None: unknown to this version of the package

    @classmethod
    def of(cls, values: Mapping[str, Any], *, stored: bool = True) -> "Settings":
        """Settings for checked arguments.

        "auto" is `certified` if there is an epsilon, and `expected-loss` for a budget alone.
        Rewards that are not declared lie in [0, 1] if something is to be proved, and may be any
        numbers otherwise. Warns of an epsilon that can hardly be meant. With `stored`, refuses
        labels and searches that a store could not give back."""
        values = {name: field.default for name, field in FIELDS.items()} | dict(values)
        goal = goal_of(values["epsilon"], values["delta"], values["budget"])
        search = _search(values["algorithm"], goal)
        values |= _batches_of_traffic(values, search, goal)
        told = search.told(values["options"], *(values[name] for name in CUTS))
        asked = _Asked.of(values, goal, told)
        search.check(asked.problem, asked.options)
        check_drawn(None if asked.cells is None else asked.cells.drawn, search)
        if asked.problem.traffic is not None:
            _check_live(values, search)
        _check_declared(values["rewards"], asked.problem)
        caution_about(asked.problem, search, asked.options)
        values["on_late"] = checked_late(values["on_late"], values["lease"], asked.problem.rewards)
        spec = _spec(values, asked, search, told) if stored else None
        return cls._made(values, asked, search.name, search.version, search, spec)

    @classmethod
    def _made(
        cls,
        values: Mapping[str, Any],
        asked: "_Asked",
        algorithm: str,
        version: int,
        search: Algorithm | None,
        spec: Spec | None,
        identity: str | None = None,
    ) -> "Settings":
        model = asked.problem.rewards
        if identity is None:
            identity = "" if spec is None else secrets.token_hex(8)
        return cls(
            labels=asked.labels if spec is None else labels_to_keep(asked.labels),
            problem=asked.problem,
            algorithm=algorithm,
            version=version,
            options=asked.options,
            seed=values["seed"],
            lease=values["lease"],
            retries=values["retries"],
            on_late=checked_late(values["on_late"], values["lease"], model),
            on_failure=_checked_ending(values["on_failure"], asked.problem, algorithm),
            cells=asked.cells,
            control=asked.control,
            timezone=_checked_zone(values["timezone"], asked.problem),
            guardrails=_checked_measured(values, asked),
            unit=_checked_unit(values["unit"], model),
            identity=identity,
            spec=spec,
            search=search,
        )

    def with_width(self, workers: int | None, items: int | None = None) -> "Settings":
        """The same for this many workers: how large batches are on a test set, where left open.

        Half as many cells as can be evaluated at a time per batch, and three times as many under
        way. `items` is how many of an arm a call takes: it gets as many as that. One worker, and a
        limited number of rounds, leave it at one batch after the other."""
        if not self.on_items or self.algorithm != "certified" or "max_rounds" in self.options:
            return self
        wide = dict[str, int]()
        if items is not None and items > 1:
            wide["min_items"] = items
        if workers is not None and workers > 1:
            wide |= usual_width(workers * (items or 1), self.options.get("min_batch"))
        return self._with_options(wide | self.options)

    def _with_options(self, options: dict[str, Any]) -> "Settings":
        """The same with these options, of which some are settings of their own."""
        if self.spec is None:
            return replace(self, options=options)
        cuts = {name: value for name, value in options.items() if name in CUTS}
        own = {name: value for name, value in options.items() if name not in CUTS}
        spec = msgspec.structs.replace(self.spec, options=own, **cuts)
        return replace(self, options=options, spec=spec)

    def without_metrics(self) -> str:
        """Why pulls have no metrics; empty if they may have some."""
        obstacle = _obstacle(self.problem, self.on_late)
        if self.control is None and not obstacle:
            return "metrics are compared with a control: create the experiment with `control`"
        return obstacle

    @property
    def on_items(self) -> bool:
        """Whether tickets name items of a test set."""
        return self.cells is not None

    def item(self, arm: int, draw: int) -> OwnLabel | None:
        """The item of a pull, on a test set."""
        return None if self.cells is None else self.cells.label(arm, draw)

    def searched_by(self) -> Algorithm:
        """The algorithm, if it has the version that the experiment was made with."""
        if self.search is not None:
            return self.search
        return _replayed(FORMAT, self.algorithm, self.version, "the experiment")

    def to_json(self) -> str:
        """The spec, and what a replay depends on besides, in one line."""
        assert self.spec is not None, "settings that are not stored"
        more = {"format": FORMAT, "version": self.version, "identity": self.identity}
        return json.dumps({**more, **self.spec.to_record()}, ensure_ascii=False)

    def check_same(self, made: "Settings", name: str) -> None:
        """Refuse to continue an experiment that was made with other settings."""
        assert self.spec is not None
        assert made.spec is not None
        difference = made.spec.difference(self.spec)
        if difference is not None:
            raise StoreExists(
                f"there is an experiment {name!r} already, but it was made with {difference}"
            )

    @classmethod
    def from_json(cls, text: str, where: str) -> "Settings":
        """Read the output of `to_json`, if this version of the package can replay it."""
        with _readable(where):
            data = json.loads(text)
            search = _replayed(data["format"], data["algorithm"], data["version"], where)
            settings = cls._read(data, search)
            search.check(settings.problem, settings.options)
            return settings

    @classmethod
    def read(cls, text: str, where: str) -> "Settings":
        """The same for a search that this version of the package may not have: to look at them."""
        with _readable(where):
            return cls._read(json.loads(text), None)

    @classmethod
    def _read(cls, data: dict[str, Any], search: Algorithm | None) -> "Settings":
        values = {name: checked(name, data[name]) for name in FIELDS}
        values |= {"arms": arms_of_json(data["arms"]), "rewards": rewards_of(data["rewards"])}
        told = dict(values["options"]) | {
            name: values[name] for name in CUTS if values[name] not in (None, "auto")
        }
        goal = goal_of(values["epsilon"], values["delta"], values["budget"])
        asked = _Asked.of(values, goal, told)
        spec = Spec(**values | _plain(asked, values))
        name, version, identity = data["algorithm"], data["version"], str(data["identity"])
        return cls._made(values, asked, name, version, search, spec, identity)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a search needs: arms, problem, options and test set."""

    labels: tuple[OwnLabel, ...]
    problem: Problem
    options: dict[str, Any]
    cells: Cells | None
    control: OwnLabel | None
    groups: tuple[str | None, ...] | None

    @classmethod
    def of(cls, values: Mapping[str, Any], goal: Goal, told: Mapping[str, Any]) -> "_Asked":
        labels, costs, limits, groups = described_arms(values["arms"])
        given = cells_given(values)
        promised = isinstance(goal, FixedConfidence) or given is not None or _proves(told)
        undeclared = values["rewards"] is None and not promised
        model = Undeclared() if undeclared else declared(values["rewards"])
        if promised and isinstance(model, Undeclared):
            raise InvalidInput(
                "`rewards` are undeclared, but a guarantee needs to know what they can be: a range"
                " (low, high), 'binary', 'normal' or SubGaussian(sigma)"
            )
        cells = None if given is None else given.of(labels, model)
        items = None if cells is None else cells.problem_items
        of_arms: dict[str, Any] = {"items": items, "limits": limits, "costs": costs}
        of_arms["features"] = described_features(values)
        of_arms["traffic"] = traffic_of(values)
        of_arms["shared_seeds"] = values["seeds"] == "shared"
        quotas, constraint = values["quotas"], values["constraint"]
        if quotas is not None or constraint is not None:
            of_arms["constraint"] = given_family(groups, quotas, constraint, values["k"])
        problem = Problem(len(labels), values["k"], goal, model, values["minimize"], **of_arms)
        options = dict(told)
        if _proves(options):  # at this confidence
            options.setdefault("delta", values["delta"])
        control = values["control"]
        against = None if control is None else checked_control(control, labels, problem)
        return cls(labels, problem, options, cells, against, groups)


def traffic_of(values: Mapping[str, Any]) -> Traffic | None:
    """How visitors come, if the settings are those of a live test with drift."""
    per_day, drift = values["per_day"], values["drift"]
    by_name = values["certificate"] == "drift"
    if drift is False and by_name:
        raise InvalidInput("`certificate` is 'drift', but `drift` is False")
    if per_day is None and values["delay"]:
        raise InvalidInput(f"`delay` is {values['delay']}, but needs `per_day`, too")
    if drift or by_name or (drift is None and per_day is not None):
        least = least_blocks(values["min_blocks"], per_day)
        return Traffic(per_day, values["delay"], values["skip_blocks"], least)
    for name in ("skip_blocks", "min_blocks"):
        if values[name]:
            raise InvalidInput(
                f"`{name}` is {values[name]}, but only a test with `drift` has blocks"
            )
    return None


def _check_declared(rewards: object, problem: Problem) -> None:
    """Refuse an epsilon in another unit than rewards, which are from 0 to 1 if not declared."""
    goal = problem.goal
    if rewards is None and isinstance(goal, FixedConfidence) and goal.epsilon >= 1:
        raise InvalidInput(
            f"`epsilon` is {given_text(goal.epsilon)}, but rewards are from 0 to 1 unless `rewards`"
            " are declared, and no choice can lose more than 1 then: declare a range (low, high),"
            " SubGaussian(sigma) or 'normal' for others; 5 percent are 0.05 or '5%'"
        )


def _batches_of_traffic(
    values: Mapping[str, Any], search: Algorithm, goal: Goal
) -> dict[str, int | None]:
    """The size of batches for `per_day` pulls with tickets, unless sizes are given.

    Batches of a day are planned ahead as long as results are awaited. Where a certificate cannot
    plan ahead, a batch has as many pulls as come while it is awaited."""
    given = {name: values[name] for name in ("min_batch", "window")}
    if values["drift"] is not False or values["per_day"] is None or given["min_batch"] is not None:
        return given
    per_day, delay = int(values["per_day"]), int(values["delay"])
    free = given["window"] is None and values["max_rounds"] is None
    if free and delay and search.name == "certified":
        problem = _Asked.of(values, goal, {}).problem
        if plans_ahead(problem, values["certificate"]):
            return {"min_batch": per_day, "window": per_day * (delay + 1)}
    return {**given, "min_batch": per_day * max(1, delay)}


def least_blocks(given: int | None, per_day: int | None) -> int:
    """The minimum number of blocks: a week of days, where nothing else is given."""
    if given is not None:
        return given
    return 0 if per_day is None else WEEK


def _check_live(values: Mapping[str, Any], search: Algorithm) -> None:
    """Refuse other algorithms, and settings of tickets where visitors are told as counts."""
    if search.name != "certified":
        raise InvalidInput(f"`algorithm` is {search.name!r}, but with `drift` must be 'certified'")
    for name in ("lease", "on_late", "retries", "on_failure"):
        if values[name] != FIELDS[name].default:
            rule = "a test with `drift` has no tickets: its visitors are told as counts"
            raise InvalidInput(f"`{name}` is {shown(values[name])}, but {rule}")


def _proves(options: Mapping[str, Any]) -> bool:
    """Whether a part of the budget is set aside to prove a bound. Options are not checked yet."""
    holdout = options.get("holdout")
    return isinstance(holdout, Real) and bool(holdout)


class DescribedArms(NamedTuple):
    """Labels, and costs, limits and groups where arms have them."""

    labels: tuple[OwnLabel, ...]
    costs: tuple[float, ...] | None = None
    limits: tuple[int | None, ...] | None = None
    groups: tuple[str | None, ...] | None = None


def described_arms(arms: object) -> DescribedArms:
    """What is known of the arms."""
    described = arms_of(arms)
    if described is None:
        return DescribedArms(labels_of(arms))
    labels = labels_of([arm.label for arm in described])
    costs, limits, groups = zip(
        *((arm.cost, arm.limit, arm.group) for arm in described), strict=True
    )
    return DescribedArms(labels, costs, limits, None if set(groups) == {None} else groups)


def described_features(values: Mapping[str, Any]) -> Features | None:
    """The features of the arms, given with them or as a matrix."""
    arms, given, linear = values["arms"], values["features"], values["linear"]
    each = [arm.features for arm in arms_of(arms) or ()]
    if given is None and linear is False and all(own is None for own in each):
        return None
    return features_of(given, linear, arms, each)


def _features_record(features: Features | None) -> tuple[tuple[float, ...], ...] | None:
    return None if features is None else tuple(map(tuple, features.values.tolist()))


def _search(algorithm: AlgorithmLike, goal: Goal) -> Algorithm:
    automatic = isinstance(algorithm, str) and algorithm == AUTOMATIC
    usual = "certified" if isinstance(goal, FixedConfidence) else "expected-loss"
    return find(usual if automatic else algorithm)


def _spec(
    values: Mapping[str, Any], asked: _Asked, search: Algorithm, told: Mapping[str, Any]
) -> Spec:
    """The spec that a store keeps: the algorithm that was chosen, unused settings at defaults."""
    cuts = {name: told.get(name, FIELDS[name].default) for name in CUTS}
    options = {name: value for name, value in told.items() if name not in CUTS}
    used = isinstance(asked.problem.goal, FixedConfidence) or _proves(options)
    delta = values["delta"] if used else FIELDS["delta"].default
    more = {"algorithm": name_to_keep(search), "options": options, "delta": delta, **cuts}
    return Spec(**dict(values) | _plain(asked, values) | more)


def _plain(asked: _Asked, values: Mapping[str, Any]) -> dict[str, Any]:
    """Arms, rewards, items, control and constraint in values that JSON holds."""
    problem, cells, control = asked.problem, asked.cells, asked.control
    record: Mapping[str, Any] = {"labels": None, "scores": None, "order": "shared"}
    record = {**record, **asdict(Drawn())}
    if cells is not None:
        labels_to_keep(cells.labels, "an item")
        record = cells.to_record()
    (kept,) = (None,) if control is None else labels_to_keep((control,))
    return {
        "arms": arms_record(
            labels_to_keep(asked.labels), problem.costs, problem.limits, asked.groups
        ),
        "rewards": RewardRecord(problem.rewards.kind, **asdict(problem.rewards)),
        "items": _frozen(record["labels"]),
        "scores": _frozen(record["scores"]),
        "order": record["order"],
        **{each.name: record[each.name] for each in fields(Drawn)},
        "control": kept,
        "guardrails": checked_guardrails(values["guardrails"], control) or None,
        "features": _features_record(problem.features),
        "drift": problem.traffic is not None,
        "budget": problem.goal.budget,
        **_constraint_record(values),
    }


def _constraint_record(values: Mapping[str, Any]) -> dict[str, Any]:
    """Quotas and constraint as a spec holds them."""
    quotas = None if values["quotas"] is None else checked_quotas(values["quotas"])
    family = given_family(None, None, values["constraint"], values["k"])
    return {"quotas": quotas, "constraint": constraint_record(family)}


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


@dataclass(frozen=True, slots=True)
class CellsGiven:
    """A test set in plain arguments."""

    items: ItemsGiven
    seed: int
    scores: ScoresGiven | None
    order: str
    drawn: Drawn

    def of(self, labels: Sequence[OwnLabel], rewards: RewardModel) -> Cells:
        """Its cells, if they make sense for these arms."""
        items = item_labels(self.items)
        check_cells(len(labels), len(items))
        known: Any = self.scores
        by_name = named_scores(known, self.drawn.repeats)
        if by_name is not None:
            known = by_name.placed(labels, items)
            check_scores(known, labels, items, rewards)
        listed = len(items) if isinstance(items, range) else items
        return Cells(listed, len(labels), rewards, self.seed, known, self.order, self.drawn)


def usual_width(at_a_time: int, min_batch: int | None = None) -> dict[str, int]:
    """How large batches are on a test set with this many cells at a time; none for one by one."""
    if at_a_time == 1:
        return {}
    least = max(1, at_a_time // 2) if min_batch is None else min_batch
    return {"min_batch": least, "window": max(3 * at_a_time, least)}


def cells_given(values: Mapping[str, Any]) -> CellsGiven | None:
    """The test set that these settings name, if they name one."""
    items = values["items"]
    if items is None:
        for name in ("scores", "order", "repeats", "clusters", "population"):
            given, usual = values[name], FIELDS[name].default
            if given is not None and (usual is None or given != usual):
                hint = "; to judge them, use `assess(scores=)`" if name == "scores" else ""
                raise InvalidInput(
                    f"`{name}` is given without `items`, but only goes with them{hint}"
                )
        return None
    clusters = checked_clusters(values["clusters"])
    drawn = Drawn(values["repeats"], clusters, values["population"])
    return CellsGiven(items, values["seed"], values["scores"], values["order"], drawn)


def check_drawn(drawn: Drawn | None, search: Algorithm) -> None:
    """Refuse clusters, and a promise about the distribution, where nothing is promised."""
    if drawn is None or search.name == "certified":
        return
    for name in ("clusters", "population"):
        if getattr(drawn, name) != FIELDS[name].default:
            raise InvalidInput(
                f"`{name}` is given and `algorithm` is {search.name!r}, but only 'certified'"
                " supports it: give an epsilon"
            )


def checked_control(control: object, labels: Sequence[OwnLabel], problem: Problem) -> OwnLabel:
    """The arm that is called so, if others can be compared with it."""
    place = position_of(control, labels)
    if place is None:
        raise unknown_arm("control", control, labels)
    if problem.items is not None:
        rule = "intervals are for independent rewards and not for scores on items"
        raise InvalidInput(f"`control` is {shown(control)}, but {rule}")
    if problem.shared_seeds:
        rule = "intervals are for independent arms and not for shared seeds"
        raise InvalidInput(f"`control` is {shown(control)}, but {rule}")
    if isinstance(problem.rewards, Undeclared):
        rule = "intervals need rewards that are declared: say `rewards`"
        raise InvalidInput(f"`control` is {shown(control)}, but {rule}")
    check_spread(problem.rewards, "a comparison with a `control`")
    return labels[place]


def _checked_zone(zone: object, problem: Problem) -> str | None:
    """The name of a time zone, if the experiment has days."""
    if zone is None:
        return None
    name = text("timezone", zone)
    if problem.traffic is None:
        raise InvalidInput(f"`timezone` is {name!r}, but only a test with `drift` has days")
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        rule = "must be the name of a time zone, such as Europe/Vienna"
        raise InvalidInput(f"`timezone` is {shown(name[:100])}, but {rule}") from None
    return name


def checked_guardrails(given: object, control: OwnLabel | None) -> dict[str, float]:
    """How much worse than the control every metric may be, by its name."""
    margins = named("guardrails", given)
    margins = {
        checked_metric(name): fraction(f"guardrails[{name!r}]", margin, above=-1, below=1)
        for name, margin in margins.items()
    }
    if margins and control is None:
        rule = "metrics are compared with a control: give `control`"
        raise InvalidInput(f"`guardrails` are {shown(given)}, but {rule}")
    if len(margins) > MOST_METRICS:
        rule = f"there may be at most {MOST_METRICS} metrics"
        raise InvalidInput(f"{len(margins)} `guardrails` are given, but {rule}")
    return margins


def _checked_measured(values: Mapping[str, Any], asked: "_Asked") -> dict[str, float]:
    """The guardrails, if nothing is in the way of comparing metrics."""
    margins = checked_guardrails(values["guardrails"], asked.control)
    obstacle = _obstacle(asked.problem, values["on_late"])
    if margins and obstacle:
        raise InvalidInput(f"`guardrails` are {shown(values['guardrails'])}, but {obstacle}")
    return margins


def _obstacle(problem: Problem, on_late: object) -> str:
    """Why metrics of pulls cannot be compared with a control; empty if they can."""
    if problem.items is not None:
        return (
            "the cells of a test set are drawn without replacement, where no interval of a metric"
            " is proved: give the scores of a metric to `assess`"
        )
    if problem.shared_seeds:
        return "metrics need independent arms, but these are run on shared seeds"
    if isinstance(on_late, float):
        return "`on_late` is a reward, so the metrics of late results are not known: use 'wait'"
    return ""


def checked_metric(name: object) -> str:
    """The name of a metric."""
    given = text("metric", name)
    if not given or len(given) > LONGEST_METRIC:
        rule = f"must be a text of 1 to {LONGEST_METRIC} characters"
        raise InvalidInput(f"the name of a metric is {shown(given[:50])}, but {rule}")
    return given


def _checked_unit(unit: UnitName | None, model: RewardModel) -> UnitName | None:
    """The unit, if rewards are shares."""
    low, high = model.support
    if unit is not None and (low < -1 or high > 1):
        rule = "percent are for rewards between -1 and 1: declare `rewards`, or rescale them"
        raise InvalidInput(f"`unit` is {shown(unit)}, but {rule}")
    return unit


def checked_late(on_late: object, lease: float | None, model: RewardModel) -> OnLate:
    """What happens when a lease is over, if it makes sense."""
    if isinstance(on_late, str):
        if on_late == "wait":
            return "wait"
        if on_late == "again":
            return "again"
        raise InvalidInput(
            f"`on_late` is {shown(on_late)}, but must be 'wait', 'again' or a reward"
        )
    reward = real(on_late)
    if not model.admits(reward):
        raise InvalidReward(f"`on_late` is {shown(on_late)}, but must be {model.rule}")
    if not model.has_range:  # a mixture with a constant may have heavier tails than was declared
        raise InvalidInput(f"`on_late` is {reward!r}, but only rewards with a range may count so")
    if lease is None:  # one that fits durations depends on them, and so would the reward
        raise InvalidInput(
            f"`on_late` is {reward!r}, but counts after a `lease`, and none is given"
        )
    return reward


def worst_known(problem: Problem, algorithm: str) -> bool:
    """Whether there is a reward to tell of a retired arm, with which the search drops it."""
    unneeded = algorithm == "certified" and not problem.rewards.knows_spread
    return problem.rewards.has_range or unneeded


def _checked_ending(on_failure: OnFailure, problem: Problem, algorithm: str) -> OnFailure:
    if on_failure == "void" and not problem.shared_seeds:
        raise InvalidInput(
            "`on_failure` is 'void', but only shared seeds can be void: every other pull has a seed"
            " of its own"
        )
    if on_failure == "retire" and problem.shared_seeds:
        raise InvalidInput(
            "`on_failure` is 'retire', but on shared seeds no arm can retire: nothing is proved of"
            " the others then"
        )
    if on_failure == "retire" and not worst_known(problem, algorithm):
        raise InvalidInput(
            "`on_failure` is 'retire', but where rewards have no range no arm can retire: there is"
            " no worst reward"
        )
    return on_failure


def body_of(values: Mapping[str, Any]) -> Json:
    """Checked arguments as JSON holds them; the service resolves the rest."""
    own, costs, limits, groups = described_arms(values["arms"])
    labels, rewards, algorithm = labels_to_keep(own), values["rewards"], values["algorithm"]
    given = cells_given(values)
    cells = None if given is None else given.of(labels, declared(rewards)).to_record()
    return {
        **values,
        "features": _features_record(described_features(values)),
        "guardrails": checked_guardrails(values["guardrails"], values["control"]) or None,
        "arms": msgspec.to_builtins(arms_record(labels, costs, limits, groups)),
        **msgspec.to_builtins(_constraint_record(values)),
        "rewards": None if rewards is None else _model_to_json(model_of(rewards)),
        "algorithm": algorithm if isinstance(algorithm, str) else name_to_keep(find(algorithm)),
        "options": named("options", values["options"]),
        "items": None if cells is None else cells["labels"],
        "scores": None if cells is None else cells["scores"],
        "clusters": None if cells is None else cells["clusters"],
    }


def arms_record(
    labels: Sequence[Any],
    costs: Sequence[float] | None,
    limits: Sequence[int | None] | None,
    groups: Sequence[str | None] | None = None,
) -> int | tuple[Any, ...]:
    """Arms as a spec holds them."""
    if costs is None and limits is None and groups is None:
        numbered = tuple(labels) == tuple(range(len(labels)))
        return len(labels) if numbered else tuple(labels)
    all_costs = [1.0] * len(labels) if costs is None else costs
    all_limits = [None] * len(labels) if limits is None else limits
    all_groups = [None] * len(labels) if groups is None else groups
    return tuple(map(ArmRecord, labels, all_costs, all_limits, all_groups))


def arms_of_json(arms: object) -> Any:
    """Arms from JSON, where any of them may be an object."""
    if not isinstance(arms, list) or not any(isinstance(arm, dict) for arm in arms):
        return arms
    return [_arm(arm) if isinstance(arm, dict) else arm for arm in arms]


def _arm(given: Mapping[str, Any]) -> Arm:
    for name in given:
        if name not in ("arm", "cost", "limit", "group", "features"):
            rule = "the fields there are: `arm`, `cost`, `limit`, `group`, `features`"
            raise InvalidInput(f"`{name[:100]}` is given, but {rule}")
    if "arm" not in given:
        raise InvalidInput("`arm` is not given, but is needed")
    cost = 1.0 if given.get("cost") is None else given["cost"]
    return Arm(
        given["arm"],
        cost,
        given.get("limit"),
        group=given.get("group"),
        features=given.get("features"),
    )


def _model_to_json(model: RewardModel) -> Json:
    return {"kind": model.kind, **asdict(model)}


def rewards_of(data: object) -> Any:
    """A reward model from JSON; `declared` reads a range or a word."""
    if not isinstance(data, Mapping):
        return data
    limits = dict(data)
    kind = limits.pop("kind", None)
    model = MODELS.get(kind) if isinstance(kind, str) else None
    if model is None:
        known = ", ".join(MODELS)
        raise UnknownName(f"`rewards` is {shown(dict(data))}, but `kind` must be one of {known}")
    wanted = [field.name for field in fields(model)]
    if sorted(limits) != sorted(wanted):
        rule = " and ".join(f"`{name}`" for name in wanted) or "nothing else"
        raise InvalidInput(f"`rewards` is {shown(dict(data))}, but {kind} takes {rule}")
    return model(**limits)


def stored_arms(text: str, where: str) -> tuple[tuple[Any, ...], RewardModel]:
    """The labels and the reward model in stored settings of any version: enough to read a log."""
    with _readable(where):
        data = json.loads(text)
        labels, *_ = described_arms(arms_of_json(data["arms"]))
        return labels, model_of(rewards_of(data["rewards"]))


@contextmanager
def _readable(where: str) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise StoreDamaged(f"the settings of {where} make no sense: {error}") from error
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise StoreDamaged(f"the settings of {where} cannot be read: {error!r}") from error


def _replayed(format_: int, algorithm: str, version: int, where: str) -> Algorithm:
    """The algorithm, if it is as it was when the experiment was made."""
    if not isinstance(algorithm, str):
        raise InvalidInput(f"`algorithm` is {algorithm!r}, but must be a name")
    try:
        known = find(algorithm)
    except InvalidInput as error:
        raise CannotReplay(
            f"{where} was made with {algorithm}, an algorithm that this shortlist does not have:"
            f" {error}"
        ) from error
    made, have = f"version {version} of {algorithm}", f"version {known.version}"
    if format_ != FORMAT:
        made, have = f"format {format_} of tickets", f"format {FORMAT}"
    if version != known.version or format_ != FORMAT:
        raise CannotReplay(
            f"{where} was made with {made}, but this shortlist has {have} and would continue"
            " differently: continue it with the shortlist that made it, or export its rewards"
        )
    return known
