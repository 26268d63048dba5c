"""Live tests: blocks of visitors, told as counts, on every kind of store and behind a service."""

import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from shutil import copytree
from typing import Any

import numpy as np
import pytest
from command_line import invoke
from places import PLACES, create, place, reopen

import shortlist
from shortlist.arrays import FloatArray
from shortlist.certificates.drift import planning
from shortlist.engine import Experiment, copy, export_lines, import_lines, outlook, verify
from shortlist.engine.blocks import assigned_arm
from shortlist.errors import (
    ConflictingReward,
    InvalidInput,
    StoreDamaged,
    Unfinished,
    UnknownName,
)
from shortlist.problem import FixedConfidence
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

PAGES = ["a", "b", "c"]
RATES = np.array([0.6, 0.4, 0.3])


def live(**more: Any) -> Experiment:
    """A test in memory."""
    settings = {"epsilon": 0.01, "delta": 0.1, "per_day": 300, "rewards": "binary", **more}
    return Experiment.create(PAGES, 1, **settings)


def counts(
    percent: Mapping[Any, float], rng: np.random.Generator, visitors: int = 300, rates: Any = RATES
) -> dict[Any, tuple[int, int]]:
    """Visitors and conversions of a block with these shares."""
    times = rng.multinomial(visitors, np.array(list(percent.values())) / 100)
    sums = rng.binomial(times, rates)
    rows = zip(percent, times.tolist(), sums.tolist(), strict=True)
    return {arm: (time, won) for arm, time, won in rows if percent[arm]}


def run(test: Any, seed: int = 0, rates: FloatArray = RATES) -> int:
    """Let the test run to its end: the number of blocks."""
    rng = np.random.default_rng(seed)
    for block in range(200):
        shares = test.shares(f"day {block}")
        if not shares.block:
            return block
        test.tell_counts(shares.block, counts(shares.percent, rng, rates=rates))
    raise AssertionError("it never ends")


@pytest.mark.parametrize("kind", PLACES)
def test_a_test_told_as_counts_ends_with_its_guarantee_anywhere(kind: str, tmp_path: Path) -> None:
    with place(kind, tmp_path) as here:
        settings: Any = {"epsilon": 0.1, "per_day": 300, "rewards": "binary", "control": "c"}
        test = create(PAGES, 1, store=here, name="pages", **settings)
        assert run(test) >= 1
        result = test.result()
        assert result.top == ("a",)
        assert result.reached
        assert result.regret_bound <= 0.1
        assert result.evidence["certificate"] == "drift"
        (first, _) = result.lift("c").arms
        assert first.difference_low < 0.3 < first.difference_high
        assert test.shares("later").percent == {"a": 100, "b": 0, "c": 0}
        assert test.assign("somebody").arm == "a"
        assert test.status().state == "finished"
        again = reopen(here, "pages")
        assert again.result().top == ("a",)
        assert "of mean reward is lost" in str(result)


def test_the_same_log_gives_the_same_test() -> None:
    store = MemoryStore()
    test = live(store=store, name="one")
    rng = np.random.default_rng(1)
    for block in range(3):
        test.tell_counts(f"{block}", counts(test.shares(f"{block}").percent, rng))
    again = Experiment.open(store, "one")
    assert again.result(partial=True) == test.result(partial=True)
    assert again.shares("next") == test.shares("next")


def test_telling_a_block_again_changes_nothing_and_corrections_are_refused() -> None:
    test = live()
    test.shares("monday")
    told = {"a": (100, 60), "b": (102, 40), "c": (98, 30)}
    assert test.tell_counts("monday", told).state == "counted"
    position = test.position()
    assert test.tell_counts("monday", told).state == "counted"
    assert test.position() == position
    with pytest.raises(ConflictingReward, match=r"was told \(100, 60.0\) before, which stays"):
        test.tell_counts("monday", {**told, "a": (100, 61)})
    assert test.result(partial=True).pulls == 300


def test_blocks_count_in_the_order_in_which_they_were_opened() -> None:
    rng = np.random.default_rng(3)
    in_order, out_of_order = (live(epsilon=0.3, min_blocks=3) for _ in range(2))
    told = []
    for block in range(3):
        name = f"{block}"
        in_order.shares(name)
        told.append((name, counts(out_of_order.shares(name).percent, rng)))
    for name, each in told:
        in_order.tell_counts(name, each)
    for name, each in told[1:]:
        receipt = out_of_order.tell_counts(name, each)
        assert (receipt.state, receipt.reason) == ("waiting", "block '0' is open and not told")
        assert out_of_order.result(partial=True).regret_bound is None
    waiting = out_of_order.status()
    assert waiting.waiting == 600
    assert waiting.live == "0 blocks counted, 1 not told yet, the first is '0'"
    uncounted = "600 rewards are not counted: an earlier block is open and not told."
    assert uncounted in str(out_of_order.result(partial=True))
    assert out_of_order.tell_counts(*told[0]).state == "counted"
    assert out_of_order.result() == in_order.result()


