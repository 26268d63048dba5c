"""The rules of examples/alerts.yaml are about metrics that exist, and fire when they should."""

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from services import GENEROUS, MAKE, Call, caller, serving
from waiting import PATIENCE, until

from shortlist.errors import StoreError
from shortlist.service.auth import make_token
from shortlist.service.prometheus import HELP
from shortlist.stores.base import MemoryStore, Scope
from shortlist.stores.sqlite import SQLiteStore

RULES = Path(__file__).parents[2] / "examples" / "alerts.yaml"
OF_PROMETHEUS = {"up"}  # metrics that Prometheus makes itself
SELECTOR = re.compile(r"\b(up|process_\w+|shortlist_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r'(\w+)(=~|!~|=|!=)"([^"]*)"')
MATCHES: dict[str, Any] = {
    "=": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    "=~": lambda value, wanted: re.fullmatch(wanted, value) is not None,
    "!~": lambda value, wanted: re.fullmatch(wanted, value) is None,
}
SIMPLE = re.compile(r"(\w+(?:\{[^}]*\})?) (==|>) ([\d.]+)")
ONE = "/v1/experiments/experiment"
Samples = list[tuple[str, dict[str, str], float]]


def rules() -> dict[str, str]:
    """The expression of every alert by its name."""
    text = RULES.read_text()
    pairs = re.findall(r"- alert: (\w+)\n +expr: (.*)\n", text)
    assert len(pairs) == text.count("alert:")
    return dict(pairs)


def samples(call: Call) -> Samples:
    """What Prometheus reads."""
    reply = call("GET", "/metrics")
    assert reply.status == 200, reply.raw
    lines = [line for line in reply.raw.decode().splitlines() if not line.startswith("#")]
    found = []
    for line in lines:
        named, _, value = line.rpartition(" ")
        name, _, labels = named.partition("{")
        found.append((name, dict(re.findall(r'(\w+)="([^"]*)"', labels)), float(value)))
    return found


def selected(selector: str, given: Samples) -> list[float]:
    """The values of the samples that a selector selects."""
    parts = SELECTOR.fullmatch(selector)
    assert parts is not None, selector
    matchers = MATCHER.findall(parts[2] or "")
    return [
        value
        for name, labels, value in given
        if name == parts[1]
        and all(MATCHES[how](labels.get(label, ""), wanted) for label, how, wanted in matchers)
    ]


def firing(given: Samples) -> set[str]:
    """The alerts that fire, of those that compare one metric with a number."""
    fired = set()
    for name, rule in rules().items():
        if simple := SIMPLE.fullmatch(rule):
            compared = [
                value == float(simple[3]) if simple[2] == "==" else value > float(simple[3])
                for value in selected(simple[1], given)
            ]
            fired |= {name} if any(compared) else set()
    return fired


class Faulty(MemoryStore):
    """Its tokens cannot be read while it is broken."""

    broken = False

    def tokens(self) -> Any:
        if self.broken:
            raise StoreError("the disk is gone")
        return super().tokens()


class Watch:
    """A clock that is set by hand."""

    now = 1e9

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store() -> Faulty:
    return Faulty()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def call(store: Faulty, watch: Watch) -> Iterator[Call]:
    with serving(store, clock=watch, limits=GENEROUS) as url:
        yield caller(url)


@pytest.fixture
def made(call: Call) -> Call:
    """Calls a service with an experiment of which three pulls are under way."""
    settings = {**MAKE, "lease": 60, "retries": 0, "on_failure": "stop"}
    assert call("POST", "/v1/experiments", settings).status == 201
    assert call("POST", f"{ONE}/ask", {"limit": 3}).status == 200
    return call


def test_every_rule_is_about_metrics_and_labels_that_exist(made: Call) -> None:
    made("GET", "/ready")
    given = samples(made)
    for name, rule in rules().items():
        found = SELECTOR.findall(rule)
        assert found, name
        grouped = ",".join(re.findall(r"(?:by|on) \(([^)]*)\)", rule)).replace(",", " ").split()
        for metric, matchers in found:
            if metric in OF_PROMETHEUS:
                continue
            assert metric.removesuffix("_bucket") in HELP, (name, metric)
            used = {label for label, _, _ in MATCHER.findall(matchers)} | set(grouped)
            labels = [set(labels) for each, labels, _ in given if each == metric]
            assert labels, (name, metric)
            assert used - {"instance"} <= labels[0], (name, metric)


def test_prometheus_accepts_the_rules() -> None:
    if shutil.which("promtool") is None:
        pytest.skip("promtool is not installed")
    subprocess.run(["promtool", "check", "rules", str(RULES)], check=True, timeout=60)


def test_no_alert_fires_while_all_is_well(made: Call) -> None:
    assert made("POST", f"{ONE}/tell", {"results": [{"ticket": 0, "reward": 1}]}).status == 200
    assert firing(samples(made)) == set()


def test_an_overdue_ticket_fires_an_alert_until_it_is_told(made: Call, watch: Watch) -> None:
    watch.now += 100
    assert firing(samples(made)) == {"ShortlistOverdue"}
    results = [{"ticket": ticket, "reward": 1} for ticket in range(3)]
    made("POST", f"{ONE}/tell", {"results": results})
    assert firing(samples(made)) == set()


def test_a_failed_pull_counts_and_a_stopped_experiment_fires_an_alert_until_it_is_resumed(
    made: Call,
) -> None:
    (failures,) = re.findall(r"delta\((\w+)", rules()["ShortlistFailures"])
    assert selected(failures, samples(made)) == [0]
    made("POST", f"{ONE}/fail", {"ticket": 0, "reason": "rain"})
    assert selected(failures, samples(made)) == [1]
    assert firing(samples(made)) == {"ShortlistStopped"}
    made("POST", f"{ONE}/resume", {})
    assert firing(samples(made)) == set()


def test_a_stopped_experiment_fires_an_alert_of_a_service_that_did_not_open_it(
    made: Call, store: Faulty
) -> None:
    made("POST", f"{ONE}/fail", {"ticket": 0, "reason": "rain"})
    with serving(store, limits=GENEROUS) as other:
        assert firing(samples(caller(other))) == {"ShortlistStopped"}


def test_a_store_that_cannot_be_read_fires_an_alert(made: Call, store: Faulty) -> None:
    samples(made)
    store.broken = True
    until(lambda: firing(samples(made)) == {"ShortlistStoreNotReady"})
    store.broken = False
    until(lambda: firing(samples(made)) == set())


def test_writes_that_wait_for_the_store_fire_an_alert(tmp_path: Path) -> None:
    file = tmp_path / "store.db"
    with closing(SQLiteStore(file, "rwc")) as store, serving(store, limits=GENEROUS) as url:
        call = caller(url)
        call("POST", "/v1/experiments", MAKE)
        ask = partial(call, "POST", f"{ONE}/ask", {})
        asking = [threading.Thread(target=ask) for _ in range(30)]
        with closing(SQLiteStore(file)) as other, other.exclusive():
            for each in asking:
                each.start()
            until(lambda: "ShortlistQueue" in firing(samples(call)))
        for each in asking:
            each.join(PATIENCE)
        assert firing(samples(call)) == set()


def test_while_the_store_cannot_be_read_metrics_still_take_a_token(store: Faulty) -> None:
    secret = make_token(store, "prometheus", Scope.READ, 0.0)
    with serving(store, limits=GENEROUS) as url:
        call = caller(url)
        sent = {"authorization": f"Bearer {secret}"}
        assert call("GET", "/metrics", **sent).status == 200
        store.broken = True
        until(lambda: call("GET", "/v1/experiments", **sent).status == 503)
        assert b"shortlist_store_ready 0" in call("GET", "/metrics", **sent).raw
        assert call("GET", "/metrics").status == 401
        assert call("GET", "/metrics", authorization="Bearer wrong").status == 401


def test_a_service_that_never_read_its_tokens_lets_nobody_read_metrics(store: Faulty) -> None:
    store.broken = True
    with serving(store, limits=GENEROUS) as url:
        assert caller(url)("GET", "/metrics").status == 503
