"""The command line: what it prints, where, with which exit status, and that a mistake costs one
line."""

import csv
import inspect
import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import own_searches
import pytest
from click.testing import Result
from command_line import invoke

import shortlist
from shortlist.cli import main

UNIFORM = ["--instance", "uniform", "-n", "20", "-k", "5"]
INSTANCE = ["simulate", *UNIFORM]
SIMULATE = [*INSTANCE, "--algorithm", "uniform"]


def run(*arguments: str, stdin: str | None = None) -> Result:
    return invoke(arguments, stdin)


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The installed console script, in a process of its own."""
    return subprocess.run(
        [Path(sys.executable).with_name("shortlist"), *arguments], capture_output=True, text=True
    )


def figures(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    result = run(*arguments, "--format", "json", stdin=stdin)
    assert result.exit_code == 0, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return data


# What it prints


def test_json_has_the_keys_of_the_contract_and_nothing_else_is_printed() -> None:
    done = script(
        *SIMULATE,
        "--budget",
        "400",
        "--epsilon",
        "0.2",
        "--runs",
        "3",
        "--workers",
        "2",
        "--format",
        "json",
    )
    assert (done.returncode, done.stderr) == (0, "")
    data = json.loads(done.stdout)
    assert list(data) == [
        "algorithm",
        "n",
        "k",
        "runs",
        "pulls",
        "regret",
        "failures",
        "failure_rate",
        "seconds",
        "rounds",
    ]
    assert list(data["pulls"]) == ["mean", "sd", "max"]
    assert list(data["regret"]) == ["mean", "max"]
    assert (data["algorithm"], data["n"], data["k"], data["runs"]) == ("uniform", 20, 5, 3)
    assert data["pulls"] == {"mean": 400, "sd": 0, "max": 400}


def test_the_command_line_gives_the_figures_of_the_library() -> None:
    options = [
        "--epsilon",
        "0.3",
        "--delta",
        "0.2",
        "--runs",
        "4",
        "--seed",
        "9",
        "--rewards",
        "beta",
    ]
    printed = figures("simulate", *UNIFORM, "--algorithm", "adaptive-top-k", *options)
    runs = shortlist.simulate(
        "adaptive-top-k",
        shortlist.instances.uniform(20),
        k=5,
        epsilon=0.3,
        delta=0.2,
        runs=4,
        seed=9,
        rewards="beta",
    )
    assert {**printed, "seconds": 0} == {**runs.summary(), "seconds": 0}


def test_csv_is_a_header_and_a_row_with_the_same_figures() -> None:
    result = run(*SIMULATE, "--budget", "400", "--runs", "2", "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(result.stdout))
    assert (row["algorithm"], row["pulls_mean"], row["pulls_max"], row["failures"]) == (
        "uniform",
        "400.0",
        "400",
        "",
    )


def test_a_table_shows_every_figure() -> None:
    result = run(*SIMULATE, "--budget", "40000", "--epsilon", "0.2")
    assert result.exit_code == 0
    for text in ("algorithm", "uniform", "pulls mean", "40,000", "regret max", "failure_rate"):
        assert text in result.stdout


@pytest.mark.parametrize(
    ("arguments", "means"),
    [
        (["--instance", "two-group", "-n", "10", "-k", "4"], shortlist.instances.two_group(10, 4)),
        (["--instance", "uniform", "-n", "10", "-k", "4"], shortlist.instances.uniform(10)),
        (
            ["--instance", "synthetic", "-p", "6", "-n", "10", "-k", "4"],
            shortlist.instances.synthetic(6, 10, 4),
        ),
        (["--instance", "rte", "-k", "4"], shortlist.instances.rte()),
        (["--instance", "rte", "-n", "164", "-k", "4"], shortlist.instances.rte()),
        (["--instance", "lower-bound", "-n", "10", "-k", "4"], shortlist.instances.lower_bound(10)),
    ],
)
def test_every_instance_is_the_one_of_the_library(arguments: list[str], means: Any) -> None:
    printed = figures("hardness", *arguments, "--epsilon", "0.01")
    expected = shortlist.hardness(means, k=4, epsilon=0.01)
    assert printed["n"] == means.size
    assert (printed["t"], printed["psi"], printed["h"]) == (expected.t, expected.psi, expected.h)


def test_hardness_prints_infinity_as_null() -> None:
    assert (
        figures("hardness", "--means", "-", "-k", "1", "--epsilon", "0.1", stdin="0.5\n0.5\n")[
            "h_tilde"
        ]
        is None
    )


def test_algorithms_lists_the_registry_with_goals_and_sources() -> None:
    rows = json.loads(run("algorithms", "--format", "json").stdout)
    assert [row["name"] for row in rows] == list(shortlist.ALGORITHMS)
    assert next(row for row in rows if row["name"] == "uniform")["goals"] == [
        "confidence",
        "budget",
    ]
    assert next(row for row in rows if row["name"] == "adaptive-top-k-tight")["goals"] == [
        "confidence"
    ]
    table = run("algorithms").stdout
    assert all(name in table for name in shortlist.ALGORITHMS)
    assert run("algorithms", "--format", "csv").stdout.startswith("name,goals,guarantee,source\n")


def test_demo_chooses_thirty_workers_and_says_what_it_cost_and_what_it_guarantees() -> None:
    result = run("demo", "--seed", "2")
    assert result.exit_code == 0
    rows = [
        line.split()
        for line in result.stdout.splitlines()
        if line.split() and line.split()[0].isdigit()
    ]
    workers = shortlist.instances.rte_workers()
    assert len({row[0] for row in rows}) == 30
    assert all(float(true) == round(workers[int(worker)], 3) for worker, _, _, true in rows)
    guaranteed = re.search(
        r"Guaranteed: at most (\S+) of mean accuracy lost at 95% confidence", result.stdout
    )
    assert guaranteed
    assert float(guaranteed[1]) <= 0.05
    assert all(text in result.stdout for text in ("Spent:", "Yardstick:", "True loss:"))


# Means from a file


@pytest.mark.parametrize(
    "text",
    [
        "0.1\n0.9\n0.5\n",
        "mean\n0.1\n0.9\n0.5",
        "\ufeffarm,mean\na,0.1\n\nb, 0.9\nc,0.5\n",
        'mean,"name, long"\n0.1,"x, y"\n0.9,z\n0.5,w\n',
        "1e-1\r\n 0.9 \r\n.5\r\n",
    ],
)
def test_means_are_read_one_a_line_or_from_the_column_mean(tmp_path: Path, text: str) -> None:
    file = tmp_path / "means.csv"
    file.write_text(text, encoding="utf-8", newline="")
    printed = figures("hardness", "--means", str(file), "-k", "1", "--epsilon", "0.1")
    expected = shortlist.hardness([0.1, 0.9, 0.5], k=1, epsilon=0.1)
    assert (printed["n"], printed["psi"], printed["h"]) == (3, expected.psi, expected.h)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"0.1\n0.2\nhigh\n", "means.csv, line 3 says 'high', but a mean must be a finite number"),
        (b"0.1\n\nnan\n0.3\n", "means.csv, line 3 says 'nan', but a mean must be a finite number"),
        (b"2%\n3%\n", "line 1 says '2%', but a mean must be a finite number: write 0.02 for 2%"),
        (b"0.1\ninf\n", "means.csv, line 2 says 'inf', but a mean must be a finite number"),
        (b"0.1,0.2\n", "means.csv, line 1 has 2 values, but must have 1: mean"),
        (b"arm,mean\na,0.1\nb\n", "means.csv, line 3 has 1 values, but must have 2: arm, mean"),
        (b"", "means.csv is empty, but must hold one mean a line"),
        (b"mean\n", "means.csv is empty, but must hold one mean a line"),
        (b"0.1\n\xff\xfe", "but must be a UTF-8 file"),
        (b"0.1\n0.2\n1.5\n", "the mean of arm 2 is 1.5, but must be a number between 0 and 1"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_with_its_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    file = tmp_path / "means.csv"
    file.write_bytes(content)
    refused(
        run(
            "simulate",
            "--means",
            str(file),
            "-k",
            "1",
            "--algorithm",
            "uniform",
            "--epsilon",
            "0.1",
        ),
        message,
    )


# A search of the user's own


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder with a module that holds a search."""
    monkeypatch.chdir(tmp_path)
    source = Path(inspect.getfile(own_searches)).read_text(encoding="utf-8")
    Path("mine.py").write_text(source, encoding="utf-8")
    yield
    sys.modules.pop("mine", None)


