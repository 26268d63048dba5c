"""The work, cut into tasks that give the same rows wherever, whenever and in whatever order."""

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from shortlist.reproduction.design.budgets import budgets
from shortlist.reproduction.design.design import Design
from shortlist.reproduction.design.methods import BOTH_FORMS, Method
from shortlist.reproduction.design.panels import Panel
from shortlist.reproduction.design.sweeps import SWEPT
from shortlist.reproduction.runs.measure import decision, measure
from shortlist.reproduction.runs.pilot import failure_rates, pilot
from shortlist.reproduction.runs.rows import ResultRow

TaskName = tuple[object, ...]
EVERY_METHOD = ""  # of a pilot


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work."""

    part: str
    panel: Panel
    method: Method | None  # None for the pilot of all methods
    budgets: tuple[int, ...]
    runs: int
    seed: int

    @property
    def method_name(self) -> str:
        """The name of its method in the results."""
        return EVERY_METHOD if self.method is None else self.method.name

    @property
    def name(self) -> TaskName:
        """What tells it from other tasks; the rows it gives tell the same."""
        alone = self.method is not None and not self.method.anytime
        budget = self.budgets[0] if alone and self.budgets else 0
        panel = self.panel
        return self.part, panel.name, panel.n, panel.epsilon, self.method_name, budget

    @property
    def kind(self) -> tuple[str, str]:
        """What takes about as long."""
        return self.part, self.method_name


def name_of(row: ResultRow, anytime: Collection[str]) -> TaskName:
    """The name of the task that gives this row, where these methods are anytime."""
    together = row.part == "pilot" or row.method in anytime
    method = EVERY_METHOD if row.part == "pilot" else row.method
    budget = 0 if together else row.budget
    return row.part, row.panel, row.n, row.epsilon, method, budget


def perform(task: Task) -> tuple[list[ResultRow], float]:
    """The rows of a task, and the seconds it took."""
    started = time.perf_counter()
    rows = _rows(task)
    return rows, time.perf_counter() - started


def _rows(task: Task) -> list[ResultRow]:
    if task.method is None:
        return pilot(task.panel, task.runs, task.seed)
    if task.part == "decision":
        return [decision(task.panel, task.method, task.seed)]
    return measure(task.part, task.panel, task.method, task.budgets, task.runs, task.seed)


def pilots(design: Design) -> list[Task]:
    """Where do the curves fall?"""
    return [
        Task("pilot", panel, None, (), design.pilot_runs, design.seed) for panel in design.panels
    ]


def main_tasks(design: Design, rows: Sequence[ResultRow]) -> list[Task]:
    """All that follows the pilots, whose rows are given.

    New parts come last: a file that was finished without them is then gone on with."""
    return [
        *curves(design, rows),
        *confidence_table(design),
        *sweeps(design),
        *decisions(design),
    ]


def curves(design: Design, rows: Sequence[ResultRow]) -> list[Task]:
    """Failure probability against budget, at the budgets that the pilot's rows ask for."""
    tasks = []
    for panel in design.panels:
        grid = budgets(failure_rates(rows, panel), design.n_budgets)
        for method in design.on_budget:
            portions = [grid] if method.anytime else [(budget,) for budget in grid]
            tasks += [
                Task("curve", panel, method, portion, design.runs, design.seed)
                for portion in portions
            ]
    return tasks


def confidence_table(design: Design) -> list[Task]:
    """Every method with a guarantee on every panel."""
    return _tasks(
        "confidence", design.panels, design.to_confidence, design.confidence_runs, design.seed
    )


def sweeps(design: Design) -> list[Task]:
    """The theorems over n and over epsilon; only with all panels."""
    panels = dict.fromkeys(design.sweep_over_n + design.sweep_over_epsilon)  # one is in both
    return _tasks("sweep", panels, SWEPT, design.sweep_runs, design.seed)


def decisions(design: Design) -> list[Task]:
    """When does AdaptiveTopK stop being uniform sampling?"""
    return _tasks("decision", design.panels, BOTH_FORMS, 1, design.seed)


def _tasks(
    part: str, panels: Iterable[Panel], methods: Sequence[Method], runs: int, seed: int
) -> list[Task]:
    return [Task(part, panel, method, (), runs, seed) for panel in panels for method in methods]
