"""The live page in a real browser: Debian's chromium with selenium; skipped where there is none.

apt-get install chromium chromium-driver"""

import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from command_line import invoke
from services import caller, serving

from shortlist import Client
from shortlist.engine import Experiment
from shortlist.service.auth import FRESH, make_token
from shortlist.stores.base import MemoryStore, Scope
from shortlist.stores.sqlite import SQLiteStore

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="there is no chromium here")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = [
    "<img src=x onerror=document.title='owned'>",
    "שלום עולם",
    "\u202egnp.exe",
    "w" * 500,
    "b",
]
Browser = Any


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('browser')}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    driver.set_page_load_timeout(30)
    yield driver
    driver.quit()


@pytest.fixture(autouse=True)
def _as_at_first(browser: Browser) -> Iterator[None]:
    browser.delete_all_cookies()
    show(browser, 1000, 800)
    browser.get_log("browser")
    yield
    severe = [each for each in browser.get_log("browser") if each["level"] == "SEVERE"]
    browser.get("about:blank")
    expected = ("401", "ERR_CONNECTION_REFUSED")  # not signed in, or the service ended
    assert [each for each in severe if not any(word in each["message"] for word in expected)] == []


def show(browser: Browser, width: int, height: int, scheme: str = "light") -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": media})


def until(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def words(browser: Browser) -> str:
    text: str = browser.execute_script("return document.querySelector('main').innerText")
    return text


def told(browser: Browser) -> str:
    """The figure below "Pulls told"."""
    text: str = browser.execute_script("return document.querySelector('.facts dd').textContent")
    return text


def filled(store: Any, arms: Any, k: int, pulls: int, **more: Any) -> Experiment:
    made = Experiment.create(arms, k, store=store, **{"budget": 10**6, "rewards": "binary", **more})
    rng = np.random.default_rng(0)
    while pulls > 0:
        tickets = made.ask(min(pulls, 5000), worker="ann")
        made.tell_many((ticket, float(rng.random() < 0.5)) for ticket in tickets)
        pulls -= len(tickets)
    return made


def test_figures_of_an_experiment_made_on_the_command_line_move_while_one_looks(
    browser: Browser, tmp_path: Path
) -> None:
    arms, path = tmp_path / "arms.csv", str(tmp_path / "tests.db")
    arms.write_text("red\ngreen\nblue\n")
    made = invoke(["create", str(arms), "-k", "1", "--budget", "60", "--store", path])
    assert made.exit_code == 0
    store = SQLiteStore(path)
    with serving(store) as url:
        browser.get(url)
        browser.find_element("link text", "experiment").click()
        until(lambda: browser.find_element("id", "live").text == "live")
        assert told(browser) == "0"
        client = Client(url)
        client.tell_many((ticket, 0.5) for ticket in client.ask(6, worker="ann"))
        until(lambda: told(browser) == "6")
        asked = invoke(["ask", "--limit", "5", "--worker", "ben", "--store", url])
        assert asked.exit_code == 0, asked.stderr
        until(lambda: "ben" in words(browser))
        client.release("ben")
        pull = f"{sys.executable} -c print(0.5) {{arm}}"
        run = invoke(["run", "--pull", pull, "--store", url])
        assert run.exit_code == 0, run.stderr
        until(lambda: "Finished: the budget is spent." in words(browser))
        assert told(browser) == "60"
    store.close()


def days(store: Any, rates: dict[str, float], number: int, **more: Any) -> Experiment:
    """A live test of this many days, from 2 March 2026 on."""
    settings = {"epsilon": "1%", "rewards": "binary", "per_day": 3000, "unit": "%", **more}
    guarded = "guardrails" in more
    test = Experiment.create(list(rates), 1, store=store, **settings)
    rng = np.random.default_rng(0)
    for day in range(2, 2 + number):
        shares = test.shares(f"2026-03-{day:02d}")
        if shares.block:
            times = rng.multinomial(3000, np.array(list(shares.percent.values())) / 100)
            sums = rng.binomial(times, list(rates.values()))
            rows = zip(rates, zip(times.tolist(), sums.tolist(), strict=True), strict=True)
            bounces = {page: 0.3 + 0.2 * (page == "red") for page in rates}
            bounced = rng.binomial(times, list(bounces.values())).tolist()
            metrics = {"bounce": dict(zip(rates, bounced, strict=True))}
            test.tell_counts(shares.block, dict(rows), metrics=metrics if guarded else None)
    return test


@pytest.mark.parametrize("width", [1280, 390])
def test_a_live_test_shows_percent_lift_dates_and_the_verdict(browser: Browser, width: int) -> None:
    store = MemoryStore()
    rates = {"old": 0.12, "red": 0.1, "a page of a long name": 0.11}
    guard = {"bounce": "5%"}
    days(store, rates, 20, control="old", min_blocks=14, guardrails=guard)
    with serving(store) as url:
        show(browser, width, 800)
        browser.get(f"{url}/experiments/experiment")
        seen = words(browser)
        assert "regret at most 1 percentage point at confidence 95 %" in seen
        assert re.search(r"old\s+1[12]\.\d+%", seen)
        assert re.search(r"Against old\s+No other arm is better than old by more than", seen)
        assert "keep it." in seen
        assert re.search(
            r"The guardrail 'bounce' is broken by red: at least 1\d\.\d+ percentage points higher"
            r" than old, and at most 5 percentage points are allowed\.",
            seen,
        )
        assert "Guardrail: at most 5 percentage points higher." in seen
        assert re.search(r"red\s+\+\d\d\.\d+\s+\+1\d\.\d+ … \+2\d\.\d+\s+broken", seen)
        assert re.search(
            r"a page of a long name\s+[-+][\d.]+\s+-[\d.]+ … \+[\d.]+\s+(kept|undecided)", seen
        )
        assert re.search(r"red\s+-[\d.]+\s+-[\d.]+ … [-+][\d.]+", seen)
        assert "Difference from old in percentage points." in seen
        for name, value in (("First", "02"), ("Last", "15")):
            assert re.search(rf"{name} day\s+2026-03-{value}", seen)
        assert re.search(r"Elapsed\s+14 days", seen)
        assert re.search(r"2026-03-02\s+2026-03-15", seen)  # the axis of the chart
        assert "on average over the days of the test. Of 100 such statements at most 5" in seen
        across = "return document.documentElement.scrollWidth"
        assert browser.execute_script(across) <= width
        if folder := os.environ.get("SHORTLIST_SCREENSHOTS"):  # to look at
            show(browser, width, browser.execute_script("return document.body.scrollHeight"))
            browser.save_screenshot(f"{folder}/live-test-{width}.png")


def test_a_page_says_when_it_is_not_connected_and_comes_back(browser: Browser) -> None:
    store = MemoryStore()
    made = filled(store, 5, 2, 50)
    with serving(store) as url:
        port = int(url.rpartition(":")[2])
        browser.get(f"{url}/experiments/experiment")
        until(lambda: browser.find_element("id", "live").text == "live")
    until(lambda: "not connected" in browser.find_element("id", "live").text)
    made.tell_many((ticket, 1) for ticket in made.ask(1, worker="ann"))
    with serving(store, port=port):
        until(lambda: told(browser) == "51")
        assert browser.find_element("id", "live").text == "live"
    browser.get("about:blank")
    browser.get_log("browser")


@pytest.mark.parametrize("n_arms", [5, 5000])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_everything_without_scrolling_sideways(
    browser: Browser, n_arms: int, scheme: str
) -> None:
    store = MemoryStore()
    filled(store, n_arms, 2, 2 * n_arms)
    with serving(store) as url:
        show(browser, 360, 740, scheme)
        browser.get(f"{url}/experiments/experiment")
        size = "return [document.documentElement.scrollWidth, document.body.scrollWidth]"
        assert max(browser.execute_script(size)) <= 360
        cell = "return document.querySelector('td.picture').getBoundingClientRect().width"
        assert browser.execute_script(cell) > 80
        smallest = """return Math.min(...[...document.querySelectorAll('main *')]
            .filter(e => e.textContent.trim() && e.children.length === 0)
            .map(e => parseFloat(getComputedStyle(e).fontSize)))"""
        assert browser.execute_script(smallest) >= 13
        ground = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (ground == "rgb(255, 255, 255)") == (scheme == "light")


def test_names_are_text_in_a_browser_too(browser: Browser) -> None:
    store = MemoryStore()
    filled(store, HOSTILE, 2, 60, name="<b>x</b>")
    with serving(store) as url:
        browser.get(f"{url}/experiments/{quote('<b>x</b>', safe='')}")
        until(lambda: browser.find_element("id", "live").text == "live")
        assert browser.title == "<b>x</b>"
        assert HOSTILE[0] in words(browser)
        assert browser.find_elements("css selector", "main img, main b") == []
        right_to_left = browser.find_elements("xpath", f"//bdi[text()='{HOSTILE[1]}']")
        assert right_to_left


def test_the_policy_stops_what_would_be_markup(browser: Browser) -> None:
    """Even if a name did become markup, the browser would not run it."""
    store = MemoryStore()
    filled(store, 5, 2, 60)
    with serving(store) as url:
        browser.get(f"{url}/experiments/experiment")
        browser.execute_script(
            "document.body.insertAdjacentHTML('beforeend',"
            ' \'<img src=x onerror="document.title=1"><a href="javascript:1">\')'
        )
        time.sleep(0.3)
        assert browser.title == "experiment"
        blocked = [each["message"] for each in browser.get_log("browser")]
        assert any("Content Security Policy" in each for each in blocked)


def test_everything_is_reached_by_the_keyboard(browser: Browser) -> None:
    from selenium.webdriver import ActionChains, Keys

    store = MemoryStore()
    filled(store, 5, 2, 60)
    with serving(store) as url:
        browser.get(f"{url}/experiments/experiment")
        until(lambda: browser.find_element("id", "live").text == "live")
        seen = []
        for _ in range(12):
            ActionChains(browser).send_keys(Keys.TAB).perform()
            tag, text, outline = browser.execute_script(
                "const e = document.activeElement;"
                "return [e.tagName, e.innerText.trim(), getComputedStyle(e).outlineStyle]"
            )
            if tag == "BODY":
                break
            seen.append((text.split("\n")[0], outline != "none"))
        names = [name for name, _ in seen]
        for link in ("Skip to the content", "All experiments", "arms as CSV", "everything"):
            assert link in names
        assert all(shown for name, shown in seen if name in ("All experiments", "arms as CSV"))


def test_the_focus_stays_where_it_is_while_figures_move(browser: Browser) -> None:
    store = MemoryStore()
    made = filled(store, 5, 2, 60)
    with serving(store) as url:
        browser.get(f"{url}/experiments/experiment")
        until(lambda: browser.find_element("id", "live").text == "live")
        browser.execute_script("document.querySelector('.log').focus()")
        made.tell_many((ticket, 1) for ticket in made.ask(4, worker="ann"))
        until(lambda: told(browser) == "64")
        assert browser.execute_script("return document.activeElement.className") == "log"


def test_a_browser_signs_in_with_a_token(browser: Browser) -> None:
    store = MemoryStore()
    filled(store, 5, 2, 60)
    token = make_token(store, "ann", Scope.READ, 0.0)
    with serving(store) as url:
        browser.get(url)
        assert "Sign in" in words(browser)
        browser.find_element("id", "token").send_keys(token)
        browser.find_element("tag name", "button").click()
        until(lambda: "Experiments" in words(browser))
        browser.find_element("link text", "experiment").click()
        until(lambda: browser.find_element("id", "live").text == "live")
        store.revoke_token("ann", 1.0)
        time.sleep(FRESH)
        browser.refresh()
        assert "Sign in" in words(browser)
        assert caller(url)("GET", "/").status == 401
