"""A service, its workers and the PostgreSQL behind it are killed at random moments, and nothing
that was told is lost or counted twice.

A few kills by default; sixty, with eight workers, by

    SHORTLIST_ATTACK_SCALE=15 pytest tests/attack/test_killed_service.py"""

import os
import random
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from attack_scale import SCALE, SEED
from killed_workers import (
    MEANS,
    Housekeeper,
    K,
    Service,
    at_work,
    check_undisturbed,
    disturb,
    settings,
)
from postgres import Server

pytest.importorskip("psycopg")
pytest.importorskip("uvicorn")

from shortlist import Client
from shortlist.engine import Experiment
from shortlist.stores.postgres import PostgresStore

KILLS = min(60, 4 * SCALE)
WORKERS = 8 if SCALE > 1 else 3
PULLS = (150 if SCALE > 1 else 60) * KILLS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


def run_disturbed(
    store: str, folder: Path, others: Callable[[random.Random], list[Callable[[], None]]]
) -> None:
    """Workers ask a service, and both are killed, as are others."""
    chance = random.Random(3 + SEED)
    Experiment.create(len(MEANS), K, store=store, **settings(PULLS)).close()
    service = Service(store, free_port(), folder)

    def kill_service() -> None:
        service.kill()
        service.start()

    def open_() -> Client:
        return Client(service.url, name="experiment", patience=60)

    try:
        with at_work(open_, folder, WORKERS, chance) as crew:
            deeds = [kill_service, crew.kill, *others(chance)]
            disturb(crew, KILLS, PULLS, chance, deeds)
        service.end()
    finally:
        service.kill()
    check_undisturbed(store, crew, PULLS)


def test_a_service_and_workers_killed_at_random_moments_lose_nothing(tmp_path: Path) -> None:
    run_disturbed(str(tmp_path / "store.db"), tmp_path, lambda _: [])


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server("-c", "fsync=off")
    yield server
    server.stop()


def killings_of(server: Server, chance: random.Random) -> list[Callable[[], None]]:
    """kill -9 of a whole PostgreSQL, and of one of its processes."""

    def kill_server() -> None:
        server.kill()
        server.start()

    def kill_backend() -> None:
        server.kill_backend(chance.choice)

    return [kill_server, kill_backend]


def test_nothing_is_lost_if_postgresql_is_killed_as_well(server: Server, tmp_path: Path) -> None:
    run_disturbed(server.new_url(), tmp_path, partial(killings_of, server))


def test_two_services_that_share_postgresql_lose_nothing_while_experiments_come_and_go(
    server: Server, tmp_path: Path
) -> None:
    store, chance = server.new_url(), random.Random(9 + SEED)
    pulls = max(PULLS, 400 * KILLS)  # while one service starts again, the other one works on
    Experiment.create(len(MEANS), K, store=store, **settings(pulls)).close()
    services = []
    for number in range(2):
        (tmp_path / str(number)).mkdir()
        services.append(Service(store, free_port(), tmp_path / str(number)))

    def open_() -> Client:
        url = services[os.getpid() % 2].url
        return Client(url, name="experiment", patience=60)

    def killing(service: Service) -> Callable[[], None]:
        def kill() -> None:
            service.wait()  # since it was killed the last time
            service.kill()
            service.launch()

        return kill

    house = Housekeeper(open_, tmp_path)
    try:
        with at_work(open_, tmp_path, WORKERS, chance) as crew:
            deeds = [*map(killing, services), crew.kill, house.kill, *killings_of(server, chance)]
            disturb(crew, KILLS, pulls, chance, deeds)
        house.dismiss()
        for service in services:
            service.wait()
            service.end()
    finally:
        house.dismiss()
        for service in services:
            service.kill()
    check_undisturbed(store, crew, pulls)
    with closing(PostgresStore(store)) as opened:
        assert house.check(opened) > 0


def test_workers_that_share_postgresql_without_a_service_lose_nothing(
    server: Server, tmp_path: Path
) -> None:
    store, chance = server.new_url(), random.Random(5 + SEED)
    Experiment.create(len(MEANS), K, store=store, **settings(PULLS)).close()
    with at_work(lambda: Experiment.open(store), tmp_path, WORKERS, chance) as crew:
        disturb(crew, KILLS, PULLS, chance, [crew.kill, *killings_of(server, chance)])
    check_undisturbed(store, crew, PULLS)
