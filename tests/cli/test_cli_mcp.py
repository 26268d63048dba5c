"""`shortlist mcp`: the tools, called by the client of the SDK."""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import invoke

pytest.importorskip("mcp")
from mcp import Client, StdioServerParameters

from shortlist.cli.mcp_tools import tool_server
from shortlist.spec import FIELDS

TOOLS = {
    "create",
    "ask",
    "tell",
    "shares",
    "tell_counts",
    "retire",
    "status",
    "result",
    "experiments",
    "forecast",
    "assess",
}
RATES = {"red": 0.9, "green": 0.3, "blue": 0.2, "grey": 0.1}
ASKED = {"arms": list(RATES), "k": 1, "epsilon": 0.2, "rewards": "binary"}
Session = Callable[[Client], Awaitable[None]]


async def called(client: Client, tool: str, **given: Any) -> Any:
    reply = await client.call_tool(tool, given)
    text = reply.content[0].text  # type: ignore[union-attr]
    assert not reply.is_error, text
    return json.loads(text)


async def refused(client: Client, tool: str, **given: Any) -> str:
    reply = await client.call_tool(tool, given)
    assert reply.is_error
    return str(reply.content[0].text)  # type: ignore[union-attr]


def in_session(store: Path | str, session: Session) -> None:
    async def run() -> None:
        async with Client(tool_server(str(store))) as client:
            await session(client)

    asyncio.run(run())


async def played(client: Client, name: str) -> int:
    """Ask and tell until the search has ended; the number of pulls."""
    pulls = 0
    while tickets := (await called(client, "ask", name=name, limit=50))["tickets"]:
        drawn = {
            str(ticket["id"]): float(random.Random(ticket["seed"]).random() < RATES[ticket["arm"]])
            for ticket in tickets
        }
        pulls += len(drawn)
        assert (await called(client, "tell", name=name, rewards=drawn))["told"] == pulls
    return pulls


def test_an_assistant_finds_the_best_arm_with_the_tools_alone(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        made = await called(client, "create", name="pages", settings=ASKED)
        assert made["name"] == "pages"
        pulls = await played(client, "pages")
        result = await called(client, "result", name="pages")
        assert result["top"] == ["red"]
        assert result["regret_bound"] <= 0.2
        assert result["pulls"] == pulls
        assert (await called(client, "status", name="pages"))["state"] == "finished"
        rows = (await called(client, "experiments"))["experiments"]
        assert [row["name"] for row in rows] == ["pages"]

    in_session(tmp_path / "tests.db", session)


def test_the_settings_of_a_new_experiment_have_the_schema_of_the_spec(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        schema = tools["create"].input_schema["properties"]["settings"]
        assert set(schema["properties"]) == set(FIELDS)

    in_session(tmp_path / "tests.db", session)


def test_a_retired_arm_is_not_handed_out(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        await called(client, "create", name="pages", settings=ASKED)
        await called(client, "retire", name="pages", arm="grey", reason="out of stock")
        tickets = (await called(client, "ask", name="pages", limit=1000))["tickets"]
        assert "grey" not in {ticket["arm"] for ticket in tickets}

    in_session(tmp_path / "tests.db", session)


def test_a_live_test_is_told_as_counts(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        live = {"arms": ["old", "new"], "k": 1, "epsilon": 0.1, "rewards": "binary"}
        await called(client, "create", name="page", settings={**live, "per_day": 1000})
        opened = await called(client, "shares", name="page", block="monday")
        assert {row["arm"]: row["percent"] for row in opened["shares"]} == {"old": 50, "new": 50}
        counts = {"old": [498, 20], "new": [502, 31]}
        told = await called(client, "tell_counts", name="page", block="monday", counts=counts)
        assert told["state"] == "counted"
        assert (await called(client, "status", name="page"))["told"] == 1000
        half = {"old": [498.5, 20], "new": [502, 31]}
        assert "498.5" in await refused(
            client, "tell_counts", name="page", block="monday", counts=half
        )

    in_session(tmp_path / "tests.db", session)


def test_errors_say_the_value_and_the_rule(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        assert "'colour'" in await refused(
            client, "create", name="a", settings={**ASKED, "colour": 1}
        )
        assert "no 'k'" in await refused(client, "create", name="a", settings={"arms": 3})
        own = {**ASKED, "algorithm": "os:system"}
        assert "'os:system'" in await refused(client, "create", name="a", settings=own)
        file = {**ASKED, "items": 4, "scores": "/etc/passwd"}
        assert "list of lists" in await refused(client, "create", name="a", settings=file)
        assert "`k` is 9" in await refused(client, "create", name="a", settings={**ASKED, "k": 9})
        assert "`limit` is 5000" in await refused(client, "ask", name="a", limit=5000)
        assert "`runs` is 1000" in await refused(client, "forecast", k=1, n=4, runs=1000)
        await called(client, "create", name="a", settings=ASKED)
        assert "nothing" in await refused(client, "ask", name="nothing")
        assert "told" not in await refused(client, "tell", name="a", rewards={"0": 7.0})

    in_session(tmp_path / "tests.db", session)


def test_forecasts_and_past_results_need_no_experiment(tmp_path: Path) -> None:
    async def session(client: Client) -> None:
        found = await called(client, "forecast", k=1, means=[0.9, 0.2], epsilon=0.2, runs=2)
        assert found["prospects"]
        past = {"blue": [400, 48], "red": [400, 30], "green": [400, 9]}
        kept = await called(client, "assess", counts=past, k=1, fixed=True)
        assert kept["top"] == ["blue"]

    in_session(tmp_path / "tests.db", session)


def test_the_command_serves_on_stdio(tmp_path: Path) -> None:
    arguments = ["-m", "shortlist", "mcp", "--store", str(tmp_path / "tests.db")]

    async def run() -> None:
        server = StdioServerParameters(command=sys.executable, args=arguments, env=dict(os.environ))
        async with Client(server) as client:
            await called(client, "create", name="pages", settings=ASKED)
            assert (await called(client, "ask", name="pages"))["tickets"]

    asyncio.run(asyncio.wait_for(run(), 60))


def test_without_the_sdk_the_command_names_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['mcp'] = None\n"
        "from shortlist.cli import main\n"
        f"main(['mcp', '--store', {str(tmp_path / 'tests.db')!r}])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'shortlist[mcp]'" in done.stderr


def test_help_needs_no_sdk() -> None:
    shown = " ".join(invoke(["mcp", "--help"], None).stdout.split())
    assert "Model Context Protocol" in shown