@pytest.mark.parametrize("index", [[7, 3, 9], ["a", "b", "c"]])
def test_counts_may_be_a_data_frame(index: list[object]) -> None:
    pandas = pytest.importorskip("pandas")
    rows = {"visitors": [100, 90, 80], "conversions": [60, 40, 30]}
    named = {} if index[0] == "a" else {"arm": ["a", "b", "c"]}
    test, other = live(), live()
    for each in (test, other):
        each.shares("monday")
    test.tell_counts("monday", pandas.DataFrame(named | rows, index=index))
    other.tell_counts("monday", {"a": (100, 60), "b": (90, 40), "c": (80, 30)})
    assert test.position() == other.position()
    with pytest.raises(InvalidInput, match="they must be arm, visitors and conversions"):
        test.tell_counts("monday", pandas.DataFrame(named | {"clicks": [1, 2, 3]}, index=index))
    with pytest.raises(InvalidInput, match="two rows of `counts` are of one arm"):
        test.tell_counts("monday", pandas.DataFrame(rows, index=["a", "b", "a"]))


def test_a_block_must_be_complete_and_of_arms_in_play() -> None:
    test = live()
    test.shares("monday")
    with pytest.raises(InvalidInput, match="is told without 'c', but a block is told completely"):
        test.tell_counts("monday", {"a": (100, 60), "b": (100, 40)})
    with pytest.raises(UnknownName, match="was opened: 'monday' waits for counts"):
        test.tell_counts("tuesday", {"a": (100, 60), "b": (100, 40), "c": (100, 30)})
    with pytest.raises(UnknownName, match="`arm` is 'd'"):
        test.tell_counts("monday", {"d": (100, 60)})
    test.retire("c")
    test.shares("tuesday")
    with pytest.raises(InvalidInput, match="but this arm is not in play in it"):
        test.tell_counts("tuesday", {"a": (100, 60), "b": (100, 40), "c": (1, 0)})
    told = {"a": (100, 60), "b": (100, 40), "c": (0, 0)}
    assert test.tell_counts("tuesday", told).state == "waiting"


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ((100, 101), "it must be between 0 and 100"),
        ((100, 3.5), "0/1 rewards have a whole sum"),
        ((100, 30, 31), "the sum of squares 31, but it must be 30"),
        ((100,), r"must be \(visitors, sum\)"),
        ((-1, 0), "`visitors` is -1"),
        ((1.5, 0), "`visitors` is 1.5"),
        ((100, float("nan")), "finite"),
    ],
)
def test_counts_that_make_no_sense_are_refused(row: Any, rule: str) -> None:
    test = live()
    test.shares("monday")
    with pytest.raises(InvalidInput, match=rule):
        test.tell_counts("monday", {"a": row, "b": (100, 40), "c": (100, 30)})
    with pytest.raises(InvalidInput, match="must be a mapping"):
        test.tell_counts("monday", [1])


def test_rewards_in_a_range_are_told_with_sums_and_squares() -> None:
    test = Experiment.create(
        PAGES, 1, epsilon=10, rewards=(0, 200), drift=True, minimize=True, control="a"
    )
    test.shares("monday")
    with pytest.raises(InvalidInput, match="sum of squares 10000000, but it must be between"):
        test.tell_counts("monday", {"a": (100, 5000, 1e7), "b": (100, 900), "c": (100, 0)})
    told = {"a": (100, 5000, 300_000), "b": (100, 9000.5), "c": (100, 12_000.0)}
    assert test.tell_counts("monday", told).state == "counted"
    partial = test.result(partial=True)
    assert partial.top == ("a",)
    (b, _) = partial.lift().arms
    assert b.difference == pytest.approx(40.005)
    assert b.difference_low < 40 < b.difference_high


