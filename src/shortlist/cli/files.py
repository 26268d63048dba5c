"""Read the input files of commands: arms, items, known scores, tickets with rewards, pilots, fresh
rewards, groups and quotas."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from shortlist.cli.output import note
from shortlist.errors import InvalidInput
from shortlist.formatting import given_text, no_formula
from shortlist.reading.counts import decimal, read_totals, total, whole
from shortlist.reading.files import (
    COLUMN,
    Columns,
    FileLine,
    check_called_arm,
    number_hint,
    read_columns,
)

_WHOLE = re.compile(r"\s*[0-9]{1,18}\s*")  # as many digits as can be counted in 64 bits


def whole_number(text: str) -> int | None:
    """The number that a text is; None if it is none, or larger than anything is counted."""
    return int(text) if _WHOLE.fullmatch(text) else None


if TYPE_CHECKING:
    from shortlist.arms import Arm, Label
    from shortlist.engine.log_entries import Report

TERMS = frozenset(["cost", "limit", "group"])  # columns of an arm besides its label
ALIKE = {"costs": "cost", "price": "cost", "prices": "cost", "groups": "group", "limits": "limit"}
ALIKE |= {"max": "limit", "maximum": "limit", "quota": "limit"}


class ArmsFile(click.Path):
    """The name of a file with arms; the error for a label says that it must be a file."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As any path."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            self.fail(
                f"{error.message} It is a file with one arm per line; - is stdin.", param, ctx
            )


arms_argument = click.argument(
    "arms",
    type=ArmsFile(exists=True, dir_okay=False, readable=True, allow_dash=True),
    metavar="ARMS",
)


def read_arms(path: str) -> "list[str] | list[Arm]":
    """One label a line, or a CSV with a column `arm`; labels are taken as they stand.

    Columns `cost`, `limit` and `group` say what belongs to an arm; others are not read."""
    table = read_columns(path, only=COLUMN)
    if not table.rows:
        raise InvalidInput(f"{path} is empty, but must hold one label a line")
    hint = f" (a label with a {table.separator} needs quotes)"
    if not table.headed:
        _check_headless(table, hint)
    lines = list(table.lines(hint))
    for line in lines:
        if not line[COLUMN].strip():
            raise InvalidInput(
                f"{line.where} has the label {line[COLUMN]!r}, but a label must not be empty"
            )
    _note_unread(path, table)
    if not TERMS & set(table.names):
        return [line[COLUMN] for line in lines]
    return [_arm(line) for line in lines]


def _note_unread(path: str, table: Columns) -> None:
    """Say that a column is not read that may be a cost, limit or group by another name."""
    meant = [name for name in table.names if ALIKE.get(name, name) not in (name, *table.names)]
    if meant:
        read = f"`{COLUMN}`, `cost`, `limit` and `group`"
        note(f"{path}: the column `{meant[0]}` is not read; those that are read are called {read}")


def labels_in(arms: "list[str] | list[Arm]") -> list[str]:
    """The labels of arms that were read."""
    return [arm if isinstance(arm, str) else arm.label for arm in arms]


def labelled(name: str, word: str, labels: "Sequence[Label]") -> "Label":
    """The arm that is written so: labels may be whole numbers."""
    from shortlist.arms import unknown_arm

    for label in labels:
        if str(label) == word:
            return label
    raise unknown_arm(name, word, labels)


def _arm(line: FileLine) -> "Arm":
    """An arm with what belongs to it; an empty cell says nothing."""
    from shortlist.arms import Arm

    cost, limit = (line.cells.get(name, "").strip() for name in ("cost", "limit"))
    try:
        group = line.cells.get("group", "").strip() or None
        return Arm(line[COLUMN], *_terms(cost, limit), group=group)
    except ValueError as error:
        raise InvalidInput(f"{line.where}: {error}") from None


def _terms(cost: str, limit: str) -> tuple[float, int | None]:
    from shortlist.engine.program import decimal

    most = whole_number(limit)
    if limit and most is None:
        raise InvalidInput(f"limit {limit!r} must be a whole number")
    return decimal(cost) if cost else 1.0, most


def _check_headless(table: Columns, hint: str) -> None:
    """Refuse what may be a header, so that none becomes an arm."""
    cells = table.rows[0][1]
    check_called_arm(table.path, table.first, cells)
    if len(cells) > 1:
        raise InvalidInput(
            f"{table.path}, line {table.first} has {len(cells)} columns, but none of them is"
            f" called `{COLUMN}`{hint}"
        )


FILE = click.Path(exists=True, dir_okay=False, readable=True, allow_dash=True)


def read_items(path: str) -> list[str]:
    """One item a line, or a CSV with a column `item`."""
    table = read_columns(path, only="item")
    labels = [line["item"] for line in table.lines()]
    if not labels:
        raise InvalidInput(f"{path} is empty, but must hold one item a line")
    return labels


