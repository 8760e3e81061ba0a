"""No process of a command outlives it, nor the server: daemons, double forks, after the end and after kill -9."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.counts import count
from tests.sandbox.confined_commands import MECHANISMS, PYTHON, SECONDS, STARTS, Place, host_with, start

from longshore.sandbox.cgroups import CgroupParents, find_cgroups
from longshore.sandbox.launch import Level

each_start = pytest.mark.parametrize(("level", "mechanism"), STARTS)
both = pytest.mark.parametrize("mechanism", MECHANISMS)

DAEMONS = """
import os, signal, sys
def daemon():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    os.write(1, b"daemon\\n")
    while True:
        signal.pause()
if not os.fork():  # a session of its own
    os.setsid()
    daemon()
if not os.fork():  # a double fork, whose parent ends
    os.setsid()
    if os.fork():
        os._exit(0)
    daemon()
if not os.fork():  # a child in the group of the command
    daemon()
if sys.argv[1] == "stay":
    daemon()
while not os.path.exists("leave"):
    pass
"""


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def read_lines(descriptor: int, count: int) -> None:
    text = b""
    while text.count(b"\n") < count:
        assert select.select([descriptor], [], [], SECONDS)[0], text
        text += os.read(descriptor, 4096)
        assert b"Error" not in text, text


def wait_for_all(descriptor: int) -> None:
    """Until nobody has the write end any more: every process that inherited it is gone."""
    while select.select([descriptor], [], [], SECONDS)[0]:
        if not os.read(descriptor, 4096):
            return
    raise AssertionError("a process is left")


@each_start
def test_tm_5_daemons_are_gone_after_the_command(place: Place, mechanism: str, level: Level) -> None:
    reading, writing = os.pipe()
    launch = place.launch(place.sandbox(level, mechanism), PYTHON, "-I", "-c", DAEMONS, "leave")
    with launch, start(launch, writing) as process:
        os.close(writing)
        read_lines(reading, 3)
        (place.root / "leave").touch()
        assert process.wait(SECONDS) == 0  # although daemons hold its output
    wait_for_all(reading)
    os.close(reading)


@each_start
@pytest.mark.parametrize("cgroups", [True, False], ids=["cgroups", "no cgroups"])
def test_killing_the_launch_kills_everything(place: Place, mechanism: str, level: Level, cgroups: bool) -> None:
    reading, writing = os.pipe()
    host = host_with(mechanism)
    if not cgroups:
        host = replace(host, cgroups="switched off", is_root=False)
    launch = place.launch(place.sandbox(level, host=host), PYTHON, "-I", "-c", DAEMONS, "stay")
    with launch, start(launch, writing) as process:
        os.close(writing)
        read_lines(reading, 4)
        launch.kill(process.pid)
        assert process.wait(SECONDS) in (128 + signal.SIGKILL, -signal.SIGKILL)
    wait_for_all(reading)
    os.close(reading)


STARTER = """
import sys
import tempfile
from pathlib import Path
from tests.sandbox.confined_commands import PYTHON, Place, start
place = Place(Path(sys.argv[1]))
launch = place.launch(place.sandbox(sys.argv[2], sys.argv[3]), PYTHON, "-I", "-c", sys.argv[4], "stay")
start(launch, 1).wait()
"""


@each_start
def test_tm_5_everything_is_gone_after_the_server_is_killed(
    place: Place, mechanism: str, level: Level, tmp_path: Path
) -> None:
    for number in range(count(1)):
        command = [sys.executable, "-c", STARTER, str(tmp_path / str(number)), level, mechanism, DAEMONS]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as starter:
            assert starter.stdout is not None
            read_lines(starter.stdout.fileno(), 4)
            starter.kill()
            wait_for_all(starter.stdout.fileno())
        parents = find_cgroups()
        assert isinstance(parents, CgroupParents)
        left = [name for folder, _ in parents.folders for name in os.listdir(folder) if f"-{starter.pid}-" in name]
        assert left == []


@both
def test_many_commands_leave_nothing(
    place: Place, mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    sandbox = place.sandbox("workspace", mechanism)
    place.shell(sandbox, "true")
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(count(10)):
        assert place.shell(sandbox, "echo here; echo x > ${TMPDIR:-/tmp}/file") == (0, "here\n")
    assert sorted(os.listdir("/proc/self/fd")) == before and list(temporary.iterdir()) == []
    parents = find_cgroups()
    assert isinstance(parents, CgroupParents)
    assert not [name for folder, _ in parents.folders for name in os.listdir(folder) if f"-{os.getpid()}-" in name]
