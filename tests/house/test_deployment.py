"""The files for deployment do what they say, step by step, without a container runtime."""

import os
import re
import shlex
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from attack_scale import SCALE
from services import caller
from waiting import until

ROOT = Path(__file__).parents[2]


def instructions(text: str) -> list[tuple[str, str]]:
    """The instructions of a Dockerfile and their arguments."""
    lines = text.replace("\\\n", " ").splitlines()
    words = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in words]


def test_the_dockerfile_copies_what_is_there_and_installs_the_checked_out_version() -> None:
    steps = instructions((ROOT / "Dockerfile").read_text())
    copied = [rest.split()[:-1] for word, rest in steps if word == "COPY" and "--from" not in rest]
    for source in (each for files in copied for each in files):
        assert (ROOT / source).exists(), source
    (install,) = (rest for word, rest in steps if word == "RUN" and "pip install" in rest)
    assert "--constraint constraints.txt '.[serve,postgres]'" in install
    needed = {"pyproject.toml", "README.md", "LICENSE", "src", "constraints.txt"}
    assert needed == {each for files in copied for each in files}


def test_the_command_of_the_image_serves_and_is_found_ready(tmp_path: Path) -> None:
    """The steps of the image, in a folder instead of a root of its own."""
    steps = dict(instructions((ROOT / "Dockerfile").read_text()))
    command = [word.strip('" ') for word in steps["CMD"].strip("[]").split(",")]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    serve = [port if word == "8765" else word for word in command]
    name, _, place = steps["ENV"].partition("=")
    env = {**os.environ, name: place.replace("/data", str(tmp_path))}
    run = [sys.executable, "-m", "shortlist"]
    made = subprocess.run(
        [*run, "tokens", "create", "me", "--scope", "admin"], env=env, check=True, timeout=120
    )
    assert made.returncode == 0
    process = subprocess.Popen([*run, *serve], env=env, stderr=subprocess.DEVNULL)
    try:
        call = caller(f"http://127.0.0.1:{port}")

        def ready() -> bool:
            try:
                return call("GET", "/ready").status == 200
            except OSError:
                return False

        until(ready)
        check = re.search(r'"(import urllib[^"]*)"', steps["HEALTHCHECK"])
        assert check is not None
        code = check.group(1).replace("8765", port)
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        process.terminate()
        assert process.wait(120) == 0
    finally:
        process.kill()


@pytest.mark.attack
@pytest.mark.skipif(SCALE == 1, reason="installs the package, which takes a minute or two")
def test_the_build_steps_of_the_dockerfile_install_a_command_that_works(tmp_path: Path) -> None:
    """Every COPY and RUN of the first stage, with folders in the place of /source and /opt."""
    for word, rest in instructions((ROOT / "Dockerfile").read_text())[1:]:
        if word == "FROM":
            break  # the second stage
        if word == "COPY":
            *sources, target = rest.split()
            for source in sources:
                subprocess.run(["cp", "-r", ROOT / source, tmp_path / target], check=True)
        if word == "RUN":
            line = rest.replace("/opt/shortlist", str(tmp_path / "opt"))
            line = line.replace("python -m", f"{sys.executable} -m", 1)
            subprocess.run(["sh", "-ec", line], cwd=tmp_path, check=True, timeout=900)
    done = subprocess.run([tmp_path / "opt" / "bin" / "shortlist", "--version"], check=True)
    assert done.returncode == 0


@pytest.mark.parametrize("file", ["compose.yaml", "compose-postgres.yaml", "shortlist.service"])
def test_options_of_deployed_services_exist(file: str) -> None:
    from shortlist.cli.serve import serve

    text = (ROOT / "examples" / file).read_text()
    if file.endswith(".service"):
        (line,) = re.findall(r"^ExecStart=\S+ serve (.*)$", text, re.M)
        given = shlex.split(line)
    else:
        assert "build: .." in text
        (line,) = re.findall(r'command: \["serve", (.*)\]', text)
        given = [word.strip(' "') for word in line.split(",")]
    serve.make_context("serve", [*given, "--store", "x.db"])
