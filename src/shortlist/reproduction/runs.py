"""The runs: cut into tasks, measured, and kept as rows of one file that can be continued."""

import csv
import hashlib
import io
import json
import os
import time
from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass, fields
from itertools import groupby
from math import nan
from pathlib import Path
from typing import get_type_hints

import numpy as np
import numpy.typing as npt

from shortlist.algorithms import Algorithm
from shortlist.engine.progress import displayed
from shortlist.errors import InvalidInput
from shortlist.problem import FixedBudget, Problem
from shortlist.regret import ROUNDING, aggregate_regret
from shortlist.reproduction.design import (
    BOTH_FORMS,
    ON_BUDGET,
    SWEPT,
    Design,
    Method,
    Panel,
    Rates,
    budgets,
    ladder,
)
from shortlist.search import Answer, Pulls, Search, advance
from shortlist.simulation.parallel import parallel_stream
from shortlist.simulation.simulate import simulate
from shortlist.simulation.worlds import Bandit, BernoulliBandit

Marks = Sequence[int]  # numbers of pulls, rising


def course(
    algorithm: Algorithm,
    problem: Problem,
    bandit: Bandit,
    marks: Marks,
    seed: np.random.SeedSequence,
) -> list[tuple[int, float]]:
    """Pulls and regret at every mark of one run.

    Arms come in random order, since a sorted instance leaks the truth (E18)."""
    assert algorithm.anytime is not None
    rng = np.random.default_rng(seed)
    shuffled = bandit.with_means(rng.permutation(bandit.means))
    search_rng, reward_rng = rng.spawn(2)
    run_up_to = algorithm.anytime(problem.unit(), search_rng)
    spent = 0
    stops = []
    for mark in marks:
        more, answer = _finish(run_up_to(mark), shuffled, reward_rng)
        spent += more
        stops.append((spent, aggregate_regret(shuffled.means, answer.top)))
    return stops


def _finish(search: Search, bandit: Bandit, rng: np.random.Generator) -> tuple[int, Answer]:
    """The pulls that a search spends until its answer, and the answer."""
    spent = 0
    turn = advance(search, None)
    while isinstance(turn, Pulls):
        spent += turn.total
        turn = advance(search, bandit.pull(turn.arms, turn.times, rng))
    return spent, turn


@dataclass(frozen=True, slots=True)
class ResultRow:
    """The figures of several runs that differ in nothing but chance."""

    part: str  # pilot, curve, confidence, sweep or decision
    panel: str
    n: int
    k: int
    epsilon: float
    delta: float
    method: str
    budget: int  # 0 where there was none
    runs: int
    failures: int  # runs that lost more than epsilon
    pulls_mean: float
    pulls_sd: float
    pulls_max: int
    regret_mean: float  # NaN where runs were stopped before their answer
    regret_max: float

    def cells(self) -> list[str]:
        """The row as text; floats as the shortest that reads back the same."""
        return [str(value) for value in astuple(self)]


COLUMNS = tuple(field.name for field in fields(ResultRow))
KINDS = get_type_hints(ResultRow)


def read(cells: Sequence[str], where: str) -> ResultRow:
    """The row that these cells hold."""
    try:
        values = [KINDS[column](cell) for column, cell in zip(COLUMNS, cells, strict=True)]
    except ValueError as error:
        raise InvalidInput(
            f"{where} is {','.join(cells)!r}, but must be a row of results"
        ) from error
    return ResultRow(*values)


def row_of(
    part: str, panel: Panel, method: str, budget: int, pulls: npt.ArrayLike, regret: npt.ArrayLike
) -> ResultRow:
    """The row that sums these runs up."""
    spent = np.asarray(pulls)
    lost = np.asarray(regret)
    return ResultRow(
        part=part,
        panel=panel.name,
        n=panel.n,
        k=panel.k,
        epsilon=panel.epsilon,
        delta=panel.delta,
        method=method,
        budget=budget,
        runs=spent.size,
        failures=int((lost > panel.epsilon + ROUNDING).sum()),
        pulls_mean=float(spent.mean()),
        pulls_sd=float(spent.std(ddof=1)) if spent.size > 1 else 0.0,
        pulls_max=int(spent.max()),
        regret_mean=float(lost.mean()),
        regret_max=float(lost.max()),
    )


ENDLESS = 10**12  # a budget that no run of interest uses up


