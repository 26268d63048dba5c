"""Functions to evaluate arms with, importable by worker processes. Labels are numbers, the larger
the better."""

import asyncio
import os
import random
import time
from pathlib import Path


def noisy(arm: int, seed: int) -> float:
    """A reward that depends on nothing but the arm and the seed, and takes longer for some than for
    others."""
    rng = random.Random(seed)
    time.sleep(0.001 * (seed % 3))
    return min(1.0, max(0.0, rng.gauss(arm / 10, 0.3)))


async def noisy_async(arm: int, seed: int) -> float:
    await asyncio.sleep(0.001 * (seed % 3))
    return noisy(arm, seed)


def noisy_many(arm: int, times: int, seed: int) -> list[float]:
    rng = random.Random(seed)
    return [min(1.0, max(0.0, rng.gauss(arm / 10, 0.3))) for _ in range(times)]


async def noisy_many_async(arm: int, times: int, seed: int) -> list[float]:
    await asyncio.sleep(0.001 * (seed % 3))
    return noisy_many(arm, times, seed)


def unseeded(arm: int) -> float:
    """Never the same twice."""
    return int.from_bytes(os.urandom(6)) / 2**48


async def unseeded_async(arm: int) -> float:
    return unseeded(arm)


def failing(arm: int) -> float:
    if arm == 3:
        raise KeyError("no such page")
    return 0.5


async def failing_async(arm: int) -> float:
    return failing(arm)


def too_large(arm: int) -> float:
    return 1.5 if arm == 3 else 0.5


async def too_large_async(arm: int) -> float:
    return too_large(arm)


class Fatal:
    """Ends its process, without a word, at the first `deaths` evaluations of arm 3."""

    def __init__(self, record: Path, deaths: int) -> None:
        self.record, self.deaths = record, deaths

    def __call__(self, arm: int, seed: int) -> float:
        if arm == 3 and len(list(self.record.iterdir())) < self.deaths:
            (self.record / str(os.getpid())).touch()
            os._exit(1)
        return noisy(arm, seed)


class OneSlow:
    """Takes long for arm 0, and then says so; fails at once for every other."""

    def __init__(self, record: Path) -> None:
        self.record = record

    def __call__(self, arm: int) -> float:
        if arm != 0:
            raise KeyError(arm)
        time.sleep(20)
        self.record.touch()
        return 0.5
