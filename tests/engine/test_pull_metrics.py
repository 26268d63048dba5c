"""Secondary metrics and guardrails of experiments with tickets, behind every door."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attack_scale import number_of_runs
from command_line import invoke
from places import PLACES, create, place, reopen
from scipy.stats import binom

from shortlist import Score
from shortlist.engine import Experiment, export_lines, import_lines
from shortlist.errors import ConflictingReward, InvalidInput, StoreDamaged
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

PAGES = ["old", "red", "blue"]
BOUNCE: dict[Any, float] = {"old": 0.2, "red": 0.8, "blue": 0.25}
SETTINGS: dict[str, Any] = {"epsilon": 0.2, "rewards": "binary", "control": "old", "seed": 1}
GUARDED: dict[str, Any] = {**SETTINGS, "guardrails": {"bounce": 0.1}}


def told(test: Any, pulls: int = 300, **more: float) -> Any:
    """The test after some pulls on which red bounces far more often."""
    rng = np.random.default_rng(2)
    while pulls > 0 and (given := test.ask(min(50, pulls))):
        for ticket in given:
            bounced = float(rng.random() < BOUNCE[ticket.arm])
            reward = float(rng.random() < 0.5)
            test.tell(ticket, reward, metrics={"bounce": bounced, **more})
        pulls -= len(given)
    return test


@pytest.mark.parametrize("kind", PLACES)
def test_a_broken_guardrail_is_flagged_in_result_and_status_anywhere(
    kind: str, tmp_path: Path
) -> None:
    with place(kind, tmp_path) as here:
        test = told(create(PAGES, 1, store=here, name="pages", unit="%", **GUARDED), calls=0.25)
        for each in (test, reopen(here, "pages")):
            result = each.result(partial=True)
            bounce, calls = result.metrics
            assert (bounce.metric, bounce.guardrail, bounce.broken) == ("bounce", 0.1, ("red",))
            red, blue = bounce.arms
            assert 0.1 < red.difference_low < red.difference < red.difference_high
            assert blue.difference_low < 0 < blue.difference_high
            assert (calls.metric, calls.guardrail, calls.broken) == ("calls", None, ())
            assert calls.arms[0].difference == pytest.approx(0, abs=1e-9)
            assert result.to_dict()["metrics"][0]["broken"] == ["red"]
            (said,) = each.status().broken
            assert said.startswith("the guardrail 'bounce' is broken by red: at least ")
            assert "bounce of every arm against old" in str(result)


def test_the_search_does_not_look_at_metrics() -> None:
    few, many = (Experiment.create(PAGES, 1, **SETTINGS) for _ in range(2))
    for ticket, same in zip(few.ask(60), many.ask(60), strict=True):
        few.tell(ticket, float(ticket.draw % 2), metrics={"bounce": 0})
        many.tell(same, float(same.draw % 2), metrics={"bounce": ticket.arm == "red"})
    one, other = few.result(partial=True), many.result(partial=True)
    assert (one.top, one.regret_bound, one.arms) == (other.top, other.regret_bound, other.arms)
    assert [each.arm for each in few.ask(9)] == [each.arm for each in many.ask(9)]
    assert one.metrics != other.metrics


@pytest.mark.rates
def test_intervals_hold_together_at_all_times_though_pulls_follow_the_rewards() -> None:
    """Bounces go with rewards, the rewards that are told last depend on both, and every partial
    result is looked at."""
    runs, failed = number_of_runs(12, 2000), 0
    truth: dict[Any, float] = {"old": 0.5, "red": 0.45, "blue": 0.55}
    settings = {**SETTINGS, "epsilon": 0.3, "delta": 0.3, "min_batch": 12}
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        test = Experiment.create(PAGES, 1, **{**settings, "seed": seed})
        wrong, out = False, list[Any]()
        for _ in range(12):
            for ticket in test.ask(12):
                bounced = float(rng.random() < truth[ticket.arm])
                reward = 1 - bounced if rng.random() < 0.8 else bounced
                out.append((ticket, reward, None, None, {"bounce": bounced}))
            out.sort(key=lambda row: row[4]["bounce"])
            quick = max(1, sum(row[4]["bounce"] == 0 for row in out))
            test.tell_many(out[:quick])
            out = out[quick:]
            (bounce,) = test.result(partial=True).metrics
            gaps = [truth[arm.label] - truth["old"] for arm in bounce.arms]
            wrong |= any(
                not arm.difference_low <= gap <= arm.difference_high
                for arm, gap in zip(bounce.arms, gaps, strict=True)
            )
        failed += wrong
    assert failed <= binom.isf(1e-4, runs, 0.3)


def test_pulls_count_in_order_up_to_the_first_that_is_missing() -> None:
    test = Experiment.create(PAGES, 1, **{**GUARDED, "min_batch": 60})
    given = test.ask(60)
    first = next(each for each in given if each.arm == "red")
    for ticket in given:
        if ticket != first:
            test.tell(ticket, 1.0, metrics={"bounce": BOUNCE[ticket.arm]})
    (bounce,) = test.result(partial=True).metrics
    assert bounce.arms[0].difference is None
    assert bounce.arms[1].difference == pytest.approx(0.05)
    test.tell(first, 1.0, metrics={"bounce": 0.8})
    (bounce,) = test.result(partial=True).metrics
    assert bounce.arms[0].difference == pytest.approx(0.6)


def test_the_comparison_of_a_retired_arm_ends_when_it_retires() -> None:
    test = told(Experiment.create(PAGES, 1, **GUARDED), 120)
    (before,) = test.result(partial=True).metrics
    test.retire("red", "too many bounces")
    result = test.result(partial=True)
    for pulls in (20, 40):
        after = told(test, pulls).result(partial=True)
        assert after.arms[1].pulls == result.arms[1].pulls
        red, was = after.metrics[0].arms[0], before.arms[0]
        assert red.difference == pytest.approx(was.difference, abs=0.1)  # the control goes on
        wide = red.difference_high - red.difference_low
        assert wide > was.difference_high - was.difference_low  # counted up to different batches


@pytest.mark.parametrize(
    ("metrics", "rule"),
    [
        (None, "without the metric 'bounce', but every pull has the same"),
        ({"calls": 1}, "without the metric 'bounce'"),
        ({"bounce": 1.5}, "have 1.5 of 'bounce', but it must be from 0 to 1"),
        ({"bounce": -1}, "have -1 of 'bounce'"),
        ({"bounce": float("nan")}, "have nan of 'bounce'"),
        ({"bounce": "1"}, "have '1' of 'bounce'"),
        ({"bounce": 1, "": 1}, "must be a text of 1 to 100 characters"),
        ({"bounce": 1, **{str(i): 1 for i in range(10)}}, "there may be at most 10"),
        (3, "must be a mapping of names to numbers"),
    ],
)
@pytest.mark.parametrize("kind", ["memory", "http"])
def test_metrics_that_make_no_sense_are_refused(
    kind: str, metrics: Any, rule: str, tmp_path: Path
) -> None:
    with place(kind, tmp_path) as here:
        test = create(PAGES, 1, store=here, name="pages", **GUARDED)
        ticket = test.ask()[0]
        with pytest.raises(InvalidInput, match=rule):
            test.tell(ticket, 1.0, metrics=metrics)
        assert test.status().told == 0


def test_every_pull_has_the_same_metrics_and_the_first_values_stay() -> None:
    test = Experiment.create(PAGES, 1, **GUARDED)
    one, two, three = test.ask(3)
    test.tell(one, 1.0, metrics={"bounce": True})
    test.tell(one, 1.0, metrics={"bounce": 1})
    test.tell(one, 1.0)
    with pytest.raises(ConflictingReward, match=r"told \{'bounce': 1.0\} before, which stays"):
        test.tell(one, 1.0, metrics={"bounce": 0})
    with pytest.raises(InvalidInput, match="a metric is told from the first pull on"):
        test.tell(two, 1.0, metrics={"bounce": 0, "calls": 0})
    same: Any = [(two, 1.0, None, None, {"bounce": each}) for each in (0, 1)]
    with pytest.raises(ConflictingReward, match="is told the metrics"):
        test.tell_many(same)
    with pytest.raises(InvalidInput, match=f"ticket {three.id} is told without the metric"):
        test.tell_many([(two, 1.0, None, None, {"bounce": 0}), (three, 1.0)])
    assert test.status().told == 1


def test_what_was_begun_without_metrics_goes_on_without() -> None:
    test = Experiment.create(PAGES, 1, **SETTINGS)
    one, two = test.ask(2)
    test.tell(one, 1.0)
    with pytest.raises(InvalidInput, match="but the first pull was told without it"):
        test.tell(two, 1.0, metrics={"bounce": 1})


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"control": None}, "metrics are compared with a control"),
        ({"items": ["q1", "q2", "q3"], "control": None}, "drawn without replacement"),
        ({"seeds": "shared", "control": None}, "metrics need independent arms"),
        ({"on_late": 0.0, "lease": 60}, "metrics of late results are not known"),
    ],
)
def test_where_nothing_is_proved_metrics_and_guardrails_are_refused(more: Any, rule: str) -> None:
    test = Experiment.create(PAGES, 1, **{**SETTINGS, **more})
    with pytest.raises(InvalidInput, match=rule):
        test.tell(test.ask()[0], 1.0, metrics={"bounce": 1})
    with pytest.raises(InvalidInput, match="`guardrails` are "):
        Experiment.create(PAGES, 1, **{**GUARDED, **more})


def test_a_function_returns_metrics_with_its_score() -> None:
    def visit(arm: str, seed: int) -> Score:
        rng = np.random.default_rng(seed)
        bounced = float(rng.random() < BOUNCE[arm])
        return Score(float(rng.random() < 0.5), metrics={"bounce": bounced}, info="seen")

    test = Experiment.create(PAGES, 1, **{**GUARDED, "epsilon": 0.15})
    result = test.run(visit, workers=3, progress=False)
    assert result.metrics[0].broken == ("red",)
    with pytest.raises(InvalidInput, match="without the metric 'bounce'"):
        Experiment.create(PAGES, 1, **GUARDED).run(lambda arm: 1.0, progress=False)


def test_metrics_are_exported_and_a_damaged_log_is_noticed() -> None:
    store, other = MemoryStore(), MemoryStore()
    test = told(Experiment.create(PAGES, 1, store=store, name="one", **GUARDED), 60)
    import_lines(export_lines(store, "one"), other)
    again = Experiment.open(other, "one")
    assert again.result(partial=True).metrics == test.result(partial=True).metrics
    for text in ('{"metrics":{"calls":1}}', '{"metrics":{"bounce":7}}', '{"metrics":3}'):
        import_lines(export_lines(store, "one"), damaged := MemoryStore())
        with damaged.exclusive():
            damaged.append("one", events=[Event(Kind.INFO, 0, 1, text, 1.0)])
        with pytest.raises(StoreDamaged, match="the metrics of ticket 0"):
            Experiment.open(damaged, "one")


def test_the_command_line_tells_metrics_of_one_pull_and_of_a_file(tmp_path: Path) -> None:
    arms, file = tmp_path / "arms.csv", tmp_path / "day.csv"
    arms.write_text("arm\nold\nred\nblue\n")
    store = ["--store", str(tmp_path / "t.db")]
    guard = ["--control", "old", "--guardrail", "bounce=5%", "--min-batch", "90"]
    made = ["create", str(arms), "-k", "1", "--epsilon", "0.2", "--rewards", "binary"]
    assert invoke([*made, *guard, *store]).exit_code == 0
    tickets = json.loads(invoke(["ask", "--limit", "90", "--format", "json", *store]).stdout)
    first, *rest = tickets
    bad = invoke(["tell", str(first["ticket"]), "1", *store])
    assert "without the metric 'bounce'" in bad.stderr
    one = ["tell", str(first["ticket"]), "1", "--metric", "bounce=0", *store]
    assert invoke(one).exit_code == 0
    lines = [f"{each['ticket']},{each['arm']},1,{int(each['arm'] == 'red')}" for each in rest]
    file.write_text("\n".join(["ticket,arm,reward,metric:bounce", *lines]))
    said = invoke(["tell", "--file", str(file), *store])
    assert said.stderr == "told 89 of 89 rewards\n"
    status = json.loads(invoke(["status", "--format", "json", *store]).stdout)
    assert status["broken"][0].startswith("the guardrail 'bounce' is broken by red")
    file.write_text("ticket,reward,metric:bounce\n0,1,often\n")
    assert (
        "metric:bounce 'often' must be a number"
        in invoke(["tell", "--file", str(file), *store]).stderr
    )
    bad = invoke(["tell", "1", "--failed", "no network", "--metric", "bounce=1", *store])
    assert "must be given with TICKET REWARD only" in bad.stderr
