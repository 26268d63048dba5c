"""A file that is deleted under an open experiment: nothing is told into the void."""

import sys
from pathlib import Path

import pytest

from shortlist.engine import Experiment, export_lines, import_lines
from shortlist.errors import StoreReplaced

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted")


def test_a_tell_after_the_file_was_deleted_raises_and_the_rest_can_be_exported(
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.db"
    with Experiment.create(5, 2, budget=100, store=path) as experiment:
        first, second, *_ = experiment.ask(10)
        experiment.tell(first, 0.5)
        path.unlink()
        for _ in range(2):
            with pytest.raises(StoreReplaced, match="deleted or moved while"):
                experiment.tell(second, 0.5)
        with pytest.raises(StoreReplaced):
            experiment.ask()
        assert experiment.status().told == 1
        import_lines(export_lines(experiment.store), tmp_path / "again.db")
    with Experiment.open(tmp_path / "again.db") as again:
        assert again.status().told == 1
        again.tell(second, 0.5)


def test_a_file_that_was_made_anew_under_the_same_name_is_not_taken_for_it(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with Experiment.create(5, 2, budget=100, store=path) as experiment:
        (ticket,) = experiment.ask()
        for file in tmp_path.iterdir():
            file.unlink()
        with Experiment.create(5, 2, budget=100, store=path) as other:
            with pytest.raises(StoreReplaced, match="replaced by another file"):
                experiment.tell(ticket, 0.5)
            assert other.status().told == 0
