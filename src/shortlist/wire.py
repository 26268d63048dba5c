"""What a service and its clients send each other: tickets, states, results and errors as JSON.

Each pair of functions goes there and back. Figures that JSON has no word for are null: the mean of
an arm that was never pulled, the end of an interval without one."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from math import inf, nan
from typing import Any

import numpy as np

from shortlist import errors
from shortlist.arms import Label
from shortlist.arrays import FloatArray
from shortlist.engine import Handout, Receipt, State, Status, Ticket
from shortlist.engine.blocks import Shares
from shortlist.engine.live import CountsGiven, MetricsGiven
from shortlist.engine.status import ArmsTold
from shortlist.errors import InvalidInput, ShortlistError
from shortlist.problem import FixedBudget, FixedConfidence, Goal
from shortlist.reading.counts import block_counts
from shortlist.result import ArmResult, Result
from shortlist.result.arm_results import ArmLift, BlockLeads, MetricLift
from shortlist.reward_models import RewardModel, as_seen
from shortlist.search import Progress
from shortlist.spec import Json
from shortlist.validation import named, shown

TICKET = tuple(field.name for field in fields(Ticket))
MOST_TICKETS = 10_000  # that one request is handed


def handout_to_json(handout: Handout) -> Json:
    """Tickets, the state that says why there are no more, and what to serve meanwhile."""
    tickets = [{name: getattr(ticket, name) for name in TICKET} for ticket in handout]
    return {"tickets": tickets, "state": handout.state.value, "meanwhile": handout.meanwhile}


def receipt_of(data: Json) -> Receipt:
    """What became of rewards that were told, as a service says."""
    return Receipt(tuple(data["late"]), tuple(data["unused"]))


def handout_of(data: Json) -> Handout:
    """The same, read."""
    tickets = (Ticket(**each) for each in data["tickets"])
    return Handout(tickets, State(data["state"]), data["meanwhile"])


def shares_to_json(shares: Shares) -> Json:
    """The shares of a block; a list, because labels may be numbers."""
    rows = [{"arm": label, "percent": percent} for label, percent in shares.percent.items()]
    return {"block": shares.block, "shares": rows}


def shares_of(data: Json) -> Shares:
    """The same, read."""
    return Shares(data["block"], {row["arm"]: row["percent"] for row in data["shares"]})


def counts_to_json(counts: CountsGiven) -> list[Json]:
    """Counts of a block, one row per arm."""
    counts = block_counts(counts) if hasattr(counts, "columns") else counts
    if not isinstance(counts, Mapping):
        raise InvalidInput(f"`counts` is {shown(counts)}, but must be a mapping of arms to counts")
    return [_counts_row(label, row) for label, row in counts.items()]


def _counts_row(label: object, row: Sequence[float]) -> Json:
    if not isinstance(row, tuple | list) or len(row) not in (2, 3):
        rule = "must be (visitors, sum) or (visitors, sum, squares)"
        raise InvalidInput(f"the counts of {shown(label)} are {shown(row)}, but {rule}")
    return {"arm": label, **dict(zip(("visitors", "sum", "squares"), row, strict=False))}


def counts_of(rows: object) -> dict[Label, tuple[float, ...]]:
    """The same, read."""
    if not isinstance(rows, list):
        raise InvalidInput(f"`counts` is {shown(rows)[:100]}, but must be a list of objects")
    counts: dict[Label, tuple[float, ...]] = {}
    for row in rows:
        if not isinstance(row, dict) or not {"arm", "visitors", "sum"} <= row.keys():
            rule = "must be an object with `arm`, `visitors` and `sum`"
            raise InvalidInput(f"a row of `counts` is {shown(row)[:100]}, but {rule}")
        label = row["arm"]
        if not isinstance(label, str | int) or label in counts:
            raise InvalidInput(f"`arm` is {shown(label)[:100]}, but must be a label, each once")
        more = () if row.get("squares") is None else (row["squares"],)
        counts[label] = (row["visitors"], row["sum"], *more)
    return counts


def metrics_to_json(metrics: MetricsGiven) -> list[Json]:
    """Metrics of a block, one entry per metric with a row per arm."""
    given = named("metrics", metrics)
    return [{"metric": name, "sums": _sums_rows(name, sums)} for name, sums in given.items()]


def _sums_rows(name: str, sums: object) -> list[Json]:
    if not isinstance(sums, Mapping):
        rule = "must be a mapping of arms to sums"
        raise InvalidInput(f"the metric {name!r} is {shown(sums)}, but {rule}")
    return [{"arm": label, "sum": value} for label, value in sums.items()]


def metrics_of(rows: object) -> dict[str, dict[Label, float]]:
    """The same, read."""
    given = [] if rows is None else rows
    if not isinstance(given, list):
        raise InvalidInput(f"`metrics` is {shown(rows)[:100]}, but must be a list of objects")
    metrics: dict[str, dict[Label, float]] = {}
    for row in given:
        fields = row if isinstance(row, dict) else {}
        name, sums = fields.get("metric"), fields.get("sums")
        if not isinstance(name, str) or name in metrics or not isinstance(sums, list):
            rule = "must be an object with `metric`, each once, and a list `sums`"
            raise InvalidInput(f"an entry of `metrics` is {shown(row)[:100]}, but {rule}")
        metrics[name] = dict(_sum_of(each) for each in sums)
    return metrics


def _sum_of(row: object) -> tuple[Label, float]:
    if not isinstance(row, dict) or not {"arm", "sum"} <= row.keys():
        rule = "must be an object with `arm` and `sum`"
        raise InvalidInput(f"a row of `sums` is {shown(row)[:100]}, but {rule}")
    if not isinstance(row["arm"], str | int):
        raise InvalidInput(f"`arm` is {shown(row['arm'])[:100]}, but must be a label")
    return row["arm"], row["sum"]


def status_to_json(status: Status) -> Json:
    """What the command line prints, and how far the search is."""
    more = {"progress": asdict(status.progress), "minimize": status.arms.minimize}
    return {**status.summary(), **more}


def status_of(data: Json) -> Status:
    """The same, read."""
    rows = data["arms"]
    return Status(
        name=data["name"],
        state=State(data["state"]),
        trouble=data["trouble"] or "",
        told=data["told"],
        held=data["held"],
        wanted=data["wanted"],
        failures=data["failures"],
        workers=data["workers"],
        progress=Progress(**data["progress"]),
        overdue=data["overdue"],
        overdue_by=data["overdue_by"],
        spent=data["spent"],
        budget=data["budget"],
        bound=data["bound"],
        warnings=tuple(data["warnings"]),
        late=data["late"],
        unused=data["unused"],
        notes=tuple(data["notes"]),
        undrawn=data["undrawn"],
        live=data["live"],
        broken=tuple(data.get("broken", ())),
        unit=data["unit"],
        period=None if data["period"] is None else tuple(data["period"]),
        arms=ArmsTold(
            labels=tuple(row["arm"] for row in rows),
            pulls=np.array([row["pulls"] for row in rows], dtype=np.int64),
            waiting=np.array([row["waiting"] for row in rows], dtype=np.int64),
            means=_figures(rows, "mean", nan),
            low=_figures(rows, "low", -inf),
            high=_figures(rows, "high", inf),
            places=tuple(row["place"] for row in rows),
            to_go=np.array([row["to_go"] for row in rows], dtype=np.int64),
            chances=_figures(rows, "chance", nan),
            minimize=data["minimize"],
            known=np.array([row["known"] for row in rows], dtype=np.int64),
        ),
    )


def _figures(rows: Sequence[Json], name: str, unknown: float) -> FloatArray:
    return np.array([unknown if row[name] is None else row[name] for row in rows])


def result_of(data: Json, rewards: RewardModel) -> Result:
    """What `Result.to_dict` says, as a result again; what was declared of rewards is not in it."""
    arms = tuple(_arm(arm) for arm in data["arms"])
    # there are no intervals where rewards that were not declared turned out to have no range
    seen = as_seen(rewards, min(arm.low for arm in arms), max(arm.high for arm in arms))
    return Result(
        top=tuple(data["top"]),
        regret_bound=data["regret_bound"],
        confidence=data["confidence"],
        reached=data["reached"],
        pulls=data["pulls"],
        goal=_goal(data),
        algorithm=data["algorithm"],
        seed=data["seed"],
        seconds=data["seconds"],
        arms=arms,
        rewards=seen,
        minimize=data["minimize"],
        evidence=data["evidence"],
        partial=data["partial"],
        spent=data["spent"],
        warnings=tuple(data["warnings"]),
        notes=tuple(data["notes"]),
        complete=data["complete"],
        items=data["items"],
        leads=_leads(data.get("leads")),
        unit=data["unit"],
        metrics=tuple(_metric(each, data["unit"]) for each in data.get("metrics", ())),
        control_regret=data["control_regret"],
        unused=data["unused"],
        shared_seeds=data.get("seeds") == "shared",
        tiers=_tiers(data.get("tiers")),
    )


def _tiers(data: Json | None) -> dict[str, tuple[Any, ...]] | None:
    return None if data is None else {name: tuple(labels) for name, labels in data.items()}


def _metric(data: Json, unit: str | None) -> MetricLift:
    arms = tuple(ArmLift(**arm) for arm in data["arms"])
    figures = data["control"], data["confidence"], arms
    return MetricLift(*figures, unit, data["metric"], data["guardrail"])


def _leads(data: Json | None) -> BlockLeads | None:
    if data is None:
        return None
    return BlockLeads(*(tuple(map(tuple, data[name])) for name in ("lead", "low", "high")))


def _arm(data: Json) -> ArmResult:
    low = -inf if data["low"] is None else data["low"]
    high = inf if data["high"] is None else data["high"]
    return ArmResult(**{**data, "low": low, "high": high})


def _goal(data: Json) -> Goal:
    if data["epsilon"] is None:
        return FixedBudget(data["budget"])
    return FixedConfidence(data["epsilon"], data["delta"], data["budget"])


def error_to_json(error: Exception) -> Json:
    """The one shape of errors: which, and the words of the command line."""
    return {"error": {"kind": type(error).__name__, "message": " ".join(str(error).splitlines())}}


def error_of(data: object, status: int) -> ShortlistError:
    """The error that a service answered with; one that is not ours is quoted."""
    said = data.get("error") if isinstance(data, Mapping) else None
    if not isinstance(said, Mapping):
        return errors.StoreError(f"the service answered with status {status}, and no reason")
    found = getattr(errors, str(said.get("kind")), None)
    ours = isinstance(found, type) and issubclass(found, ShortlistError)
    kind = found if ours and found is not None else errors.StoreError
    error: ShortlistError = kind(str(said.get("message")))
    return error
