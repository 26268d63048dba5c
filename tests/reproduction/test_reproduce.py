"""The same settings give the same files, for any number of processes and however often the run is
killed."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from shortlist.reproduction.methods import ON_BUDGET, TO_CONFIDENCE
from shortlist.reproduction.panels import Panel
from shortlist.reproduction.report import write_report
from shortlist.reproduction.reproduce import reproduce
from shortlist.reproduction.settings import Settings

SETTINGS = Settings(
    (Panel("two-group", 20, 10, 0.1), Panel("uniform", 20, 5, 0.1)), runs=6, quick=True
)
PROGRAM = """
import sys
from pathlib import Path
from shortlist.reproduction.panels import Panel
from shortlist.reproduction.reproduce import reproduce
from shortlist.reproduction.settings import Settings

panels = (Panel("two-group", 20, 10, 0.1), Panel("uniform", 20, 5, 0.1))
settings = Settings(panels, runs=6, quick=True)
print("ready", flush=True)
reproduce(settings, Path(sys.argv[1]), jobs=2)
"""


@pytest.fixture(scope="module")
def calm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An undisturbed run in one process."""
    folder = tmp_path_factory.mktemp("calm")
    write_report(SETTINGS, reproduce(SETTINGS, folder, jobs=1), folder)
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_any_number_of_processes_writes_the_same_files(calm: Path, tmp_path: Path) -> None:
    write_report(SETTINGS, reproduce(SETTINGS, tmp_path, jobs=3), tmp_path)
    assert files(tmp_path) == files(calm)


def test_the_files_are_these(calm: Path) -> None:
    figures = ["overview", "failure-two-group", "failure-uniform"]
    assert set(files(calm)) == {"results.csv", "settings.json", "report.html", "report.md"} | {
        f"figures/{name}.{kind}" for name in figures for kind in ("png", "svg")
    }


def test_every_method_has_a_row_on_every_panel(calm: Path, tmp_path: Path) -> None:
    rows = reproduce(SETTINGS, calm)
    for part, methods in (("curve", ON_BUDGET), ("confidence", TO_CONFIDENCE)):
        found = {(row.panel, row.method) for row in rows if row.part == part}
        assert found == {(panel.name, method) for panel in SETTINGS.panels for method in methods}
    keys = [(row.part, row.panel, row.method, row.budget) for row in rows]
    assert len(keys) == len(set(keys))


def test_another_seed_gives_other_results(calm: Path, tmp_path: Path) -> None:
    other = Settings(SETTINGS.panels[:1], runs=6, seed=1, quick=True)
    rows = reproduce(other, tmp_path)
    assert rows != [
        row for row in reproduce(SETTINGS, calm) if row.panel == SETTINGS.panels[0].name
    ]


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
    rows = reproduce(SETTINGS, tmp_path)
    write_report(SETTINGS, rows, tmp_path)
    assert files(tmp_path) == files(calm)


def _killed_at(folder: Path, size: int, delay: float) -> bool:
    """Start the run, kill it once the results have that size and a moment has passed; whether it
    was still running."""
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
