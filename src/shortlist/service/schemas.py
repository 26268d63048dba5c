"""The shapes of bodies and replies, as JSON Schema says them: for the OpenAPI description."""

from typing import Any

from shortlist.settings import LONGEST_METRIC
from shortlist.spec import json_schema
from shortlist.wire import MOST_TICKETS

Schema = dict[str, Any]


def record(needed: tuple[str, ...] = (), **fields: Schema) -> Schema:
    """An object of these fields and no others."""
    shape: Schema = {"type": "object", "properties": fields, "additionalProperties": False}
    return {**shape, "required": list(needed)} if needed else shape


def every(**fields: Schema) -> Schema:
    """An object that has all of these fields."""
    return record(tuple(fields), **fields)


def array(items: Schema) -> Schema:
    """A list."""
    return {"type": "array", "items": items}


def nullable(kind: str) -> Schema:
    """A value of that kind, or null."""
    return {"type": [kind, "null"]}


TEXT: Schema = {"type": "string"}
NUMBER: Schema = {"type": "number"}
COUNT: Schema = {"type": "integer", "minimum": 0}
POSITIVE: Schema = {"type": "integer", "minimum": 1}
FLAG: Schema = {"type": "boolean"}
LABEL: Schema = {"type": ["string", "integer"]}
ANYTHING: Schema = {"type": "object"}
STATE: Schema = {"enum": ["ready", "pending", "finished", "budget", "ended", "stopped"]}
PROGRESS = every(
    round=COUNT,
    accepted=COUNT,
    rejected=COUNT,
    undecided=COUNT,
    bound=nullable("number"),
    top=nullable("array"),
)
ITEM: Schema = {"type": ["string", "integer", "null"]}
OF_TICKET: dict[str, Schema] = {
    "ticket": COUNT,
    "arm": LABEL,
    "experiment": nullable("string"),
    "item": ITEM,
}
TICKET = every(
    id=COUNT,
    arm=LABEL,
    draw=COUNT,
    seed=COUNT,
    expires=NUMBER,
    experiment=TEXT,
    item=ITEM,
)
ARM = every(
    arm=LABEL,
    pulls=COUNT,
    waiting=COUNT,
    mean=nullable("number"),
    low=nullable("number"),
    high=nullable("number"),
    place={"enum": ["in", "out", "undecided", "retired"]},
    to_go=COUNT,
    chance=nullable("number"),
    known=COUNT,
)
CHOSEN_ARM = every(
    label=LABEL,
    pulls=COUNT,
    mean=nullable("number"),
    low=nullable("number"),
    high=nullable("number"),
    chosen=FLAG,
    limit=nullable("integer"),
    cost=NUMBER,
    spent=NUMBER,
    retired=FLAG,
    waiting=COUNT,
    known=COUNT,
)
LISTED = every(
    name=TEXT,
    state=TEXT,
    arms=nullable("integer"),
    k=nullable("integer"),
    algorithm=nullable("string"),
    pulls=nullable("integer"),
)
RESULT_TOLD = record(
    ("ticket", "reward"),
    reward=NUMBER,
    cost={"type": ["number", "null"], "minimum": 0},
    info={},
    metrics={
        "type": ["object", "null"],
        "propertyNames": {"minLength": 1, "maxLength": LONGEST_METRIC},
        "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1},
    },
    **OF_TICKET,
)

