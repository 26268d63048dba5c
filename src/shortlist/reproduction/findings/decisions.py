"""When AdaptiveTopK first accepts or rejects an arm: until then it is uniform sampling."""

from collections.abc import Iterable, Mapping

from shortlist.reproduction.runs.rows import ResultRow

Decisions = Mapping[tuple[str, str], int]  # panel, method -> pulls before the first decision


def first_decisions(rows: Iterable[ResultRow]) -> Decisions:
    """The pulls before the first decision of every form on every panel."""
    return {(row.panel, row.method): int(row.pulls_mean) for row in rows if row.part == "decision"}
