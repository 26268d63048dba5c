"""Secondary metrics and guardrails of live tests, behind every door."""

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from places import PLACES, create, place, reopen

from shortlist.engine import Experiment, export_lines, import_lines
from shortlist.errors import ConflictingReward, Doubtful, InvalidInput, StoreDamaged, UnknownName
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

PAGES = ["old", "red", "blue"]
TOLD = {"old": (1000, 60), "red": (1010, 64), "blue": (990, 58)}
BOUNCES = {"old": 300, "red": 460, "blue": 310}
CALLS = {"old": 12, "red": 9.5, "blue": 0}


def live(**more: Any) -> Experiment:
    settings = {"epsilon": 0.001, "per_day": 3000, "rewards": "binary", "control": "old"}
    return Experiment.create(PAGES, 1, **{**settings, "guardrails": {"bounce": 0.05}, **more})


def told(test: Any, blocks: int = 3, **more: Any) -> Any:
    """The test after some days on which red bounces half as often again."""
    for block in range(blocks):
        test.shares(f"{block}")
        test.tell_counts(f"{block}", TOLD, metrics={"bounce": BOUNCES, **more})
    return test


@pytest.mark.parametrize("kind", PLACES)
def test_a_broken_guardrail_is_flagged_in_result_and_status_anywhere(
    kind: str, tmp_path: Path
) -> None:
    with place(kind, tmp_path) as here:
        settings: Any = {"epsilon": 0.001, "per_day": 3000, "rewards": "binary", "unit": "%"}
        settings |= {"control": "old", "guardrails": {"bounce": "5%"}}
        test = told(create(PAGES, 1, store=here, name="pages", **settings), calls=CALLS)
        for each in (test, reopen(here, "pages")):
            result = each.result(partial=True)
            bounce, calls = result.metrics
            assert (bounce.metric, bounce.guardrail, bounce.broken) == ("bounce", 0.05, ("red",))
            red, blue = bounce.arms
            assert red.difference == pytest.approx(0.46 / 1.01 - 0.3, abs=1e-6)
            assert 0.05 < red.difference_low < red.difference < red.difference_high
            assert blue.difference_low < 0 < blue.difference_high
            assert (calls.metric, calls.guardrail, calls.broken) == ("calls", None, ())
            told_as: Any = result.to_dict()["metrics"]
            assert told_as[0]["broken"] == ["red"]
            (said,) = each.status().broken
            assert said.startswith("the guardrail 'bounce' is broken by red: at least ")
            assert said.endswith("higher than old, and at most 5 percentage points are allowed")
            assert f"Warning: {said}" in " ".join(str(each.status()).split())
            assert f"Warning: {said}." in " ".join(str(result).split())
            assert "bounce of every arm against old" in str(result)


def test_the_search_does_not_look_at_metrics() -> None:
    measured, plain = told(live()), live(guardrails=None)
    for block in range(3):
        plain.shares(f"{block}")
        plain.tell_counts(f"{block}", TOLD)
    one, other = measured.result(partial=True), plain.result(partial=True)
    assert (one.top, one.regret_bound, one.arms) == (other.top, other.regret_bound, other.arms)
    assert measured.shares("next") == plain.shares("next")


def test_a_negative_margin_is_how_much_lower_a_metric_may_be() -> None:
    lower = {"old": 460, "red": 300, "blue": 455}
    test = told(live(guardrails={"bounce": 0.05, "kept": -0.05}), kept=lower)
    bounce, kept = test.result(partial=True).metrics
    assert (bounce.broken, kept.broken) == (("red",), ("red",))
    said = test.status().broken[1]
    assert "lower than old, and at most 0.05 are allowed" in said


def test_a_table_says_which_guardrails_are_surely_kept() -> None:
    fewer = {"old": 460, "red": 120, "blue": 475}
    test = told(live(guardrails={"bounce": 0.05, "left": 0.05}), left=fewer)
    bounce, left = test.result(partial=True).metrics
    words = [{row[0]: row[3] for row in each.tables()[0].rows} for each in (bounce, left)]
    assert words[0]["red"] == "broken"
    assert words[0]["blue"] == words[1]["blue"] == "undecided"
    assert words[1]["red"] == "kept"


def test_guardrails_share_delta_and_a_metric_alone_has_it_all() -> None:
    alone = told(live()).result(partial=True).metrics[0]
    shared = told(live(guardrails={"bounce": 0.05, "x": 0.05}), x=CALLS).result(partial=True)
    assert shared.metrics[0].arms[0].difference_low < alone.arms[0].difference_low


