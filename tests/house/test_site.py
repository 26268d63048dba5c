"""The documentation builds as a site without a warning, and every public name is on it."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import shortlist

DOCS = Path(__file__).parents[2] / "docs"
BUILDS = all(find_spec(name) for name in ("sphinx", "furo", "myst_parser"))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not BUILDS:
        pytest.skip("pip install --group docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "--quiet", "--fail-on-warning"]
    command += ["-D", "toc_object_entries=0"]  # they make a third of the time, and no test of it
    done = subprocess.run(
        [*command, str(DOCS), str(folder)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    pages = [path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")]
    assert [page for page in pages if not (site / page).is_file()] == []


def test_every_public_name_can_be_linked_to(site: Path) -> None:
    reference = (site / "api.html").read_text(encoding="utf-8")
    modules = {"errors", "instances", "regret"}
    names = [f"module-shortlist.{name}" for name in modules]
    names += [f"shortlist.{name}" for name in set(shortlist.__all__) - modules]
    assert [name for name in names if f'id="{name}"' not in reference] == []


def test_no_page_needs_another_server(site: Path) -> None:
    loaded = [
        (page.name, line.strip())
        for page in site.rglob("*.html")
        for line in page.read_text(encoding="utf-8").splitlines()
        if ("<script src=" in line or '<link rel="stylesheet"' in line) and "://" in line
    ]
    assert loaded == []


def test_the_pages_are_there_for_machines_too(site: Path) -> None:
    listed = (site / "llms.txt").read_text(encoding="utf-8")
    assert listed.startswith("# shortlist\n")
    for page in DOCS.rglob("*.md"):
        name = page.relative_to(DOCS)
        assert (site / name).read_text(encoding="utf-8") == page.read_text(encoding="utf-8")
        assert f"({name.as_posix()})" in listed or name.name == "index.md"


def test_the_sidebar_is_grouped(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert page.count('class="caption"') == 7
