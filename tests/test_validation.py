"""What users give is refused where it enters: the value, then the rule, before anything is made."""

import math
import re
from collections.abc import Callable
from enum import IntEnum
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import shortlist
from shortlist.algorithms.algorithm import Count, Within, check_options
from shortlist.errors import InvalidInput, StoreMissing
from shortlist.reading.files import LONGEST_LINE, MOST_ROWS
from shortlist.search import Search
from shortlist.validation import (
    COUNTABLE,
    MOST_ARMS,
    MOST_RETRIES,
    MOST_RUNS,
    MOST_TOLD,
    MOST_WORKERS,
    SEEDS,
    collected,
    flag,
    listed,
    named,
    reals,
    shown,
    text,
    whole,
    whole_numbers,
)

MEANS = [0.9, 0.5, 0.4, 0.2]


class Huge(IntEnum):
    ARM = 10**5000


def select(**changed: Any) -> object:
    usual: dict[str, Any] = {"arms": 3, "k": 1, "budget": 30, "progress": False}
    return shortlist.select(lambda arm: 0.5, **{**usual, **changed})


def simulate(algorithm: str = "uniform", **changed: Any) -> object:
    return shortlist.simulate(algorithm, MEANS, **{"k": 1, "budget": 100, **changed})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate("clucb-pac", options={"growth": 1e20}), "`growth` is 1e+20, but must be"),
        (lambda: simulate("lucb", options={"growth": 10**400}), "`growth` is inf, but must be"),
        (lambda: simulate("adaptive-top-k", options={"delta": 0.0}), "`delta` is 0.0, but must be"),
        (lambda: simulate("adaptive-top-k", options={"scale": math.nan}), "`scale` is nan, but"),
        (
            lambda: simulate("certified", epsilon=0.1, options={"max_rounds": 0}),
            "`max_rounds` is 0, but must be at least 1",
        ),
        (lambda: simulate(options=[("a", 1)]), "`options` is [('a', 1)], but must be a mapping"),
        (lambda: simulate(budget=2**63), "`budget` is 9223372036854775808, but must be at most"),
        (lambda: simulate(runs=10**20), "`runs` is 100000000000000000000, but must be at most"),
        (lambda: simulate(workers=10**9), "`workers` is 1000000000, but must be at most 10,000"),
        (lambda: simulate(seed=10**5000), "`seed` is inf, but must be at most"),
        (lambda: select(arms=10**14), "`arms` is 100000000000000, but must be at most 1,000,000"),
        (lambda: select(arms=count()), "`arms` has more entries than 1,000,000"),
        (lambda: select(k=10**5000), "`k` is inf, but must be"),
        (
            lambda: select(rewards=np.array([0, 1])),
            "`rewards` is array([0, 1]), but must be a range",
        ),
        (lambda: select(rewards=[[0], [0, 1]]), "`low` is [0], but must be a number"),
        (lambda: select(algorithm=np.array(["auto", "lucb"])), "`algorithm` is array("),
        (lambda: select(progress=np.zeros(2)), "`progress` is array([0., 0.]), but must be True"),
        (
            lambda: shortlist.instances.uniform(10**14),
            "`n` is 100000000000000, but must be at most",
        ),
        (lambda: shortlist.instances.two_group(2**63, 5), "`n_arms` is 9223372036854775808, but"),
        (
            lambda: shortlist.forecast(k=1, pilot=([10**20, 5], [1, 1]), budget=50),
            "`pilot` has pulls that are no count",
        ),
        (
            lambda: shortlist.forecast(k=1, pilot=cast(Any, 3), budget=50),
            "`pilot` is 3, but must be two lists",
        ),
        (
            lambda: shortlist.forecast(k=1, means=[[0.1], [0.1, 0.2]], budget=50),
            "`means` is [[0.1], [0.1, 0.2]], but must be a list of numbers",
        ),
        (lambda: shortlist.hardness([10**400, 1], 1, 0.1), "the mean of arm 0 is inf"),
        (
            lambda: shortlist.hardness(np.broadcast_to(0.5, 10**12), 1, 0.1),
            "`means` has 1,000,000,000,000 entries, but must have at most 1,000,000",
        ),
        (
            lambda: shortlist.certify([0], [2**63, 1], [1, 0], boundary=0.5, fresh=True),
            "`pulls` is [9223372036854775808, 1], but every arm needs",
        ),
        (
            lambda: shortlist.certify([0], [10**5000, 1], [1, 0], boundary=0.5, fresh=True),
            "`pulls` is a list, but every arm needs",
        ),
        (lambda: select(batch=10**5000, store="never.db"), "`batch` is inf, but must be at most 4"),
        (
            lambda: simulate("lucb", min_batch=10**5000),
            "`min_batch` is inf, but must be at most 4",
        ),
        (
            lambda: select(items=3, scores=range(10**18)),
            "`scores` has 1,000,000,000,000,000,000 cells, but must have at most 10,000,000",
        ),
        (lambda: select(items=3, scores=[range(10**9)] * 3), "`scores` has 3,000,000,000 cells"),
        (lambda: select(items=1, scores=[["1"]] * 3), "`scores` cannot be read (<U1 is no number)"),
        (
            lambda: shortlist.simulate("certified", scores=np.ones((2, 2)) * 1j, k=1, epsilon=0.5),
            "`scores` cannot be read (complex128 is no number)",
        ),
        (lambda: select(arms=["a", 10**5000]), "an arm is called inf, but a number must have at"),
        (lambda: select(arms=[Huge.ARM, "b"]), "an arm is called inf, but a number must have at"),
    ],
)
def test_odd_and_huge_values_are_refused_in_words(call: Callable[[], object], message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        call()


def test_a_number_of_any_kind_computes_as_the_float_that_it_is() -> None:
    half: Any = Fraction(1, 2)
    third: Any = Fraction(1, 3)
    forecast = shortlist.forecast(k=1, means=MEANS, epsilon=half, delta=third, runs=1, budget=50)
    assert "with probability 0.6666:" in str(forecast)
    fresh: dict[str, Any] = {
        "top": [0],
        "pulls": [50, 60],
        "sums": [40, 20],
        "boundary": 0.5,
        "fresh": True,
    }
    halves: dict[str, Any] = {"epsilon": np.float16(0.5), "strength": np.float16(20)}
    bound = shortlist.certify(**fresh, epsilon=0.5, strength=20.0)
    assert shortlist.certify(**fresh, **halves) == bound
    runs = simulate("lucb", epsilon=half, budget=None)
    assert "0.5" in str(runs)


def test_a_request_longer_than_any_memory_is_begun() -> None:
    class Enough(Exception):
        pass

    def pull_many(arm: int, times: int) -> list[float]:
        if arm == 2:
            raise Enough
        return [0.5] * times

    with pytest.raises(Enough):
        shortlist.select(
            pull_many=pull_many, batch=1000, arms=3, k=1, budget=2**53, algorithm="sar"
        )


def test_no_file_has_the_character_0_in_its_name() -> None:
    with pytest.raises(StoreMissing, match="its name contains the character 0"):
        select(store="a\0b")


def test_a_value_is_shown_whatever_it_is() -> None:
    class Sulking:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert shown(np.float64(1.5)) == "1.5"
    assert shown(-(10**5000)) == "-inf"
    assert shown([10**5000]) == "a list"
    assert shown(Sulking()) == "a Sulking"
    assert shown("x" * 5000) == "'" + "x" * 999 + "..."


def test_a_list_is_measured_before_it_is_copied() -> None:
    with pytest.raises(InvalidInput, match=r"`x` has .* entries, but must have at most 1,000,000"):
        listed("x", range(10**18))
    with pytest.raises(InvalidInput, match=r"`x` has .* entries, but must have at most 1,000,000"):
        listed("x", range(10**30))
    assert listed("x", range(3)).tolist() == [0, 1, 2]
    with pytest.raises(InvalidInput, match=r"`x` is 3, but must be a list"):
        listed("x", 3)


def test_lists_of_numbers() -> None:
    assert reals("x", [True, 2, 0.5]).tolist() == [1, 2, 0.5]
    assert reals("x", [10**30, 10**400]).tolist() == [1e30, math.inf]
    for wrong in (["1"], [1j], [None], [np.datetime64("2026-01-01")]):
        with pytest.raises(InvalidInput, match="but must be a list of numbers"):
            reals("x", wrong)


def test_lists_of_whole_numbers() -> None:
    assert whole_numbers("x", np.array([3], dtype=np.uint8), at_least=1).tolist() == [3]
    with pytest.raises(InvalidInput, match="`x` holds 0, but each must be at least 1"):
        whole_numbers("x", [3, 0], at_least=1)
    with pytest.raises(
        InvalidInput, match="`x` holds 9223372036854775808, but each must be at most"
    ):
        whole_numbers("x", [2**63], at_least=0)
    with pytest.raises(InvalidInput, match=r"`x` is \[0.5\], but must be a list of whole numbers"):
        whole_numbers("x", [0.5], at_least=0)


def test_flags_texts_names_and_collections() -> None:
    assert flag("x", np.bool_(True)) is True
    assert named("x", None) == {}
    assert collected("x", iter("ab"), at_most=2) == ["a", "b"]
    assert text("x", np.str_("a")) == "a"
    assert whole("x", np.uint64(7), at_least=0) == 7
    for call in (
        lambda: flag("x", 1),
        lambda: named("x", {1: 2}),
        lambda: collected("x", count(), at_most=5),
        lambda: collected("x", np.array(0.5), at_most=5),
        lambda: text("x", b"a"),
        lambda: text("x", "\udc80"),
    ):
        with pytest.raises(InvalidInput, match="`x` "):
            call()


def searching(
    problem: object, rng: object, *, growth: Count | None = None, rest: list[int] | None = None
) -> Search:
    raise NotImplementedError


def test_an_option_keeps_to_the_range_of_its_type() -> None:
    check_options("some", searching, {"growth": None, "rest": "unchecked"})
    check_options("some", searching, {"growth": 5})
    with pytest.raises(InvalidInput, match="`growth` is 0, but must be at least 1"):
        check_options("some", searching, {"growth": 0})
    with pytest.raises(InvalidInput, match=r"option `growth` is 1\.5, but must be of type int"):
        check_options("some", searching, {"growth": 1.5})
    with pytest.raises(InvalidInput, match="`x` is 3, but must be at most 2"):
        Within(0, 2).check("x", 3)
    with pytest.raises(InvalidInput, match="`x` is 0, but must be a number greater than 0"):
        Within(0, 1, strictly=True).check("x", 0)


def test_the_limits_are_those_that_the_docs_state() -> None:
    page = (Path(__file__).parents[1] / "docs" / "errors.md").read_text()
    for limit in (
        MOST_ARMS,
        MOST_RUNS,
        MOST_TOLD,
        MOST_WORKERS,
        MOST_RETRIES,
        MOST_ROWS,
        COUNTABLE,
        LONGEST_LINE,
    ):
        assert f"{limit:,}" in page
    assert MOST_ROWS == MOST_ARMS
    assert COUNTABLE == 2**62
    assert SEEDS == 2**128


def test_the_largest_number_of_arms_can_be_had() -> None:
    assert shortlist.instances.uniform(MOST_ARMS).size == MOST_ARMS


def test_words_that_cannot_be_looked_up_are_refused_in_words() -> None:
    class Unhashable(str):
        __hash__ = None  # type: ignore[assignment]

    for name in ("kl-lucb", "track-and-stop"):
        with pytest.raises(InvalidInput, match="`threshold` is 'u', but must be"):
            shortlist.simulate(
                name, [0.6, 0.4], k=1, epsilon=0.2, runs=1, options={"threshold": Unhashable("u")}
            )


def test_nobody_tries_for_ever() -> None:
    with pytest.raises(InvalidInput, match=r"`retries` is 1001, but must be at most 1,?000"):
        shortlist.Experiment.create(3, 1, budget=9, retries=1001)
    with pytest.raises(InvalidInput, match=r"`retries` is 1001, but must be at most 1,?000"):
        shortlist.select(lambda arm: 0.5, arms=3, k=1, budget=9, retries=1001)