@pytest.mark.parametrize("digits", [10, 17])
def test_squares_far_from_zero_may_be_written_with_ten_digits(digits: int) -> None:
    """They must not make a variance smaller than it is."""
    low, visitors, seen = 10_000.0, 5000, np.array([0.37, 0.63])
    rewards = low + np.repeat(seen, visitors // 2)
    row = (visitors, float(rewards.sum()), float(f"{(rewards**2).sum() * (1 - 4e-11):.{digits}g}"))
    test = Experiment.create(["a", "b"], 1, epsilon=0.1, rewards=(low, low + 1), drift=True)
    test.shares("monday")
    test.tell_counts("monday", {"a": row, "b": row})
    (block,) = test._known.blocks.all  # type: ignore[attr-defined]
    found = block.told(test.settings.problem)
    assert (found.squares / visitors >= (seen**2).mean()).all()


@pytest.mark.parametrize("minimize", [False, True])
def test_chances_without_squares_are_those_of_rewards_of_the_largest_variance(
    minimize: bool,
) -> None:
    row = {"a": (3400, 97), "b": (3300, 88), "c": (3300, 82)}
    binary, ranged = (live(rewards=each, minimize=minimize) for each in ("binary", (0, 1)))
    negative = live(rewards=(-1, 0), minimize=minimize)
    for test in (binary, ranged, negative):
        test.shares("monday")
    binary.tell_counts("monday", row)
    ranged.tell_counts("monday", row)
    negative.tell_counts("monday", {arm: (n, total - n) for arm, (n, total) in row.items()})
    expected = binary.status().arms.chances
    assert 0.02 < expected.min() < expected.max() < 0.95
    for test in (ranged, negative):
        np.testing.assert_allclose(test.status().arms.chances, expected, atol=0.01)


@pytest.mark.parametrize("kind", ["memory", "http"])
def test_a_block_whose_visitors_do_not_fit_its_shares_counts_nothing(
    kind: str, tmp_path: Path
) -> None:
    with place(kind, tmp_path) as here:
        refuse_a_block(create(PAGES, 1, store=here, epsilon=0.01, per_day=300, rewards="binary"))


def refuse_a_block(test: Any) -> None:
    test.shares("monday")
    test.tell_counts("monday", {"a": (100, 60), "b": (100, 40), "c": (100, 30)})
    before = test.result(partial=True)
    test.shares("tuesday")
    crashed = {"a": (100, 60), "b": (20, 8), "c": (100, 30)}
    with pytest.warns(UserWarning, match="do not agree with the shares"):
        assert test.tell_counts("tuesday", crashed).state == "refused"
    with pytest.warns(UserWarning, match="do not agree with the shares"):
        assert test.tell_counts("tuesday", crashed).state == "refused"  # for good
    after = test.result(partial=True)
    assert (after.top, after.regret_bound, after.pulls) == (
        before.top,
        before.regret_bound,
        before.pulls,
    )
    assert "1 left out" in str(test.status())
    assert "block 'tuesday' was refused, so nothing of it counts" in " ".join(after.notes)


@pytest.mark.parametrize("kind", PLACES)
def test_a_block_whose_data_are_lost_is_left_out_and_later_ones_count(
    kind: str, tmp_path: Path
) -> None:
    with place(kind, tmp_path) as where:
        settings: dict[str, Any] = {"epsilon": 0.01, "delta": 0.1, "per_day": 300}
        test: Any = create(PAGES, 1, store=where, name="pages", rewards="binary", **settings)
        rng = np.random.default_rng(0)
        for day in ("monday", "tuesday", "wednesday"):
            test.shares(day)
        told = {day: counts(test.shares(day).percent, rng) for day in ("monday", "wednesday")}
        assert test.tell_counts("monday", told["monday"]).state == "counted"
        assert test.tell_counts("wednesday", told["wednesday"]).state == "waiting"
        with pytest.raises(InvalidInput, match="'monday', but was told"):
            test.void_block("monday", "a bad day")
        with pytest.raises(InvalidInput, match="`reason` is ''"):
            test.void_block("tuesday", "")
        with pytest.raises(UnknownName, match="'friday'"):
            test.void_block("friday", "never opened")
        receipt = test.void_block("tuesday", "the warehouse lost it")
        assert (receipt.state, receipt.reason) == ("void", "the warehouse lost it")
        assert test.void_block("tuesday", "again").reason == "the warehouse lost it"
        assert test.tell_counts("tuesday", told["monday"]).state == "void"
        assert test.tell_counts("wednesday", told["wednesday"]).state == "counted"
        assert "2 blocks counted, 1 left out, 1 void, the first is 'tuesday'" in test.status().live
        notes = test.result(partial=True).notes
        assert "block 'tuesday' is void, so nothing of it counts: the warehouse lost it" in notes


def test_a_void_block_changes_nothing_of_what_is_known() -> None:
    rng = np.random.default_rng(1)
    days = [counts(dict.fromkeys(PAGES, 100 / 3), rng) for _ in range(4)]
    tests = live(), live()
    for test, left_out in zip(tests, (True, False), strict=True):
        for day, rows in enumerate(days):
            test.shares(f"day {day}")
            if left_out and day == 1:
                test.shares("lost")
                test.void_block("lost", "no data")
            if test.state().value == "ready":
                test.tell_counts(f"day {day}", rows)
    first, second = (test.result(partial=True) for test in tests)
    assert (first.top, first.pulls) == (second.top, second.pulls)
    assert first.leads is not None
    assert second.leads is not None
    # the sample-ratio test of one more block costs one part in a million of the level
    assert np.allclose(first.leads.lead, second.leads.lead)
    assert np.allclose(first.leads.high, second.leads.high, rtol=1e-4)


def test_a_visitor_keeps_the_arm_and_counts_once_in_the_block_of_the_first_visit() -> None:
    test = live()
    first = {f"visitor {i}": test.assign(f"visitor {i}", "monday") for i in range(60)}
    assert all(each.first and each.block == "monday" for each in first.values())
    test.shares("tuesday")
    for visitor, each in first.items():
        again = test.assign(visitor, "tuesday")
        assert (again.arm, again.block, again.first) == (each.arm, "monday", False)
    assigned = [each.arm for each in first.values()]
    told = {arm: (assigned.count(arm), 0) for arm in PAGES}
    twice = {arm: (2 * visitors, 0) for arm, (visitors, _) in told.items()}
    with pytest.raises(InvalidInput, match="a visitor counts once, in the block of the first"):
        test.tell_counts("monday", twice)
    assert test.tell_counts("monday", told).state == "counted"
    with pytest.raises(InvalidInput, match="but was told: open the next one"):
        test.assign("somebody new", "monday")


def test_assignments_have_their_shares_and_differ_between_tests() -> None:
    shares = np.array([0.2, 0.0, 0.8])
    one, other = live()._known.blocks, live()._known.blocks  # type: ignore[attr-defined]
    arms = [
        [assigned_arm(test.visitor_key(str(visitor)), shares) for visitor in range(4000)]
        for test in (one, other)
    ]
    assert np.bincount(arms[0], minlength=3)[1] == 0
    assert np.mean(np.array(arms[0]) == 0) == pytest.approx(0.2, abs=0.03)
    both = np.mean((np.array(arms[0]) == 0) & (np.array(arms[1]) == 0))
    assert both == pytest.approx(0.04, abs=0.02)
    assert assigned_arm(b"\xff" * 16, shares) == 2


def test_an_arm_that_retires_in_an_open_block_keeps_its_row_there() -> None:
    test = live()
    before = {f"visitor {i}": test.assign(f"visitor {i}", "monday").arm for i in range(80)}
    test.retire("b", "the page is broken")
    later = {f"later {i}": test.assign(f"later {i}", "monday").arm for i in range(80)}
    assert "b" not in later.values()
    assert "b" not in {test.assign(visitor).arm for visitor in before}
    assert test.shares("monday").percent["b"] > 0
    assert test.shares("tuesday").percent["b"] == 0
    block = test._known.blocks.by_name["monday"]  # type: ignore[attr-defined]
    rows = {arm: (block.assigned[place], 0) for place, arm in enumerate(PAGES)}
    assert test.tell_counts("monday", rows).state == "counted"
    result = test.result(partial=True)
    assert result.top[0] != "b"
    assert result.arms[1].pulls == 0  # what others saw is not shown as its mean


def test_the_verdict_is_about_the_average_of_the_test_and_keeps_a_control_that_is_best() -> None:
    tested = {control: live(epsilon=0.2, control=control) for control in ("a", "b")}
    for test in tested.values():
        run(test)
    said = tested["a"].result().verdict
    assert "is lost on average over the blocks of the test, with 0.9 confidence." in said
    assert re.search(r"No other arm is better than a by more than [\d.]+: keep it\.$", said)
    assert "keep it" not in tested["b"].result().verdict


def test_a_control_that_loses_at_most_epsilon_can_be_kept_though_another_arm_is_chosen() -> None:
    test = live(control="b", epsilon="10%", unit="%", delta=0.3)
    run(test, rates=np.array([0.5, 0.49, 0.2]), seed=3)
    result = test.result()
    assert result.keep_control
    assert result.control_regret is not None
    assert result.control_regret <= 0.1
    told = result.to_dict()
    assert told["keep_control"] is True
    assert told["control_regret"] == result.control_regret
    keep = "keep it" if result.top == ("b",) else "you can keep it"
    assert re.search(
        rf"No other arm is better than b by more than [\d.]+ percentage .*: {keep}\.",
        result.verdict,
    )


def test_a_control_that_another_arm_beats_is_not_kept() -> None:
    test = live(control="c", unit="%")
    run(test)
    result = test.result()
    assert not result.keep_control
    assert "keep" not in result.verdict
    assert "percentage points of mean reward are lost" in result.verdict


def test_a_control_keeps_a_tenth_of_the_visitors_though_it_is_worse() -> None:
    """Beyond ten pages an equal share, and none once it retires or is no control."""
    rates = np.array([0.62, 0.6, 0.1])
    shares = dict[str | None, list[float]]()
    for control in (None, "c"):
        test, rng = live(control=control), np.random.default_rng(3)
        shares[control] = []
        for day in range(12):
            percent = test.shares(f"{day}").percent
            shares[control].append(percent["c"])
            test.tell_counts(f"{day}", counts(percent, rng, rates=rates))
        test.retire("c")
        assert test.shares("next").percent["c"] == 0
    assert min(shares[None]) == 0
    assert 10 <= min(shares["c"]) <= 11
    assert planning.with_control(np.array([0.0, *[2.0] * 19]), 0)[0] == pytest.approx(2.0)


def test_a_test_shows_percent_and_keeps_raw_data() -> None:
    test = live(control="c", unit="%")
    test.shares("2026-03-02")
    test.tell_counts("2026-03-02", {"a": (100, 60), "b": (100, 40), "c": (100, 30)})
    status, result = test.status(), test.result(partial=True)
    assert "60.0%" in str(status)
    assert "since 2026-03-02, 1 day" in str(status)
    assert "60.0%" in str(result)
    assert "points" in str(result.lift())
    assert "ratio" not in str(result.lift())  # the level moves
    assert result.arms[0].mean == 0.6
    assert status.summary()["unit"] == "%"
    assert status.summary()["period"] == [1772409600.0, 1772496000.0]


@pytest.mark.parametrize("epsilon", ["0.2%", " 0.2 %", 0.002])
def test_epsilon_in_percent_is_the_same_number(epsilon: Any) -> None:
    made = live(epsilon=epsilon)
    assert made.settings.problem.goal == FixedConfidence(0.002, 0.1)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        (
            {"epsilon": "much%"},
            "`epsilon` is 'much%', but must be a number such as 0.002, or a text",
        ),
        ({"epsilon": "-1%"}, "`epsilon` is '-1%', but must be a finite number greater than 0"),
        ({"delta": "5%"}, "only `epsilon` and `guardrails` can be given in percent"),
        ({"unit": "pp"}, "`unit` is 'pp', but must be one of %"),
        ({"unit": "%", "rewards": (0, 200)}, "`unit` is '%', but percent are for rewards between"),
        ({"epsilon": "1%", "rewards": (0, 200)}, "it is never relative to the mean"),
    ],
)
def test_percent_elsewhere_is_refused(settings: Any, rule: str) -> None:
    with pytest.raises((InvalidInput, UnknownName), match=re.escape(rule)):
        live(**settings)


