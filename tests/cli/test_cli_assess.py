"""`shortlist assess`: what it reads, what it prints, and that a mistake costs one line."""

import csv
import json
from pathlib import Path

import pytest
from command_line import invoke

import shortlist

COUNTS = "arm,pulls,successes\nred,400,48\ngreen,400,30\nblue,400,9\n"
ADS = {"red": (400, 48), "green": (400, 30), "blue": (400, 9)}


@pytest.mark.parametrize(("word", "fixed"), [("--fixed", True), ("--no-fixed", False)])
def test_the_command_line_gives_what_the_library_gives(word: str, fixed: bool) -> None:
    arguments = ["assess", "-", "-k", "1", word, "--delta", "0.1", "--minimize"]
    found = shortlist.assess(ADS, 1, fixed=fixed, delta=0.1, minimize=True)
    result = invoke([*arguments, "--format", "json"], COUNTS)
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == found.to_dict()
    assert found.verdict in invoke(arguments, COUNTS).stdout


def test_a_csv_has_a_line_for_every_arm() -> None:
    result = invoke(["assess", "-", "-k", "1", "--fixed", "--format", "csv"], COUNTS)
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert [row["label"] for row in rows] == list(ADS)
    assert [row["tier"] for row in rows] == ["tied", "tied", "out"]


def test_rewards_are_declared_as_everywhere() -> None:
    scores = COUNTS.replace("successes", "sum")
    arguments = ["assess", "-", "-k", "1", "--fixed", "--format", "json", "--rewards"]
    bounds = [
        json.loads(invoke([*arguments, rewards], scores).stdout)["regret_bound"]
        for rewards in ("binary", "0,1", "sub-gaussian:0.5")
    ]
    assert bounds[0] < bounds[1] < bounds[2]


def test_a_picture_is_saved(tmp_path: Path) -> None:
    file = tmp_path / "ads.png"
    result = invoke(["assess", "-", "-k", "1", "--fixed", "--plot", str(file)], COUNTS)
    assert result.exit_code == 0
    assert file.stat().st_size > 1000
    result = invoke(["assess", "-", "-k", "1", "--fixed", "--plot", "ads.txt"], COUNTS)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "its name must end in .png" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "counts", "message"),
    [
        (["-k", "1"], COUNTS, "--fixed or --no-fixed is missing, but one must be given"),
        (["-k", "3", "--fixed"], COUNTS, "`k` is 3, but must be between 1 and n_arms - 1 = 2"),
        (
            ["-k", "1", "--fixed"],
            "arm,pulls,successes\na,5,6\nb,5,2\n",
            "-, line 2: 6 successes exceed 5",
        ),
        (["--fixed"], COUNTS, "Missing option '-k'"),
    ],
)
def test_a_mistake_costs_one_line(arguments: list[str], counts: str, message: str) -> None:
    result = invoke(["assess", "-", *arguments], counts)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert message in result.stderr