def with_test_set(settings: dict[str, Any], arms: list[str]) -> dict[str, Any]:
    """The same settings, with items and scores read from their files."""
    from shortlist.reading.scores import read_scores

    items, scores, clusters = settings["items"], settings["scores"], settings["clusters"]
    if items is None:
        for name in ("scores", "clusters"):
            if settings[name] is not None:
                raise InvalidInput(f"`{name}` is given without --items, but only goes with them")
        return settings
    labels = read_items(items)
    repeats = settings["repeats"]
    known = None if scores is None else read_scores(scores, repeats).placed(arms, labels)
    groups = None if clusters is None else read_clusters(clusters, labels)
    return {**settings, "items": labels, "scores": known, "clusters": groups}


def read_clusters(path: str, items: Sequence[str]) -> list[str]:
    """The cluster of every item, from a CSV with columns `item` and `cluster`."""
    table = read_columns(path)
    for name in ("item", "cluster"):
        if name not in table.header:
            raise InvalidInput(f"{path} has no column `{name}`, but must have `item` and `cluster`")
    found = {line["item"]: line["cluster"] for line in table.lines()}
    missing = next((item for item in items if item not in found), None)
    if missing is not None:
        raise InvalidInput(f"{path} has no cluster of item {missing!r}, but must have one of each")
    return [found[item] for item in items]


def with_features(
    settings: Mapping[str, Any], arms: str | None, labels: Sequence[object] | None = None
) -> dict[str, Any]:
    """The same settings, with features read from their file, or from columns of the file `arms`."""
    from shortlist.reading.files import read_feature_columns, read_features

    given = settings["features"]
    if given is None:
        return dict(settings)
    if Path(given).exists():
        return {**settings, "features": read_features(given, labels)}
    if arms in (None, "-"):
        raise InvalidInput(f"`features` is {given!r}, but there is no such file")
    names = [name.strip() for name in given.split(",")]
    return {**settings, "features": read_feature_columns(arms, names)}


