"""A notebook shows tables, pictures and progress by itself: without magic and without widgets."""

import base64
import textwrap
from typing import Any

import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

CELLS = {
    "result": """
        import random, time, shortlist
        rates = {f"page <{n}>": 0.1 * n for n in range(1, 9)}
        def click(page, seed): return random.Random(seed).random() < rates[page]
        result = shortlist.select(click, arms=rates, k=2, epsilon=0.2, rewards="binary")
        result""",
    "result plot": "result.plot()",
    "result frame": "result.to_frame('pandas')",
    "runs": "runs = shortlist.simulate('uniform', list(rates.values()), k=2, epsilon=0.3); runs",
    "runs plot": "runs.plot()",
    "forecast": """
        prospects = shortlist.forecast(k=2, means=list(rates.values()), budget=[50, 90], runs=4)
        prospects""",
    "forecast plot": "prospects.plot()",
    "assessment": """
        counts = {arm: (100, round(100 * rate)) for arm, rate in rates.items()}
        found = shortlist.assess(counts, k=2, fixed=True)
        found""",
    "assessment plot": "found.plot()",
    "progress": """
        def slow(page): time.sleep(0.1); return rates[page]
        _ = shortlist.select(slow, arms=rates, k=2, budget=32)""",
}


@pytest.fixture(scope="module")
def run() -> tuple[dict[str, list[Any]], list[Any]]:
    """The outputs of every cell, and every message that shows or updates something."""
    shown = []

    made: Any = nbclient.NotebookClient

    class Client(made):  # type: ignore[misc]
        def process_message(self, message: Any, cell: Any, index: int) -> Any:
            if message["msg_type"] in ("display_data", "update_display_data"):
                shown.append(message)
            return super().process_message(message, cell, index)

    code = [nbformat.v4.new_code_cell(textwrap.dedent(text).strip()) for text in CELLS.values()]
    notebook = nbformat.v4.new_notebook(cells=code)
    Client(notebook, timeout=300, kernel_name="python3", startup_timeout=300).execute()
    return {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}, shown


def data(outputs: list[Any], kind: str) -> list[str]:
    return [each["data"][kind] for each in outputs if kind in each.get("data", {})]


@pytest.mark.parametrize("name", ["result", "runs", "forecast", "assessment", "result frame"])
def test_a_table_is_shown_as_html_and_as_text(run: Any, name: str) -> None:
    (html,) = data(run[0][name], "text/html")
    assert "<table" in html
    assert data(run[0][name], "text/plain")


@pytest.mark.parametrize("name", ["result", "assessment"])
def test_chosen_arms_are_marked_and_labels_are_no_markup(run: Any, name: str) -> None:
    (html,) = data(run[0][name], "text/html")
    marked, others = html.split("<tbody")[1:]
    assert marked.count("border-left") == marked.count("<tr>") == 2
    assert "page &lt;8&gt;" in marked
    assert "border-left" not in others


@pytest.mark.parametrize("name", [name for name in CELLS if name.endswith("plot")])
def test_a_plot_is_shown_once_as_a_picture(run: Any, name: str) -> None:
    (png,) = data(run[0][name], "image/png")
    assert base64.b64decode(png).startswith(b"\x89PNG")


def test_progress_is_a_bar_that_moves_and_vanishes(run: Any) -> None:
    pages = [message["content"]["data"].get("text/html", "") for message in run[1]]
    bars = [page for page in pages if "<progress" in page]
    assert len(bars) > 1
    assert all('max="32"' in bar and " of 32 pulls" in bar for bar in bars)
    assert data(run[0]["progress"], "text/html") == [""]
    assert len(run[0]["progress"]) == 1  # nothing on stderr


def test_no_cell_of_a_notebook_prints_a_warning(run: Any) -> None:
    assert [
        (name, each)
        for name, outputs in run[0].items()
        for each in outputs
        if each["output_type"] in ("stream", "error")
    ] == []
