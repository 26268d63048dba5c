"""`assess`: what it reads, what it answers, how it is shown, and what it refuses."""

import json
import math
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from shortlist import Assessment, SubGaussian, assess
from shortlist.errors import InvalidInput

ADS = {"red": (400, 48), "green": (400, 30), "blue": (400, 9), "grey": (300, 40)}
SCORED = {"a": (100, 70.0, 50.0), "b": (100, 40.0, 17.0), "c": (50, 10.0, 2.5)}


def test_the_best_means_are_kept_and_the_rest_follows_from_the_same_counts() -> None:
    found = assess(ADS, 2, fixed=True)
    assert found.top == ("grey", "red")
    assert 0 < found.regret_bound < 0.05
    assert found.confidence == 0.95
    assert found.tiers == {"in": (), "out": ("blue",), "tied": ("red", "green", "grey")}
    assert found.pulls == 1500
    assert [arm.mean for arm in found.arms] == [0.12, 0.075, 0.0225, pytest.approx(40 / 300)]
    assert all(arm.low < arm.mean < arm.high for arm in found.arms if arm.mean is not None)


@pytest.mark.parametrize("fixed", [True, False])
def test_with_many_pulls_nothing_is_lost_and_every_arm_is_in_or_out(fixed: bool) -> None:
    found = assess({"a": (9000, 5000), "b": (9000, 4000), "c": (9000, 3000)}, 2, fixed=fixed)
    assert found.regret_bound == 0
    assert found.tiers == {"in": ("a", "b"), "out": ("c",), "tied": ()}


def test_bounds_that_hold_for_any_stopping_rule_are_larger() -> None:
    fixed, free = (assess(ADS, 2, fixed=each) for each in (True, False))
    assert fixed.regret_bound < free.regret_bound
    for one, other in zip(fixed.arms, free.arms, strict=True):
        assert other.low < one.low < one.high < other.high


@pytest.mark.parametrize("rewards", ["binary", (0, 1)])
@pytest.mark.parametrize(
    ("successes", "k"),
    [((10, 9.5), 1), ((24, 28, 27, 36, 26, 39, 42, 31, 45, 52, 88, 95), 3), ((500, 495, 490), 2)],
)
def test_more_pulls_make_the_bound_smaller_and_name_more_arms(
    successes: tuple[float, ...], k: int, rewards: Any
) -> None:
    """Of 1,000 pulls each, then the same means of ten times as many, and again."""
    bounds, sure = [], []
    for times in (1, 10, 100, 1000):
        times *= 2
        counts = {arm: (1000 * times, good * times) for arm, good in enumerate(successes)}
        fixed, free = (assess(counts, k, fixed=each, rewards=rewards) for each in (True, False))
        assert fixed.regret_bound <= free.regret_bound
        bounds.append(fixed.regret_bound)
        sure.append(len(fixed.tiers["in"]) + len(fixed.tiers["out"]))
    assert all(later < 0.5 * now or later == 0 for now, later in pairwise(bounds))
    assert bounds[-1] == 0
    assert sure == sorted(sure)
    assert sure[-1] == len(successes)


@pytest.mark.parametrize("rewards", ["binary", (0, 1)])
@pytest.mark.parametrize("fixed", [True, False])
def test_many_pulls_of_one_arm_do_not_spoil_the_bound_of_others(fixed: bool, rewards: Any) -> None:
    few = {arm: (10**5, 5000 + arm) for arm in range(4)}
    many = {**few, 4: (10**9, 5 * 10**7), 5: (10**9, 5 * 10**7 + 4000)}
    found, other = (assess(each, 2, fixed=fixed, rewards=rewards) for each in (few, many))
    assert other.regret_bound < 2 * found.regret_bound


