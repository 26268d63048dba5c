"""A virtual environment for every peer, so that no two of them, nor we, have to agree on
anything."""

import subprocess
import sys
import venv
from pathlib import Path

HOME = Path(__file__).parent / ".venv"
WAYS = ((), ("--no-cache-dir",), ("--pre",))  # tried one after the other


class NotInstalled(Exception):
    """pip could not install a peer, for the reason in the message."""


def python_with(package: str) -> Path:
    """The interpreter of an environment that has this package, made if it is not there yet."""
    folder = HOME / package
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if python.exists() and version(python, package):
        return python
    venv.create(folder, clear=True, with_pip=True)
    for way in WAYS:
        command = [
            str(python),
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            *way,
            package,
        ]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode == 0:
            return python
    raise NotInstalled((done.stderr.strip().splitlines() or ["pip gave no reason"])[-1])


def version(python: Path, package: str) -> str:
    """The version of a package there, or nothing."""
    code = f"from importlib.metadata import version; print(version({package!r}))"
    return subprocess.run([str(python), "-c", code], capture_output=True, text=True).stdout.strip()