def test_messages_say_what_to_write_instead() -> None:
    with pytest.raises(
        UnknownName, match="`control` is 'd', but must be one of the arms: 'a', 'b'"
    ):
        live(control="d")
    with pytest.raises(UnknownName, match=r"'9', but must be one of the arms: .* 9, ... 2 more"):
        Experiment.create(range(12), 1, epsilon=0.1, per_day=9, control="9")
    with pytest.raises(InvalidInput, match="must be a text: '2026-03-02'"):
        live().shares(date(2026, 3, 2))  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"'0,2%', but must be a number such as 0.002"):
        live(epsilon="0,2%")


def test_skipped_blocks_do_not_count() -> None:
    test = live(skip_blocks=1)
    test.shares("monday")
    told = {"a": (100, 60), "b": (100, 40), "c": (100, 30)}
    assert test.tell_counts("monday", told).state == "skipped"
    assert test.result(partial=True).pulls == 0
    with pytest.raises(Unfinished, match="0 blocks of the test count, but more are needed"):
        test.result()
    test.shares("tuesday")
    with pytest.raises(Unfinished, match="block 'tuesday' is open and not told"):
        test.result()


def test_blocks_are_days_unless_they_are_named() -> None:
    now = [1.7e9]
    test = live(clock=lambda: now[0])
    assert test.shares().block == "2023-11-14"
    assert test.shares().block == "2023-11-14"
    now[0] += 86_400
    assert test.assign("somebody").block == "2023-11-15"
    assert test.shares("week 2").block == "week 2"
    with pytest.raises(InvalidInput, match="the last one is 'week 2'"):
        test.shares()
    with pytest.raises(InvalidInput, match="must be a text of 1 to 200 characters"):
        test.shares("")