@pytest.mark.parametrize("successes", [0, 1000, 10**6])
def test_many_pulls_make_the_bound_small_even_at_the_smallest_delta(successes: int) -> None:
    counts = dict.fromkeys(("a", "b"), (10**6, successes))
    assert assess(counts, 1, fixed=True, delta=1.1e-200).regret_bound < 0.002


def test_the_bound_is_smaller_than_that_of_separate_intervals() -> None:
    """12 ads, 1,000 pulls each: half of what the intervals of all arms give (Bonferroni)."""
    rng = np.random.default_rng(2)
    ads = {arm: (1000, int(rng.binomial(1000, 0.02 + 0.0036 * arm))) for arm in range(12)}
    found = assess(ads, 3, fixed=True)
    chosen = sorted(arm.low for arm in found.arms if arm.chosen)
    others = sorted((arm.high for arm in found.arms if not arm.chosen), reverse=True)
    separate = sum(high - low for low, high in zip(chosen, others, strict=False)) / 3
    assert found.regret_bound < 0.6 * separate


def test_minimize_mirrors_everything() -> None:
    mirrored = {arm: (pulls, pulls - good) for arm, (pulls, good) in ADS.items()}
    found, other = assess(ADS, 2, fixed=True), assess(mirrored, 2, fixed=True, minimize=True)
    assert other.top == found.top
    assert other.tiers == found.tiers
    assert other.regret_bound == pytest.approx(found.regret_bound)
    for one, turned in zip(found.arms, other.arms, strict=True):
        assert (turned.low, turned.high) == pytest.approx((1 - one.high, 1 - one.low))


@pytest.mark.parametrize("fixed", [True, False])
def test_another_unit_of_rewards_changes_the_unit_only(fixed: bool) -> None:
    def scaled(pulls: int, total: float, squares: float) -> tuple[int, float, float]:
        return pulls, 50 * total + 10 * pulls, 2500 * squares + 1000 * total + 100 * pulls

    found = assess(SCORED, 1, fixed=fixed, rewards=(0, 1))
    units = {arm: scaled(*row) for arm, row in SCORED.items()}
    other = assess(units, 1, fixed=fixed, rewards=(10, 60))
    assert other.regret_bound == pytest.approx(50 * found.regret_bound, abs=1e-9)
    for one, turned in zip(found.arms, other.arms, strict=True):
        assert (turned.low, turned.high) == pytest.approx((10 + 50 * one.low, 10 + 50 * one.high))


@pytest.mark.parametrize("fixed", [True, False])
def test_squares_make_the_bound_smaller_where_rewards_vary_little(fixed: bool) -> None:
    steady = {"a": (400, 204.0, 104.5), "b": (400, 200.0, 100.5)}
    plain = {arm: row[:2] for arm, row in steady.items()}
    found = assess(steady, 1, fixed=fixed, rewards=(0, 1))
    assert found.regret_bound < 0.5 * assess(plain, 1, fixed=fixed, rewards=(0, 1)).regret_bound


@pytest.mark.parametrize("fixed", [True, False])
def test_tiers_agree_with_the_choice_whatever_delta_is(fixed: bool) -> None:
    for delta in (1e-199, 0.05, 0.999999):
        for counts in ({"a": (2, 1), "b": (10**9, 5 * 10**8)}, {"a": (9, 1), "b": (900, 600)}):
            found = assess(counts, 1, fixed=fixed, delta=delta)
            assert set(found.tiers["in"]) <= set(found.top)
            assert not set(found.tiers["out"]) & set(found.top)
            assert 0 <= found.regret_bound <= 1


def test_an_arm_never_pulled_may_be_anything() -> None:
    found = assess({"a": (50, 40), "b": (0, 0)}, 1, fixed=True)
    assert found.top == ("a",)
    assert (found.arms[1].mean, found.arms[1].low, found.arms[1].high) == (None, 0, 1)
    free = assess({"a": (50, 40), "b": (0, 0)}, 1, fixed=True, rewards=SubGaussian(1))
    assert free.regret_bound == math.inf
    assert "Nothing is guaranteed" in str(free)
    assert free.to_dict()["regret_bound"] is None


