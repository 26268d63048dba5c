"""`shortlist certify`: what it reads, what it prints, and that a mistake costs one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from command_line import invoke

import shortlist
from shortlist.errors import InvalidInput

FRESH = "arm,chosen,pulls,successes\nred,yes,400,330\ngreen,yes,400,310\nblue,no,400,120\n"
SCORES = "chosen,pulls,sum,squares\n1,90,72,58\n0,90,54,33\n0,80,45,26\n"
BINARY: dict[str, Any] = {"top": [0, 1], "pulls": [400] * 3, "sums": [330, 310, 120]}
SCORED: dict[str, Any] = {"top": [0], "pulls": [90, 90, 80], "sums": [72, 54, 45]}
SQUARES = [58, 33, 26]


def certify(*arguments: str, stdin: str = FRESH) -> Result:
    return invoke(["certify", "-", "--fresh", *arguments], stdin)


def printed(*arguments: str, stdin: str = FRESH) -> dict[str, Any]:
    result = certify(*arguments, "--format", "json", stdin=stdin)
    assert (result.exit_code, result.stderr) == (0, "")
    data: dict[str, Any] = json.loads(result.stdout)
    return data


def refusal(*arguments: str, stdin: str = FRESH) -> str:
    result = certify(*arguments, stdin=stdin)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    return str(result.stderr)


def test_the_command_line_gives_the_bound_of_the_library() -> None:
    bound = shortlist.certify(**BINARY, fresh=True, boundary=0.7, delta=0.1, rewards="binary")
    assert printed("--boundary", "0.7", "--delta", "0.1") == {
        "regret_bound": bound,
        "confidence": 0.9,
        "k": 2,
        "n": 3,
        "boundary": 0.7,
    }


@pytest.mark.parametrize(("name", "value"), [("epsilon", 0.2), ("strength", 30.0)])
def test_epsilon_and_strength_are_passed_on(name: str, value: float) -> None:
    told = printed("--boundary", "0.6", f"--{name}", f"{value}")["regret_bound"]
    options: dict[str, Any] = {name: value}
    assert told == shortlist.certify(
        **BINARY, fresh=True, boundary=0.6, rewards="binary", **options
    )
    assert told != printed("--boundary", "0.6")["regret_bound"]


def test_squares_make_the_bound_of_scores_smaller() -> None:
    told = printed("--boundary", "0.6", stdin=SCORES)
    assert told["regret_bound"] == shortlist.certify(
        **SCORED, fresh=True, boundary=0.6, squares=SQUARES
    )
    assert told["regret_bound"] < shortlist.certify(**SCORED, fresh=True, boundary=0.6)


@pytest.mark.parametrize(
    ("spelled", "declared"),
    [("0,2", (0, 2)), ("sub-gaussian:0.5", shortlist.SubGaussian(0.5))],
)
def test_rewards_are_declared_as_in_other_commands(spelled: str, declared: Any) -> None:
    told = printed("--boundary", "0.7", "--rewards", spelled, stdin=SCORES)
    bound = shortlist.certify(**SCORED, fresh=True, boundary=0.7, squares=SQUARES, rewards=declared)
    assert told["regret_bound"] == bound


def test_where_successes_are_counted_rewards_are_binary() -> None:
    scores = FRESH.replace("successes", "sum").replace("120", "120.5")
    assert printed("--boundary", "0.6", stdin=scores)
    assert "120.5" in refusal("--boundary", "0.6", "--rewards", "binary", stdin=scores)
    assert "whole number" in refusal("--boundary", "0.6", stdin=scores.replace("sum", "successes"))


@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("True", "False"), ("YES", " no ")])
def test_chosen_is_said_in_any_usual_way(yes: str, no: str) -> None:
    text = FRESH.replace("yes", yes).replace("no", no)
    assert printed("--boundary", "0.6", stdin=text) == printed("--boundary", "0.6")


def test_the_table_says_the_bound_rounded_up() -> None:
    bound = printed("--boundary", "0.6")["regret_bound"]
    *_, verdict = certify("--boundary", "0.6").stdout.strip().splitlines()
    said = float(verdict.split()[2])
    assert verdict == f"At most {said:g} of mean reward is lost, with 0.95 confidence."
    assert bound <= said <= bound * 1.001


def test_a_bound_above_epsilon_is_none() -> None:
    hard = ("--boundary", "0.9", "--epsilon", "0.01")
    assert printed(*hard)["regret_bound"] is None
    assert "No bound of at most 0.01 follows from these data." in certify(*hard).stdout


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "begins with nothing, but must begin with columns pulls, chosen and sum or successes"),
        (FRESH.replace("chosen", "picked"), "begins with arm, picked, pulls, successes, but must"),
        (FRESH.replace("arm", "name"), "column of labels must be called `arm`"),
        (FRESH.replace("green", "red"), "labelled 'red', but labels must differ"),
        (FRESH.replace("no", "perhaps"), "line 4 says 'perhaps', but chosen must be yes or no"),
        (FRESH.replace("no", "yes"), "says that 3 of 3 arms were chosen, but some must be"),
        (FRESH.replace("yes", "no"), "says that 0 of 3 arms were chosen, but some must be"),
        ("chosen,pulls,sum\n", "says that 0 of 0 arms were chosen"),
        (FRESH.replace("no,400", "no,0"), "says '0', but pulls must be a whole number of at least"),
        (FRESH.replace("120", "401"), "line 4: 401 successes exceed 400 pulls"),
        (SCORES.replace("45", "nan"), "line 4 says nan for 80 pulls"),
        (SCORES.replace("45", "x"), "line 4 says 'x', but sum must be a number"),
        (SCORES.replace("33", "3"), "line 3 says 3 for 90 pulls, but must say what squares"),
        (SCORES.replace("33", "x"), "line 3 says 'x', but squares must be a number"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_by_its_line(text: str, words: str) -> None:
    assert words in refusal("--boundary", "0.6", stdin=text)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--strength", "2"), "`strength` is given, but needs a `boundary`"),
        (("--boundary", "2"), "`boundary` is 2.0, but must be between 0 and 1"),
        (("--boundary", "0.6", "--delta", "1"), "`delta` is 1.0"),
        (("--boundary", "0.6", "--epsilon", "0"), "`epsilon` is 0.0"),
        (("--boundary", "0.6", "--strength", "-1"), "`strength` is -1.0"),
        (("--boundary", "0.6", "--rewards", "coins"), "must be LOW,HIGH or binary"),
    ],
)
def test_an_option_that_cannot_be_meant_is_refused(arguments: tuple[str, ...], words: str) -> None:
    assert words in refusal(*arguments)


def test_the_user_must_state_that_rewards_are_fresh() -> None:
    result = invoke(["certify", "-", "--boundary", "0.6"], FRESH)
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "--fresh is missing, but must be given" in result.stderr
    assert "use `shortlist assess`" in result.stderr


GROUPED = (
    "arm,group,chosen,pulls,successes\na,x,yes,90,72\nb,x,no,90,70\nc,y,yes,90,60\nd,y,no,90,9\n"
)


def test_without_a_boundary_the_bound_is_that_of_python() -> None:
    bound = printed()["regret_bound"]
    assert bound == shortlist.certify(**BINARY, fresh=True, rewards="binary")
    assert printed()["boundary"] is None


def test_quotas_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "quotas.csv"
    file.write_text("group,least,most\nx,1,1\n")
    bound = printed("--quotas", str(file), stdin=GROUPED)["regret_bound"]
    quotas = shortlist.Quotas("xxyy", {"x": (1, 1)}, k=2)
    given: dict[str, Any] = {"pulls": [90] * 4, "sums": [72, 70, 60, 9], "rewards": "binary"}
    assert bound == shortlist.certify([0, 2], **given, fresh=True, constraint=quotas)
    assert bound < printed(stdin=GROUPED)["regret_bound"]


@pytest.mark.parametrize(
    ("text", "stdin", "words"),
    [
        ("group,least,most\nx,1,1\n", FRESH, "the arms have no column `group`"),
        ("group,least\nx,1\n", GROUPED, "must begin with columns group, least, most"),
        ("group,least,most\nx,1,1\nx,1,2\n", GROUPED, "group 'x' has two lines"),
        ("group,least,most\nz,1,1\n", GROUPED, "names group 'z', but the groups are 'x', 'y'"),
        ("group,least,most\nx,0,0\n", GROUPED, "the constraint does not allow this set"),
    ],
)
def test_quotas_that_do_not_fit_are_refused(
    text: str, stdin: str, words: str, tmp_path: Path
) -> None:
    file = tmp_path / "quotas.csv"
    file.write_text(text)
    assert words in refusal("--quotas", str(file), stdin=stdin)


FEATURED = "arm,chosen,pulls,successes\na,no,400,120\nb,no,400,200\nc,yes,400,330\nd,no,0,0\n"
FEATURES = "arm,x,y\nd,0.3,0.7\na,0.1,1\nb,0.5,0\nc,0.9,0.3\n"  # in another order


@pytest.mark.parametrize(("told", "linear"), [((), True), (("--linear", "0.01"), 0.01)])
def test_features_are_matched_by_arm(
    told: tuple[str, ...], linear: bool | float, tmp_path: Path
) -> None:
    path = tmp_path / "features.csv"
    path.write_text(FEATURES)
    rows = [(0.1, 1), (0.5, 0), (0.9, 0.3), (0.3, 0.7)]
    pulls, sums = [400, 400, 400, 0], [120, 200, 330, 0]
    known: dict[str, Any] = {"features": rows, "linear": linear, "rewards": "binary"}
    bound = shortlist.certify([2], pulls, sums, fresh=True, **known)
    found = printed("--features", str(path), *told, stdin=FEATURED)["regret_bound"]
    assert found == pytest.approx(bound, abs=1e-12)


def test_a_distance_from_linear_means_needs_features() -> None:
    assert "`linear` is given, but only goes with `features`" in refusal("--linear")
    with pytest.raises(InvalidInput, match=r"`linear` is .*, but only goes with"):
        shortlist.certify(**BINARY, fresh=True, linear=0.1)


def test_normal_rewards_are_taken_with_their_squares() -> None:
    table = "arm,chosen,pulls,sum,squares\na,yes,20,20,40\nb,no,20,14,30\nc,no,20,0,20\n"
    known: dict[str, Any] = {"squares": [40, 30, 20], "rewards": "normal", "fresh": True}
    bound = shortlist.certify([0], [20] * 3, [20, 14, 0], **known)
    assert printed("--rewards", "normal", stdin=table)["regret_bound"] == pytest.approx(bound)
