"""The command writes a report that holds all it should and needs nothing else."""

import re
import sys
from pathlib import Path

import pytest
from command_line import invoke

from shortlist.reproduction.report import Table

COMMAND = ["reproduce", "--panel", "rte-50", "--runs", "1", "--quick", "--workers", "1", "--out"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    done = invoke([*COMMAND, str(folder)])
    assert (done.exit_code, done.stdout) == (0, f"{folder / 'report.html'}\n")
    return folder


def test_the_page_needs_no_network_and_no_other_file(folder: Path) -> None:
    page = (folder / "report.html").read_text(encoding="utf-8")
    sources = re.findall(r'(?:src|href)="([^"]{0,30})', page)
    assert sources
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    assert "<script" not in page
    assert "@import" not in page


@pytest.mark.parametrize("name", ["report.html", "report.md"])
def test_the_report_has_figures_tables_claims_settings_versions_and_seed(
    folder: Path, name: str
) -> None:
    text = (folder / name).read_text(encoding="utf-8").replace("&quot;", '"')
    for wanted in (
        "failure-rte",
        "expected-loss",
        "the paper says",
        "median-elimination",
        '"seed": 0',
        '"numpy": "',
    ):
        assert wanted in text


def test_the_links_of_the_markdown_lead_somewhere(folder: Path) -> None:
    links = re.findall(r"\]\(([^)]+)\)", (folder / "report.md").read_text(encoding="utf-8"))
    assert links
    assert all((folder / link).exists() for link in links)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--panel", "uniform-7"], "panel 'uniform-7' is unknown"),
        (["--runs", "0"], "`runs` is 0, but must be a whole number of at least 1"),
        (["--workers", "0"], "`workers` is 0, but must be a whole number of at least 1"),
        (["--seed", "-1"], "`seed` is -1, but must be a whole number of at least 0"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = invoke(["reproduce", "--out", str(tmp_path / "new"), *arguments])
    assert done.exit_code == 2
    assert message in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_folder_of_other_settings_is_not_continued(folder: Path) -> None:
    done = invoke([*COMMAND, str(folder), "--seed", "3"])
    assert done.exit_code == 2
    assert "`seed` is 3, but must be 0" in done.stderr


def test_without_matplotlib_the_error_names_the_package_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = invoke([*COMMAND, str(tmp_path)])
    assert done.exit_code == 2
    assert "pip install 'shortlist[plot]'" in done.stderr


def test_a_table_is_escaped_and_marks_what_stands_out() -> None:
    table = Table(("a & b", "c"), [["<1", "2"]], frozenset({(0, 1)}))
    assert "<th>a &amp; b</th>" in table.html()
    assert "<td>&lt;1</td><td class=best>2</td>" in table.html()
    assert table.markdown() == "| a & b | c |\n| --- | --- |\n| <1 | **2** |"
