"""`shortlist serve` and `shortlist tokens`, and every other command with a service as its store."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import invoke

pytest.importorskip("uvicorn")
from services import caller, serving

from shortlist.stores.sqlite import SQLiteStore

PULL = f"{sys.executable} -c print(0.5) {{arm}}"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("arms.csv").write_text("arm\nred\ngreen\nblue\n")
    return tmp_path


@pytest.fixture
def url() -> Iterator[str]:
    store = SQLiteStore("served.db", "rwc")
    with serving(store) as url:
        yield url
    store.close()


def done(*arguments: str, stdin: str | None = None) -> str:
    result = invoke(arguments, stdin)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def refused(*arguments: str) -> tuple[int, str]:
    result = invoke(arguments)
    return result.exit_code, result.stderr.strip()


def test_every_command_takes_a_service_as_its_store(url: str) -> None:
    done("create", "arms.csv", "-k", "1", "--budget", "30", "--name", "a/b", "--store", url)
    assert "a/b" in done("list", url)
    tickets = json.loads(
        done("ask", "--limit", "4", "--worker", "ann", "--format", "json", "--store", url)
    )
    assert [each["ticket"] for each in tickets] == [0, 1, 2, 3]
    done("tell", "0", "0.5", "--store", url)
    done("tell", "--file", "-", "--store", url, stdin="ticket,reward\n1,1\n2,0\n")
    done("tell", "3", "--failed", "rain", "--store", url)
    status = json.loads(done("status", "--format", "json", "--store", url))
    assert (status["told"], status["failures"]) == (3, 1)
    assert "green" in done("status", "--store", url)
    done("release", "--worker", "ann", "--store", url)
    done("retire", "green", "--reason", "sold out", "--store", url)
    status = json.loads(done("status", "--format", "json", "--store", url))
    assert {each["arm"]: each["place"] for each in status["arms"]}["green"] == "retired"
    done("resume", "--store", url)
    assert refused("result", "--store", url)[0] == 3
    assert "22 pulls" in done("run", "--pull", PULL, "--workers", "2", "--store", url)
    made = json.loads(done("result", "--format", "json", "--store", url))["pulls"]
    assert made == 22  # the other 8 are of green, which had left
    lines = done("export", "--store", url)
    done("import", "-", "--store", "copy.db", stdin=lines)
    assert done("export", "--store", "copy.db") == lines


def test_a_run_at_a_service_is_begun_and_gone_on_with_by_the_same_command(url: str) -> None:
    command = ("run", "arms.csv", "--pull", PULL, "-k", "1", "--budget", "12", "--store", url)
    assert done(*command) == done(*command)


def test_errors_of_a_service_are_one_line_each(url: str) -> None:
    assert refused("status", "--store", url) == (
        2,
        "Error: `name` is not given, but the store holds no experiment",
    )
    done("create", "arms.csv", "-k", "1", "--budget", "30", "--store", url)
    status, words = refused("tell", "9", "1", "--store", url)
    assert (status, words) == (2, "Error: ticket 9 was never handed out; none was yet")
    status, words = refused("import", "arms.csv", "--store", url)
    assert status == 2


def test_tokens_are_made_listed_and_revoked(
    url: str, monkeypatch: pytest.MonkeyPatch, folder: Path
) -> None:
    monkeypatch.setenv("SHORTLIST_STORE", "tokens.db")
    text = done("tokens", "create", "ann", "--scope", "work").strip()
    assert re.fullmatch(r"shortlist_[\w-]{43}", text)
    listed = json.loads(done("tokens", "list", "--format", "json"))
    assert [(each["name"], each["scope"], each["revoked"]) for each in listed] == [
        ("ann", "work", None)
    ]
    assert "ann" in done("tokens", "list")
    assert text not in (folder / "tokens.db").read_bytes().decode("latin-1")
    done("tokens", "revoke", "ann")
    assert json.loads(done("tokens", "list", "--format", "json"))[0]["revoked"]
    assert refused("tokens", "create", "ann", "--scope", "read")[0] == 2
    assert refused("tokens", "revoke", "ben")[0] == 2
    assert refused("tokens", "create", " ", "--scope", "read")[0] == 2


def test_a_token_comes_from_the_environment(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = done("tokens", "create", "admin", "--scope", "admin", "--store", "served.db").strip()
    monkeypatch.setattr("shortlist.service.auth.FRESH", 0.0)
    status, words = refused("list", url)
    assert (status, "a token is required" in words) == (1, True)
    monkeypatch.setenv("SHORTLIST_TOKEN", text)
    done("create", "arms.csv", "-k", "1", "--budget", "30", "--store", url)
    assert "experiment" in done("list", url)


def test_a_service_listens_until_it_is_told_to_end(folder: Path) -> None:
    command = [sys.executable, "-m", "shortlist", "serve", "--store", "new.db", "--port", "0"]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stderr is not None
        said = service.stderr.readline()
        found = re.fullmatch(r"new\.db is at (http://127\.0\.0\.1:\d+)\n", said)
        assert found, said
        assert caller(found.group(1))("GET", "/ready").data["status"] == "ok"
        service.terminate()
        assert service.wait(120) == 0
    finally:
        service.kill()
        service.communicate()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "without tokens must be a loopback address"),
        (["--origin", "example.org"], "must be like https://example.org"),
    ],
)
def test_what_would_not_be_safe_is_refused(arguments: list[str], words: str) -> None:
    status, said = refused("serve", "--store", "new.db", *arguments)
    assert (status in (1, 2), words in said) == (True, True)


def test_a_port_that_is_taken_is_said_to_be_so(url: str) -> None:
    status, said = refused("serve", "--store", "new.db", "--port", url.rpartition(":")[2])
    assert (status, "already in use" in said) == (1, True)


@pytest.mark.parametrize("command", [["serve"], ["tokens", "create", "ann", "--scope", "read"]])
def test_without_the_extra_the_error_says_what_to_install(folder: Path, command: list[str]) -> None:
    """In a process of its own: modules imported twice here would break other tests."""
    blocked = "import sys; sys.modules['starlette'] = None; from shortlist.cli import main; main()"
    arguments = [sys.executable, "-c", blocked, *command, "--store", "new.db"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, "pip install 'shortlist[serve]'" in done.stderr) == (1, True)
    assert not (folder / "new.db").exists()