SPEC = json_schema()
CREATE: Schema = {
    **SPEC,
    "properties": {
        "name": {**TEXT, "minLength": 1, "maxLength": 200, "default": "experiment"},
        **SPEC["properties"],
        "workers": {"type": ["integer", "null"], "minimum": 1, "default": None},
        "exist_ok": {**FLAG, "default": False},
    },
}
ASK = record(
    limit={**POSITIVE, "maximum": MOST_TICKETS, "default": 1},
    worker=nullable("string"),
    lease={"type": ["number", "null"], "exclusiveMinimum": 0},
    alive={"type": ["number", "null"], "exclusiveMinimum": 0},
)
SHARES = every(
    block=TEXT, shares=array(every(arm=LABEL, percent={**NUMBER, "minimum": 0, "maximum": 100}))
)
NAMED_TEXT: Schema = {**TEXT, "minLength": 1, "maxLength": 200}
ASSIGN = record(("visitor",), visitor=NAMED_TEXT, block={**nullable("string"), "minLength": 1})
ASSIGNED = every(arm=LABEL, block=TEXT, first=FLAG)
ARM_COUNTS = record(
    ("arm", "visitors", "sum"),
    arm=LABEL,
    visitors=COUNT,
    sum=NUMBER,
    squares={"type": ["number", "null"], "minimum": 0},
)
METRIC = every(metric=TEXT, sums=array(every(arm=LABEL, sum={**NUMBER, "minimum": 0})))
COUNTS = record(
    ("block",),
    block=NAMED_TEXT,
    counts=array(ARM_COUNTS),
    void=NAMED_TEXT,
    metrics={"type": ["array", "null"], "items": METRIC},
)
COUNTED = every(
    block=TEXT,
    state={"enum": ["counted", "waiting", "skipped", "refused", "void", "unused"]},
    reason=TEXT,
)
TELL = record(("results",), results=array(RESULT_TOLD))
FAIL = record(
    ("ticket", "reason"),
    reason=TEXT,
    attempts=COUNT,
    expires=NUMBER,
    **OF_TICKET,
)
HELD_TICKET = record(("ticket",), expires=NUMBER, **OF_TICKET)
RELEASE = record(
    worker=nullable("string"),
    tickets={"type": ["array", "null"], "items": HELD_TICKET},
    overdue={"type": ["number", "null"], "minimum": 0},
)
RETIRE = record(arm=LABEL, arms=array(LABEL), reason=nullable("string"))
NOTHING = record()
RENAME = record(("name",), name={**TEXT, "minLength": 1, "maxLength": 200})
DELETE = record(("confirm",), confirm=TEXT)

LIST = every(experiments=array(LISTED), total=COUNT, next=nullable("integer"))
DESCRIBED = every(name=TEXT, settings=ANYTHING)
TOLD = every(told=COUNT, late=array(COUNT), unused=array(COUNT))
RELEASED = every(released=COUNT)
STANDING = every(
    told=COUNT,
    progress=PROGRESS,
    state=STATE,
    position=COUNT,
    version=TEXT,
    held=COUNT,
    held_until=NUMBER,
)
HANDOUT = every(
    tickets=array(TICKET),
    state=STATE,
    meanwhile={"type": ["string", "integer", "null"]},
    told=COUNT,
    progress=PROGRESS,
)
STATUS = every(
    name=TEXT,
    state=STATE,
    trouble=nullable("string"),
    told=COUNT,
    waiting=COUNT,
    late=COUNT,
    unused=COUNT,
    undrawn=COUNT,
    held=COUNT,
    overdue=COUNT,
    overdue_by={"type": "object", "additionalProperties": COUNT},
    wanted=COUNT,
    spent=NUMBER,
    budget=nullable("number"),
    failures=COUNT,
    workers={"type": "object", "additionalProperties": COUNT},
    bound=nullable("number"),
    among=COUNT,
    warnings=array(TEXT),
    notes=array(TEXT),
    broken=array(TEXT),
    live=TEXT,
    unit=nullable("string"),
    period=nullable("array"),
    arms=array(ARM),
    progress=PROGRESS,
    minimize=FLAG,
)
RESULT: Schema = every(
    algorithm=TEXT,
    n_arms=POSITIVE,
    k=POSITIVE,
    epsilon=nullable("number"),
    delta=nullable("number"),
    budget=nullable("number"),
    seed=COUNT,
    top=array(LABEL),
    regret_bound=nullable("number"),
    confidence=nullable("number"),
    reached=nullable("boolean"),
    partial=FLAG,
    verdict=TEXT,
    warnings=array(TEXT),
    notes=array(TEXT),
    tiers=nullable("object"),
    separates_at=array(POSITIVE),
    pulls=COUNT,
    spent=NUMBER,
    seconds=NUMBER,
    unresolved=array(LABEL),
    evidence=ANYTHING,
    minimize=FLAG,
    complete=FLAG,
    items=nullable("integer"),
    unused=COUNT,
    unit=nullable("string"),
    control_regret=nullable("number"),
    keep_control=FLAG,
    arms=array(CHOSEN_ARM),
)
RESULT["properties"]["lift"] = ANYTHING  # where there is a control
RESULT["properties"]["leads"] = ANYTHING  # of a live test
RESULT["properties"]["metrics"] = array(ANYTHING)  # where some were told
HEALTH = every(status={"const": "ok"}, version=TEXT)
ERROR = every(error=every(kind=TEXT, message=TEXT))