def test_days_begin_at_midnight_in_the_time_zone_of_the_test(tmp_path: Path) -> None:
    now = [1.7e9]  # 22:13 UTC on 14 November 2023, 23:13 in Vienna
    test = live(clock=lambda: now[0], timezone="Europe/Vienna")
    assert test.shares().block == "2023-11-14"
    now[0] += 3600
    assert test.assign("a visitor").block == "2023-11-15"
    assert live(clock=lambda: now[0]).shares().block == "2023-11-14"
    for zone, more, rule in (
        ("Vienna", {}, "`timezone` is 'Vienna', but must be the name of a time zone"),
        ("../etc/passwd", {}, "must be the name of a time zone"),
        ("UTC", {"drift": False}, "only a test with `drift` has days"),
    ):
        with pytest.raises(InvalidInput, match=rule):
            live(timezone=zone, **more)


def test_a_ramp_up_and_a_holdout_need_no_setting() -> None:
    """Few visitors at first, and those outside the test are not told."""
    test, rng = live(epsilon=0.1), np.random.default_rng(5)
    for day, visitors in enumerate((30, 90, 300, 300, 300, 300, 300)):
        opened = test.shares(f"{day}")
        every_tenth_is_held_out = visitors * 9 // 10
        told = counts(opened.percent, rng, every_tenth_is_held_out)
        assert test.tell_counts(opened.block, told).state == "counted"
    assert test.result().top == ("a",)