def with_quotas(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The same settings, with quotas read from their file."""
    path = settings["quotas"]
    return {**settings, "quotas": None if path is None else read_quotas(path)}


def read_groups(path: str) -> list[str | None]:
    """The group of every arm: one a line, or a CSV with a column `group`; an empty cell is none."""
    lines = read_columns(path, only="group").lines()
    return [line["group"].strip() or None for line in lines]


def groups_of(path: str | None, means: str | None, quotas: object) -> list[str | None] | None:
    """The groups in a file of their own, or for quotas in a column `group` of the file of means."""
    if path is not None:
        return read_groups(path)
    if quotas is None or means is None or means == "-":
        return None
    return read_groups(means) if "group" in read_columns(means, only="mean").names else None


METRIC = "metric:"  # begins the name of a column with a metric


class ToldLine(NamedTuple):
    """A line of a file of rewards."""

    where: str
    ticket: int
    reward: float
    cost: float | None
    arm: str  # empty if the line names none
    metrics: dict[str, float]


def read_rewards(path: str) -> list[ToldLine]:
    """A CSV with columns `ticket` and `reward`, and perhaps `cost`, `arm` and `metric:NAME`."""
    table = read_columns(path)
    missing = [f"`{name}`" for name in ("ticket", "reward") if name not in table.names]
    if table.header and missing:
        raise InvalidInput(
            f"{path}, line {table.first} has no column {' and no '.join(missing)}, but must be"
            " ticket,reward"
        )
    results = [_result(line) for line in table.lines(pad=True)]
    if not results:
        raise InvalidInput(f"{path} holds no rewards, but must hold a ticket and its reward a line")
    return results


def with_arms(lines: Sequence[ToldLine], labels: "Sequence[Label]") -> "list[Report]":
    """What the lines tell. A line that names an arm is for a ticket of this arm only."""
    from shortlist.engine import Ticket

    written = _as_written(labels)
    results: list[Report] = []
    for each in lines:
        if each.arm.strip() and each.arm not in written:
            raise InvalidInput(f"{each.where}: arm {each.arm!r} must be one of the arms")
        label = written.get(each.arm)
        ticket = each.ticket if label is None else Ticket(each.ticket, label, 0, 0, 0.0)
        results.append((ticket, each.reward, each.cost, None, each.metrics or None))
    return results


def _as_written(labels: "Sequence[Label]") -> "dict[str, Label | None]":
    """The label that a text means, as it stands or as `ask --format csv` writes it; None if two."""
    written: dict[str, Label | None] = {}
    for label in labels:
        for text in {str(label), str(no_formula(str(label)))}:
            written[text] = None if text in written else label
    return written


def _result(line: FileLine) -> ToldLine:
    from shortlist.engine.program import decimal, reward_in

    reward, ticket = line["reward"], whole_number(line["ticket"])
    if ticket is None:
        raise InvalidInput(f"{line.where}: ticket {line['ticket']!r} must be a whole number")
    cost = line.cells.get("cost", "").strip()
    measured = {name: cell for name, cell in line.cells.items() if name.startswith(METRIC)}
    for name, cell in {"reward": reward, "cost": cost or "0", **measured}.items():
        try:
            reward_in(cell)
        except ValueError:
            rule = f"must be a number{number_hint(cell)}"
            raise InvalidInput(f"{line.where}: {name} {cell!r} {rule}") from None
    arm, paid = line.cells.get(COLUMN, ""), decimal(cost) if cost else None
    metrics = {name.removeprefix(METRIC): reward_in(cell) for name, cell in measured.items()}
    return ToldLine(line.where, ticket, reward_in(reward), paid, arm, metrics)


if TYPE_CHECKING:
    from shortlist.arrays import FloatArray, IntArray


def read_pilot(path: str) -> tuple["IntArray", "FloatArray"]:
    """Pulls and sum of rewards of every arm."""
    import numpy as np

    lines = read_totals(path)
    pulls = [whole(line, "pulls") for line in lines]
    sums = [_unit_total(line, count) for line, count in zip(lines, pulls, strict=True)]
    return np.array(pulls, dtype=np.int64), np.array(sums, dtype=np.float64)


def _unit_total(line: FileLine, pulls: int) -> float:
    """The sum of rewards in [0, 1], or of successes and failures."""
    value = total(line)
    if not 0 <= value <= pulls:
        raise InvalidInput(
            f"{line.where} says {given_text(value)}, but rewards in [0, 1] add up to at most"
            f" {pulls} in {pulls} pulls"
        )
    return value


if TYPE_CHECKING:
    from shortlist.arrays import BoolArray, FloatArray, IntArray
    from shortlist.constraints import Quotas
    from shortlist.reward_models import RewardsDeclared

TRUTHS = {"yes": True, "1": True, "true": True, "no": False, "0": False, "false": False}


@dataclass(frozen=True, slots=True)
class Fresh:
    """A line for every arm, and what it says."""

    lines: list[FileLine]
    chosen: "BoolArray"  # (arms,), as all others
    pulls: "IntArray"
    sums: "FloatArray"
    squares: "FloatArray | None"

    @property
    def labels(self) -> list[str] | None:
        """The arms, if there is a column of them."""
        named = "arm" in self.lines[0].cells
        return [line["arm"].strip() for line in self.lines] if named else None

    @property
    def usual_rewards(self) -> "RewardsDeclared":
        """0 or 1 where successes were counted, else anything in between."""
        return "binary" if "successes" in self.lines[0].cells else (0.0, 1.0)

    def quotas(self, path: str) -> "Quotas":
        """The quotas of a file, on the groups that the lines name."""
        from shortlist.constraints import Quotas

        if "group" not in self.lines[0].cells:
            raise InvalidInput("--quotas is given, but the arms have no column `group`")
        groups = [line["group"].strip() for line in self.lines]
        return Quotas(groups, read_quotas(path), k=int(self.chosen.sum()))

    def check(self, rewards: "RewardsDeclared") -> None:
        """Refuse the first line whose sums cannot be those of this many rewards."""
        from shortlist.certificates.certify import check_possible
        from shortlist.reward_models import model_of

        where = [line.where for line in self.lines]
        check_possible(where, self.pulls, self.sums, self.squares, model_of(rewards))


def read_quotas(path: str) -> dict[str, tuple[int, int]]:
    """Least and most chosen arms of every group, from columns group, least and most."""
    table = read_columns(path)
    needed = ("group", "least", "most")
    if not set(needed) <= set(table.names):
        found = ", ".join(table.header) or "nothing"
        raise InvalidInput(
            f"{path} begins with {found}, but must begin with columns {', '.join(needed)}"
        )
    quotas: dict[str, tuple[int, int]] = {}
    for line in table.lines():
        name = line["group"].strip()
        if name in quotas:
            raise InvalidInput(f"{line.where}: group {name!r} has two lines, but needs one")
        quotas[name] = whole(line, "least"), whole(line, "most")
    return quotas


def read_fresh(path: str, least: int = 1) -> Fresh:
    """Columns chosen, pulls (`least` each or more), sum (or successes), and perhaps squares."""
    import numpy as np

    lines = read_totals(path, "chosen")
    chosen = np.array([_chosen(line) for line in lines], dtype=np.bool_)
    if chosen.all() or not chosen.any():
        raise InvalidInput(
            f"{path} says that {chosen.sum():,} of {chosen.size:,} arms were chosen, but some must"
            " be chosen and some not"
        )
    squared = "squares" in lines[0].cells
    return Fresh(
        lines,
        chosen,
        np.array([whole(line, "pulls", least=least) for line in lines], dtype=np.int64),
        np.array([total(line) for line in lines], dtype=np.float64),
        np.array([decimal(line, "squares") for line in lines]) if squared else None,
    )


def _chosen(line: FileLine) -> bool:
    cell = line["chosen"].strip()
    if cell.lower() not in TRUTHS:
        raise InvalidInput(f"{line.where} says {cell!r}, but chosen must be yes or no")
    return TRUTHS[cell.lower()]