@pytest.mark.parametrize(
    ("counts", "rewards"),
    [
        ({"a": (1, 1), "b": (1, 0)}, None),
        ({"a": (10**9, 10**9), "b": (10**9, 0), "c": (1, 1)}, None),
        ({"a": (10**9, 10**9 - 1), "b": (10**9, 10**9 - 2)}, None),
        ({"a": (3, 2.5, 2.2), "b": (10**7, 0.0, 0.0)}, None),
        ({"a": (10, 1e10), "b": (10, 1e10)}, SubGaussian(1.0)),
        ({"a": (10, 10.0 * 2**29), "b": (10, 10.0 * 2**29 + 5)}, (2.0**29, 2.0**29 + 1)),
    ],
)
@pytest.mark.parametrize("fixed", [True, False])
def test_extreme_counts_have_finite_bounds_within_the_range(
    counts: dict[str, Any], rewards: Any, fixed: bool
) -> None:
    found = assess(counts, 1, fixed=fixed, rewards=rewards)
    assert 0 <= found.regret_bound <= 1 if rewards is None else found.regret_bound >= 0
    assert math.isfinite(found.regret_bound)
    for arm in found.arms:
        assert arm.mean is not None
        assert arm.low - 1e-6 <= arm.mean <= arm.high + 1e-6


def test_many_arms_take_seconds() -> None:
    rng = np.random.default_rng(0)
    counts = {arm: (40, int(good)) for arm, good in enumerate(rng.binomial(40, 0.5, 1000))}
    start = time.process_time()
    found = assess(counts, 300, fixed=False)
    assert time.process_time() - start < 5
    assert 0 < found.regret_bound < 0.5


