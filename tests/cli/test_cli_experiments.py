"""Experiments on the command line: real programs, real processes, every exit status."""

import csv
import io
import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from command_line import invoke
from waiting import until

import shortlist
from shortlist.engine.rate import Pace
from shortlist.stores.sqlite import SQLiteStore

LABELS = ["plain", "two words", "-dash", 'a "quoted", $(touch pwned)', "épicé [red]"]
DEFUSED = [LABELS[0], LABELS[1], "'-dash", *LABELS[3:]]  # in CSV, for spreadsheets
MAKE = ["-k", "2", "--budget", "50", "--algorithm", "uniform", "--store", "tests.db"]
EVALUATE = """#!/bin/sh
# the reward is the length of the label, over 100
printf '%s' "0.$(printf '%02d' "${#1}")"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a file of arms and a program that evaluates them."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SHORTLIST_STORE", raising=False)
    with open("arms.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(
            [["id", "arm"], *([number, label] for number, label in enumerate(LABELS))]
        )
    program("evaluate", EVALUATE)
    return tmp_path


def program(name: str, text: str) -> None:
    Path(name).write_text(text)
    Path(name).chmod(0o755)


def call(*arguments: str, stdin: str | None = None) -> Result:
    return invoke(arguments, stdin)


def done(*arguments: str, stdin: str | None = None) -> str:
    result = call(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def notes_of(stderr: str) -> str:
    """What is said beside the warning that programs like ours, which only count, are no draws."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("Warning: every arm gave one"))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def status() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(done("status", "--store", "tests.db", "--format", "json"))
    return data


# run


def test_a_program_is_run_for_every_pull_and_the_best_are_chosen() -> None:
    result = call(
        "run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE, "--workers", "3", "--format", "json"
    )
    assert (result.exit_code, notes_of(result.stderr)) == (0, "")
    data = json.loads(result.stdout)
    assert data["top"] == [LABELS[3], LABELS[4]]
    assert data["pulls"] == 50
    assert [arm["mean"] for arm in data["arms"]] == pytest.approx(
        [len(label.encode()) / 100 for label in LABELS]
    )
    assert not Path("pwned").exists()


