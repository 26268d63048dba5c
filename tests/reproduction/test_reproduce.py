"""The same design gives the same files, with any number of processes and however often killed."""

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from shortlist.errors import InvalidInput
from shortlist.reproduction import Design, Panel
from shortlist.reproduction.design import BOTH_FORMS
from shortlist.reproduction.report import write_report
from shortlist.reproduction.runs import results
from shortlist.simulation.worlds import BernoulliBandit

PANELS = (Panel("two-group", 20, 10, 0.1), Panel("uniform", 20, 5, 0.1))
DESIGN = Design(PANELS, runs=6, quick=True)
PROGRAM = """
import sys
from pathlib import Path
from shortlist.reproduction import Design, Panel
from shortlist.reproduction.runs import results

panels = (Panel("two-group", 20, 10, 0.1), Panel("uniform", 20, 5, 0.1))
design = Design(panels, runs=6, quick=True)
print("ready", flush=True)
results(design, Path(sys.argv[1]), workers=2)
"""


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("calm")
    write_report(DESIGN, results(DESIGN, folder, workers=1), folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_any_number_of_processes_writes_the_same_files(calm: Path, tmp_path: Path) -> None:
    write_report(DESIGN, results(DESIGN, tmp_path, workers=3), tmp_path)
    assert files(tmp_path) == files(calm)


def test_a_reproduction_writes_these_files(calm: Path) -> None:
    figures = ["overview", "failure-two-group", "failure-uniform"]
    assert set(files(calm)) == {"results.csv", "settings.json", "report.html", "report.md"} | {
        f"figures/{name}.{kind}" for name in figures for kind in ("png", "svg")
    }


def test_every_method_has_a_row_on_every_panel(calm: Path, tmp_path: Path) -> None:
    rows = results(DESIGN, calm)
    for part, methods in (
        ("curve", DESIGN.on_budget),
        ("confidence", DESIGN.to_confidence),
        ("decision", BOTH_FORMS),
    ):
        found = {(row.panel, row.method) for row in rows if row.part == part}
        assert found == {(panel.name, method.name) for panel in PANELS for method in methods}
    keys = [(row.part, row.panel, row.method, row.budget) for row in rows]
    assert len(keys) == len(set(keys))


def test_another_algorithm_is_in_the_results_and_leaves_the_other_rows_as_they_were(
    calm: Path, tmp_path: Path
) -> None:
    wider = replace(DESIGN, algorithms=("lucb",))
    rows = results(wider, tmp_path)
    write_report(wider, rows, tmp_path)
    added = [row.cells() for row in rows if row.part == "curve" and row.method == "lucb"]
    before = [row.cells() for row in results(DESIGN, calm)]
    assert [row.cells() for row in rows if row.cells() not in added] == before
    assert {cells[1] for cells in added} == {panel.name for panel in PANELS}
    assert "| expected-loss | lucb |" in (tmp_path / "report.md").read_text(encoding="utf-8")
    with pytest.raises(InvalidInput, match=r'`compared` is null, but must be \["lucb"\]'):
        results(DESIGN, tmp_path)


def test_nothing_is_simulated_while_the_report_is_written(
    calm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*args: object) -> None:
        raise AssertionError("an arm was pulled")

    rows = results(DESIGN, calm)
    monkeypatch.setattr(BernoulliBandit, "pull", refuse)
    assert write_report(DESIGN, rows, tmp_path).exists()


def test_another_seed_gives_other_results(calm: Path, tmp_path: Path) -> None:
    other = Design(DESIGN.panels[:1], runs=6, seed=1, quick=True)
    rows = results(other, tmp_path)
    assert rows != [row for row in results(DESIGN, calm) if row.panel == DESIGN.panels[0].name]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_run_killed_at_random_moments_and_started_again_ends_with_the_same_file(
    calm: Path, tmp_path: Path
) -> None:
    chance = random.Random(1)
    size = (calm / "results.csv").stat().st_size
    kills = 0
    for moment in sorted(chance.randrange(size) for _ in range(3)):
        kills += _killed_at(tmp_path, moment, chance.random() * 0.05)
    assert kills >= 1
    rows = results(DESIGN, tmp_path)
    write_report(DESIGN, rows, tmp_path)
    assert files(tmp_path) == files(calm)


def _killed_at(folder: Path, size: int, delay: float) -> bool:
    """Kill the run a moment after the results have that size; whether it was still running."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, folder], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        path = folder / "results.csv"
        while process.poll() is None and (not path.exists() or path.stat().st_size < size):
            time.sleep(0.005)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
        return process.wait() == -signal.SIGKILL
