"""Features of the arms: checked before any pull, behind every door."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import shortlist
from shortlist.cli import main
from shortlist.errors import InvalidInput, UnsupportedGoal
from shortlist.features import MOST_FEATURES, Features
from shortlist.problem import FixedConfidence, Problem
from shortlist.reward_models import Bounded
from shortlist.search import Answer, Pulls, Search
from shortlist.settings import Settings, arguments, body_of

ROWS = [[0.0, 1.0], [1.0, 3.0], [2.0, 2.0], [4.0, 7.0]]
SEEN: list[Problem] = []


def watcher(problem: Problem, rng: np.random.Generator) -> Search:
    """A search that shows its problem."""
    SEEN.append(problem)
    yield Pulls(np.arange(problem.n_arms), np.ones(problem.n_arms, dtype=np.int64))
    return Answer(np.arange(problem.k))


@pytest.fixture(autouse=True)
def fresh() -> None:
    SEEN.clear()


def select(**given: Any) -> shortlist.Result:
    arms = given.pop("arms", 4)
    return shortlist.select(
        lambda arm: 0.5, arms=arms, k=1, budget=8, algorithm=watcher, progress=False, **given
    )


BAD: dict[str, tuple[Any, str]] = {
    "text": ([["a", "b"]] * 4, "cannot be read"),
    "missing": ([[1, 2], [np.nan, 1], [3, 4], [5, 5]], "feature 0 of arm 1 is missing"),
    "none": ([[1, 2], [2, None], [3, 4], [5, 5]], "feature 1 of arm 1 is missing"),
    "infinite": ([[1, 2], [2, np.inf], [3, 4], [5, 5]], "feature 1 of arm 1 is inf"),
    "flat": ([1.0, 2.0, 3.0, 4.0], r"has shape \(4,\)"),
    "no columns": ([[], [], [], []], r"has shape \(4, 0\)"),
    "too few rows": (ROWS[:3], "has 3 rows, but must have one for each of the 4 arms"),
    "constant": ([[1.0]] * 4, "are the same for all arms"),
    "nearly constant": ([[1e9], [1e9], [1e9], [1e9 + 1e-6]], "subtract a constant"),
    "nearly collinear": ([[0, 1e-9], [1, 1], [2, 2], [4, 4 + 1e-8]], "nearly collinear"),
    "too many": (np.eye(4, MOST_FEATURES + 1), "201 columns"),
    "a file": ("features.csv", "must be a row of numbers per arm"),
    "names without a frame": (["x", "y"], "names the column 'x', but `arms` is no data frame"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_features_are_refused_before_any_pull(name: str) -> None:
    features, words = BAD[name]
    with pytest.raises(InvalidInput, match=words):
        select(features=features)
    assert not SEEN


@pytest.mark.parametrize("linear", ["yes", 0, -1.0, np.nan, None])
def test_a_declaration_is_a_flag_or_a_distance(linear: Any) -> None:
    with pytest.raises(InvalidInput, match="`linear` is"):
        select(features=ROWS, linear=linear)


def test_linear_needs_features() -> None:
    with pytest.raises(InvalidInput, match="`linear` is True, but means can only be linear in"):
        select(linear=True)
    with pytest.raises(InvalidInput, match=r"`linear` is 0.1, but means can only be linear in"):
        shortlist.simulate("certified", [0.1, 0.2, 0.3], k=1, epsilon=0.1, linear=0.1)


def test_a_condition_number_of_a_billion_is_refused_and_exact_collinearity_is_handled() -> None:
    rng = np.random.default_rng(0)
    one, other = rng.normal(size=(2, 50))
    with pytest.raises(InvalidInput, match="condition number"):
        Features(np.column_stack([one, one + 1e-9 * other]))
    doubled = Features(np.column_stack([one, other, one + other, 7 * one, np.ones(50)]))
    assert doubled.rank == 2
    assert np.allclose(doubled.basis.T @ doubled.basis, 50 * np.eye(2))
    assert np.allclose(doubled.basis.mean(0), 0)


def test_units_of_a_feature_do_not_matter() -> None:
    values = np.random.default_rng(1).normal(size=(30, 3))
    scaled = Features(values * [1e-40, 1.0, 1e40] + [0.0, 5.0, 0.0])
    span = scaled.basis @ scaled.basis.T
    assert np.allclose(span, Features(values).basis @ Features(values).basis.T)


def test_features_of_some_arms_span_what_these_arms_span() -> None:
    values = np.vstack([np.column_stack([np.arange(9.0), np.zeros(9)]), [[0.0, 5.0]]])
    features = Features(values)
    assert features.rank == 2
    some = features.among(np.arange(9))
    assert some.rank == 1
    assert some.values.shape == (9, 2)
    order = np.random.default_rng(0).permutation(10)
    assert np.allclose(features.among(order).basis, features.basis[order])


def test_arms_may_have_features() -> None:
    arms = [shortlist.Arm(name, features=row) for name, row in zip("abcd", ROWS, strict=True)]
    select(arms=arms)
    assert SEEN[0].features is not None
    assert SEEN[0].features.values.tolist() == ROWS
    with pytest.raises(InvalidInput, match="but arms have features, too"):
        select(arms=arms, features=ROWS)
    with pytest.raises(InvalidInput, match="arm 3 has no features, but others have"):
        select(arms=[*arms[:3], "d"])
    with pytest.raises(InvalidInput, match="features of 'a'"):
        shortlist.Arm("a", features="x")  # type: ignore[arg-type]


def test_features_may_be_columns_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"arm": list("abcd"), "x": [1, 2, 3, 5], "y": [0.5, 1, 0, 2]})
    select(arms=frame, features=["x", "y"])
    assert SEEN[0].features is not None
    assert SEEN[0].features.values.tolist() == [[1, 0.5], [2, 1], [3, 0], [5, 2]]
    with pytest.raises(InvalidInput, match="has the columns arm, x, y"):
        select(arms=frame, features=["z"])


def test_the_distance_is_on_the_unit_scale_in_a_search() -> None:
    goal = FixedConfidence(1.0, 0.1)
    problem = Problem(4, 1, goal, Bounded(0, 10), features=Features(np.array(ROWS), 0.5))
    unit = problem.unit().features
    assert unit is not None
    assert unit.misfit == 0.05
    assert unit.guiding().misfit is None
    assert not unit.guiding().declared


def test_features_do_not_go_with_items() -> None:
    with pytest.raises(InvalidInput, match="`features` and `items` are given"):
        shortlist.Experiment.create(4, 1, budget=8, features=ROWS, items=5)


def test_an_algorithm_without_use_for_features_refuses_them() -> None:
    with pytest.raises(UnsupportedGoal, match="lucb does not use `features`"):
        shortlist.simulate("lucb", [0.1, 0.2, 0.4, 0.3], k=1, epsilon=0.1, features=ROWS)


def test_the_linear_certificate_needs_a_declaration() -> None:
    with pytest.raises(InvalidInput, match="means that are declared linear"):
        shortlist.Experiment.create(4, 1, epsilon=0.1, certificate="linear")


def test_features_are_stored_and_come_back() -> None:
    values = {"arms": 4, "k": 1, "budget": 8, "features": ROWS}
    settings = Settings.of(values | {"algorithm": f"{__name__}:watcher"})
    again = Settings.from_json(settings.to_json(), "here")
    assert again.problem.features is not None
    assert again.problem.features.values.tolist() == ROWS
    assert again.spec == settings.spec
    other = Settings.of({**values, "features": ROWS[::-1], "algorithm": f"{__name__}:watcher"})
    assert settings.spec is not None
    assert other.spec is not None
    assert settings.spec.difference(other.spec) == "other features"


def test_the_body_of_a_request_has_the_features() -> None:
    arms = [shortlist.Arm(name, features=row) for name, row in zip("abcd", ROWS, strict=True)]
    values = _defaults()
    body = body_of({**values, "arms": arms, "linear": 0.1})
    assert body["features"] == tuple(map(tuple, ROWS))
    assert json.loads(json.dumps(body))["linear"] == 0.1
    assert arguments({**values, **_defaults(), "linear": np.True_}, "select")["linear"] is True


def _defaults() -> dict[str, Any]:
    from shortlist.spec import FIELDS

    given = {name: field.default for name, field in FIELDS.items()}
    return given | {"arms": 4, "k": 1}


def test_arms_are_shuffled_with_their_features() -> None:
    means = [row[0] / 10 for row in ROWS]
    for run in range(5):
        shortlist.simulate(watcher, means, k=1, budget=4, features=ROWS, seed=run)
        shortlist.forecast(means=means, k=1, budget=4, algorithms=[watcher], features=ROWS, runs=2)
    firsts = {float(problem.features.values[0, 0]) for problem in SEEN if problem.features}
    assert len(firsts) > 1


def test_a_forecast_needs_means_for_features() -> None:
    with pytest.raises(InvalidInput, match="`features` are given without `means`"):
        shortlist.forecast(n=4, prior=(2, 2), k=1, budget=4, features=ROWS)


def written(folder: Path, text: str, name: str = "features.csv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, words)
    return result.exit_code, result.output


def created(folder: Path, features: str, *more: str) -> tuple[int, str]:
    arms = written(folder, "arm,x,y\na,1,2\nb,2,0\nc,5,1\n", "arms.csv")
    where = ["--store", str(folder / "s.db"), "--algorithm", f"{__name__}:watcher"]
    goal = ["-k", "1", "--budget", "9"]
    return run("create", arms, *goal, "--features", features, *more, *where)


def test_the_command_line_reads_a_file_by_labels_or_columns_of_the_arms(tmp_path: Path) -> None:
    path = written(tmp_path, "y,arm,x\n0,b,2\n2,a,1\n1,c,5\n")
    for features in (path, "y, x"):
        SEEN.clear()
        status, text = created(tmp_path, features)
        assert status == 0, text
        assert SEEN[0].features is not None
        assert SEEN[0].features.values.tolist() == [[2, 1], [0, 2], [1, 5]]
        (tmp_path / "s.db").unlink()


WRONG_FILES = {
    "x\n1\n2\n": "has 2 rows",
    "1,2\n1,2\n3,4\n4,5\n": "must be names of columns",
    "arm,x\na,1\nb,2\nd,3\n": "features of arm 'd', but there is none",
    "arm,x\na,1\nb,2\n": "no features of arm 'c'",
    "arm,x\na,1\na,2\n": "of the same arm",
    "x\n1\nmany\n3\n": "must be a finite number",
    "arm\na\nb\nc\n": "has no features",
}


@pytest.mark.parametrize("text", WRONG_FILES)
def test_a_wrong_file_of_features_is_refused(text: str, tmp_path: Path) -> None:
    status, output = created(tmp_path, written(tmp_path, text))
    assert status == 2
    assert WRONG_FILES[text] in output


def test_names_that_are_no_file_and_no_column_are_refused(tmp_path: Path) -> None:
    status, output = created(tmp_path, "x,z")
    assert status == 2
    assert "no such file, and no column 'z'" in output
    status, output = run("simulate", "--instance", "uniform", "-n", "9", "-k", "2", "--algorithm",
                         "uniform", "--budget", "90", "--features", "x")  # fmt: skip
    assert status == 2
    assert "there is no such file" in output


def test_the_command_line_declares_means_linear(tmp_path: Path) -> None:
    for words, misfit in ((["--linear"], 0.0), (["--linear", "0.02"], 0.02)):
        status, text = created(tmp_path, "x,y", *words)
        assert status == 0, text
        assert SEEN[-1].features is not None
        assert SEEN[-1].features.misfit == misfit
        (tmp_path / "s.db").unlink()
    status, text = created(tmp_path, "x,y", "--linear", "much")
    assert status == 2
    assert "must be a number" in text


def test_instances_with_features_are_simulated_from_the_command_line() -> None:
    common = ["simulate", "-n", "60", "-k", "6", "--coefficients", "3", "--format", "json"]
    goal = ["--algorithm", "certified", "--epsilon", "0.1"]
    status, text = run(*common, "--instance", "linear", *goal, "--linear")
    assert status == 0, text
    linear = json.loads(text)
    status, text = run(*common, "--instance", "linear", *goal)
    assert status == 0, text
    assert linear["pulls"]["mean"] < json.loads(text)["pulls"]["mean"]
    budget = ["--algorithm", "expected-loss", "--budget", "200", "--features", "own"]
    status, text = run(*common, "--instance", "sigmoid", "--residual", "0.05", *budget)
    assert status == 0, text
    status, text = run("simulate", "-k", "6", "--instance", "linear", *goal)
    assert status == 2
    assert "`n` is not given" in text
    status, text = run("hardness", "-n", "60", "-k", "6", "--instance", "sigmoid", "--epsilon", "1")
    assert status == 0, text


def test_an_instance_with_features_takes_sensible_values() -> None:
    rng = np.random.default_rng(0)
    features, means = shortlist.instances.linear(50, 3, rng, residual=0.1, sigmoid=True)
    assert features.shape == (50, 2)
    assert ((means >= 0.01) & (means <= 0.99)).all()
    for wrong in ({"n": 1}, {"d": 1}, {"residual": -0.1}, {"sigmoid": 2}, {"rng": 3}):
        given: dict[str, Any] = {"n": 50, "d": 3, "rng": rng} | wrong
        with pytest.raises(InvalidInput):
            shortlist.instances.linear(**given)


def test_a_budget_is_not_tried_out_on_means_that_do_not_fit_the_features() -> None:
    x, _ = shortlist.instances.linear(40, 3, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shortlist.Experiment.create(40, 4, epsilon=0.1, budget=2000, features=x, linear=True)
