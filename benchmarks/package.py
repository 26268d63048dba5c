"""Wheel and source archive: built, checked, installed alone into an empty environment, run and
measured, with what the base install may cost at most: `make package`, about a minute."""

import argparse
import os
import resource
import subprocess
import sys
import time
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
MEGABYTES = 260  # of the base install: the package and what it depends on
INSTALL = 30.0  # seconds, with the network and a calm machine
IMPORT, HELP = 0.15, 0.3  # processor seconds of `import shortlist` and `shortlist --help`
NOISE = 3.0  # how much longer a busy machine may take
TIMES = 7  # starts; the quickest counts
ARCHIVED = ("pyproject.toml", "README.md", "LICENSE", "src/shortlist/py.typed")  # in the archive
FIRST = """
import random, shortlist
rates = {"grey": 0.1, "red": 0.9, "blue": 0.2}
def click(page, seed): return random.Random(seed).random() < rates[page]
assert shortlist.select(click, arms=rates, k=1, epsilon=0.3, rewards="binary").top == ("red",)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder of both files")
    parser.add_argument("--noise", type=float, default=NOISE, help="factor that times may be above")
    given = parser.parse_args()
    wheel, archive = built(given.out)
    check_files(wheel, archive)
    with TemporaryDirectory() as folder:
        place = Path(folder)
        python, seconds = installed(wheel, place)
        run_there(python, place)
        measured = {
            "install, s": (seconds, INSTALL * given.noise),
            "size, MB": (megabytes(place / "base"), float(MEGABYTES)),
            "import shortlist, s": (quickest(place, python, "-c", "import shortlist"), IMPORT),
            "shortlist --help, s": (quickest(place, python, "-m", "shortlist", "--help"), HELP),
        }
    for name, (value, limit) in measured.items():
        print(f"{name:<22}{value:>8.3g}   at most {limit:.3g}")
    over = [name for name, (value, limit) in measured.items() if value > limit]
    if over:
        sys.exit(f"above the limit: {', '.join(over)}")


def built(out: Path) -> tuple[Path, Path]:
    """The wheel, built from the source archive, and that archive."""
    for old in [*out.glob("shortlist-*.whl"), *out.glob("shortlist-*.tar.gz")]:
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", str(out), str(ROOT))
    (wheel,), (archive,) = out.glob("shortlist-*.whl"), out.glob("shortlist-*.tar.gz")
    return wheel, archive


def check_files(wheel: Path, archive: Path) -> None:
    """Whether an index would take both, and whether anything is missing or too much."""
    run(sys.executable, "-m", "twine", "check", "--strict", str(wheel), str(archive))
    run(sys.executable, "-m", "check_wheel_contents", str(wheel))
    names = subprocess.check_output(["tar", "-tzf", archive], text=True).splitlines()
    inside = {name.partition("/")[2] for name in names}
    missing = [name for name in ARCHIVED if name not in inside]
    if missing:
        sys.exit(f"missing in {archive.name}: {', '.join(missing)}")


def installed(wheel: Path, place: Path) -> tuple[Path, float]:
    """Python of an environment with the wheel and its dependencies alone, and the seconds of it."""
    venv.create(place / "base", with_pip=False)
    started = time.perf_counter()
    python = place / "base" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", str(wheel))
    return python, time.perf_counter() - started


def run_there(python: Path, place: Path) -> None:
    """A first selection, the demonstration and the version, far from the source."""
    run(str(python), "-W", "error", "-c", FIRST, cwd=place)
    run(str(python), "-m", "shortlist", "demo", cwd=place)
    run(str(python.parent / "shortlist"), "--version", cwd=place)


def megabytes(folder: Path) -> float:
    """What the files below a folder take, in millions of bytes."""
    return sum(file.lstat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def quickest(place: Path, python: Path, *arguments: str) -> float:
    """Processor seconds of the quickest of a few starts, which other work does not lengthen."""
    return min(processor_seconds(place, python, *arguments) for _ in range(TIMES))


def processor_seconds(place: Path, *command: object) -> float:
    """What a program and its threads take of the processors."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(*map(str, command), cwd=place)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a program, without its output unless it fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=clean, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")


if __name__ == "__main__":
    main()