@pytest.mark.usefixtures("mine")
def test_an_algorithm_may_be_a_function_in_a_module_of_this_folder() -> None:
    budget = ["--budget", "400", "--option", "share=0.5", "--runs", "2", "--workers", "2"]
    data = figures("simulate", *UNIFORM, "--algorithm", "mine:even", *budget)
    assert (data["algorithm"], data["pulls"]["mean"]) == ("mine:even", 200)
    assert "" not in sys.path


@pytest.mark.usefixtures("mine")
def test_the_script_finds_it_too_and_so_does_an_experiment_that_is_kept() -> None:
    Path("arms.csv").write_text("a\nb\nc\n")
    asked = ["-k", "1", "--budget", "9", "--algorithm", "mine:even"]
    assert run("create", "arms.csv", *asked, "--store", "x.db").exit_code == 0
    done = script("ask", "--store", "x.db", "--limit", "9")
    assert (done.returncode, done.stderr) == (0, "")
    Path("mine.py").unlink()
    del sys.modules["mine"]
    gone = run("ask", "--store", "x.db")
    assert gone.exit_code == 1
    assert "there is no module 'mine'" in gone.stderr
    assert gone.stderr.count("\n") == 1


# Mistakes


def refused(result: Result, message: str) -> None:
    """Exit status 2, nothing on stdout, and one line on stderr that says this."""
    assert result.exit_code == 2
    assert result.stdout == ""
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nonsense"], "--nonsense"),
        (["simulat"], "No such command 'simulat'"),
        (["simulate"], "Missing option '-k'"),
        ([*SIMULATE, "--sped", "3"], "--sped"),
        ([*SIMULATE, "--epsilon"], "Option '--epsilon' requires an argument"),
        (
            [*SIMULATE, "--epsilon", "much"],
            "Invalid value for '--epsilon': 'much' is not a valid float",
        ),
        (
            [*SIMULATE, "--budget", "1.5"],
            "`budget` is 1.5, but must be a whole number of at least 1 where arms have no costs",
        ),
        ([*SIMULATE, "--budget", "99", "surplus"], "unexpected extra argument"),
        (
            [*SIMULATE, "--budget", "99", "--format", "xml"],
            "'xml' is not one of 'table', 'json', 'csv'",
        ),
        ([*SIMULATE, "--budget", "99", "--rewards", "poisson"], "'poisson' is not one of"),
        ([*SIMULATE], "neither `epsilon` nor `budget` is given, but a goal needs one of them"),
        (
            [*SIMULATE, "-k", "20", "--budget", "99"],
            "`k` is 20, but must be between 1 and n_arms - 1 = 19",
        ),
        (
            [*SIMULATE, "-k", "0", "--budget", "99"],
            "`k` is 0, but must be a whole number of at least 1",
        ),
        (
            [*SIMULATE, "--epsilon", "0"],
            "`epsilon` is 0.0, but must be a finite number greater than 0",
        ),
        ([*SIMULATE, "--epsilon", "-0.1"], "`epsilon` is -0.1, but must be"),
        ([*SIMULATE, "--epsilon", "nan"], "`epsilon` is nan, but must be"),
        (
            [*SIMULATE, "--epsilon", "0.1", "--delta", "1"],
            "`delta` is 1.0, but must be a number greater than 0",
        ),
        (
            [*SIMULATE, "--budget", "19"],
            "`budget` is 19, but uniform must pull each of the 20 arms once",
        ),
        (
            [*SIMULATE, "--budget", "99", "--runs", "0"],
            "`runs` is 0, but must be a whole number of at least 1",
        ),
        (
            [*SIMULATE, "--budget", "99", "--workers", "0"],
            "`workers` is 0, but must be a whole number of at least 1",
        ),
        (
            [*SIMULATE, "--budget", "99", "--seed", "-1"],
            "`seed` is -1, but must be a whole number of at least 0",
        ),
        (
            [*INSTANCE, "--algorithm", "unifrom", "--budget", "99"],
            "algorithm 'unifrom' is unknown; there are",
        ),
        (
            [*INSTANCE, "--algorithm", "nowhere:search", "--budget", "99"],
            "algorithm 'nowhere:search' cannot be imported: there is no module 'nowhere'",
        ),
        (
            [*INSTANCE, "--algorithm", "os:getcwd", "--budget", "99"],
            "getcwd takes (), but a search must take (problem, rng)",
        ),
        (
            [*INSTANCE, "--algorithm", "adaptive-top-k-tight", "--budget", "99"],
            "needs epsilon and delta",
        ),
        ([*SIMULATE, "--epsilon", "1e-9"], "uniform asks for too many pulls"),
        ([*SIMULATE, "--epsilon", "1e-17"], "less is lost in the rounding of such rewards"),
        (
            [*SIMULATE, "--budget", "99", "--option", "x=1"],
            "option 'x' is unknown to uniform; it takes none",
        ),
        ([*SIMULATE, "--budget", "99", "--option", "x"], "'x' must be of the form name=value"),
        (
            [*SIMULATE, "--budget", "99", "-p", "2"],
            "`p` is 2, but only --instance synthetic takes it",
        ),
        (
            [*SIMULATE, "--instance", "synthetic", "--budget", "99"],
            "`p` is not given, but --instance synthetic needs it",
        ),
        (
            [*SIMULATE, "--instance", "synthetic", "-p", "0", "--budget", "99"],
            "`p` is 0.0, but must be",
        ),
        ([*SIMULATE, "--instance", "rte", "--budget", "999"], "`n` is 20, but rte has 164 arms"),
        (
            [*SIMULATE, "--instance", "gauss", "--budget", "99"],
            "'gauss' is not one of 'two-group', 'uniform'",
        ),
        (
            [*SIMULATE, "--means", "-", "--budget", "99"],
            "both of --instance and --means given, but exactly one",
        ),
        (
            ["simulate", "-k", "3", "--algorithm", "uniform"],
            "neither of --instance and --means given",
        ),
        (
            ["simulate", "--means", "nowhere.csv", "-k", "3", "--algorithm", "uniform"],
            "File 'nowhere.csv' does not exist",
        ),
        (
            ["simulate", "--instance", "uniform", "-k", "3", "--algorithm", "uniform"],
            "`n` is not given, but",
        ),
        (["hardness", *UNIFORM], "Missing option '--epsilon'"),
        (
            ["hardness", *UNIFORM, "--epsilon", "-1"],
            "`epsilon` is -1.0, but must be a finite number greater than 0",
        ),
        (["demo", "--seed", "x"], "'x' is not a valid integer"),
        (["demo", "--seed", "-1"], "Invalid value for '--seed': -1 is not in the range x>=0"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_value_and_the_rule(
    arguments: list[str], message: str
) -> None:
    refused(run(*arguments), message)


def test_a_mistake_in_the_real_script_leaves_no_traceback() -> None:
    done = script(*SIMULATE, "--epsilon", "-1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "Error: `epsilon` is -1.0, but must be a finite number greater than 0\n"


def test_an_option_reaches_the_algorithm_as_number_word_or_truth_value() -> None:
    arguments = [
        "simulate",
        *UNIFORM,
        "--algorithm",
        "adaptive-top-k",
        "--epsilon",
        "0.5",
        "--option",
    ]
    assert (
        figures(*arguments, "tight=true")["pulls"]["mean"]
        < figures(*arguments, "tight=false")["pulls"]["mean"]
    )
    refused(
        run(*arguments, "tight=perhaps"), "option `tight` is 'perhaps', but must be of type bool"
    )


def test_a_certificate_reaches_the_algorithm(tmp_path: Path) -> None:
    goal = ("-k", "2", "--epsilon", "0.4")
    arms = ("--instance", "uniform", "-n", "6", "--algorithm", "certified")
    told, said = (
        figures("simulate", *arms, *goal, *given)
        for given in (("--certificate", "split"), ("--option", "certificate=split"))
    )
    assert told | {"seconds": 0} == said | {"seconds": 0}
    assert told["pulls"] != figures("simulate", *arms, *goal)["pulls"]
    (tmp_path / "arms.txt").write_text("a\nb\nc\n")
    store = str(tmp_path / "tests.db")
    files = (str(tmp_path / "arms.txt"), "--store", store)
    assert run("create", *files, *goal, "--certificate", "split").exit_code == 0
    with shortlist.Experiment.open(store) as kept:
        assert kept.settings.options == {"certificate": "split"}
    prior = ("forecast", "-n", "6", "--prior", "2,2", *goal, "--runs", "2")
    refused(run(*prior, "--certificate", "x"), "`certificate` is 'x', but must be one of")


def test_an_interrupt_and_a_defect_have_exit_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    def defective(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(shortlist, "simulate", interrupted)
    result = run(*SIMULATE, "--budget", "99")
    assert (result.exit_code, result.stdout) == (1, "")
    monkeypatch.setattr(shortlist, "simulate", defective)
    assert run(*SIMULATE, "--budget", "99").exit_code == 1


# Help


@pytest.mark.parametrize("command", [[], *([name] for name in main.commands)])
def test_help_teaches_by_example(command: list[str]) -> None:
    result = run(*command, "--help")
    assert result.exit_code == 0
    assert ("Example" if command else "Start here") in result.stdout
    assert run(*command, "-h").stdout == result.stdout


@pytest.mark.no_cover
def test_every_command_that_help_shows_as_an_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("means.csv").write_text("mean\n" + "0.3\n0.7\n" * 8)
    Path("pilot.csv").write_text(
        "arm,pulls,successes\n" + "".join(f"{arm},20,{2 * arm}\n" for arm in range(10))
    )
    Path("arms.csv").write_text("arm\n" + "".join(f"variant {number}\n" for number in range(8)))
    Path("fresh.csv").write_text("arm,chosen,pulls,successes\na,yes,400,330\nb,no,400,120\n")
    Path("counts.csv").write_text("arm,pulls,successes\na,400,330\nb,400,120\n")
    Path("rewards.csv").write_text("ticket,reward\n2,1\n3,0.5\n")
    Path("features.csv").write_text("arm,x\na,0.2\nb,0.9\n")
    Path("groups.csv").write_text("group\n" + "a\nb\n" * 8)
    Path("quotas.csv").write_text("group,least,most\na,1,1\n")
    Path("evaluate").write_text('#!/bin/sh\ncase "$1" in *3|*5) echo 1;; *) echo 0;; esac\n')
    Path("evaluate").chmod(0o755)
    Path("models.csv").write_text("arm\n" + "".join(f"model {number}\n" for number in range(8)))
    Path("items.csv").write_text("item\n" + "".join(f"{number}\n" for number in range(5)))
    Path("scores.csv").write_text("".join(f"{arm % 2},0,1\n" for arm in range(8)))
    Path("results.csv").write_text(Path("scores.csv").read_text())
    Path("score").write_text(Path("evaluate").read_text())
    Path("score").chmod(0o755)
    examples = []
    for name in main.commands:
        text = run(name, "--help").stdout.replace("\\\n", " ")
        examples += [
            shlex.split(line)[1:]
            for line in text.splitlines()
            if line.strip().startswith("shortlist ")
        ]
    assert {example[0] for example in examples} == set(main.commands)
    for example in examples:
        elsewhere = ("http://127.0.0.1:8765", "postgresql://ann@db.example.org/tests")
        needed = any(
            each in example for each in (*elsewhere, "--counts", "--metric", "--void", "logs")
        )
        if example[0] in ("reproduce", "serve", "mcp") or needed:
            continue  # takes minutes, never ends or needs a server: tests of its own run it
        if "colours.db" in example and "--undo" not in example:
            Path("colours.db").unlink(missing_ok=True)
            asked = ("create", "arms.csv", "-k", "1", "--budget", "9", "--name", "colours")
            assert run(*asked, "--store", "colours.db").exit_code == 0
        if "--cells" in example:
            asked = ("create", "arms.csv", "-k", "1", "--epsilon", "0.1", "--items", "items.csv")
            assert run(*asked, "--store", "models.db").exit_code == 0
        result = run(*example)
        assert result.exit_code == 0, (example, result.output)
        if example[0] == "export" and "--cells" not in example:
            Path("exported.jsonl").write_text(result.stdout)


def test_no_arguments_show_the_help() -> None:
    assert run().stdout == run("--help").stdout
    assert run().exit_code == 0


def test_python_m_shortlist_is_the_same_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shortlist", "--version"], capture_output=True, text=True
    )
    assert done.stdout.split()[-1] == shortlist.__version__
    assert script("--version").stdout.split()[-1] == shortlist.__version__


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_trouble_with_a_file_is_one_line_and_status_1() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "shortlist", "algorithms", "--format", "json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "Error: No space left on device"