def test_a_mapping_a_data_frame_and_a_file_give_the_same_assessment(tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    rows = [{"arm": arm, "pulls": pulls, "successes": good} for arm, (pulls, good) in ADS.items()]
    file.write_text(
        "arm;pulls;successes\n"
        + "".join("{arm};{pulls};{successes}\n".format(**row) for row in rows)
    )
    pandas = pytest.importorskip("pandas")
    frames = pandas.DataFrame(rows), polars.DataFrame(rows)
    expected = assess(ADS, 2, fixed=True)
    for given in (*frames, frames[0].astype({"pulls": float}), file, str(file)):
        assert assess(given, 2, fixed=True) == expected


def test_whole_numbers_may_have_a_decimal_point(tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("arm,pulls,successes\nred,400.0,48.0\ngreen,400.,30.00\nblue,400,0.0\n")
    plain = {"red": (400, 48), "green": (400, 30), "blue": (400, 0)}
    assert assess(file, 1, fixed=True) == assess(plain, 1, fixed=True)


@pytest.mark.parametrize(
    ("scores", "message"),
    [([0.5, 0.7], "must have a row per arm"), ({"a": [1, 0], "b": [0, 1]}, "must be a matrix")],
)
def test_scores_that_are_no_matrix_are_refused(scores: object, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        assess(scores=scores, k=1)


def test_squares_are_compared_with_the_range_of_the_rewards() -> None:
    """Rewards -1 and 3, three of each: 6 and 30 are right, and the largest that can be."""
    right = {"a": (6, 6.0, 30.0), "b": (6, 6.0, 30.0)}
    assert assess(right, 1, fixed=True, rewards=(-1, 3)).top == ("a",)
    with pytest.raises(
        InvalidInput, match=r"'b' says 30\.1 for 6 pulls, but must say what squares"
    ):
        assess({**right, "b": (6, 6.0, 30.1)}, 1, fixed=True, rewards=(-1, 3))
    assert assess({**right, "b": (6, 6.0, 90.0)}, 1, fixed=True, rewards=SubGaussian(9)).pulls == 12


def test_columns_of_sums_are_read_and_arms_need_no_names(tmp_path: Path) -> None:
    file = tmp_path / "counts.csv"
    file.write_text("pulls,sum,squares\n100,70,50\n100,40,17\n50,10,2.5\n")
    found = assess(file, 1, fixed=True)
    assert found.top == (0,)
    assert found.regret_bound == assess(SCORED, 1, fixed=True).regret_bound


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "arm,pulls,successes\na,10,3\nb,10,11\n",
            "counts.csv, line 3: 11 successes exceed 10 pulls",
        ),
        ("arm,pulls,successes\na,10,3\nb,ten,1\n", "line 3 says 'ten', but pulls must be a whole"),
        ("arm;pulls;successes\na;1.000;1\nb;9;1\n", "line 2 says '1.000', but pulls must be a"),
        ("arm,pulls,successes\na,9,30%\nb,9,1\n", "line 2 says '30%'.*how many, not their share"),
        ("arm,pulls,successes\na,10,3\nb,10,2.5\n", "line 3 says '2.5', but successes must be"),
        ("arm,pulls,successes\na,10,3\n,10,2\n", "line 3 has no label, but a label must not be"),
        ("arm,pulls,successes\na,10,3\na,10,2\n", "labelled 'a', but labels must differ"),
        ("arm,pulls\na,10\nb,10\n", "must begin with columns pulls and sum or successes"),
        ("page,pulls\na,10\n", "and sum or successes; a column `arm` names the arms"),
        ("arm,pulls,mean\na,10,0.5\n", "and sum or successes; the sum is pulls times mean"),
        ("q1,q2,q3,q4,q5,q6,q7\n1,0,1,0,1,1,1\n", "q6 and 1 more, .* test set go with `scores`"),
        ("name,pulls,sum\na,10,1\nb,10,1\n", "column of labels must be called `arm`"),
        ("arm,pulls,sum,squares\na,10,5,2.5\nb,10,5,2\n", "line 3 says 2 for 10 pulls, but must"),
        ("arm,pulls,sum\na,10,5\nb,0,1\n", "line 3 says 1 for 0 pulls, but must say the sum"),
        ("arm,pulls,successes\na,10,5\n", "counts.csv has 1 arm, but must have at least 2"),
        ("arm,pulls,successes\n", "counts.csv has 0 arms, but must have at least 2"),
        (
            "arm,pulls,successes,sum\na,10,5,5\nb,10,5,5\n",
            "counts.csv has columns sum and successes, but must have only one of them",
        ),
        (
            "arm,pulls,successes,squares\na,10,5,5\nb,10,5,6\n",
            "line 3 says squares of 6 for 5 successes, but they must be equal: 0 and 1 are their",
        ),
        ("arm,pulls,sum,squares\na,10,5,2.5\nb,10,5,5.5\n", "line 3 says 5.5 for 10 pulls, but"),
        ("arm,pulls,successes\na,10,3\nb,10.5,2\n", "line 3 says '10.5', but pulls must be a"),
    ],
)
def test_a_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "counts.csv"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=message):
        assess(file, 1, fixed=True)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"fixed": None}, "`fixed` is not given, but must be True, if the pulls of every arm were"),
        ({"fixed": 1}, "`fixed` is 1, but must be True or False"),
        ({"k": 4}, "`k` is 4, but must be between 1 and n_arms - 1 = 3"),
        ({"k": 0}, "`k` is 0, but must be a whole number of at least 1"),
        (
            {"delta": 1.0},
            "`delta` is 1.0, but must be a number greater than 1e-200 and less than 1",
        ),
        ({"counts": [1, 2]}, r"`counts` is \[1, 2\], but must be a mapping"),
        ({"counts": "nowhere.csv"}, "`counts` is 'nowhere.csv', but there is no such file"),
        ({"counts": {"a": 3, "b": 4}}, "`counts` of arm 'a' is 3, but must be"),
        ({"counts": {"a": (1, 2, 3, 4), "b": (1, 2)}}, "`counts` of arm 'a' is"),
        ({"counts": {"a": (3, 1), "b": (4, 1, 1)}}, "squares for some arms, but must have them"),
        ({"counts": {"a": (3, 1.5), "b": (4, 1)}}, "'a' says 1.5 for 3 pulls, but must say"),
        ({"counts": {"a": (3, math.nan), "b": (4, 1)}}, "'a' says nan for 3 pulls, but must say"),
        ({"counts": {"a": (-3, 1), "b": (4, 1)}}, "'a' says '-3', but pulls must be a whole"),
        ({"counts": {"a": (10**10, 1), "b": (4, 1)}}, "10,000,000,000 pulls, but must say at most"),
        ({"counts": {True: (3, 1), "b": (4, 1)}}, "an arm is called True, but a label"),
        ({"counts": dict.fromkeys(range(2001), (1, 1))}, "2,001 arms, but must have at most 2,000"),
        ({"rewards": "counts"}, "`rewards` is 'counts', but must be a range"),
    ],
)
def test_invalid_arguments_of_assess_are_refused(changed: dict[str, Any], message: str) -> None:
    settings: dict[str, Any] = {"counts": ADS, "k": 1, "fixed": True, **changed}
    with pytest.raises(InvalidInput, match=message):
        assess(settings.pop("counts"), settings.pop("k"), **settings)


