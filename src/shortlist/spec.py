"""Every setting of a search and of an experiment, once: name, type, default, rule and help.

A `Spec` holds the settings of an experiment in values that JSON can hold. All repetitions of a
setting are derived from its fields: the checks (settings.py), the stored JSON, the difference
between two experiments, the body of `POST /v1/experiments` with its JSON Schema, and the options of
the command line. Signatures are written out, for readers and editors; tests/test_spec.py compares
them with the fields. CONTRIBUTING.md, "Add a setting", has an example.

This module imports neither numpy nor any search, so that `shortlist --help` is quick."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Meta, Struct

Order = Literal["shared", "independent"]  # of the items: one for all arms, or one per arm
Population = Literal["these", "like these"]  # that the mean of an arm is over
Certificate = Literal["auto", "pairs", "plans", "split", "items", "linear", "differences", "drift"]
Seeds = Literal["own", "shared"]  # of pulls: one per pull, or one for a pull of every arm
OnLate = Literal["wait", "again"] | float
OnFailure = Literal["stop", "retire", "void"]
UnitName = Literal["%"]  # that means and differences are shown in
RewardKind = Literal["bounded", "binary", "sub-gaussian", "normal", "undeclared"]

Count = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0)]
LabelRecord = str | int
Json = dict[str, Any]
Door = Literal["select", "create", "simulate", "forecast"]  # `create`: also HTTP and command line


class Percent(float):
    """A number that was given in percent on a command line."""

    def __repr__(self) -> str:
        return f"{100 * self:.12g}%"


class ArmRecord(Struct, frozen=True, forbid_unknown_fields=True):
    """An arm with its cost per pull, the maximum number of its pulls, its group and features."""

    arm: LabelRecord
    cost: Positive = 1.0
    limit: Count | None = None
    group: LabelRecord | None = None
    features: tuple[float, ...] | None = None


class RewardRecord(Struct, frozen=True, omit_defaults=True):
    """A reward model: `bounded` has `low` and `high`, `sub-gaussian` has `sigma`."""

    kind: RewardKind
    low: float | None = None
    high: float | None = None
    sigma: float | None = None


class ConstraintRecord(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A family of sets: `quotas` has the group of every arm, `laminar` the arms of every group by
    position, both with least and most; `matching` has the row and the column of every arm."""

    kind: Literal["quotas", "laminar", "matching"]
    groups: tuple[LabelRecord | None, ...] | dict[str, tuple[int, ...]] | None = None
    quotas: dict[str, tuple[int, int]] | None = None
    n_arms: Count | None = None
    rows: tuple[LabelRecord | None, ...] | None = None
    columns: tuple[LabelRecord | None, ...] | None = None


ArmsRecord = (
    Annotated[int, Meta(ge=2)] | Annotated[tuple[LabelRecord | ArmRecord, ...], Meta(min_length=2)]
)
Range = Annotated[tuple[float, ...], Meta(min_length=2, max_length=2)]
Row = tuple[float | None, ...]

NO_TICKETS = "there are no tickets to hand out"
BY_MEANS = "arms are given by their means"
AT_ONCE = "a function returns its rewards at once; `Experiment.create` has live tests"
RAW_FIGURES = "its figures are raw numbers"
BY_FORECAST = "`forecast` simulates days"
NO_METRICS = "metrics are told; here there are only rewards"


def setting(text: str, **absent: str) -> Meta:
    """The help of a setting, and why a door does not have it."""
    return Meta(description=text, extra={"absent": absent})