def test_blocks_wait_and_are_left_out_for_metrics_as_for_rewards() -> None:
    in_order, late = live(skip_blocks=1), live(skip_blocks=1)
    for test in (in_order, late):
        for block in range(4):
            test.shares(f"{block}")
    days = [{"old": 300, "red": 300 + 50 * block, "blue": 310} for block in range(4)]
    for block in range(4):
        in_order.tell_counts(f"{block}", TOLD, metrics={"bounce": days[block]})
    for block in (3, 2, 1):
        late.tell_counts(f"{block}", TOLD, metrics={"bounce": days[block]})
        (bounce,) = late.result(partial=True).metrics
        assert bounce.arms[0].difference is None
    late.tell_counts("0", TOLD, metrics={"bounce": days[0]})
    # the terms of all blocks were fixed when they were opened, so both know the same
    assert late.result(partial=True).metrics == in_order.result(partial=True).metrics


def test_a_refused_block_has_no_metrics_either() -> None:
    test = told(live())
    before = test.result(partial=True).metrics
    test.shares("bad")
    crashed = {"old": (1000, 60), "red": (500, 30), "blue": (1000, 58)}
    with pytest.warns(UserWarning, match="do not agree with the shares"):
        test.tell_counts("bad", crashed, metrics={"bounce": {**BOUNCES, "red": 500}})
    (after,) = test.result(partial=True).metrics
    assert [arm.difference for arm in after.arms] == [arm.difference for arm in before[0].arms]


@pytest.mark.parametrize("kind", PLACES)
def test_a_void_block_has_no_metrics_and_is_followed_by_blocks_that_have(
    kind: str, tmp_path: Path
) -> None:
    with place(kind, tmp_path) as here:
        settings: Any = {"epsilon": 0.001, "per_day": 3000, "rewards": "binary", "control": "old"}
        for name, guardrails in (("guarded", {"bounce": 0.05}), ("metric", {})):
            test = create(PAGES, 1, store=here, name=name, guardrails=guardrails, **settings)
            test.shares("lost")
            assert test.void_block("lost", "the warehouse lost it").state == "void"
            told(test)
            test.shares("lost, too")
            assert test.void_block("lost, too", "again").state == "void"
            for each in (test, reopen(here, name)):
                (bounce,) = each.result(partial=True).metrics
                assert bounce.arms[0].difference == pytest.approx(0.46 / 1.01 - 0.3, abs=1e-6)


def test_the_comparison_of_a_retired_arm_ends_and_its_flag_stays() -> None:
    test = told(live())
    test.shares("open")
    before = test.result(partial=True).metrics[0].arms[0]
    test.retire("red", "too many bounces")
    bounced = {**BOUNCES, "red": 0}
    assert test.tell_counts("open", TOLD, metrics={"bounce": bounced}).state == "counted"
    (bounce,) = test.result(partial=True).metrics
    assert bounce.arms[0].difference == before.difference
    assert bounce.broken == ("red",)
    assert test.shares("next").percent["red"] == 0
    left = {"old": (1500, 90), "blue": (1500, 88)}
    assert test.tell_counts("next", left, metrics={"bounce": {"old": 400, "blue": 420}})


@pytest.mark.parametrize(
    ("metrics", "rule"),
    [
        (None, "without the metric 'bounce', but every block has the same"),
        ({"bounce": {"old": 1, "red": 2}}, "'bounce' is told without 'blue'"),
        ({"bounce": {**BOUNCES, "red": 1011}}, "sum 1011, but must be between 0 and the number"),
        ({"bounce": {**BOUNCES, "red": -1}}, "sum -1, but must be between 0"),
        ({"bounce": {**BOUNCES, "red": float("nan")}}, "must be finite numbers"),
        ({"bounce": 3}, "must be a mapping of arms to sums"),
        ({"bounce": BOUNCES, "": BOUNCES}, "must be a text of 1 to 100 characters"),
        ({"bounce": BOUNCES, **{str(i): BOUNCES for i in range(10)}}, "there may be at most 10"),
        (3, "`metrics` is 3, but must be a mapping"),
    ],
)
def test_metrics_that_make_no_sense_are_refused(metrics: Any, rule: str) -> None:
    test = live()
    test.shares("monday")
    with pytest.raises(InvalidInput, match=rule):
        test.tell_counts("monday", TOLD, metrics=metrics)
    assert test.result(partial=True).pulls == 0


