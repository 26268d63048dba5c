"""`shortlist forecast`: what it reads, what it prints, and that a mistake costs one line."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from command_line import invoke

import shortlist
from shortlist.forecasting import trials

SMALL = ["-n", "8", "-k", "2", "--prior", "2,6", "--runs", "2"]
QUICK = ["--algorithm", "uniform", "--algorithm", "sar", "--algorithm", "adaptive-top-k-tight"]
PILOT = "arm,pulls,successes\na,40,30\nb,40,10\nc,60,6\n"


def forecast(*arguments: str, stdin: str | None = None) -> Result:
    return invoke(["forecast", *arguments], stdin)


def figures(*arguments: str, stdin: str | None = None) -> dict[str, Any]:
    result = forecast(*arguments, "--format", "json", stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    data: dict[str, Any] = json.loads(result.stdout)
    return {**data, "seconds": 0}


def test_the_command_line_gives_the_figures_of_the_library() -> None:
    printed = figures(
        *SMALL, "--epsilon", "0.2", "--budget", "40", "--budget", "80", "--seed", "3", *QUICK
    )
    names = ["uniform", "sar", "adaptive-top-k-tight"]
    outcome = shortlist.forecast(
        n=8, k=2, prior=(2, 6), epsilon=0.2, budget=[40, 80], runs=2, seed=3, algorithms=names
    )
    assert printed == {**outcome.summary(), "seconds": 0}
    assert [row["budget"] for row in printed["prospects"]] == [None, None, 40, 40, 80, 80]


def test_csv_has_a_row_for_every_algorithm_and_goal() -> None:
    result = forecast(*SMALL, "--epsilon", "0.2", "--budget", "40", *QUICK, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    figures = ("pulls", "regret", "rounds")
    quantiles = [f"{figure}_p{share}" for figure in figures for share in (10, 50, 90)]
    assert list(rows[0]) == ["algorithm", "budget", *quantiles, "failure_rate"]
    assert [(row["algorithm"], row["budget"]) for row in rows[2:]] == [
        ("uniform", "40"),
        ("sar", "40"),
    ]


def test_a_table_says_what_the_figures_are_of() -> None:
    text = forecast(*SMALL, "--epsilon", "0.2", "--budget", "40", *QUICK).stdout
    assert "The best 2 of 8 arms with means from Beta(2, 6), 2 runs of every algorithm" in text
    assert "Pulls until at most 0.2 is lost with probability 0.95:" in text
    assert "Regret after 40 pulls:" in text
    assert all(
        name in text for name in ("p10", "p50", "p90", "uniform", "sar", "adaptive-top-k-tight")
    )


@pytest.mark.parametrize(
    "text",
    [
        PILOT,
        "\ufeffarm,pulls,sum\r\na,40,30\r\n\r\nb,40,10.0\r\nc,60,6\r\n",
        "arm;pulls;sum\na;40;30\nb;40;10.0\nc;60;6\n",
        "sum, pulls\n30, 40\n 10,40\n6,60\n",
    ],
)
def test_a_pilot_is_read_from_a_csv_of_pulls_and_sums(text: str, tmp_path: Path) -> None:
    (tmp_path / "pilot.csv").write_text(text, encoding="utf-8", newline="")
    settings = ["-k", "1", "--budget", "60", "--algorithm", "uniform"]
    printed = figures("--pilot", str(tmp_path / "pilot.csv"), *settings)
    outcome = shortlist.forecast(
        k=1, pilot=(np.array([40, 40, 60]), [30, 10, 6]), budget=60, algorithms=["uniform"]
    )
    assert printed == {**outcome.summary(), "seconds": 0}
    assert figures("--pilot", "-", *settings, stdin=text.replace("\ufeff", "")) == printed


def test_guessed_means_are_read_as_elsewhere() -> None:
    printed = figures(
        "--means",
        "-",
        "-k",
        "1",
        "--budget",
        "60",
        "--algorithm",
        "uniform",
        stdin="mean\n0.9\n0.1\n",
    )
    assert (printed["n"], printed["arms"]) == (2, "2 arms with guessed means")


@pytest.mark.parametrize("given", ["3", "file"])
def test_items_are_a_number_or_a_file_that_names_them(given: str, tmp_path: Path) -> None:
    file = tmp_path / "items.csv"
    file.write_text("item\nx\ny\nz\n")
    named = str(file) if given == "file" else given
    printed = figures(*SMALL, "--items", named, "--epsilon", "0.3", "--budget", "12")
    outcome = shortlist.forecast(n=8, k=2, prior=(2, 6), items=3, epsilon=0.3, budget=12, runs=2)
    assert printed == {**outcome.summary(), "seconds": 0}
    assert 0 < printed["prospects"][1]["cells"]["share"] <= 0.5


def test_a_picture_is_saved_beside_the_figures(tmp_path: Path) -> None:
    file = tmp_path / "forecast.png"
    result = forecast(*SMALL, "--budget", "40", "--algorithm", "uniform", "--plot", str(file))
    assert result.exit_code == 0
    assert file.read_bytes().startswith(b"\x89PNG")


def test_what_is_left_out_is_said_on_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "LONGEST_RUNS", 0.0)
    result = forecast(
        "-n", "3", "-k", "1", "--prior", "1,1", "--epsilon", "0.5", "--runs", "1", "--format", "csv"
    )
    assert result.exit_code == 0
    assert result.stderr == (
        "clucb-pac is left out: its runs would take too long; --algorithm clucb-pac asks for it\n"
    )
    assert "clucb-pac" not in result.stdout
    table = forecast("-n", "3", "-k", "1", "--prior", "1,1", "--epsilon", "0.5", "--runs", "1")
    assert table.stderr == ""
    assert "takes long: clucb-pac" in table.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--prior", "2,6", "-n", "8", "--budget", "40"], "Missing option '-k'"),
        (
            ["-k", "2", "--budget", "40"],
            "none given, but exactly one of `means`, `prior` and `pilot`",
        ),
        (["-k", "2", "--prior", "2", "--budget", "40"], "'2' must be two numbers A,B"),
        (["-k", "2", "--prior", "2,6", "--budget", "40"], "`n` is not given, but a prior needs it"),
        (["-k", "2", "--prior", "2,0", "-n", "8", "--budget", "40"], "`prior` is 0.0, but must be"),
        ([*SMALL], "neither `epsilon` nor `budget` is given, but a goal needs one of them"),
        (
            [*SMALL, "--budget", "4"],
            "`budget` is 4, but expected-loss must pull each of the 8 arms once",
        ),
        ([*SMALL, "--budget", "many"], "'many' is not a valid float"),
        (
            [*SMALL, "--epsilon", "-1"],
            "`epsilon` is -1.0, but must be a finite number greater than 0",
        ),
        ([*SMALL, "--epsilon", "0.1", "--algorithm", "best"], "algorithm 'best' is unknown"),
        (
            [*SMALL, "--epsilon", "0.1", "--algorithm", "sar"],
            "sar needs a budget; it has no stopping rule",
        ),
        (
            [*SMALL, "--budget", "40", "--plot", "forecast.doc"],
            "'forecast.doc', but its name must end in .png, .svg, .pdf",
        ),
        (
            [*SMALL, "--budget", "40", "--plot", "nowhere/forecast.png"],
            "but there is no folder 'nowhere'",
        ),
        ([*SMALL, "--items", "nowhere.csv", "--budget", "40"], "'nowhere.csv' does not exist"),
        ([*SMALL, "--items", "0", "--budget", "40"], "`items` is 0, but must be a whole number"),
        ([*SMALL, "--items", "9" * 5000, "--budget", "40"], "Invalid value for '--items'"),
        ([*SMALL, "--order", "independent", "--budget", "40"], "`order` is given without `items`"),
        (
            ["-k", "2", "--pilot", "nowhere.csv", "--budget", "40"],
            "File 'nowhere.csv' does not exist",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_the_value_and_the_rule(
    arguments: list[str], message: str
) -> None:
    refused(forecast(*arguments), message)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing, but must begin with columns pulls and sum or successes"),
        (
            b"arm,pulls\na,3\n",
            "begins with arm, pulls, but must begin with columns pulls and sum or successes",
        ),
        (b"pulls,sum,successes\n", "has columns sum and successes, but must have only one of them"),
        (b"pulls,sum\n3,1\n4\n", "pilot.csv, line 3 has 1 values, but must have 2: pulls, sum"),
        (
            b"pulls,sum\n3,1\n\n4.5,1\n",
            "pilot.csv, line 4 says '4.5', but pulls must be a whole number of at least 0",
        ),
        (b"pulls,sum\n3,high\n", "pilot.csv, line 2 says 'high', but sum must be a number"),
        (
            b"pulls,sum\n3,nan\n",
            "pilot.csv, line 2 says nan, but rewards in [0, 1] add up to at most 3 in 3 pulls",
        ),
        (
            b"pulls,successes\n3,1.5\n",
            "pilot.csv, line 2 says '1.5', but successes must be a whole number",
        ),
        (
            b"pulls,successes\n3,4\n",
            "pilot.csv, line 2 says 4, but rewards in [0, 1] add up to at most 3 in 3 pulls",
        ),
        (b"label,pulls,sum\na,3,1\n", "but the column of labels must be called `arm`"),
        (b"arm,pulls,sum\na,3,1\na,3,1\n", "pilot.csv are labelled 'a', but labels must differ"),
        (b"pulls,sum\n", "`pilot` has 0 arms that were pulled, but must have at least 2"),
        (b"pulls,sum\n3,\xff\n", "but must be a UTF-8 file"),
    ],
)
def test_a_pilot_that_cannot_be_read_is_named_with_its_line(
    content: bytes, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "pilot.csv"
    file.write_bytes(content)
    refused(forecast("-k", "1", "--pilot", str(file), "--budget", "40"), message)


def refused(result: Result, message: str) -> None:
    """Exit status 2, nothing on stdout, and one line on stderr that says this."""
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1


def test_limits_are_one_for_all_arms_or_a_column_of_the_means(tmp_path: Path) -> None:
    asked = ["-k", "1", "--epsilon", "0.1", "--runs", "2", "--algorithm", "certified"]
    (row,) = figures("-n", "3", "--prior", "2,2", *asked, "--limit", "2")["prospects"]
    assert row["limits"]["ended"] == 1
    assert row["pulls"]["p90"] <= 6
    file = tmp_path / "means.csv"
    file.write_text("mean,limit\n0.5,5\n0.4,\n0.3,7\n")
    (row,) = figures("--means", str(file), *asked)["prospects"]
    assert row["limits"]["ended"] == 1
    both = forecast("--means", str(file), *asked, "--limit", "5")
    assert both.exit_code != 0
    assert "has limits, too" in " ".join(both.stderr.split())
    file.write_text("mean,limit\n0.5,5\n0.4,many\n")
    wrong = forecast("--means", str(file), *asked)
    assert "line 3 says 'many', but a limit must be" in " ".join(wrong.stderr.split())


def test_simulate_runs_one_algorithm(tmp_path: Path) -> None:
    names = ("--algorithm", "uniform", "--algorithm", "lucb")
    result = invoke(["simulate", "--instance", "rte", "-k", "3", "--epsilon", "0.5", *names])
    assert result.exit_code == 2
    assert "--algorithm is given 2 times (uniform, lucb), but simulate runs one" in result.stderr
