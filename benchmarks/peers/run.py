"""Compare with packages from PyPI that do part of the job, in half an hour at most:
`python benchmarks/peers/run.py`.

Every peer runs in a virtual environment of its own (made on the first call, below this folder), one
run after the other on the same arms as ours. The page docs/peers.md is written from what came
out."""

import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import click
from contests import (
    BEST_ARM,
    BEST_ARM_OWN,
    DELTA,
    KEEP,
    KEEP_OWN,
    Arms,
    Entry,
    confidence,
    ours,
    read,
    same_budgets,
    task,
)
from environments import NotInstalled, python_with, version
from page import page
from rich.console import Console

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "docs" / "peers.md"
MOST = 2000  # pulls after which rovingbandit is stopped if it has not stopped
GRACE = 120.0  # seconds for a run that was begun before the time was up
CONSOLE = Console(stderr=True)


@dataclass(frozen=True)
class Peer:
    """A method of another package."""

    package: str
    method: str
    label: str
    settings: dict[str, object] = field(default_factory=dict)


BEST_ARM_PEERS = (
    Peer("rovingbandit", "TopTwoThompson", "rovingbandit TopTwoThompson", {"most": MOST}),
    Peer("rovingbandit", "LUCB", "rovingbandit LUCB", {"most": MOST}),
    Peer("PyPRS", "KT", "PyPRS KT"),
    Peer("PyPRS", "GSP", "PyPRS GSP"),
)
KEEP_PEERS = (
    Peer(
        "optuna",
        "SuccessiveHalvingPruner",
        "Optuna SuccessiveHalving, 16 to 128",
        {"first": 16, "last": 128},
    ),
    Peer(
        "optuna",
        "SuccessiveHalvingPruner",
        "Optuna SuccessiveHalving, 64 to 512",
        {"first": 64, "last": 512},
    ),
    Peer("optuna", "HyperbandPruner", "Optuna Hyperband, 16 to 128", {"first": 16, "last": 128}),
    Peer(
        "sim-tools",
        "OCBAM",
        "sim-tools OCBA-m, 4,500 pulls",
        {"first": 16, "step": 100, "budget": 4_500},
    ),
    Peer(
        "sim-tools",
        "OCBAM",
        "sim-tools OCBA-m, 17,400 pulls",
        {"first": 64, "step": 100, "budget": 17_400},
    ),
)
PACKAGES = ("rovingbandit", "PyPRS", "optuna", "sim-tools")


@click.command()
@click.option(
    "--runs",
    default=200,
    show_default=True,
    help="Runs of every method on every set of arms, at most.",
)
@click.option("--seconds", default=60.0, show_default=True, help="Time for them, at most.")
@click.option("--out", type=click.Path(path_type=Path), default=PAGE, help="The page to write.")
def main(runs: int, seconds: float, out: Path) -> None:
    best_arm = [contest(arms, runs, seconds) for arms in BEST_ARM]
    keep = [duel(peer, runs, seconds) for peer in KEEP_PEERS]
    versions = {package: installed(package) for package in PACKAGES}
    out.write_text(page(best_arm, keep, versions, runs, seconds, MOST), encoding="utf-8")
    CONSOLE.print(f"written: {out}")


def contest(arms: Arms, runs: int, seconds: float) -> list[Entry]:
    """All methods on the same arms, ours first."""
    CONSOLE.print(f"{arms.name}: ours")
    own = [ours(method, arms, confidence(arms, runs), seconds) for method in BEST_ARM_OWN]
    return own + [theirs(peer, arms, 1 - DELTA, runs, seconds) for peer in BEST_ARM_PEERS]


def duel(peer: Peer, runs: int, seconds: float) -> list[Entry]:
    """A peer that spends what it spends, and ours with as many pulls in every run."""
    entry = theirs(peer, KEEP, None, runs, seconds)
    budgets = same_budgets(entry)
    return [entry, *(ours(method, KEEP, budgets, seconds) for method in KEEP_OWN if budgets)]


def theirs(peer: Peer, arms: Arms, promised: float | None, runs: int, seconds: float) -> Entry:
    """A peer's runs, made by its own interpreter."""
    CONSOLE.print(f"{arms.name}: {peer.label}")
    entry = Entry(peer.label, arms, promised)
    try:
        python = python_with(peer.package)
    except NotInstalled as error:
        entry.error = f"could not be installed: {error}"
        return entry
    with tempfile.TemporaryDirectory() as folder:
        asked, said = Path(folder, "task.json"), Path(folder, "runs.jsonl")
        asked.write_text(
            task(arms, runs, seconds, {"method": peer.method, **peer.settings}), encoding="utf-8"
        )
        script = HERE / f"with_{peer.package.lower().replace('-', '_')}.py"
        try:
            done = subprocess.run(
                [python, script, asked, said],
                capture_output=True,
                text=True,
                timeout=seconds + GRACE,
            )
            entry.error = "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
        except subprocess.TimeoutExpired:
            entry.error = f"a run took more than {GRACE:g} s and was ended"
        read(entry, said.read_text(encoding="utf-8").splitlines() if said.exists() else [])
    return entry


def installed(package: str) -> str:
    try:
        return version(python_with(package), package)
    except NotInstalled:
        return "not installed"


if __name__ == "__main__":
    main()