def test_programs_are_run_at_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []
    start = Pace.start

    def noted(pace: Pace, ticket: int) -> bool:
        begun.append(ticket)
        return start(pace, ticket)

    monkeypatch.setattr(Pace, "start", noted)
    rate = ("--rate", "9e6", "--rate", "cost=1e9")
    result = call("run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE, *rate)
    assert result.exit_code == 0
    assert set(begun) == set(range(50))


def test_a_finished_experiment_prints_its_answer_again_at_once() -> None:
    first = done("run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE, "--format", "csv")
    again = done("run", "arms.csv", "--pull", "false {arm}", *MAKE, "--format", "csv")
    assert done("result", "--store", "tests.db", "--format", "csv") == first == again
    assert [row["arm"] for row in rows(first) if row["chosen"] == "True"] == [LABELS[3], LABELS[4]]


def test_a_control_shows_what_the_others_are_against_it() -> None:
    pull = ("run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE)
    refused = call(*pull, "--control", "plain")
    assert refused.exit_code == 2
    assert "`control` is 'plain', but intervals need rewards that are declared" in refused.stderr
    declared = (*pull, "--rewards", "0,1")
    refused = call(*declared, "--control", "x")
    assert refused.exit_code == 2
    assert "`control` is 'x', but must be one of the arms" in refused.stderr
    assert not Path("tests.db").exists()
    assert "Every arm against two words" in done(*declared, "--control", "two words")
    kept = ("result", "--store", "tests.db", "--control", "plain")
    assert json.loads(done(*kept, "--format", "json"))["lift"]["control"] == "plain"
    lines = rows(done(*kept, "--format", "csv"))
    assert [line["arm"] for line in lines] == DEFUSED
    assert lines[0]["difference"] == ""
    assert float(lines[1]["difference"]) == pytest.approx(0.04)


def test_without_a_store_nothing_is_kept(folder: Path) -> None:
    before = set(folder.iterdir())
    done("run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE[:-2])
    assert set(folder.iterdir()) == before


def test_a_table_shows_labels_as_they_are() -> None:
    text = done("run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE)
    assert all(label in text for label in LABELS)
    assert all(label in done("status", "--store", "tests.db") for label in LABELS)


def test_seeds_make_a_run_repeatable_whatever_the_number_of_workers() -> None:
    program(
        "noisy",
        f"#!{sys.executable} -SE\nimport random, sys\nprint(random.Random(sys.argv[1]).random())\n",
    )
    pull = ["--pull", "./noisy {seed}{arm}", *MAKE[:-2], "--format", "json"]
    one, many = (
        json.loads(done("run", "arms.csv", *pull, "--workers", workers)) for workers in ("1", "4")
    )
    assert {**one, "seconds": 0} == {**many, "seconds": 0}


def test_failures_show_what_the_program_said_and_are_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shortlist.engine.calls.FIRST_PAUSE", 0.001)
    flaky = (
        '#!/bin/sh\nif [ $2 != 0 ] && mkdir "seen$2" 2>/dev/null; then\n'
        'echo "no network" >&2; exit 7; fi\necho 0.5\n'
    )
    program("flaky", flaky)
    result = call(
        "run",
        "arms.csv",
        "--pull",
        "./flaky {arm} {ticket}",
        *MAKE,
        "--workers",
        "4",
        "--format",
        "json",
    )
    assert result.exit_code == 0
    again = "s: its exit status was 7; it said: no network\n"
    assert result.stderr.count(again) == 49
    assert result.stderr.count("failed in attempt 1 of 3 and is made again in 0.") == 49
    assert json.loads(result.stdout)["pulls"] == 50


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("echo broken >&2; exit 3", "its exit status was 3; it said: broken"),
        ("echo high", "it printed 'high', but must print one number"),
        ("echo nan", "it printed 'nan', but must print one number"),
        (
            "printf 'Traceback\\n\\033[31mthe end\\n' >&2; exit 1",
            r"its exit status was 1; it said: \x1b[31mthe end. Fix",
        ),
        ("echo 7e99", "is 7e+99, but must be a number at most 1e+60 from 0"),
        ("sleep 5", "it took longer than 0.2 s"),
    ],
)
def test_too_many_failures_stop_the_run_with_a_reason_and_it_can_be_resumed(
    monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setattr("shortlist.engine.calls.FIRST_PAUSE", 0.001)
    program("broken", f"#!/bin/sh\nif [ $2 = 0 ]; then echo 1; exit; fi\n{text}\n")
    arguments = ["run", "arms.csv", *MAKE, "--retries", "1", "--timeout", "0.2", "--pull"]
    result = call(*arguments, "./broken {arm} {ticket}")
    assert (result.exit_code, result.stdout) == (1, "")
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ticket 1 failed 2 times, the last time: ")
    assert reason in last
    assert last.endswith("Fix the cause, run `shortlist resume`, then the same command again")
    assert "\x1b" not in result.stderr
    for command in ("ask", "result"):
        hindered = call(command, "--store", "tests.db")
        assert (hindered.exit_code, hindered.stdout) == (1, "")
        assert "Error: ticket 1 failed 2 times, the last time: " in hindered.stderr
        assert hindered.stderr.endswith("Fix the cause, then run `shortlist resume`\n")
    assert status()["state"] == "stopped"
    done("resume", "--store", "tests.db")
    done(*arguments, "./evaluate {arm}")


def test_a_failure_of_the_very_first_pull_ends_the_run_at_once() -> None:
    program("broken", "#!/bin/sh\necho broken >&2; exit 3\n")
    result = call("run", "arms.csv", *MAKE, "--pull", "./broken {arm}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.splitlines()[-1] == (
        "Error: the first pull failed: its exit status was 3; it said: broken. Fix the cause and"
        " run the command again"
    )
    assert (status()["state"], status()["failures"], status()["held"]) == ("ready", 0, 0)


# Interrupts: processes of their own


def start(*arguments: str, lease: float = 60.0) -> "subprocess.Popen[str]":
    """`shortlist`, with leases that a test can wait for."""
    code = (
        f"import shortlist.engine.workers as worker; worker.LEASE = {lease}; "
        "from shortlist.cli import main; main()"
    )
    environment = {**os.environ, "PYTHONWARNINGS": "error"}
    command = [sys.executable, "-c", code, *arguments]
    # tests may run in the background of a shell, where SIGINT is ignored, and so by all children
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
        )
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for_pulls(count: int) -> None:
    """Wait until so many rewards are in the file."""
    until(lambda: Path("tests.db").exists() and rewards_in_file() >= count, "too few rewards")


def rewards_in_file() -> int:
    database = sqlite3.connect("tests.db", timeout=30)
    try:
        return int(database.execute("SELECT count(*) FROM rewards").fetchone()[0])
    except sqlite3.OperationalError:  # the file is just being made
        return 0
    finally:
        database.close()


SLOW = ["run", "arms.csv", *MAKE, "--pull", "./slow {arm}", "--workers", "2", "--format", "json"]


def make_slow() -> None:
    """A program that takes its time, and never ends for later pulls while a file `held` exists."""
    wait = 'while [ -e held ] && [ "$SHORTLIST_TICKET" -gt 20 ]; do sleep 0.05; done'
    program("slow", f"{EVALUATE}sleep 0.05\n{wait}\n")


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
@pytest.mark.parametrize("interrupt", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_cleanly_and_the_same_command_continues(
    interrupt: signal.Signals,
) -> None:
    make_slow()
    Path("held").touch()  # so that it is not over before the interrupt comes
    running = start(*SLOW)
    wait_for_pulls(5)
    running.send_signal(interrupt)
    Path("held").unlink()  # a program that was just being started may end
    output, notes = running.communicate(timeout=120)
    told = rewards_in_file()
    assert (running.returncode, output) == (130, "")
    assert notes == f"Interrupted after {told} pulls; the same command continues.\n"
    assert 5 <= told < 50
    assert (status()["held"], status()["failures"], status()["told"]) == (0, 0, told)
    calm = json.loads(
        done("run", "arms.csv", *MAKE[:-2], "--pull", "./evaluate {arm}", "--format", "json")
    )
    went_on = json.loads(done(*SLOW))
    assert {**went_on, "seconds": 0} == {**calm, "seconds": 0}


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_run_that_was_killed_and_another_beside_it_give_the_answer_of_a_calm_one() -> None:
    make_slow()
    killed, beside = start(*SLOW, lease=1), start(*SLOW, lease=1)
    wait_for_pulls(6)
    killed.kill()
    killed.communicate()
    again = start(*SLOW, lease=1)
    calm = json.loads(
        done("run", "arms.csv", *MAKE[:-2], "--pull", "./evaluate {arm}", "--format", "json")
    )
    for each in (beside, again):
        output, stderr = each.communicate(timeout=120)
        notes = notes_of(stderr)
        assert each.returncode == 0
        assert re.fullmatch(
            r"(Waiting for \d pulls? that .* holds? until \d\d:\d\d:\d\d\.\n)?"
            r"(This program was kept from asking for .*\n)*",  # on a busy machine
            notes,
        )
        assert {**json.loads(output), "seconds": 0} == {**calm, "seconds": 0}
    assert rewards_in_file() == 50


def test_a_run_after_one_that_was_killed_says_for_what_it_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("shortlist.engine.workers.PATIENCE", 0.0)
    with shortlist.Experiment.create(
        LABELS, 2, budget=50, algorithm="uniform", store="tests.db"
    ) as experiment:
        experiment.ask(50, "dead", alive=1)
    result = call("run", "--pull", "./evaluate {arm}", "--store", "tests.db", "--workers", "9")
    assert result.exit_code == 0
    assert re.fullmatch(
        r"Waiting for 50 pulls that other workers hold until \d\d:\d\d:\d\d\.\n",
        notes_of(result.stderr),
    )


def test_who_stops_watching_is_let_go_quietly(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    done("create", "arms.csv", *MAKE)
    monkeypatch.setattr("time.sleep", interrupted)
    result = call("status", "--watch", "--store", "tests.db")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "experiment: ready, 0 pulls told" in result.stdout


# create, ask, tell, result


def test_an_experiment_by_hand_from_beginning_to_end() -> None:
    result = call("create", "arms.csv", *MAKE)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert (
        result.stderr
        == "tests.db: experiment 'experiment' with 5 arms, uniform starts with 50 pulls\n"
    )
    unfinished = call("result", "--store", "tests.db")
    assert unfinished.exit_code == 3
    waits = "Error: 0 pulls were told, but the search waits for 50 more"
    assert unfinished.stderr == f"{waits}; --partial prints the present choice\n"
    while (asked := call("ask", "--store", "tests.db", "--limit", "20", "--format", "csv")).stdout:
        assert asked.exit_code == 0
        partial = json.loads(done("result", "--store", "tests.db", "--partial", "--format", "json"))
        assert (partial["partial"], len(partial["top"])) == (True, 2)
        lines = [f"{row['ticket']},{len(row['arm']) / 100}" for row in rows(asked.stdout)]
        done(
            "tell", "--store", "tests.db", "--file", "-", stdin="\n".join(["ticket,reward", *lines])
        )
    assert asked.exit_code == 4
    assert asked.stderr == "0 of 20 tickets: budget\n"
    assert json.loads(done("result", "--store", "tests.db", "--format", "json"))["top"] == [
        LABELS[3],
        LABELS[4],
    ]


def test_ask_says_when_others_hold_everything() -> None:
    done("create", "arms.csv", *MAKE)
    first = call(
        "ask", "--store", "tests.db", "--limit", "60", "--worker", "ann", "--format", "json"
    )
    assert (first.exit_code, len(json.loads(first.stdout))) == (0, 50)
    assert first.stderr == (
        "50 of 60 tickets: pending; if you cannot wait, serve '-dash' (best so far) and do not"
        " report its result\n"
    )
    nothing = call("ask", "--store", "tests.db", "--worker", "bob", "--format", "json")
    assert (nothing.exit_code, nothing.stdout) == (3, "[]\n")
    mine = rows(done("ask", "--store", "tests.db", "--worker", "ann", "--format", "csv"))
    assert [row["ticket"] for row in mine] == ["0"]
    assert status()["workers"] == {"ann": 50}


def test_tickets_of_those_who_are_gone_are_given_back() -> None:
    done("create", "arms.csv", *MAKE)
    done("ask", "--store", "tests.db", "--limit", "4", "--worker", "ann")
    done("ask", "--store", "tests.db", "--limit", "46")
    back = call("release", "--worker", "ann", "--overdue", "0", "--store", "tests.db")
    assert (back.exit_code, back.stderr) == (0, "released 0 tickets\n")
    back = call("release", "0", "7", "--store", "tests.db")
    assert (back.exit_code, back.stderr) == (0, "released 2 tickets\n")
    back = call("release", "0", "3", "--worker", "ann", "--store", "tests.db")
    assert (back.exit_code, back.stderr) == (0, "released 1 ticket\n")
    again = done("ask", "--store", "tests.db", "--limit", "9", "--worker", "ben", "--format", "csv")
    assert [row["ticket"] for row in rows(again)] == ["0", "3", "7"]
    assert (status()["told"], status()["failures"]) == (0, 0)
    refused(call("release", "--store", "tests.db"), 2, "no `worker`, `tickets` or `overdue`")
    refused(call("release", "99", "--store", "tests.db"), 2, "ticket 99 was never handed out")


def test_what_is_late_is_waited_for_handed_out_again_or_counts() -> None:
    asked = ("--limit", "60", "--format", "csv", "--store", "tests.db")
    for name, late in (("waiting", "wait"), ("again", "again"), ("counting", "0.25")):
        done("create", "arms.csv", *MAKE, "--name", name, "--on-late", late, "--lease", "0.01")
        assert len(rows(done("ask", "--name", name, *asked))) == 50
    time.sleep(0.02)
    assert call("ask", "--name", "waiting", *asked).exit_code == 3
    waiting = done("status", "--name", "waiting", "--store", "tests.db", "--format", "json")
    assert json.loads(waiting)["overdue"] == 50
    assert len(rows(done("ask", "--name", "again", *asked))) == 50
    assert call("ask", "--name", "counting", *asked).exit_code == 4
    refused(
        call("create", "arms.csv", *MAKE, "--on-late", "soon"), 2, "'soon' must be wait, again or a"
    )


def test_tell_takes_one_reward_or_a_failure() -> None:
    done("create", "arms.csv", *MAKE[:-2], "--store", "tests.db", "--rewards", "-2,2")
    done("ask", "--store", "tests.db", "--limit", "3")
    done("tell", "0", "-1.5", "--store", "tests.db")
    done("tell", "1", "--failed", "no network", "--store", "tests.db")
    assert (status()["told"], status()["failures"], status()["held"]) == (1, 1, 1)
    assert status()["arms"][0] | {"low": 0, "high": 0, "chance": 0} == {
        "arm": "plain",
        "pulls": 1,
        "waiting": 0,
        "mean": -1.5,
        "low": 0,
        "high": 0,
        "chance": 0,
        "place": "undecided",
        "to_go": 9,
        "known": 0,
    }


def test_the_store_may_be_named_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHORTLIST_STORE", "tests.db")
    done("create", "arms.csv", *MAKE[:-2])
    done("ask")
    assert "experiment" in done("list")


def test_sub_gaussian_rewards_have_no_range() -> None:
    done("create", "arms.csv", *MAKE, "--rewards", "sub-gaussian:3")
    done("ask", "--store", "tests.db")
    done("tell", "0", "1e6", "--store", "tests.db")


# status, list, export, import


def test_status_is_a_table_of_the_best_arms_or_a_row_an_arm() -> None:
    done("run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE)
    table = done("status", "--store", "tests.db", "--rows", "2")
    assert "experiment: budget, 50 pulls told" in table
    assert LABELS[3] in table
    assert "plain" not in table.split("3 more arms")[0]
    assert "Note: the answer rests on arms that never varied" in " ".join(table.split())
    by_arm = rows(done("status", "--store", "tests.db", "--format", "csv"))
    assert [row["arm"] for row in by_arm] == DEFUSED
    assert [row["place"] for row in by_arm] == ["out", "out", "out", "in", "in"]
    assert "experiment: budget" in done("status", "--store", "tests.db", "--watch")


def test_list_names_all_experiments_also_those_it_cannot_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done("create", "arms.csv", *MAKE, "--name", "first")
    done("create", "arms.csv", *MAKE, "--name", "second", "--algorithm", "sar")
    monkeypatch.delitem(shortlist.ALGORITHMS, "sar")
    listed = json.loads(done("list", "tests.db", "--format", "json"))
    assert listed[0] == {
        "name": "first",
        "state": "ready",
        "arms": 5,
        "k": 2,
        "algorithm": "uniform",
        "pulls": 0,
    }
    assert listed[1]["name"] == "second"
    assert (listed[1]["state"], listed[1]["algorithm"]) == ("ready", "sar")
    assert "second" in done("list", "tests.db")


def test_verify_says_of_every_experiment_whether_it_is_as_it_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done("create", "arms.csv", *MAKE, "--name", "first")
    done("create", "arms.csv", *MAKE, "--name", "second", "--algorithm", "sar")
    done("ask", "--store", "tests.db", "--name", "first", "--limit", "3")
    done("tell", "1", "0.5", "--store", "tests.db", "--name", "first")
    listed = json.loads(done("verify", "tests.db", "--format", "json"))
    assert listed == [
        {"name": "first", "rows": 3, "verdict": "intact"},
        {"name": "second", "rows": 0, "verdict": "intact"},
    ]
    with monkeypatch.context() as patch:
        patch.delitem(shortlist.ALGORITHMS, "sar")
        assert "this shortlist does not have" in done("verify", "tests.db", "--format", "csv")
    damage("tests.db", "rewards_refuse_UPDATE", "UPDATE rewards SET reward = 0.25")
    verified = call("verify", "tests.db", "--format", "json")
    assert verified.exit_code == 1
    first, second = json.loads(verified.stdout)
    assert first["verdict"].startswith(
        "row 3 of experiment 'first' in tests.db was changed or lost"
    )
    assert second["verdict"] == "intact"
    refused(call("status", "--store", "tests.db", "--name", "first"), 1, "row 3 of experiment")


def damage(store: str, trigger: str, statement: str) -> None:
    """Change what the file itself would refuse to change."""
    database = sqlite3.connect(store, isolation_level=None)
    query = "SELECT sql FROM sqlite_schema WHERE name = ?"
    ((text,),) = database.execute(query, (trigger,)).fetchall()
    for each in (f"DROP TRIGGER {trigger}", statement, text):
        database.execute(each)
    database.close()


@pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be deleted")
def test_what_was_told_is_rescued_when_the_file_is_deleted_under_a_run(folder: Path) -> None:
    deleting = folder / "deleting"
    deleting.write_text("#!/bin/sh\n[ -e count ] && rm -f tests.db\ntouch count\necho 0.5\n")
    deleting.chmod(0o755)
    result = call("run", "arms.csv", "--pull", "./deleting {arm}", *MAKE)
    refused(result, 1, "tests.db was deleted or moved while tests.db was open")
    (rescued,) = re.findall(r"are in (\S+\.jsonl)", result.stderr)
    done("import", rescued, "--store", "again.db")
    Path(rescued).unlink()
    assert json.loads(done("list", "again.db", "--format", "json"))[0]["pulls"] == 1


def test_an_exported_experiment_goes_on_in_another_file() -> None:
    done("create", "arms.csv", *MAKE)
    done("ask", "--store", "tests.db", "--limit", "3")
    done("tell", "1", "0.5", "--store", "tests.db")
    lines = done("export", "--store", "tests.db")
    done("import", "-", "--store", "other.db", stdin=lines)
    assert done("export", "--store", "other.db") == lines
    again = call("import", "-", "--store", "other.db", stdin=lines)
    assert again.exit_code == 2
    done("import", "-", "--store", "other.db", "--name", "copy", stdin=lines)


# Mistakes: one line, and the exit status says whose


def refused(result: Result, status: int, message: str) -> None:
    assert (result.exit_code, result.stdout) == (status, ""), result.output
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["status", "--store", "none.db"], "there is no file none.db"),
        (["ask"], "Missing option '--store'"),
        (["create", "arms.csv", "--epsilon", "0.1", "--store", "x.db"], "`k` is missing"),
        (
            ["create", "arms.csv", "-k", "5", "--epsilon", "0.1", "--store", "x.db"],
            "`k` is 5, but must be between 1 and",
        ),
        (
            ["create", "arms.csv", "-k", "2", "--store", "x.db"],
            "neither `epsilon` nor `budget` is given",
        ),
        (
            ["create", "none.csv", "-k", "2", "--store", "x.db"],
            "File 'none.csv' does not exist. It is a file with one arm per line",
        ),
        (
            ["tell", "day.csv", "--store", "x.db"],
            "'day.csv' is not a valid integer. A file goes with --file",
        ),
        (
            ["create", "arms.csv", *MAKE, "--rewards", "high"],
            "'high' must be LOW,HIGH or binary or normal or sub-gaussian:SIGMA",
        ),
        (["create", "arms.csv", *MAKE, "--store", "no/x.db"], "there is no directory no"),
        (["run", "arms.csv", *MAKE], "Missing option '--pull'"),
        (["run", "arms.csv", *MAKE, "--pull", "./evaluate"], "must contain {arm}"),
        (
            ["run", "arms.csv", *MAKE, "--pull", "./nothing {arm}"],
            "there is no program './nothing'",
        ),
        (
            ["run", "arms.csv", *MAKE, "--pull", "./evaluate {arm}", "--workers", "0"],
            "`workers` is 0, but must be",
        ),
        (
            ["run", "arms.csv", *MAKE, "--pull", "./evaluate {arm}", "--timeout", "0"],
            "`timeout` is 0.0, but must be",
        ),
        *(
            (
                ["run", "arms.csv", *MAKE, "--pull", "./evaluate {arm}", "--store", "x.db", *rate],
                said,
            )
            for rate, said in (
                (["--rate", "fast"], "`rate` is 'fast', but must be a number per minute"),
                (["--rate", "cost=0"], "`rate` is 'cost=0', but must be a number per minute"),
                (["--rate", "tokens=9"], "`rate` limits 'tokens', which must be 'requests' or"),
                (["--rate", "9", "--rate", "8"], "`rate` limits 'requests', which is given twice"),
            )
        ),
        (
            ["run", "--pull", "./evaluate {arm}"],
            "ARMS and --store are missing",
        ),
        (["run", "--pull", "./evaluate {arm}", "--store", "x.db"], "there is no file x.db"),
        (
            ["run", "--pull", "./evaluate {arm}", "--store", "x.db", "-k", "1"],
            "`k` given without ARMS, but",
        ),
        *(
            (
                ["run", "--pull", "./evaluate {arm}", "--store", "x.db", *setting],
                f"`{name}` given without ARMS",
            )
            for name, *setting in (
                ("seed", "--seed", "0"),
                ("rewards", "--rewards", "binary"),
                ("algorithm", "--algorithm", "foo"),
                ("delta", "--delta", "7"),
                ("options", "--option", "a=1"),
                ("retries", "--retries", "2"),
            )
        ),
        (
            ["import", "arms.csv", "--store", "x.db"],
            "line 1 is 'id,arm', but must be a JSON object",
        ),
        (["list", "none.db"], "there is no file none.db"),
    ],
)
def test_a_mistake_is_one_line_and_makes_no_file(
    arguments: list[str], message: str, folder: Path
) -> None:
    before = set(folder.iterdir())
    refused(call(*arguments), 2, message)
    assert set(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["tell", "0", "7e99"],
            "the reward of ticket 0 (arm 'plain') is 7e+99, but must be a number at most 1e+60",
        ),
        (["tell", "0", "nan"], "is nan, but must be"),
        (["tell", "1", "0.5"], "ticket 1 is told 0.5, but was told 1.0 before, which stays"),
        (["tell", "99", "1"], "ticket 99 was never handed out; the last one is 1"),
        (
            ["tell", "0"],
            "the arguments must be TICKET REWARD, or TICKET --failed REASON, or --file FILE",
        ),
        (["tell", "0", "1", "--failed", "x"], "the arguments must be"),
        (["tell", "zero", "1"], "'zero' is not a valid integer"),
        (["tell", "--file", "arms.csv"], "arms.csv, line 1 has no column `ticket` and no `reward`"),
        (["ask", "--limit", "0"], "`limit` is 0, but must be a whole number of at least 1"),
        (
            ["status", "--name", "other"],
            "there is no experiment 'other' in tests.db; it holds 'experiment'",
        ),
        (
            ["create", "arms.csv", *MAKE[:-2]],
            "there is an experiment 'experiment' in tests.db already",
        ),
        (
            ["run", "arms.csv", "--pull", "./evaluate {arm}", *MAKE[:-2], "--seed", "9"],
            "there is an experiment 'experiment' already, but it was made with seed = 0 and not 9",
        ),
    ],
)
def test_what_breaks_a_rule_is_refused_and_nothing_is_changed(
    arguments: list[str], message: str
) -> None:
    experiment = shortlist.Experiment.create(
        LABELS, 2, budget=50, algorithm="uniform", store="tests.db"
    )
    experiment.tell(experiment.ask(2)[1], 1)
    experiment.close()
    before = done("export", "--store", "tests.db")
    refused(call(*arguments, "--store", "tests.db"), 2, message)
    assert done("export", "--store", "tests.db") == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "arms.csv is empty, but must hold one label a line"),
        (b"arm\n", "arms.csv is empty, but must hold one label a line"),
        (b"a\nb\na\n", "two arms are called 'a', but labels must differ"),
        (b"arm,size\na,1\nb\n", "arms.csv, line 3 has 1 values, but must have 2: arm, size"),
        (
            b"a,b\nc\n",
            (
                "line 1 has 2 columns, but none of them is called `arm` (a label with a comma needs"
                " quotes)"
            ),
        ),
        (
            b"a\nb,c\n",
            (
                "arms.csv, line 2 has 2 values, but must have 1: arm (a label with a comma needs"
                " quotes)"
            ),
        ),
        (b'a\nb\n""\n', "arms.csv, line 3 has the label '', but a label must not be empty"),
        (
            b'arm,size\na,1\n"",2\n',
            "arms.csv, line 3 has the label '', but a label must not be empty",
        ),
        (
            b"arm,size\na,1\n  ,2\n",
            "arms.csv, line 3 has the label '  ', but a label must not be empty",
        ),
        (b"a\n\xff\n", "but must be a UTF-8 file"),
        (b"a;b\nc\n", "line 1 has 2 columns, but none of them is called `arm` (a label with a"),
        (b"a\tb\nc\td\n", "none of them is called `arm` (a label with a tab needs quotes)"),
        (b"a\nb;c\n", "line 2 has 2 values, but must have 1: arm (a label with a semicolon needs"),
        (b"arm;size\na;1\nb\n", "arms.csv, line 3 has 1 values, but must have 2: arm, size"),
        (b"label\na\nb\n", "line 1 says 'label', as if that were the name of a column"),
        (b" Variant \na\nb\n", "but the column of labels must be called `arm`"),
        (b"id;name\n1;a\n2;b\n", "line 1 says 'id', as if that were the name of a column"),
        (b"arm,Arm\na,b\n", "two columns of arms.csv are called `arm`, but names must differ"),
    ],
)
def test_a_file_of_arms_that_cannot_be_read_is_named_with_its_line(
    content: bytes, message: str
) -> None:
    Path("arms.csv").write_bytes(content)
    refused(call("create", "arms.csv", *MAKE), 2, message)


