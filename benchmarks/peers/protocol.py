"""How a peer's own process is told what to do and says what came of it, with the standard library
alone."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# the arms, the pulls, and whether its own rule ended the search
Chosen = tuple[Sequence[int], int, bool]


def serve(choose: Callable[[dict[str, Any], int], Chosen]) -> None:
    """Read the task, run `choose` for run after run until the time is up, and write a line of JSON
    for each."""
    asked = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    end = time.perf_counter() + asked["seconds"]
    with Path(sys.argv[2]).open("w", encoding="utf-8") as file:
        for run in range(len(asked["means"])):
            if time.perf_counter() > end:
                break
            started = time.perf_counter()
            try:
                chosen, pulls, stopped = choose(asked, run)
                said = {
                    "chosen": [int(arm) for arm in chosen],
                    "pulls": int(pulls),
                    "stopped": bool(stopped),
                }
            except Exception as error:
                said = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
            file.write(
                json.dumps({"run": run, "seconds": time.perf_counter() - started, **said}) + "\n"
            )
            file.flush()