def test_an_assessment_is_shown_as_a_table_json_a_data_frame_and_a_plot() -> None:
    found = assess(ADS, 2, fixed=True)
    text = str(found)
    assert text.startswith("2 of 4 arms, the best mean rewards of 1,500 pulls")
    assert "of mean reward is lost, with 0.95 confidence." in text
    assert "With 0.95 confidence among the best 2: none.\n" in text
    assert "With 0.95 confidence not among the best 2: blue.\n" in text
    assert "Bound and tiers hold together with 0.95 confidence; the intervals separately." in text
    assert "surely" not in text.lower()
    assert "if the pulls of every arm were fixed before any reward was seen" in text
    assert "however the pulls were shared out" in str(assess(ADS, 2, fixed=False))
    record = json.loads(found.to_json())
    assert record["top"] == ["grey", "red"]
    assert record["tiers"]["out"] == ["blue"]
    assert record["arms"][2]["tier"] == "out"
    assert "With 0.001 confidence the best one: " in str(assess(ADS, 1, fixed=True, delta=0.999))
    assert "<table>" in found._repr_html_()
    assert isinstance(found, Assessment)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_data_frame_has_what_the_table_has_and_no_more(library: str) -> None:
    pytest.importorskip(library)
    frame = assess(ADS, 2, fixed=True).to_frame(library)
    assert list(frame.columns) == ["arm", "pulls", "mean", "low", "high", "chosen", "tier"]
    assert frame["arm"].to_list() == list(ADS)
    assert frame["tier"].to_list() == ["tied", "tied", "out", "tied"]


@pytest.mark.parametrize(
    ("fixed", "condition"),
    [(True, "fixed before any reward was seen"), (False, "however the pulls were shared out")],
)
def test_a_picture_shows_tiers_and_the_condition(fixed: bool, condition: str) -> None:
    counts = {"sure": (900, 800), "red": (400, 48), "green": (400, 45), "blue": (400, 0)}
    found = assess(counts, 2, fixed=fixed)
    (ax,) = found.plot().axes
    assert len(ax.get_yticklabels()) == 4
    assert condition in ax.get_title(loc="left")
    assert found.verdict in ax.get_title(loc="left")
    drawn = {line.get_label(): np.size(line.get_xdata()) for line in ax.lines}
    assert drawn == {
        "chosen, in": 1,
        "chosen, tied": 1,
        "not chosen, tied": 1,
        "not chosen, out": 1,
    }