def test_arms_may_be_one_a_line() -> None:
    done("create", "-", *MAKE, stdin="\ufeffplain\n\n two words \n-dash\n")
    assert [arm["arm"] for arm in status()["arms"]] == ["plain", " two words ", "-dash"]


@pytest.mark.parametrize(
    "content",
    [
        "size, Arm \n1,a\n2,b\n,\n3,c\n",
        "ARM\na\nb\nc\n",
        "a\n  \nb\n\nc",
        "arm;size\na;1,5\nb;2\nc;3\n",
        "size\tarm\n1\ta\n2\tb\n3\tc\n",
    ],
)
def test_the_header_is_known_in_any_case_and_blank_lines_do_not_count(content: str) -> None:
    done("create", "-", *MAKE, stdin=content)
    assert [arm["arm"] for arm in status()["arms"]] == ["a", "b", "c"]


@pytest.mark.parametrize("content", ["arm\nname\na;b\n", 'arm\n"name"\n"a;b"\n'])
def test_below_a_header_a_label_may_be_any_word(content: str) -> None:
    done("create", "-", "-k", "1", *MAKE[2:], stdin=content)
    assert [arm["arm"] for arm in status()["arms"]] == ["name", "a;b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "rewards.csv holds no rewards"),
        (
            b"0,1\n",
            "rewards.csv, line 1 has no column `ticket` and no `reward`, but must be ticket,reward",
        ),
        (
            b"ticket,prize\n0,1\n",
            "rewards.csv, line 1 has no column `reward`, but must be ticket,reward",
        ),
        (b"ticket,reward\n", "rewards.csv holds no rewards"),
        (
            b"ticket,reward\n0,1\n1.0,1\n",
            "rewards.csv, line 3: ticket '1.0' must be a whole number",
        ),
        (b"ticket,reward\n1_0,1\n", "line 2: ticket '1_0' must be a whole number"),
        (b"ticket,reward\n" + b"9" * 5000 + b",1\n", "99' must be a whole number"),
        (b"ticket,reward\n0\n", "line 2: reward '' must be a number"),
        (b"ticket,reward\n0,0,5\n", "rewards.csv, line 2 has 3 values, but must have 2"),
        (b"\n\nprize\n0\n", "rewards.csv, line 3 has no column `ticket` and no `reward`"),
        (b"ticket,reward\n0,high\n", "line 2: reward 'high' must be a number"),
        (b"ticket,reward\n0,\xff\n", "rewards.csv holds the byte 0xff, but must be a UTF-8 file"),
        (b"ticket,reward\n0,0.5\n0,0.7\n", "ticket 0 is told 0.5 and 0.7 in the same call"),
        (b"ticket,arm,reward\n0,nobody,1\n", "rewards.csv, line 2: arm 'nobody' must be one of"),
    ],
)
def test_a_file_of_rewards_that_cannot_be_told_is_refused_in_words(
    content: bytes, message: str
) -> None:
    Path("rewards.csv").write_bytes(content)
    done("create", "arms.csv", *MAKE)
    done("ask", "--store", "tests.db", "--limit", "3")
    refused(call("tell", "--file", "rewards.csv", "--store", "tests.db"), 2, message)
    assert status()["told"] == 0