class Spec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of an experiment."""

    arms: Annotated[
        ArmsRecord,
        setting(
            "Number of arms, their labels, or labels with the cost of a pull, the maximum number"
            " of pulls and the group.",
            simulate=BY_MEANS,
            forecast=BY_MEANS,
        ),
    ]
    k: Annotated[Count, setting("Number of arms to choose.")]
    epsilon: Annotated[
        Positive | None,
        setting("Largest regret allowed, in the unit of the rewards; 0.2% is 0.002."),
    ] = None
    delta: Annotated[
        Annotated[float, Meta(gt=0, lt=1)],
        setting("Largest probability that the regret exceeds epsilon."),
    ] = 0.05
    budget: Annotated[
        Positive | None,
        setting(
            "Number of pulls to spend, or their total cost; with epsilon, the maximum.",
            forecast="several budgets may be given",
        ),
    ] = None
    rewards: Annotated[
        Range | Literal["binary", "normal"] | RewardRecord | None,
        setting(
            "Range or model of the rewards. Default: 0 to 1 if epsilon is given, else any numbers.",
            simulate="it is the distribution that rewards are drawn from",
            forecast="rewards are 0 or 1",
        ),
    ] = None
    minimize: Annotated[bool, setting("Choose the arms with the smallest mean rewards.")] = False
    items: Annotated[
        Count | tuple[LabelRecord, ...] | None,
        setting(
            "Test set: number of items, or their labels. A pull evaluates one arm on one item.",
            simulate="`scores` has a column per item",
        ),
    ] = None
    scores: Annotated[
        tuple[Row, ...] | None,
        setting(
            "Scores that are known: a row per arm and a column per item, null where unknown.",
            forecast="scores are simulated",
        ),
    ] = None
    order: Annotated[
        Order, setting("Random order of the items: one for all arms, or one per arm.")
    ] = "shared"
    repeats: Annotated[
        Count,
        setting(
            "On a test set: scores per item. The mean of an arm is that over all of them.",
            forecast="a repetition is one more item",
        ),
    ] = 1
    clusters: Annotated[
        tuple[LabelRecord, ...] | None,
        setting(
            "On a test set: the cluster of every item, such as its document. A cluster is drawn"
            " whole.",
            forecast="items are simulated one by one",
        ),
    ] = None
    population: Annotated[
        Population,
        setting(
            "What the promise is about: the mean over these items, or over the distribution that"
            " they are a sample of (like these).",
            forecast="the truth is that of simulated items",
        ),
    ] = "these"
    algorithm: Annotated[
        str,
        setting(
            "Name of the algorithm, or package.module:function. auto: certified if epsilon is"
            " given, else expected-loss.",
            simulate="it comes first and has no default",
            forecast="`algorithms` names several",
        ),
    ] = "auto"
    options: Annotated[
        dict[str, Any] | None,
        setting("Options of the algorithm, by name.", forecast="several algorithms are compared"),
    ] = None
    max_rounds: Annotated[Count | None, setting("Maximum number of batches.")] = None
    min_batch: Annotated[Count | None, setting("Minimum number of pulls per batch.")] = None
    window: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        setting(
            "Batches are planned ahead while at most this many pulls are under way (pairs and test"
            " sets). 0: the next batch waits for the last."
        ),
    ] = None
    certificate: Annotated[
        Certificate,
        setting("Certificate that proves the regret bound. auto: chosen by the problem."),
    ] = "auto"
    quotas: Annotated[
        dict[str, tuple[int, int]] | None,
        setting("Least and most chosen arms per group. Groups that are not named are free."),
    ] = None
    constraint: Annotated[
        ConstraintRecord | None,
        setting("Family of sets that may be chosen, instead of quotas. Default: all sets."),
    ] = None
    features: Annotated[
        tuple[tuple[float, ...], ...] | None,
        setting("Known features of the arms: a row per arm and a column per feature."),
    ] = None
    linear: Annotated[
        bool | Positive,
        setting(
            "Declare that means are linear in the features, or at most this far from linear ones."
        ),
    ] = False
    drift: Annotated[
        bool | None,
        setting(
            "Live test whose level may move: visitors are assigned at random and told as counts per"
            " block. Default: if per_day is given.",
            select=AT_ONCE,
            simulate=BY_FORECAST,
        ),
    ] = None
    per_day: Annotated[
        Count | None,
        setting(
            "Visitors per day, or per block, of a live test.",
            select=AT_ONCE,
            simulate=BY_FORECAST,
            forecast="it is any number of pulls there",
        ),
    ] = None
    delay: Annotated[
        Annotated[int, Meta(ge=0)],
        setting(
            "Days, or blocks, until the results of a block are complete.",
            select=AT_ONCE,
            simulate=BY_FORECAST,
            forecast="it is any number of days there",
        ),
    ] = 0
    skip_blocks: Annotated[
        Annotated[int, Meta(ge=0)],
        setting("Number of first blocks that do not count.", select=AT_ONCE, simulate=BY_FORECAST),
    ] = 0
    min_blocks: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        setting(
            "Minimum number of blocks that count. Default: 7, a week, if per_day is given; else 0.",
            select=AT_ONCE,
            simulate=BY_FORECAST,
        ),
    ] = None
    timezone: Annotated[
        str | None,
        setting(
            "Time zone of the days of a live test, such as Europe/Vienna. Default: UTC.",
            select=AT_ONCE,
            simulate=BY_FORECAST,
            forecast="days have no dates there",
        ),
    ] = None
    control: Annotated[
        LabelRecord | None,
        setting(
            "Arm to compare all other arms with.",
            simulate="arms have no labels",
            forecast="arms have no labels",
        ),
    ] = None
    guardrails: Annotated[
        dict[str, Annotated[float, Meta(gt=-1, lt=1)]] | None,
        setting(
            "Metrics that must not become worse than the control: how much higher a metric may be,"
            " or if the number is negative, how much lower.",
            select=NO_METRICS,
            simulate=NO_METRICS,
            forecast=NO_METRICS,
        ),
    ] = None
    unit: Annotated[
        UnitName | None,
        setting(
            "Unit of means and differences in tables and pages: percent (%). Data stay raw.",
            simulate=RAW_FIGURES,
            forecast=RAW_FIGURES,
        ),
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=0)], setting("Random seed. Runs with the same seed are identical.")
    ] = 0
    seeds: Annotated[
        Seeds,
        setting(
            "Seeds of pulls: one per pull (own), or one for a pull of every arm (shared).",
            forecast="arms are independent",
        ),
    ] = "own"
    lease: Annotated[
        Positive | None,
        setting(
            "Seconds for which a ticket is reserved. Default: an hour, or longer if pulls take"
            " longer.",
            select=NO_TICKETS,
            simulate=NO_TICKETS,
            forecast=NO_TICKETS,
        ),
    ] = None
    on_late: Annotated[
        OnLate,
        setting(
            "Overdue tickets: wait for them, reissue them (again), or record this reward.",
            select=NO_TICKETS,
            simulate=NO_TICKETS,
            forecast=NO_TICKETS,
        ),
    ] = "wait"
    retries: Annotated[
        Annotated[int, Meta(ge=0)],
        setting(
            "How often to retry a failed evaluation.",
            simulate="simulated pulls do not fail",
            forecast="simulated pulls do not fail",
        ),
    ] = 2
    on_failure: Annotated[
        OnFailure,
        setting(
            "After the last retry: stop the experiment, retire the arm, or on shared seeds void"
            " the seed for all arms.",
            simulate="simulated pulls do not fail",
            forecast="simulated pulls do not fail",
        ),
    ] = "stop"

    def to_record(self) -> Json:
        """All settings, as JSON holds them."""
        record: Json = msgspec.to_builtins(self)
        return record

    def difference(self, other: "Spec") -> str | None:
        """The first setting that another spec has differently, in plain words; None if all agree.

        What the other leaves open (a lease, a control, rewards, the size of batches), it takes from
        this one."""
        if self.arms != other.arms:
            return _different_arms(_records(self.arms), _records(other.arms))
        for name in FIELDS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if name == "options" and mine and theirs is not None:
                theirs = {each: mine[each] for each in OPEN_OPTIONS if each in mine} | theirs
            if mine != theirs and not (name in TAKEN and _left_open(theirs)):
                return _different(name, mine, theirs)
        return None


@dataclass(frozen=True, slots=True)
class Field:
    """A setting as its type and its metadata describe it."""

    name: str
    kind: Any  # int, float, bool, str, or another type of JSON; without None
    rule: Meta  # limits of a number
    words: tuple[str, ...]  # all values, where these are words
    optional: bool  # None is a value
    default: Any  # NODEFAULT if it must be given
    text: str  # the help
    absent: Mapping[str, str]  # doors without this setting, and why
    plain: bool  # its type is its whole rule: a number, a truth value, or one of a few words

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is NODEFAULT


def _field(name: str, hint: Any, default: Any) -> Field:
    kind, *own, about = get_args(hint)
    parts = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    kinds = [part for part in parts if part is not NoneType]
    rule = own[0] if own else Meta()
    if len(kinds) == 1 and get_origin(kinds[0]) is Annotated:
        kinds[0], rule = get_args(kinds[0])
    alone = kinds[0] if len(kinds) == 1 else kind
    words = get_args(alone) if get_origin(alone) is Literal else ()
    optional = NoneType in parts
    absent = about.extra["absent"]
    plain = bool(words) or alone in (int, float, bool)
    return Field(name, alone, rule, words, optional, default, about.description, absent, plain)


def _fields() -> dict[str, Field]:
    hints = get_type_hints(Spec, include_extras=True)
    return {
        each.name: _field(each.name, hints[each.name], each.default)
        for each in msgspec.structs.fields(Spec)
    }


FIELDS = _fields()
FIELDS_OF: dict[Door, dict[str, Field]] = {
    door: {name: field for name, field in FIELDS.items() if door not in field.absent}
    for door in get_args(Door)
}
REQUIRED = tuple(name for name, field in FIELDS.items() if field.required)
# too long to be quoted
LONG = ("items", "scores", "clusters", "options", "features", "quotas", "constraint")
# from the experiment that exists, where left open
TAKEN = ("rewards", "timezone", "control", "guardrails", "unit", "lease", "min_batch", "window")
OPEN_OPTIONS = ("min_items",)  # the same for options


Documented = TypeVar("Documented", bound=Callable[..., Any])


def documented(door: Door, *without: str) -> Callable[[Documented], Documented]:
    """Put the settings of a door, with their help, in place of `{settings}` of a docstring.

    So help() and the reference have them without another copy; those in `without` are explained by
    the docstring itself."""

    def fill(function: Documented) -> Documented:
        if function.__doc__ is not None:
            before, _, after = function.__doc__.partition("{settings}")
            indent = before.rpartition("\n")[2]
            named = (field for name, field in FIELDS_OF[door].items() if name not in without)
            function.__doc__ = before + f"\n{indent}".join(map(_line, named)) + after
        return function

    return fill


def _line(field: Field) -> str:
    default = "" if field.required or field.default is None else f" Default: {field.default!r}."
    return f"{field.name}: {field.text}{'' if 'Default' in field.text else default}"


def json_schema() -> Json:
    """The JSON Schema of a spec, without references."""
    (whole,), parts = msgspec.json.schema_components((Spec,), ref_template="{name}")
    return dict(_inlined(whole, parts))


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_inlined(each, parts) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _inlined(parts[schema["$ref"]], parts)
    return {name: _inlined(each, parts) for name, each in schema.items() if name != "title"}


def _records(arms: Any) -> list[ArmRecord]:
    labels = range(arms) if isinstance(arms, int) else arms
    return [each if isinstance(each, ArmRecord) else ArmRecord(each) for each in labels]


def _different_arms(mine: list[ArmRecord], theirs: list[ArmRecord]) -> str:
    if [each.arm for each in mine] != [each.arm for each in theirs]:
        return "other arms"
    for name in ("cost", "limit", "group"):
        if [getattr(each, name) for each in mine] != [getattr(each, name) for each in theirs]:
            break
    return f"other {name}s"


def _left_open(value: object) -> bool:
    return value is None or (isinstance(value, RewardRecord) and value.kind == "undeclared")


def _different(name: str, mine: object, theirs: object) -> str:
    if name in LONG:
        return f"other {name}"
    made = f"no {name}" if mine is None else f"{name} = {_as_text(mine)}"
    return f"{made} and not {_as_text(theirs)}"


def _as_text(value: object) -> str:
    if not isinstance(value, RewardRecord):
        return "none" if value is None else str(value)
    limits = {name: limit for name, limit in msgspec.to_builtins(value).items() if name != "kind"}
    shown = ", ".join(f"{name} = {repr(each).removesuffix('.0')}" for name, each in limits.items())
    return f"{value.kind} ({shown})" if shown else value.kind