def measure(
    part: str, panel: Panel, method: Method, budgets: Sequence[int], runs: int, seed: int
) -> list[ResultRow]:
    """A row for every budget, or one row to the panel's confidence if there is none.

    An anytime method gives all its rows from the same runs, any other has runs of its own for
    each."""
    if method.anytime and budgets:
        return _courses(part, panel, method, budgets, runs, seed)
    return [_stand_alone(part, panel, method, budget, runs, seed) for budget in budgets or [0]]


def seed_of(seed: int, part: str, panel: Panel, method: Method, budget: int = 0) -> int:
    """The seed of a row: a function of what it is about, never of when or where it is computed."""
    question = f"{panel.name} {panel.n} {panel.epsilon!r} {panel.delta!r}"
    words = f"{seed} {part} {question} {method.name} {budget}"
    return int.from_bytes(hashlib.sha256(words.encode()).digest()[:16], "big")


def _stand_alone(
    part: str, panel: Panel, method: Method, budget: int, runs: int, seed: int
) -> ResultRow:
    outcome = simulate(
        method.algorithm,
        panel.means(),
        k=panel.k,
        epsilon=panel.epsilon,
        delta=panel.delta,
        budget=budget or None,
        runs=runs,
        seed=seed_of(seed, part, panel, method, budget),
        options=method.options,
    )
    return row_of(part, panel, method.name, budget, outcome.pulls, outcome.regret)


def _courses(
    part: str, panel: Panel, method: Method, budgets: Sequence[int], runs: int, seed: int
) -> list[ResultRow]:
    bandit = BernoulliBandit(panel.means())
    problem = Problem(panel.n, panel.k, FixedBudget(budgets[-1]), bandit.model)
    seeds = np.random.SeedSequence(seed_of(seed, part, panel, method)).spawn(runs)
    # (runs, budgets, 2)
    courses = np.array([course(method.found, problem, bandit, budgets, each) for each in seeds])
    return [
        row_of(part, panel, method.name, budget, pulls.astype(np.int64), regret)
        for budget, (pulls, regret) in zip(budgets, courses.transpose(1, 2, 0), strict=True)
    ]


def decision(panel: Panel, method: Method, seed: int) -> ResultRow:
    """Pulls until a form of AdaptiveTopK first accepts or rejects an arm, in one run.

    Until then it has pulled all arms equally often: it is uniform sampling."""
    rng = np.random.default_rng(seed_of(seed, "first decision", panel, method))
    bandit = BernoulliBandit(rng.permutation(panel.means()))
    problem = Problem(panel.n, panel.k, FixedBudget(ENDLESS), bandit.model)
    search = method.found.start(problem, rng, **method.options)
    spent = 0
    turn = advance(search, None)
    while isinstance(turn, Pulls) and turn.progress.undecided == panel.n:
        spent += turn.total
        turn = advance(search, bandit.pull(turn.arms, turn.times, rng))
    return row_of("decision", panel, method.name, 0, [spent], [nan])


def pilot(panel: Panel, runs: int, seed: int) -> list[ResultRow]:
    """Every method at rising budgets, until none of its runs fails.

    Anytime methods come last and go as far as the others did, in one run each."""
    told = [method for method in ON_BUDGET if not method.anytime]
    rows = [row for method in told for row in _climb(panel, method, runs, seed)]
    highest = max(row.budget for row in rows)
    rungs = [budget for budget in ladder(panel.n) if budget <= highest]
    for method in ON_BUDGET:
        if method.anytime:
            rows += measure("pilot", panel, method, rungs, runs, seed)
    return rows


def _climb(panel: Panel, method: Method, runs: int, seed: int) -> Iterator[ResultRow]:
    for budget in ladder(panel.n):
        (row,) = measure("pilot", panel, method, [budget], runs, seed)
        yield row
        if row.failures == 0:
            return


def failure_rates(rows: Iterable[ResultRow], panel: Panel) -> dict[str, Rates]:
    """What the pilot of a panel found: of every method, the rate at every rung it tried."""
    rates: dict[str, dict[int, float]] = defaultdict(dict)
    for row in rows:
        if row.part == "pilot" and row.panel == panel.name:
            rates[row.method][row.budget] = row.failures / row.runs
    return dict(rates)


