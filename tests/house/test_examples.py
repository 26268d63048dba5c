"""The examples run as they stand, quickly, and print what they are meant to show."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))
SECONDS = 5.0  # of a processor, so that a busy machine fails no test
BOUND = r"^At most 0\.\d+ of mean reward is lost, with 0\.95 confidence\.$"
AHEAD = r"( \([\d,]+ more cells? asked for ahead\))?$"
HARNESSES = {  # each in an environment of its own, and slow to import
    "with_dspy.py": "dspy",
    "with_inspect_ai.py": "inspect_ai",
    "with_lm_eval.py": "lm_eval",
}
PRINTED = {  # what must be in the output of every script
    "async_calls.py": (
        r"^2 of 6 arms, chosen by certified with [\d,]+ pulls that cost 0\.\d+" + AHEAD,
        BOUND,
        r"^\d{3} of 1,200 calls, \$0\.\d+$",
        r"^Again: (huge, large|large, huge) after 0 more calls$",
    ),
    "crowd_workers.py": (
        r"^30 of 164 arms, chosen by certified with [\d,]+ pulls$",
        BOUND,
        r"^True loss: 0\.\d{4}; promised: at most 0\.\d{4}$",
    ),
    "inventory.py": (
        r"^[\d,]+ replications, regret at most [12]\.\d+ per day$",
        r"^correlation of designs on a seed: 0\.\d+$",
        r"^at most 30 left: order up to 60$",
    ),
    "judges.py": (
        r"^Borda: ada, bob after [\d,]+ duels$",
        BOUND,
        r"^Baseline: ada, bob after [\d,]+ of 1,000 duels$",
    ),
    "own_algorithm.py": (
        r"^ +uniform 0\.\d{4}$",
        r"^ +halving 0\.\d{4}$",
        r"^ algorithm +halving$",
        r"^\d+ of 40 runs lost more than epsilon = 0\.02\.$",
    ),
    "pages.py": (
        r"^1 of 4 arms, chosen by certified with [\d,]+ pulls$",
        r"^At most 0\.\d+ of mean reward is lost on average over the blocks of the test, with",
    ),
    "prompts.py": (
        r"^2 of 5 arms, chosen by certified with [\d,]+ pulls$",
        BOUND,
        r"^Reached: True, with \d+ calls in",
    ),
    "simulated_designs.py": (
        r"^3 of 20 arms, chosen by certified with [\d,]+ pulls$",
        r"^  \d+, \d+ +[\d,]+ +\d+(\.\d+)? +\S+ … \S+$",
        r"^At most \d+\.\d+ of mean reward is lost, with 0\.95 confidence\.$",
        r"^Order up to \d+ items whenever \d+ or fewer are left\.$",
    ),
    "with_dspy.py": (
        r"^1 of 3 arms, chosen by certified with \d+ pulls$",
        r"^  chain of thought +\d+ ",
        r"^\d{1,3} of 600 evaluations$",
    ),
    "with_inspect_ai.py": (
        r"^1 of 4 arms, chosen by certified with \d+ pulls that cost [\d,]+" + AHEAD,
        r"^  beta +\d+ ",
        r"^4 logs, [123]?\d?\d of 400 samples$",
    ),
    "with_lm_eval.py": (
        r"^1 of 3 arms, chosen by certified with \d+ pulls$",
        r"^  large +\d+ ",
        r"^\d{1,3} of 600 documents$",
    ),
}


def test_of_every_example_it_is_said_what_it_prints() -> None:
    assert list(PRINTED) == SCRIPTS


@pytest.mark.parametrize("script", HARNESSES)
def test_an_example_with_a_harness_prints_what_it_is_meant_to_show(
    script: str, tmp_path: Path
) -> None:
    if find_spec(HARNESSES[script]) is None:
        pytest.skip(f"{HARNESSES[script]} is not installed")
    done = subprocess.run(
        [sys.executable, FOLDER / script], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 0, done.stderr
    for pattern in PRINTED[script]:
        assert re.search(pattern, done.stdout, re.MULTILINE), (pattern, done.stdout)


@pytest.mark.parametrize("script", [each for each in SCRIPTS if each not in HARNESSES])
def test_an_example_runs_quickly_and_prints_what_it_is_meant_to_show(
    script: str, tmp_path: Path
) -> None:
    before = os.times()
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / script],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        # threads that wait for each other on a busy machine count as processor time
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    after = os.times()
    complaints = [line for line in done.stderr.splitlines() if not re.match(r"\d+ s: ", line)]
    assert (done.returncode, complaints) == (0, [])  # a busy machine shows progress
    for pattern in PRINTED[script]:
        assert re.search(pattern, done.stdout, re.MULTILINE), (pattern, done.stdout)
    spent = after.children_user + after.children_system
    assert spent - before.children_user - before.children_system < SECONDS
