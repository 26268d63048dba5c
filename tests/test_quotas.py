"""Groups, quotas and constraints behind every door: the same family, or refused with the reason."""

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from services import serving

import shortlist
from shortlist import Arm, Laminar, Matching, Matroid, Quotas
from shortlist.cli import main
from shortlist.confidence import feasible_places
from shortlist.errors import InvalidInput, StoreDamaged, StoreExists, UnsupportedGoal
from shortlist.problem import FixedBudget, FixedConfidence, Problem
from shortlist.quotas import constraint_record, family_of, groups_of
from shortlist.settings import arguments, body_of
from shortlist.spec import FIELDS
from shortlist.stores import Event, Kind
from shortlist.stores.base import MemoryStore

GROUPS = ["meta", "meta", "meta", "openai", "openai", None]
MEANS = [0.9, 0.8, 0.7, 0.5, 0.2, 0.4]
ARMS = [Arm(f"arm {place}", group=group) for place, group in enumerate(GROUPS)]
QUOTAS = {"meta": (1, 1), "openai": (0, 1)}
EVEN = Matroid(lambda arms: len({arm // 2 for arm in arms}) == len(arms), 6, k=3)
PAIRS = [(row, column) for row in range(2) for column in range(2)]
MATCHING = Matching(*zip(*PAIRS, strict=True))


def click(arm: Any, seed: int) -> bool:
    place = arm if isinstance(arm, int) else int(str(arm).split()[-1])
    return bool(np.random.default_rng(seed).random() < MEANS[place])


def select(**given: Any) -> shortlist.Result:
    asked = {"arms": ARMS, "k": 2, "budget": 300, "progress": False, **given}
    return shortlist.select(click, **asked)


@pytest.mark.parametrize("algorithm", ["expected-loss", "uniform", "clucb-pac"])
def test_select_keeps_to_quotas(algorithm: str) -> None:
    result = select(quotas=QUOTAS, algorithm=algorithm, budget=900)
    assert set(result.top) == {"arm 0", "arm 3"}


def test_select_proves_its_choice_among_the_sets_that_keep_to_quotas() -> None:
    result = select(quotas=QUOTAS, budget=None, epsilon=0.2)
    assert set(result.top) == {"arm 0", "arm 3"}
    assert result.reached
    assert result.evidence["certificate"] == "pairs"


def test_groups_of_a_data_frame_are_read() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"arm": [arm.label for arm in ARMS], "group": GROUPS})
    assert set(select(arms=frame, quotas=QUOTAS, budget=900).top) == {"arm 0", "arm 3"}


def test_whole_numbers_name_groups() -> None:
    arms = [Arm(place, group=place // 3) for place in range(6)]  # type: ignore[arg-type]
    assert arms[5].group == "1"
    assert set(select(arms=arms, quotas={0: (1, 1)}, budget=900).top) == {0, 3}


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such group": ({"quotas": {"mistral": (0, 1)}}, "names group 'mistral', but the groups"),
    "too many": ({"quotas": {"openai": (3, 3)}}, "at least 3, but it has 2 arms"),
    "too few": ({"quotas": {"meta": (0, 0), "openai": (0, 0)}}, "at least 0 and at most 1 arms"),
    "too much at least": ({"quotas": {"meta": (2, 3), "openai": (1, 2)}}, "at least 3"),
    "turned round": ({"quotas": {"meta": (2, 1)}}, "is 1, but must be .* at least 2"),
    "one number": ({"quotas": {"meta": 2}}, r"is 2, but must be \(least, most\)"),
    "no mapping": ({"quotas": [("meta", 1, 2)]}, "must be a mapping"),
    "a group twice": ({"quotas": {1: (0, 1), "1": (0, 2)}}, "names a group twice"),
    "a strange name": ({"quotas": {2.5: (0, 1)}}, "a group is called 2.5"),
    "no groups": ({"arms": 6, "quotas": QUOTAS}, "no arm has a group"),
    "both": ({"quotas": QUOTAS, "constraint": EVEN}, "only one of them can be"),
    "no family": ({"constraint": "even"}, r"an object with a method `best\(weights\)`"),
    "another size": ({"constraint": EVEN}, "made for k = 3, but `k` is 2"),
    "overlap": (
        {"constraint": {"kind": "laminar", "groups": {"a": [0, 1], "b": [1, 2]},
                        "quotas": {"a": [0, 1]}, "n_arms": 6}},
        "groups 'a' and 'b' overlap",
    ),
    "unknown kind": ({"constraint": {"kind": "tree"}}, "`kind` must be one of"),
    "parts": ({"constraint": {"kind": "quotas", "rows": [1]}}, "quotas has `groups`, `quotas`"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_makes_no_sense_is_refused_before_any_pull(name: str) -> None:
    given, reason = BAD[name]
    with pytest.raises(InvalidInput, match=reason):
        select(**given)
    made: dict[str, Any] = {"arms": ARMS, "k": 2, "budget": 300, **given}
    with pytest.raises(InvalidInput, match=reason):
        shortlist.Experiment.create(**made)


def test_an_algorithm_that_knows_no_constraints_refuses_them() -> None:
    with pytest.raises(UnsupportedGoal, match="sar does not support constraints"):
        select(quotas=QUOTAS, algorithm="sar")


def test_linear_means_do_not_go_with_quotas_but_features_may_guide() -> None:
    features = [[float(place)] for place in range(6)]
    with pytest.raises(InvalidInput, match="`linear` and a constraint are given"):
        select(quotas=QUOTAS, features=features, linear=True)
    assert len(select(quotas=QUOTAS, features=features).top) == 2


def test_an_arm_refuses_a_group_that_is_no_name() -> None:
    for group in ("", "  ", 2.5, True):
        with pytest.raises(InvalidInput, match="a group is called"):
            Arm("a", group=group)  # type: ignore[arg-type]


def test_an_experiment_keeps_its_quotas(tmp_path: Path) -> None:
    store = tmp_path / "tests.db"
    shortlist.Experiment.create(ARMS, 2, epsilon=0.2, quotas=QUOTAS, store=store)
    again = shortlist.Experiment.open(store)
    family = again.settings.problem.constraint
    assert isinstance(family, Quotas)
    assert family.limits == {"meta": (1, 1), "openai": (0, 1), None: (0, 1)}
    others: list[tuple[dict[str, Any], str]] = [
        ({"arms": ARMS, "quotas": {"meta": (1, 2)}}, "other quotas"),
        ({"arms": [*ARMS[:-1], Arm("arm 5", group="meta")], "quotas": QUOTAS}, "other groups"),
    ]
    for other, what in others:
        with pytest.raises(StoreExists, match=what):
            shortlist.Experiment.create(k=2, epsilon=0.2, store=store, exist_ok=True, **other)
    result = again.run(click)
    assert set(result.top) == {"arm 0", "arm 3"}


FAMILIES: list[tuple[Any, int]] = [
    (Quotas("aabbcc", {"a": (1, 1)}, k=2), 2),
    (Laminar({"a": [0, 1, 2], "b": [0, 1]}, {"a": (1, 1)}, n_arms=6, k=2), 2),
    (Matching("aabbcc", "xyxyxy"), 2),
]


@pytest.mark.parametrize(("family", "k"), FAMILIES)
def test_an_experiment_keeps_the_families_that_text_can_hold(
    family: Any, k: int, tmp_path: Path
) -> None:
    store = tmp_path / "tests.db"
    shortlist.Experiment.create(6, k, epsilon=0.2, constraint=family, store=store)
    kept = shortlist.Experiment.open(store).settings.problem.constraint
    assert type(kept) is type(family)
    rng = np.random.default_rng(0)
    for weights in rng.random((20, 6)):
        assert np.array_equal(np.asarray(kept.best(weights)), family.best(weights))  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("family", "reason"),
    [
        (EVEN, "an experiment keeps its settings as text"),
        (Quotas([(1, 2), (1, 2), "a", "a"], {}, k=3), "a name that is kept must be a text"),
        (Quotas([1, "1", "a", "a"], {"a": (1, 1)}, k=3), "the same text"),
    ],
)
def test_an_experiment_refuses_other_families(family: Any, reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        shortlist.Experiment.create(family.n_arms, 3, epsilon=0.2, constraint=family)


def test_select_takes_any_family_where_nothing_is_stored(tmp_path: Path) -> None:
    result = select(arms=6, k=3, constraint=EVEN, budget=900)
    assert [arm.label for arm in result.arms if arm.chosen] == [0, 2, 5]
    with pytest.raises(InvalidInput, match="`select` without a store takes any"):
        select(arms=6, k=3, constraint=EVEN, store=tmp_path / "tests.db")


def test_a_record_comes_back_as_the_family_it_was() -> None:
    assert constraint_record(None) is None
    record = constraint_record(MATCHING)
    assert record is not None
    again = family_of({"kind": record.kind, "rows": record.rows, "columns": record.columns}, 2)
    assert np.array_equal(np.asarray(again.best(np.array([0.9, 0.8, 0.8, 0.1]))), [1, 2])


def test_the_body_of_a_request_holds_groups_and_quotas() -> None:
    given = {"arms": ARMS, "k": 2, "epsilon": 0.2, "quotas": QUOTAS}
    defaults = {name: field.default for name, field in FIELDS.items()}
    body = body_of(arguments({**defaults, **given}, "create"))
    assert body["quotas"] == {"meta": [1, 1], "openai": [0, 1]} or body["quotas"] == {
        "meta": (1, 1),
        "openai": (0, 1),
    }
    assert json.loads(json.dumps(body))["arms"][0]["group"] == "meta"
    family = body_of(
        arguments({**defaults, "arms": 4, "k": 2, "epsilon": 0.2, "constraint": MATCHING}, "create")
    )["constraint"]
    assert family["kind"] == "matching"


def test_a_service_takes_quotas() -> None:
    with serving(MemoryStore()) as url:
        client = shortlist.Client(url)
        made = client.create(ARMS, 2, epsilon=0.2, quotas=QUOTAS)
        family = made.settings.problem.constraint
        assert isinstance(family, Quotas)
        assert set(made.run(click).top) == {"arm 0", "arm 3"}
        with pytest.raises(InvalidInput, match="names group 'x'"):
            client.create(ARMS, 2, name="other", epsilon=0.2, quotas={"x": (0, 1)})


# what a result says


def test_a_result_shows_which_quotas_bind_and_at_what_price() -> None:
    result = select(quotas=QUOTAS, budget=3000, algorithm="uniform")
    meta, openai = result.groups
    assert (meta.group, meta.arms, meta.chosen, meta.least, meta.most) == ("meta", 3, 1, 1, 1)
    assert meta.price == pytest.approx((0.8 - 0.5) / 2, abs=0.05)
    assert meta.binds
    assert openai.price == 0
    assert not openai.binds
    assert "price (estimate)" in str(result)
    assert result.to_dict()["quotas"][0]["group"] == "meta"  # type: ignore[index]
    assert "quotas" not in select().to_dict()


def test_prices_are_what_a_wider_quota_would_gain() -> None:
    family = Quotas("aabbc", {"a": (0, 1), "b": (2, 2), "c": (0, 1)}, k=3)
    means = np.array([0.9, 0.8, 0.3, 0.2, 0.1])
    a, b = groups_of(family, family.best(means), means)  # that of c allows all its arms
    assert a.price == 0  # b must have two
    assert b.price == 0  # the last one would be of group c
    wider = Quotas("aabbc", {"a": (0, 1), "b": (1, 2)}, k=3)
    a, b = groups_of(wider, wider.best(means), means)
    assert a.price == pytest.approx((0.8 - 0.2) / 3)
    assert b.price == 0
    assert a.cells == ("a", "2", "1", "0 to 1", "0.2")
    unknown = np.array([0.9, np.nan, 0.3, 0.2, np.nan])
    assert all(each.price >= 0 for each in groups_of(wider, np.array([0, 2, 3]), unknown))
    fewer = Quotas("aabb", {"a": (1, 2)}, k=2)
    (only,) = groups_of(fewer, np.array([1, 2]), np.array([0.1, 0.2, 0.9, 0.8]))
    assert only.price == pytest.approx((0.8 - 0.2) / 2)


def test_places_under_quotas_are_those_of_all_means_within_the_intervals() -> None:
    family = Quotas("aabb", {"a": (1, 1)}, k=2)
    problem = Problem(4, 2, FixedConfidence(0.1, 0.05), constraint=family)
    low, high = np.array([0.1, 0.3, 0.6, 0.4]), np.array([0.2, 0.4, 0.9, 0.7])
    every = np.ones(4, dtype=np.bool_)
    where = feasible_places(problem, low, high, every)
    assert where == ("out", "in", "undecided", "undecided")
    rng = np.random.default_rng(1)
    for means in rng.uniform(low, high, (200, 4)):
        best = family.best(means)
        assert 1 in best
        assert 0 not in best
    without = feasible_places(problem, low, high, np.array([True, False, True, True]))
    assert without == ("in", "undecided", "undecided")
    other = Problem(4, 2, FixedConfidence(0.1, 0.05), constraint=MATCHING)
    assert feasible_places(other, low, high, every) == ("undecided",) * 4


@pytest.mark.parametrize("minimize", [False, True])
def test_the_status_places_arms_by_the_quotas(minimize: bool) -> None:
    made = shortlist.Experiment.create(
        ARMS[:4], 2, budget=4000, quotas={"meta": (1, 1)}, algorithm="uniform", rewards="binary",
        minimize=minimize,
    )  # fmt: skip
    while tickets := made.ask(500):
        made.tell_many((ticket, click(ticket.arm, ticket.seed)) for ticket in tickets[:-1])
        if len(tickets) == 500:
            made.tell(tickets[-1], 1.0)
        else:
            break
    where = made.status().arms.places
    assert where[3] == "in"  # it is in every set
    assert {"out", "undecided"} >= set(where[:3]) - {"in"}


# arms that retire


def test_arms_retire_as_long_as_a_set_keeps_to_the_quotas() -> None:
    made = shortlist.Experiment.create(ARMS, 2, epsilon=0.3, quotas={"openai": (1, 1)})
    made.retire("arm 3", "gone")
    with pytest.raises(InvalidInput, match="no set of the remaining arms keeps to the constraint"):
        made.retire("arm 4", "gone")
    made.retire("arm 5", "gone")
    result = made.run(click)
    assert "arm 4" in result.top
    assert result.regret_bound is not None
    assert "among the remaining arms" in result.verdict


def test_the_best_remaining_set_takes_over_where_nothing_is_proved() -> None:
    made = shortlist.Experiment.create(
        ARMS, 2, budget=600, quotas={"meta": (1, 1)}, algorithm="uniform", rewards="binary"
    )
    tickets = made.ask(600)
    made.tell_many((ticket, click(ticket.arm, ticket.seed)) for ticket in tickets[:-1])
    made.retire("arm 0", "gone")
    made.tell(tickets[-1], 0.0)
    kept, other = sorted(made.result().top)
    assert kept in ("arm 1", "arm 2")
    assert other == "arm 3"


def test_a_log_in_which_no_set_keeps_to_the_quotas_is_damaged(tmp_path: Path) -> None:
    made = shortlist.Experiment.create(
        ARMS, 2, epsilon=0.3, quotas={"openai": (1, 1)}, store=tmp_path / "tests.db"
    )
    made.retire("arm 3", "gone")
    with made._store.exclusive():  # as a program that does not know quotas would
        made._store.append(made.name, events=[Event(Kind.RETIRE, 0, 4, "gone", 1e12)])
    with pytest.raises(StoreDamaged, match="no set of the others keeps to the constraint"):
        shortlist.Experiment.open(tmp_path / "tests.db")


# simulations


@pytest.mark.parametrize("workers", [1, 2])
def test_a_simulation_shuffles_groups_with_the_means(workers: int) -> None:
    given: dict[str, Any] = {"k": 2, "budget": 3000, "runs": 6, "workers": workers}
    runs = shortlist.simulate("uniform", MEANS, groups=GROUPS, quotas=QUOTAS, **given)
    assert runs.regret.max() < 0.06
    free = shortlist.simulate("uniform", MEANS, **given)
    assert free.regret.max() < 0.06  # against the best two of all


def test_a_simulation_takes_any_family() -> None:
    class Oracle:
        def best(self, weights: Any) -> Any:
            return EVEN.best(weights)

    for family in (EVEN, Oracle()):
        for algorithm in ("uniform", "expected-loss"):
            runs = shortlist.simulate(
                algorithm, MEANS, k=3, constraint=family, budget=6000, runs=4, seed=1
            )
            assert runs.regret.max() < 0.05


def test_one_group_and_no_quota_is_a_simulation_of_plain_top_k() -> None:
    given: dict[str, Any] = {"k": 2, "epsilon": 0.1, "runs": 3}
    plain = shortlist.simulate("certified", MEANS, **given)
    grouped = shortlist.simulate("certified", MEANS, groups=["a"] * 6, quotas={}, **given)
    assert np.array_equal(plain.pulls, grouped.pulls)
    assert np.array_equal(plain.bound, grouped.bound)
    assert np.array_equal(plain.rounds, grouped.rounds)


@pytest.mark.parametrize("groups", ["aaabbb", {"a": 1}, 6])
def test_groups_are_a_list(groups: Any) -> None:
    with pytest.raises(InvalidInput, match="`groups` is"):
        shortlist.simulate("uniform", MEANS, k=2, budget=60, groups=groups, quotas={"a": (1, 1)})


def test_a_forecast_keeps_to_quotas() -> None:
    given: dict[str, Any] = {"k": 2, "budget": 600, "runs": 2, "quotas": QUOTAS}
    found = shortlist.forecast(means=MEANS, groups=GROUPS, **given)
    assert [each.algorithm for each in found.prospects] == ["expected-loss", "uniform"]
    shortlist.forecast(n=6, prior=(2, 2), groups=GROUPS, **given)
    pilot = ([10] * 6, [5] * 6)
    with pytest.raises(InvalidInput, match="`groups` is given with a `pilot`"):
        shortlist.forecast(pilot=pilot, groups=GROUPS, **given)
    given.pop("quotas")
    with pytest.raises(InvalidInput, match="`constraint` is given with a `pilot`"):
        shortlist.forecast(pilot=pilot, constraint=QUOTAS, **given)


# the command line


@pytest.fixture
def files(tmp_path: Path) -> Path:
    named = [group or "" for group in GROUPS]
    arms = ["arm,group", *(f"{arm.label},{group}" for arm, group in zip(ARMS, named, strict=True))]
    (tmp_path / "arms.csv").write_text("\n".join(arms))
    (tmp_path / "means.csv").write_text("\n".join(map(str, MEANS)))
    both = [f"{mean},{group}" for mean, group in zip(MEANS, named, strict=True)]
    (tmp_path / "both.csv").write_text("\n".join(["mean,group", *both]))
    (tmp_path / "groups.csv").write_text("\n".join(["group", *(name or "none" for name in named)]))
    (tmp_path / "quotas.csv").write_text("group,least,most\nmeta,1,1\nopenai,0,1\n")
    return tmp_path


def run(*arguments: object) -> Any:
    done = CliRunner().invoke(main, [str(each) for each in arguments])
    assert done.exit_code == 0, done.output
    return done


def test_the_command_line_takes_quotas(files: Path) -> None:
    store = files / "tests.db"
    quotas = ("--quotas", files / "quotas.csv")
    run("create", files / "arms.csv", "-k", 2, "--epsilon", 0.2, "--store", store, *quotas)
    family = shortlist.Experiment.open(store).settings.problem.constraint
    assert isinstance(family, Quotas)
    assert family.group_of == GROUPS
    for more in (
        ("--means", files / "means.csv", "--groups", files / "groups.csv"),
        ("--means", files / "both.csv"),
    ):
        told = run(
            "simulate", *more, "-k", 2, "--algorithm", "uniform", "--budget", 3000, *quotas,
            "--format", "json",
        )  # fmt: skip
        assert json.loads(told.stdout)["regret"]["max"] < 0.06
        run("forecast", *more, "-k", 2, "--budget", 300, "--runs", 2, *quotas)


def test_the_command_line_refuses_quotas_without_groups(files: Path) -> None:
    done = CliRunner().invoke(
        main,
        ["simulate", "--means", str(files / "means.csv"), "-k", "2", "--budget", "300",
         "--algorithm", "uniform", "--quotas", str(files / "quotas.csv")],
    )  # fmt: skip
    assert done.exit_code == 2
    assert "no arm has a group" in done.output


def test_all_feasible_sets_of_the_example_are_what_the_quotas_say() -> None:
    sets = [
        each
        for each in combinations(range(6), 2)
        if sum(GROUPS[arm] == "meta" for arm in each) == 1
        and sum(GROUPS[arm] == "openai" for arm in each) <= 1
    ]
    family = Quotas(GROUPS, QUOTAS, k=2)
    best = max(sets, key=lambda each: sum(MEANS[arm] for arm in each))
    assert family.best(np.array(MEANS)).tolist() == list(best)
    assert (
        Problem(6, 2, FixedBudget(10), constraint=family).regret(np.array(MEANS), np.array([0, 1]))
        == 0.0
    )  # no feasible set is as good


def test_instances_bring_their_groups_and_sets(files: Path) -> None:
    (files / "levels.csv").write_text("group,least,most\n0,1,1\n19,0,1\n")
    goal = ("--budget", 4000, "--format", "json")
    told = run(
        "simulate", "--instance", "levels", "-n", 40, "-k", 8, "--algorithm", "uniform",
        "--quotas", files / "levels.csv", *goal,
    )  # fmt: skip
    assert json.loads(told.stdout)["regret"]["max"] < 0.1
    matching = ("simulate", "--instance", "matching", "--algorithm", "uniform", *goal)
    told = run(*matching, "-n", 16, "-k", 4)
    assert json.loads(told.stdout)["regret"]["max"] < 0.2
    done = CliRunner().invoke(main, [*map(str, matching), "-n", "10", "-k", "3"])
    assert done.exit_code == 2
    assert "a square number" in done.output


def test_groups_of_an_instance_have_levels_of_their_own() -> None:
    means, names = shortlist.instances.levels(40)
    assert len(set(names)) == 20
    assert means[:2] == pytest.approx([0.4, 0.0])
    with pytest.raises(InvalidInput, match="a multiple of the 20 groups"):
        shortlist.instances.levels(50)