class TaskTimes:
    """Durations of tasks so far, by kind, in `workers` processes."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.took: dict[Hashable, list[float]] = defaultdict(list)

    def note(self, kind: Hashable, seconds: float) -> None:
        """Remember what a task of that kind took."""
        self.took[kind].append(seconds)

    def seconds_left(self, kinds: Iterable[Hashable]) -> float | None:
        """How long these tasks will take, if each takes as long as its kind did so far.

        A kind not seen yet counts as the average task; nothing is known before the first one."""
        if not self.took:
            return None
        means = {kind: sum(seconds) / len(seconds) for kind, seconds in self.took.items()}
        every = [seconds for of_kind in self.took.values() for seconds in of_kind]
        average = sum(every) / len(every)
        return sum(means.get(kind, average) for kind in kinds) / self.workers


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

    New parts come last: a file that was finished without them is then continued."""
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


class ResultsFile:
    """The results of one design, in a folder of their own."""

    def __init__(
        self, folder: Path, record: Mapping[str, object], anytime: Collection[str]
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        _claim(folder / "settings.json", record)
        self.path = folder / "results.csv"
        self.anytime = anytime
        self.rows = self._recover()

    @property
    def done(self) -> set[TaskName]:
        """The names of all tasks whose rows are here."""
        return {self._task(row) for row in self.rows}

    def append(self, rows: Sequence[ResultRow]) -> None:
        """Add the rows of one task; they are on the disk when this returns."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(_lines(row.cells() for row in rows))
            file.flush()
            os.fsync(file.fileno())
        self.rows += rows

    def _task(self, row: ResultRow) -> TaskName:
        return name_of(row, self.anytime)

    def _recover(self) -> list[ResultRow]:
        """All rows but those of the last task; the file is cut off there."""
        lines = self._whole_lines()
        table = enumerate(csv.reader(lines[1:]), start=2)
        rows = [read(cells, f"line {number} of {self.path}") for number, cells in table]
        tasks = [list(group) for _, group in groupby(rows, key=self._task)]
        kept = sum(map(len, tasks[:-1]))
        replace(self.path, "".join(lines[: 1 + kept]))
        return rows[:kept]

    def _whole_lines(self) -> list[str]:
        """The header and all lines that were written to their end."""
        header = _lines([COLUMNS])
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        lines = text[: text.rfind("\n") + 1].splitlines(keepends=True) or [header]
        if lines[0] != header:
            raise InvalidInput(
                f"{self.path} begins with {lines[0].strip()!r}, but must hold results"
            )
        return lines


def replace(path: Path, text: str) -> None:
    """Write a file so that at any moment there is either the old one or the new one."""
    draft = path.with_name(path.name + ".part")
    with draft.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _claim(path: Path, record: Mapping[str, object]) -> None:
    """Note the record of a folder's design, or refuse to mix it with another."""
    if not path.exists():
        replace(path, json.dumps(record, indent=2) + "\n")
    found = json.loads(path.read_text(encoding="utf-8"))
    for name in found | dict(record):
        was = json.dumps(found.get(name))
        now = json.dumps(record.get(name))
        if now != was:
            raise InvalidInput(
                f"`{name}` is {now}, but must be {was} to continue {path.parent}; choose another"
                " folder"
            )


def _lines(rows: Iterable[Sequence[str]]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def results(design: Design, folder: Path, workers: int = 1) -> list[ResultRow]:
    """All rows of the results, from the folder if they are there, computed and put there if not.

    The same design gives the same file for any number of workers, however often it is
    interrupted."""
    file = ResultsFile(folder, design.record(), design.anytime)
    pace = TaskTimes(workers)
    _perform("where the curves fall", pilots(design), file, pace)
    _perform("curves, table and sweeps", main_tasks(design, file.rows), file, pace)
    return file.rows


def _perform(what: str, tasks: Sequence[Task], file: ResultsFile, pace: TaskTimes) -> None:
    """Do what is not yet in the file."""
    there = file.done
    todo = [task for task in tasks if task.name not in there]
    done = len(tasks) - len(todo)
    with (
        displayed(len(tasks), done) as display,
        closing(parallel_stream(perform, todo, pace.workers)) as performed,
    ):
        for number, (rows, seconds) in enumerate(performed, start=1):
            file.append(rows)
            pace.note(todo[number - 1].kind, seconds)
            if display.due(done + number):
                left = pace.seconds_left(task.kind for task in todo[number:])
                display.show(done + number, f"{what}: {done + number:,} of {len(tasks):,}", left)