def test_a_file_of_rewards_that_names_arms_is_checked_against_the_tickets() -> None:
    Path("signs.csv").write_text("arm\n=a\nb\nc\n")
    done("create", "signs.csv", "-k", "1", "--budget", "30", "--store", "signs.db")
    asked = rows(done("ask", "--store", "signs.db", "--limit", "3", "--format", "csv"))
    assert [row["arm"] for row in asked] == ["'=a", "b", "c"]
    tell = ("tell", "--file", "-", "--store", "signs.db")
    sorted_by_mistake = "ticket,arm,reward\n0,'=a,1\n1,c,1\n2,b,0\n"
    refused(call(*tell, stdin=sorted_by_mistake), 2, "ticket 1 is for arm 'c', but here it is for")
    done(*tell, stdin="ticket,arm,reward\n0,'=a,1\n1,b,1\n2,,0\n")
    held = json.loads(done("status", "--store", "signs.db", "--format", "json"))
    assert held["told"] == 3


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n", "caf\xe9".encode("latin-1")])
def test_an_import_of_what_is_no_text_is_refused_and_makes_no_file(content: bytes) -> None:
    Path("picture.png").write_bytes(content)
    refused(call("import", "picture.png", "--store", "x.db"), 2, "picture.png holds the byte 0x")
    assert not Path("x.db").exists()


