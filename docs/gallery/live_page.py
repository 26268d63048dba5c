"""Photograph the live page of an A/B test: `python docs/gallery/live_page.py`, next to this file.

Needs chromium and its driver (`apt-get install chromium chromium-driver`), and selenium."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from calendar import timegm
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import numpy as np
from PIL import Image
from selenium import webdriver

import shortlist

PAGES = ["old", "red", "blue", "green"]
RATES = np.array([0.030, 0.033, 0.026, 0.038])  # unknown in practice
BOUNCES = np.array([0.30, 0.36, 0.30, 0.29])
FIRST = date(2026, 3, 2)
DAYS, DELAY, PER_DAY, DAY = 9, 2, 6000, 86_400.0
COLOURS = 96  # of the picture, so that it is small
WITHOUT_LOG = "return document.getElementById('part-log').getBoundingClientRect().top"
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")


def run_test(path: Path, days: int) -> None:
    """A test of four pages, told day by day; conversions are fewer at weekends."""
    rng, now = np.random.default_rng(4), [float(timegm(FIRST.timetuple()))]
    test = shortlist.Experiment.create(
        PAGES,
        1,
        epsilon="0.4%",
        rewards="binary",
        per_day=PER_DAY,
        delay=DELAY,
        control="old",
        unit="%",
        guardrails={"bounce": "2%"},
        store=path,
        name="pages",
        seed=1,
        clock=lambda: now[0],
    )
    for number in range(days):
        day = FIRST + timedelta(number)
        shares = test.shares(str(day))
        now[0] += DAY
        if not shares.block:
            break
        percent = np.array(list(shares.percent.values()))
        visitors = rng.multinomial(PER_DAY, percent / 100)
        bought = rng.binomial(visitors, RATES * (0.7 if day.weekday() > 4 else 1.0))
        left = rng.binomial(visitors, BOUNCES)
        came = dict(zip(PAGES, zip(visitors.tolist(), bought.tolist(), strict=True), strict=True))
        bounced = dict(zip(PAGES, left.tolist(), strict=True))
        if number < days - DELAY:
            test.tell_counts(str(day), came, metrics={"bounce": bounced})
    test.close()


@contextmanager
def served(path: Path, port: int) -> Iterator[str]:
    """The address of the page, while a service shows it."""
    command = [str(Path(sys.executable).with_name("shortlist")), "serve", "--store", str(path)]
    with subprocess.Popen([*command, "--port", str(port)]) as service:
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(200):
                try:
                    urlopen(f"{address}/live").close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield f"{address}/experiments/pages"
        finally:
            service.terminate()


def photograph(address: str, path: Path, width: int) -> None:
    """The whole page at this width, as a PNG."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in FLAGS:
        options.add_argument(flag)
    browser: Any = webdriver.Chrome(
        options=options, service=webdriver.ChromeService(shutil.which("chromedriver"))
    )
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.get(address)
    time.sleep(2)  # the page is alive: wait until it is drawn
    size["height"] = int(browser.execute_script(WITHOUT_LOG))
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    drawn = Image.open(BytesIO(browser.get_screenshot_as_png())).convert("RGB")
    drawn.quantize(COLOURS).save(path, optimize=True)
    browser.quit()


def main() -> None:
    """Run the test, serve its page and photograph it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=860)
    parser.add_argument("--days", type=int, default=DAYS)
    parser.add_argument("--port", type=int, default=8765)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("live.png"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "pages.db"
        run_test(store, asked.days)
        with served(store, asked.port) as address:
            photograph(address, asked.out, asked.width)


if __name__ == "__main__":
    main()
