"""`rng` in place of `seed`, as SPEC 7 of Scientific Python has it."""

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import shortlist
from shortlist.errors import InvalidInput

MEANS = [0.9, 0.5, 0.4, 0.1]
SCORES = [[1.0, 0.0, np.nan, 1.0], [0.0, np.nan, 1.0, 0.0], [np.nan, 0.0, 0.0, 1.0]]
GIVEN: dict[str, Any] = {"arms": 4, "k": 1, "budget": 60, "progress": False}


def pull(arm: int, seed: int) -> bool:
    return bool(np.random.default_rng(seed).random() < MEANS[arm])


async def awaited(arm: int, seed: int) -> bool:
    return pull(arm, seed)


def chosen(**how: Any) -> object:
    result = shortlist.select(pull, **GIVEN, **how)
    return result.seed, result.to_frame("polars").rows()


def chosen_async(**how: Any) -> object:
    result = asyncio.run(shortlist.select_async(awaited, **GIVEN, workers=1, **how))
    return result.seed, result.to_frame("polars").rows()


def simulated(**how: Any) -> object:
    means = np.linspace(0.4, 0.6, 9)
    return shortlist.simulate("sar", means, k=1, budget=90, runs=9, **how).regret.tolist()


def forecast(**how: Any) -> object:
    made = shortlist.forecast(k=1, n=4, prior=(2, 2), budget=60, runs=9, **how)
    return made.seed, made.prospects[0].regret.tolist()


def assessed(**how: Any) -> object:
    return shortlist.assess(scores=np.tile(SCORES, 9), k=1, **how).regret_bound


DOORS = [chosen, chosen_async, simulated, forecast, assessed]
Door = Callable[..., object]


@pytest.mark.parametrize("door", DOORS)
def test_a_whole_number_is_the_seed_itself(door: Door) -> None:
    assert door(rng=7) == door(rng=np.int64(7)) == door(seed=7)
    assert door(rng=None) == door(seed=0) == door()


@pytest.mark.parametrize("door", DOORS)
def test_generators_in_the_same_state_give_the_same(door: Door) -> None:
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    assert door(rng=one) == door(rng=other)
    assert one.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("door", [chosen, chosen_async, forecast, simulated])
def test_a_generator_moves_on_and_the_next_call_differs(door: Door) -> None:
    rng = np.random.default_rng(3)
    assert door(rng=rng) != door(rng=rng)


@pytest.mark.parametrize("kind", [[3, 4], (3, 4), np.array([3, 4]), np.random.SeedSequence([3, 4])])
def test_whatever_numpy_makes_a_generator_of_is_an_rng(kind: Any) -> None:
    assert chosen(rng=kind) == chosen(rng=np.random.default_rng([3, 4]))


def test_a_bit_generator_is_the_generator_around_it() -> None:
    assert chosen(rng=np.random.PCG64(5)) == chosen(rng=np.random.default_rng(5))


@pytest.mark.parametrize("door", DOORS)
def test_rng_and_seed_together_are_refused_even_if_they_agree(door: Door) -> None:
    with pytest.raises(InvalidInput, match=r"`rng` and `seed` \(0\) are given: give one of them"):
        door(rng=0, seed=0)


def test_rng_is_refused_with_a_store_before_it_is_touched(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    with pytest.raises(InvalidInput, match="with a `store` it must be `seed`"):
        chosen(rng=rng, store=tmp_path / "a.db")
    assert rng.bit_generator.state == before
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wrong", [True, -1, 0.5, "3", b"3", [-1], [0.5], ["a"], np.random])
def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="`rng` is "):
        chosen(rng=wrong)


def test_the_legacy_generator_is_refused() -> None:
    """SPEC 7 has no place for RandomState, though numpy would take it."""
    with pytest.raises(InvalidInput, match="Generator, BitGenerator or SeedSequence of numpy"):
        chosen(rng=np.random.RandomState(1))


def test_the_global_state_of_numpy_counts_for_nothing() -> None:
    state = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(1)  # noqa: NPY002
        one = chosen(rng=np.random.default_rng(2))
        np.random.seed(9)  # noqa: NPY002
        assert chosen(rng=np.random.default_rng(2)) == one
    finally:
        np.random.set_state(state)  # noqa: NPY002


def test_a_function_with_rng_keeps_its_name_its_signature_and_its_kind() -> None:
    assert inspect.iscoroutinefunction(shortlist.select_async)
    assert not inspect.iscoroutinefunction(shortlist.select)
    for door in (shortlist.select, shortlist.simulate, shortlist.forecast, shortlist.assess):
        assert inspect.signature(door).parameters["rng"].default is None
        assert "rng: Instead of `seed`" in (door.__doc__ or "")


def test_a_sequence_of_very_many_seeds_is_refused_before_it_is_read() -> None:
    many = np.broadcast_to(np.int64(1), 10**12)
    with pytest.raises(InvalidInput, match="1,000,000,000,000 entries, but may have at most 1,000"):
        simulated(rng=many)