def test_trouble_with_a_file_has_exit_status_1() -> None:
    Path("tests.db").write_text("not a database " * 1000)
    refused(
        call("status", "--store", "tests.db"),
        1,
        "tests.db is not a store of shortlist, or is damaged",
    )
    Path("tests.db").unlink()
    done("create", "arms.csv", *MAKE)
    file = SQLiteStore("tests.db")
    file.create("later", file.settings("experiment").replace('"version": 1', '"version": 9'))
    file.close()
    refused(
        call("ask", "--store", "tests.db", "--name", "later"),
        1,
        "was made with version 9 of uniform, but this shortlist has version",
    )


def test_the_real_script_runs_an_example(folder: Path) -> None:
    script = Path(sys.executable).with_name("shortlist")
    command = (
        f"{shlex.quote(str(script))} run arms.csv --pull './evaluate {{arm}}' {shlex.join(MAKE)}"
        " --format csv"
    )
    finished = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert finished.returncode == 0
    assert re.fullmatch("Warning: every arm gave one number again and again, .*\n", finished.stderr)
    assert [row["arm"] for row in rows(finished.stdout)] == DEFUSED


def test_an_arm_that_left_is_not_handed_out_and_not_chosen() -> None:
    done("create", "arms.csv", *MAKE, "--on-failure", "retire", "--retries", "0")
    left = call("retire", LABELS[3], "--reason", "sold out", "--store", "tests.db")
    assert (left.exit_code, left.stdout) == (0, "")
    assert "is retired" in left.stderr
    ticket = json.loads(done("ask", "--store", "tests.db", "--format", "json"))[0]
    done("tell", str(ticket["ticket"]), "--failed", "gone", "--store", "tests.db")
    places = {each["arm"]: each["place"] for each in status()["arms"]}
    assert [arm for arm, place in places.items() if place == "retired"] == [
        ticket["arm"],
        LABELS[3],
    ]
    refused(call("retire", "nobody", "--store", "tests.db"), 2, "`arm` is 'nobody', but must be")


def test_an_arm_whose_label_is_a_number_leaves_by_it() -> None:
    shortlist.Experiment.create(4, 1, budget=50, store="tests.db").close()
    done("retire", "2", "--store", "tests.db")
    assert [each["place"] for each in status()["arms"]][2] == "retired"


def test_a_column_that_may_be_a_cost_or_a_limit_is_named_if_it_is_not_read(tmp_path: Path) -> None:
    arms = tmp_path / "arms.csv"
    arms.write_text("arm;price;limit\na;3;9\nb;4;9\n")
    store = str(tmp_path / "a.db")
    made = invoke(["create", str(arms), "-k1", "--budget", "9", "--store", store])
    assert made.exit_code == 0, made.stderr
    assert "the column `price` is not read; those that are read are called" in made.stderr