def test_shares_are_whole_percent_and_those_of_the_proof() -> None:
    test = live()
    percent = test.shares("monday").percent
    terms = test._known.blocks.all[0].terms  # type: ignore[attr-defined]
    assert [each / 100 for each in percent.values()] == terms.shares.tolist()
    assert all(float(each).is_integer() for each in percent.values())


def test_a_test_by_the_day_lasts_a_week_unless_it_is_told_otherwise() -> None:
    obvious = np.array([0.9, 0.1, 0.1])
    assert run(live(), rates=obvious) == 7
    assert run(live(min_blocks=0), rates=obvious) < 7
    assert run(live(per_day=None, drift=True), rates=obvious) < 7


def test_counts_need_drift_and_tickets_need_its_absence() -> None:
    tickets = Experiment.create(PAGES, 1, epsilon=0.1)
    calls: list[Callable[[], object]] = [
        tickets.shares,
        lambda: tickets.assign("x"),
        lambda: tickets.tell_counts("x", {}),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match="created without `drift` or `per_day`"):
            call()
    test = live()
    calls = [test.ask, lambda: test.tell(0, 1), lambda: test.fail(0, "x"), test.release]
    for call in calls:
        with pytest.raises(InvalidInput, match="has blocks, not tickets"):
            call()
    with pytest.raises(InvalidInput, match="has blocks, not tickets"):
        test.run(lambda arm: 1.0)
    assert test.underway() is None


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        ({"delay": 2}, "`delay` is 2, but needs `per_day`"),
        ({"skip_blocks": 2}, "only a test with `drift` has blocks"),
        ({"drift": False, "certificate": "drift"}, "`drift` is False"),
        ({"drift": True, "budget": 100}, "a budget is given"),
        ({"drift": True, "items": 10}, "items are given"),
        ({"drift": True, "lease": 60}, "`lease` is 60.0, but a test with `drift` has no tickets"),
        ({"drift": True, "algorithm": "uniform"}, "with `drift` must be 'certified'"),
        ({"drift": True, "certificate": "pairs"}, "'drift' is the certificate of live tests"),
        ({"drift": True, "min_batch": 10}, "one batch per block"),
        ({"drift": True, "rewards": shortlist.SubGaussian(1)}, "cap them, and say"),
        ({"per_day": 0}, "`per_day` is 0"),
        ({"arms": 1001, "drift": True}, "must be at most 1000"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        Experiment.create(**{"arms": PAGES, "k": 1, "epsilon": 0.1, **settings})


def test_per_day_implies_drift_unless_it_is_denied() -> None:
    assert live().settings.spec.drift is True  # type: ignore[union-attr]
    denied = live(drift=False).settings
    assert denied.problem.traffic is None
    by_name = Experiment.create(PAGES, 1, epsilon=0.1, certificate="drift")
    assert by_name.settings.problem.traffic is not None


def test_ninety_days_are_told_within_a_second_and_in_little_space(tmp_path: Path) -> None:
    path = tmp_path / "test.db"
    pages = [f"page {page}" for page in range(6)]
    rng = np.random.default_rng(0)
    settings: Any = {"epsilon": 0.002, "per_day": 20_000, "delay": 3, "min_blocks": 90}
    with Experiment.create(pages, 1, store=path, rewards="binary", **settings) as test:
        begun = time.process_time()
        for day in range(90):
            percent = test.shares(f"2026-{day}").percent
            test.tell_counts(f"2026-{day}", counts(dict(percent), rng, 20_000, np.full(6, 0.024)))
        assert time.process_time() - begun < 1
        assert test.status().state == "finished"
    assert path.stat().st_size < 100_000


def test_a_test_is_exported_imported_copied_and_verified(tmp_path: Path) -> None:
    path = tmp_path / "one.db"
    with live(store=path) as test:
        test.assign("somebody", "monday")
        arm = test.assign("somebody").arm
        test.tell_counts("monday", {page: (int(page == arm), 0) for page in PAGES})
        test.retire("c")
        test.shares("tuesday")
        expected = test.result(partial=True)
        import_lines(export_lines(test.store, test.name), tmp_path / "two.db")
    copy(path, tmp_path / "three.db")
    for file in ("one.db", "two.db", "three.db"):
        assert [each.damage for each in verify(tmp_path / file)] == [""]
        with Experiment.open(tmp_path / file) as again:
            assert again.result(partial=True) == expected
            assert again.assign("somebody").block == "monday"


OPEN = '{"name":"x","shares":[50,50,0],"step":0.01,"centre":0.1}'
COUNTED = '{"counts":[[1,0],[1,0],[0,0]]}'


@pytest.mark.parametrize(
    "events",
    [
        [(Kind.OPEN, 1, 0, OPEN)],
        [(Kind.OPEN, 0, 0, "{}")],
        [(Kind.OPEN, 0, 0, OPEN.replace("0.01", "9"))],
        [(Kind.OPEN, 0, 0, OPEN.replace(",0]", "]"))],
        [(Kind.OPEN, 0, 0, OPEN), (Kind.OPEN, 1, 0, OPEN)],
        [(Kind.COUNTS, 0, 0, COUNTED)],
        [(Kind.OPEN, 0, 0, OPEN), (Kind.COUNTS, 0, 0, '{"counts":[[1,0]]}')],
        [(Kind.OPEN, 0, 0, OPEN), (Kind.COUNTS, 0, 0, COUNTED.replace("[1,", "[-1,"))],
        [(Kind.OPEN, 0, 0, OPEN), (Kind.COUNTS, 0, 0, COUNTED), (Kind.COUNTS, 0, 0, COUNTED)],
        [(Kind.OPEN, 0, 0, OPEN), (Kind.ASSIGN, 0, 2, "ff")],
    ],
)
def test_a_log_that_no_test_could_have_written_is_damaged(events: list[Any]) -> None:
    store = MemoryStore()
    written = [Event(kind, ticket, span, text, 1.0) for kind, ticket, span, text in events]
    live(store=store, name="one")
    with store.exclusive():
        store.append("one", events=written)
    with pytest.raises(StoreDamaged, match="makes no sense"):
        Experiment.open(store, "one")


class Killed(BaseException):
    """The program ends here."""


class DyingStore(MemoryStore):
    """Dies at one of its appends, before or after it is written."""

    def __init__(self) -> None:
        super().__init__()
        self.left = -1

    def append(self, *args: Any, **more: Any) -> None:
        self.left -= 1
        if self.left == 0:
            raise Killed
        super().append(*args, **more)


@pytest.mark.parametrize("moment", range(1, 9))
def test_nothing_is_doubled_if_a_program_dies_and_tells_again(moment: int) -> None:
    store = DyingStore()
    live(store=store, name="one", epsilon=0.4, min_blocks=4)
    rng = np.random.default_rng(4)
    told = [counts({"a": 34, "b": 33, "c": 33}, rng) for _ in range(4)]

    def tell_all() -> None:
        test = Experiment.open(store, "one")
        for block in range(4):
            test.shares(f"{block}")
        for block, each in enumerate(told):
            test.tell_counts(f"{block}", each)

    store.left = moment
    with suppress(Killed):
        tell_all()
    store.left = -1
    tell_all()
    result = Experiment.open(store, "one").result()
    assert result.pulls == 1200
    assert [arm.pulls for arm in result.arms] == [
        sum(each[arm][0] for each in told) for arm in PAGES
    ]


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("created")
    arms = folder / "arms.csv"
    arms.write_text("arm\na\nb\nc\n")
    store = ["--store", str(folder / "t.db")]
    made = invoke(["create", str(arms), "-k", "1", "--epsilon", "0.01", "--per-day", "300", *store])
    assert made.exit_code == 0, made.output
    assert "open the first block with `shortlist shares`; if rates are near 0.1:" in made.stderr
    return folder


@pytest.fixture
def days(created: Path, tmp_path: Path) -> Path:
    copytree(created, tmp_path, dirs_exist_ok=True)
    return tmp_path


def test_the_command_line_opens_blocks_and_tells_counts(days: Path) -> None:
    store = ["--store", str(days / "t.db")]
    shares = invoke(["shares", "--block", "monday", "--format", "json", *store])
    assert {row["arm"]: row["percent"] for row in json.loads(shares.stdout)} == {
        "a": 34,
        "b": 33,
        "c": 33,
    }
    file = days / "day.csv"
    file.write_text("block,arm,visitors,conversions\nmonday,a,100,60\nmonday,b,100,40\n")
    told = invoke(["tell", "--counts", str(file), *store])
    assert told.exit_code == 2
    assert "is told without 'c'" in told.stderr
    file.write_text("arm,visitors,sum,squares\na,100,60,60\nb,100,40,\nc,100,30,30\n")
    told = invoke(["tell", "--counts", str(file), "--block", "monday", *store])
    assert (told.exit_code, told.stderr) == (0, "block 'monday': counted\n")
    status = invoke(["status", *store])
    assert "1 block counted" in status.stdout


def test_a_restated_day_stops_no_other_day_of_its_file(days: Path) -> None:
    store = ["--store", str(days / "t.db")]
    for day in ("monday", "tuesday", "wednesday"):
        assert invoke(["shares", "--block", day, *store]).exit_code == 0
    file = days / "days.csv"
    row = "{0},a,100,60\n{0},b,100,{1}\n{0},c,100,30\n"
    file.write_text("block,arm,visitors,conversions\n" + row.format("monday", 40))
    assert invoke(["tell", "--counts", str(file), *store]).exit_code == 0
    rows = [row.format(day, 41) for day in ("monday", "tuesday", "wednesday")]
    file.write_text("block,arm,visitors,conversions\n" + "".join(rows))
    told = invoke(["tell", "--counts", str(file), *store])
    assert told.exit_code == 2
    assert "block 'tuesday': counted\nblock 'wednesday': counted\n" in told.stderr
    assert "block 'monday' is told (100, 41.0) for arm 'b'" in told.stderr
    assert "before, which stays: leave this block out" in told.stderr


def test_the_command_line_leaves_out_a_block_whose_data_are_lost(days: Path) -> None:
    store = ["--store", str(days / "t.db")]
    invoke(["shares", "--block", "monday", *store])
    told = invoke(["tell", "--block", "monday", "--void", "disk full", *store])
    assert (told.exit_code, told.stderr) == (0, "block 'monday': void\n")
    refused = invoke(["tell", "--void", "disk full", *store])
    assert "`void` is 'disk full', but goes with --block alone" in refused.stderr


@pytest.mark.parametrize(
    ("text", "options", "rule"),
    [
        ("arm,visitors,sum\na,1,1\n", [], "has no `block`"),
        ("arm,sum\na,1\n", [], "has no column `visitors`"),
        ("arm,visitors\na,1\n", [], "has no column `sum`"),
        ("block,arm,visitors,sum\nx,a,1,1\nx,a,1,1\n", [], "has the arm 'a' again"),
        ("block,arm,visitors,sum\nx,a,1,1\n", ["--block", "y"], "but --block is 'y'"),
        ("block,arm,visitors,sum\n", [], "holds no counts"),
        ("block,arm,visitors,conversions\nx,a,9,.2\n", [], "has .2 `conversions`, but"),
        ("block,arm,visitors,sum\nx,a,1,1\n", ["--cost", "3"], "goes with --block alone"),
    ],
)
def test_files_of_counts_that_make_no_sense_are_refused(
    days: Path, text: str, options: list[str], rule: str
) -> None:
    file = days / "day.csv"
    file.write_text(text)
    told = invoke(["tell", "--counts", str(file), *options, "--store", str(days / "t.db")])
    assert told.exit_code == 2
    assert rule in told.stderr


def test_retire_says_what_to_do_with_open_blocks_and_what_a_control_takes_along(
    tmp_path: Path,
) -> None:
    test = Experiment.create(PAGES, 1, epsilon=0.1, per_day=9, control="a", store=tmp_path / "t.db")
    test.close()
    left = invoke(["retire", "a", "--store", str(tmp_path / "t.db")])
    assert "no share from the next block on; in open blocks keep counting" in left.stderr
    assert "its comparisons and guardrails end here" in left.stderr


def test_epsilon_may_be_given_in_percentage_points(tmp_path: Path) -> None:
    (tmp_path / "arms.csv").write_text("arm\na\nb\n")
    arguments = ["create", str(tmp_path / "arms.csv"), "-k", "1", "--store", str(tmp_path / "t.db")]
    made = invoke([*arguments, "--epsilon", "2.5%", "--drift"])
    assert made.exit_code == 0, made.output
    with Experiment.open(tmp_path / "t.db") as test:
        assert test.settings.problem.epsilon == pytest.approx(0.025)
    assert "'x' is not a valid float" in invoke([*arguments, "--epsilon", "x%"]).stderr


def test_a_visitor_who_is_twice_in_a_log_counts_once() -> None:
    store = MemoryStore()
    live(store=store, name="one")
    first = Event(Kind.OPEN, 0, 0, OPEN, 1.0)
    twice = [Event(Kind.ASSIGN, 0, arm, "ff", 2.0) for arm in (1, 0)]
    with store.exclusive():
        store.append("one", events=[first, *twice])
    block = Experiment.open(store, "one")._known.blocks.all[0]  # type: ignore[attr-defined]
    assert dict(block.assigned) == {1: 1}


def test_a_block_without_counts_is_refused(days: Path) -> None:
    told = invoke(["tell", "0", "1", "--block", "x", "--store", str(days / "t.db")])
    assert "goes with --counts or --void only" in told.stderr


def test_the_command_line_says_when_a_test_has_ended(tmp_path: Path) -> None:
    with live(store=tmp_path / "t.db", epsilon=0.1) as test:
        run(test)
    shares = invoke(["shares", "--store", str(tmp_path / "t.db")])
    assert "the test has ended" in shares.stderr


def test_a_live_test_has_no_outlook_by_tickets() -> None:
    with pytest.raises(InvalidInput, match="cannot be simulated from here, as a live test has bl"):
        outlook(live(epsilon=0.4), runs=2)


def test_counts_of_a_day_after_the_end_are_not_used() -> None:
    test = live(epsilon=0.3)
    rng = np.random.default_rng(4)
    day = 0
    while test.state().value != "finished":
        opened = test.shares(f"{day}")
        test.tell_counts(f"{day}", counts(dict(opened.percent), rng))
        day += 1
    test.shares("later")
    assert test.tell_counts("later", {"a": (1, 0), "b": (1, 0), "c": (1, 0)}).state == "unused"
