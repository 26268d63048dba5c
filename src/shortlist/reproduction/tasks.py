"""The work, cut into pieces that give the same rows wherever, whenever and in whatever order they
are done."""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from shortlist.reproduction import theory
from shortlist.reproduction.anytime import ANYTIME
from shortlist.reproduction.budgets import budgets, pilot
from shortlist.reproduction.measure import measure
from shortlist.reproduction.methods import ON_BUDGET, TO_CONFIDENCE
from shortlist.reproduction.panels import Panel
from shortlist.reproduction.rows import Row
from shortlist.reproduction.settings import Settings

Name = tuple[object, ...]
EVERY_METHOD = ""  # of a pilot


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work."""

    part: str
    panel: Panel
    method: str
    budgets: tuple[int, ...]
    runs: int
    seed: int

    @property
    def name(self) -> Name:
        """What tells it from other tasks; the rows it gives tell the same."""
        budget = self.budgets[0] if len(self.budgets) == 1 and self.method not in ANYTIME else 0
        return self.part, self.panel.name, self.panel.n, self.panel.epsilon, self.method, budget

    @property
    def kind(self) -> tuple[str, str]:
        """What takes about as long."""
        return self.part, self.method


def name_of(row: Row) -> Name:
    """The name of the task that gives this row."""
    method = EVERY_METHOD if row.part == "pilot" else row.method
    budget = 0 if row.part == "pilot" or row.method in ANYTIME else row.budget
    return row.part, row.panel, row.n, row.epsilon, method, budget


def perform(task: Task) -> tuple[list[Row], float]:
    """The rows of a task, and the seconds it took."""
    started = time.perf_counter()
    if task.part == "pilot":
        rows = pilot(task.panel, task.runs, task.seed)
    else:
        rows = measure(task.part, task.panel, task.method, task.budgets, task.runs, task.seed)
    return rows, time.perf_counter() - started


def pilots(settings: Settings) -> list[Task]:
    """Where do the curves fall?"""
    runs, seed = settings.pilot_runs, settings.seed
    return [Task("pilot", panel, EVERY_METHOD, (), runs, seed) for panel in settings.panels]


def curves(settings: Settings, rows: Iterable[Row]) -> list[Task]:
    """Failure probability against budget, at the budgets that the pilot's rows ask for."""
    tasks = []
    for panel in settings.panels:
        tried = [row for row in rows if row.part == "pilot" and row.panel == panel.name]
        grid = budgets(tried, settings.n_budgets)
        for method in ON_BUDGET:
            portions = [grid] if method in ANYTIME else [(budget,) for budget in grid]
            tasks += [
                Task("curve", panel, method, portion, settings.runs, settings.seed)
                for portion in portions
            ]
    return tasks


def confidence_table(settings: Settings) -> list[Task]:
    """Every method with a guarantee on every panel."""
    runs, seed = settings.confidence_runs, settings.seed
    return [
        Task("confidence", panel, name, (), runs, seed)
        for panel in settings.panels
        for name in TO_CONFIDENCE
    ]


def sweeps(settings: Settings) -> list[Task]:
    """The theorems over n and over epsilon; only with all panels."""
    panels = dict.fromkeys(settings.sweep_over_n + settings.sweep_over_epsilon)  # one is in both
    runs, seed = settings.sweep_runs, settings.seed
    return [
        Task("sweep", panel, method, (), runs, seed)
        for panel in panels
        for method in theory.METHODS
    ]