def test_every_block_has_the_same_metrics_and_the_first_values_stay() -> None:
    test = live()
    test.shares("0")
    with pytest.raises(UnknownName, match="`arm` is 'green'"):
        test.tell_counts("0", TOLD, metrics={"bounce": {**BOUNCES, "green": 1}})
    told(test, 2)
    with pytest.raises(ConflictingReward, match=r"'bounce' .* before, which stays"):
        test.tell_counts("1", TOLD, metrics={"bounce": {**BOUNCES, "red": 461}})
    assert test.tell_counts("1", TOLD, metrics={"bounce": BOUNCES}).state == "counted"
    test.shares("2")
    with pytest.raises(InvalidInput, match="a metric is told from the first block on"):
        test.tell_counts("2", TOLD, metrics={"bounce": BOUNCES, "calls": CALLS})


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"control": None}, "metrics are compared with a control: give `control`"),
        ({"guardrails": {"bounce": 1}}, r"`guardrails\['bounce'\]` is 1, but must be a number"),
        ({"guardrails": {"bounce": "x%"}}, "is 'x%', but must be a number"),
        ({"guardrails": 3}, "must be a mapping of names"),
        ({"guardrails": {"": 0.1}}, "must be a text of 1 to 100"),
        ({"guardrails": {str(i): 0.1 for i in range(11)}}, "at most 10 metrics"),
    ],
)
def test_guardrails_that_make_no_sense_are_refused(more: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        live(**more)


def test_metrics_need_a_control() -> None:
    test = live(control=None, guardrails=None)
    test.shares("0")
    with pytest.raises(InvalidInput, match="create the test with `control`"):
        test.tell_counts("0", TOLD, metrics={"bounce": BOUNCES})


def test_metrics_are_exported_and_a_damaged_log_is_noticed() -> None:
    store, other = MemoryStore(), MemoryStore()
    test = told(live(store=store, name="one"), calls=CALLS)
    import_lines(export_lines(store, "one"), other)
    again = Experiment.open(other, "one")
    assert again.result(partial=True).metrics == test.result(partial=True).metrics
    test.shares("open")
    counts = '{"counts":[[9,0],[9,0],[9,0]],"metrics":{"bounce":[1,1,10]}}'
    with store.exclusive():
        store.append("one", events=[Event(Kind.COUNTS, 3, 0, counts, 1.0)])
    with pytest.raises(StoreDamaged, match="makes no sense"):
        Experiment.open(store, "one")


def test_the_command_line_takes_guardrails_and_columns_of_metrics(tmp_path: Path) -> None:
    arms, file = tmp_path / "arms.csv", tmp_path / "day.csv"
    arms.write_text("arm\nold\nred\nblue\n")
    store = ["--store", str(tmp_path / "t.db")]
    guard = ["--control", "old", "--guardrail", "bounce=5%", "--guardrail", "kept=-0.1"]
    made = invoke(["create", str(arms), "-k", "1", "--epsilon", "0.1%", "--drift", *guard, *store])
    assert made.exit_code == 0, made.output
    lines = ["block,arm,visitors,conversions,metric:bounce,metric:kept"]
    for block in "ab":
        assert invoke(["shares", "--block", block, *store]).exit_code == 0
        lines += [f"{block},{arm},{TOLD[arm][0]},9,{BOUNCES[arm]},500" for arm in PAGES]
    file.write_text("\n".join(lines))
    said = invoke(["tell", "--counts", str(file), *store])
    assert said.stderr == "block 'a': counted\nblock 'b': counted\n"
    status = json.loads(invoke(["status", "--format", "json", *store]).stdout)
    assert [text[:38] for text in status["broken"]] == [
        "the guardrail 'bounce' is broken by red"[:38]
    ]
    assert "kept of every arm against old" in invoke(["result", "--partial", *store]).stdout
    bad = invoke(["create", str(arms), "-k", "1", "--guardrail", "bounce", *store])
    assert "must be of the form METRIC=MARGIN" in bad.stderr
    bad = invoke(["create", str(arms), "-k", "1", "--guardrail", "bounce=much", *store])
    assert "must end in a number" in bad.stderr


def test_ninety_days_with_metrics_are_small(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    pages = [f"page {page}" for page in range(6)]
    rng = np.random.default_rng(0)
    settings: Any = {"epsilon": 0.002, "per_day": 20_000, "min_blocks": 90, "control": pages[0]}
    settings |= {"rewards": "binary", "guardrails": {"bounce": 0.01}}
    with Experiment.create(pages, 1, store=path, **settings) as test:
        for day in range(90):
            percent = np.array(list(test.shares(f"{day}").percent.values()))
            times = rng.multinomial(20_000, percent / 100)
            came = dict(zip(pages, times.tolist(), strict=True))
            rows = {page: (count, count // 40) for page, count in came.items() if count}
            bounces = {page: count // 3 for page, (count, _) in rows.items()}
            test.tell_counts(f"{day}", rows, metrics={"bounce": bounces})
        assert not test.status().broken
    assert path.stat().st_size < 100_000


def test_rates_that_are_told_as_sums_are_doubted_before_they_count() -> None:
    test = live()
    test.shares("monday")
    rates = {"old": 0.3, "red": 0.46, "blue": 0.31}
    with warnings.catch_warnings():
        warnings.simplefilter("error", Doubtful)
        with pytest.raises(Doubtful, match=r"'bounce'.*look like rates"):
            test.tell_counts("monday", TOLD, metrics={"bounce": rates})
    with pytest.warns(Doubtful, match="must be sums over all visitors"):
        assert test.tell_counts("monday", TOLD, metrics={"bounce": rates}).state == "counted"
