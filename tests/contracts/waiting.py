"""Wait for a condition, not for a time: the machine may be busy."""

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 120.0  # seconds after which something that must happen is taken not to


def until(condition: Callable[[], object], missing: str = "the condition never held") -> None:
    """Return as soon as the condition holds; fail if it does not hold for a long time."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, missing
        time.sleep(0.01)


def ended(process: int) -> bool:
    """Whether a process ends, or waits as a zombie for a parent that does not ask for it."""

    def over() -> bool:
        try:
            return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True

    until(over, f"process {process} goes on")
    return True
