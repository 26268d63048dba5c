"""Results survive being cut off anywhere, and are not mixed with those of another design."""

from pathlib import Path

import pytest

from shortlist.errors import InvalidInput
from shortlist.reproduction.design import Panel
from shortlist.reproduction.runs import ResultRow, ResultsFile, name_of, row_of

PANEL = Panel("uniform", 20, 5)
RECORD = {"seed": 0, "runs": 2}
ANYTIME = {"expected-loss"}


def task_rows(part: str, method: str, *budgets: int) -> list[ResultRow]:
    return [
        row_of(part, PANEL, method, budget, [budget, budget + 1], [0.1, 1 / 3])
        for budget in budgets
    ]


TASKS = [
    task_rows("pilot", "sar", 40, 60) + task_rows("pilot", "uniform", 40),
    task_rows("curve", "sar", 50),
    task_rows("curve", "sar", 70),
    task_rows("curve", "expected-loss", 50, 70, 90),  # anytime: one task
    task_rows("confidence", "certified", 0),
]


def fill(folder: Path) -> bytes:
    """Do what is missing, as a run does."""
    file = ResultsFile(folder, RECORD, ANYTIME)
    done = file.done
    for rows in TASKS:
        if name_of(rows[0], ANYTIME) not in done:
            file.append(rows)
    assert file.rows == [row for rows in TASKS for row in rows]
    return file.path.read_bytes()


def test_a_file_cut_off_at_any_byte_is_completed_to_the_same_file(tmp_path: Path) -> None:
    whole = fill(tmp_path / "whole")
    for length in range(0, len(whole) + 1, 13):
        folder = tmp_path / str(length)
        folder.mkdir()
        (folder / "results.csv").write_bytes(whole[:length])
        assert fill(folder) == whole


def test_all_tasks_but_the_last_are_kept(tmp_path: Path) -> None:
    fill(tmp_path)
    assert ResultsFile(tmp_path, RECORD, ANYTIME).rows == [
        row for rows in TASKS[:-1] for row in rows
    ]


def test_rows_read_back_the_same(tmp_path: Path) -> None:
    fill(tmp_path)
    assert ResultsFile(tmp_path, RECORD, ANYTIME).rows[0].regret_mean == (0.1 + 1 / 3) / 2


def test_results_of_another_design_are_refused_and_left_alone(tmp_path: Path) -> None:
    whole = fill(tmp_path)
    with pytest.raises(
        InvalidInput, match=r"`seed` is 1, but must be 0 to continue .*; choose another folder"
    ):
        ResultsFile(tmp_path, {"seed": 1, "runs": 2}, ANYTIME)
    assert (tmp_path / "results.csv").read_bytes() == whole


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n", "begins with 'a,b', but must hold results"),
        (None, "line 2 of .* is 'rubbish', but must be a row of results"),
    ],
)
def test_a_file_that_holds_something_else_is_refused(
    tmp_path: Path, content: str | None, message: str
) -> None:
    fill(tmp_path)
    path = tmp_path / "results.csv"
    path.write_text(content or path.read_text().splitlines()[0] + "\nrubbish\n")
    with pytest.raises(InvalidInput, match=message):
        ResultsFile(tmp_path, RECORD, ANYTIME)
