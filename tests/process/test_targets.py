"""`longshore serve TARGET`: every way to name a server, and what is said when it can't be found or loaded."""

from __future__ import annotations

import json
import os
import pty
import shlex
import sys
from pathlib import Path

import pytest

from services import skip
from waiting import eventually

from .conftest import Workshop
from .peer import LONGSHORE, modern, request

ONE = """
    from longshore import Server
    app = Server("one")
    if __name__ == "__main__":
        raise SystemExit("served as a script")
"""
TWO = """
    from longshore import Server
    first = Server("first")
    second = Server("second")
"""


def name_of(workshop: Workshop, *argv: str) -> str:
    done = workshop.run(list(argv), modern(request(1, "server/discover")))
    assert done.returncode == 0, done.stderr.decode()
    (answer,) = map(json.loads, done.stdout.splitlines())
    return str(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"])


def refused(workshop: Workshop, *argv: str) -> str:
    """What stderr says of a target that can't be served; nothing of it may come from us."""
    done = workshop.run([*LONGSHORE, "serve", *argv], modern(request(1, "server/discover")))
    assert done.returncode == 2
    assert done.stdout == b""
    said = done.stderr.decode()
    assert not [line for line in said.splitlines() if line.startswith("  File") and "/longshore/" in line]
    assert "runpy" not in said
    return said


@pytest.mark.parametrize("command", [LONGSHORE, [str(Path(sys.executable).parent / "longshore")]], ids=["-m", "script"])
@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("one.py", "one"),
        ("./one.py", "one"),
        ("one.py:app", "one"),
        ("two.py:second", "second"),
        ("one:app", "one"),
        ("one", "one"),
        ("package.inner:first", "first"),
        ("package/inner.py:second", "second"),
        ("spaces and: colons.py", "one"),
        ("usual.py", "the usual"),
        ("house", "one"),
        ("house:app", "one"),
    ],
)
def test_a_server_is_found(workshop: Workshop, command: list[str], target: str, name: str) -> None:
    if not Path(command[0]).exists():
        skip(f"{command[0]} is not installed; run scripts/setup to see this test")
    for path, source in [("one.py", ONE), ("two.py", TWO), ("package/inner.py", TWO), ("package/__init__.py", "")]:
        workshop.write(source, path)
    workshop.write(ONE, "spaces and: colons.py")
    workshop.write(ONE, "house/__init__.py")
    workshop.write(TWO + '    app = Server("the usual")\n', "usual.py")
    assert name_of(workshop, *command, "serve", target) == name


def test_an_absolute_path_and_a_neighbour_module(workshop: Workshop) -> None:
    workshop.write('NAME = "from the neighbour"', "elsewhere/neighbour.py")
    path = workshop.write(
        "from longshore import Server\nfrom neighbour import NAME\napp = Server(NAME)\n", "elsewhere/main.py"
    )
    assert name_of(workshop, *LONGSHORE, "serve", str(path)) == "from the neighbour"


def test_options_may_stand_on_either_side(workshop: Workshop) -> None:
    workshop.write(ONE, "one.py")
    assert name_of(workshop, *LONGSHORE, "serve", "--eof-grace", "1", "one.py", "--timeout=5") == "one"


def test_without_a_target_the_builtin_server_runs(workshop: Workshop) -> None:
    assert name_of(workshop, *LONGSHORE, "serve") == "longshore"


# -- refusals


def test_a_file_that_is_not_there(workshop: Workshop) -> None:
    assert refused(workshop, "missing.py") == "missing.py: there is no such file\n"
    assert "there is no such file" in refused(workshop, "missing.py:app")
    assert "there is no such file" in refused(workshop, "folder/missing")


def test_a_module_that_is_not_there(workshop: Workshop) -> None:
    assert "missing: there is no such module; a file is given as path/to/missing.py" in refused(workshop, "missing:app")
    assert "there is no such module" in refused(workshop, "missing.inner:app")


def test_a_file_without_a_server(workshop: Workshop) -> None:
    workshop.write("x = 1\n", "empty.py")
    assert 'no Server there; it needs a line like: app = Server("name")' in refused(workshop, "empty.py")


def test_a_file_with_several_servers(workshop: Workshop) -> None:
    workshop.write(TWO, "two.py")
    assert "it has several servers; say which: two.py:first or :second" in refused(workshop, "two.py")


def test_a_name_that_is_not_there_gets_the_nearest(workshop: Workshop) -> None:
    workshop.write(TWO + "    third = 3\n", "two.py")
    assert "two.py:secnd: secnd is not there; did you mean 'second'?" in refused(workshop, "two.py:secnd")
    assert "third is no Server" in refused(workshop, "two.py:third")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("def broken(:\n", "SyntaxError"),
        ("x = 1\nraise ValueError('theirs')\n", "ValueError: theirs"),
        ("import not_installed_anywhere\n", "No module named 'not_installed_anywhere'"),
        ("from longshore import Serber\n", "cannot import name 'Serber'"),
        ("import sys\nsys.exit(7)\n", "it called sys.exit(7) while it was imported"),
        ("x = 1 / 0\n", "ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("target", ["theirs.py", "theirs:app"])
def test_a_fault_of_theirs_is_shown_with_their_lines_and_none_of_ours(
    workshop: Workshop, source: str, said: str, target: str
) -> None:
    workshop.write(source, "theirs.py")
    text = refused(workshop, target)
    assert said in text
    assert "theirs" in text


def test_a_mistake_in_a_declaration_is_three_lines(workshop: Workshop) -> None:
    path = workshop.write(
        """
        from longshore import Server
        app = Server("wrong")

        @app.tool
        def add(*numbers: int) -> int:
            return sum(numbers)
        """
    )
    lines = refused(workshop, str(path)).splitlines()
    assert len(lines) == 3
    assert "server.py:6 add(*numbers)" in lines[0]
    assert lines[2].strip().startswith("fix: ")


def test_a_mistake_in_a_declaration_of_a_script_ends_with_the_three_lines(workshop: Workshop) -> None:
    """Under `python server.py` Python itself shows a trace; the three lines are its last."""
    path = workshop.write(
        """
        from longshore import Server
        app = Server("wrong")

        @app.tool
        def add(*numbers: int) -> int:
            return sum(numbers)

        app.run()
        """
    )
    done = workshop.run([sys.executable, str(path)], data=b"")
    assert done.returncode != 0
    lines = done.stderr.decode().splitlines()
    assert "server.py:6 add(*numbers)" in lines[-3]
    assert lines[-1].strip().startswith("fix: ")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--timout", "3"], "No such option"),
        (["one.py", "two.py"], "unexpected extra argument"),
        (["--timeout"], "requires an argument"),
        (["--timeout", "soon"], "--timeout: expected seconds"),
        (["--config", "missing.toml"], "--config: no such file: missing.toml"),
    ],
)
def test_a_wrong_option_exits_with_code_2(workshop: Workshop, argv: list[str], said: str) -> None:
    workshop.write(ONE, "one.py")
    done = workshop.run([*LONGSHORE, "serve", *argv], data=b"")
    assert done.returncode == 2
    assert done.stdout == b""
    assert said.lower() in done.stderr.decode().lower()


SCRIPT = str(Path(sys.executable).parent / "longshore")


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        ([*LONGSHORE, "serve"], [sys.executable, "-P", *LONGSHORE[1:], "serve"]),
        ([SCRIPT, "serve"], [SCRIPT, "serve"]),
        ([SCRIPT, "serve", "my server.py"], [SCRIPT, "serve", "{folder}/my server.py"]),
        ([SCRIPT, "serve", "./my server.py:app"], [SCRIPT, "serve", "{folder}/my server.py:app"]),
        ([SCRIPT, "serve", "package.inner:app"], [SCRIPT, "serve", "{folder}/package/inner.py:app"]),
        ([sys.executable, "my server.py"], [sys.executable, "{folder}/my server.py"]),
        ([sys.executable, "-m", "package.inner"], [sys.executable, "-m", "package.inner"]),
    ],
)
def test_a_start_on_a_terminal_prints_a_command_for_any_folder(
    workshop: Workshop, argv: list[str], command: list[str]
) -> None:
    source = 'from longshore import Server\napp = Server("Tide & Times")\nif __name__ == "__main__":\n    app.run()\n'
    for path in ("my server.py", "package/inner.py", "package/__init__.py"):
        workshop.write(source, path)
    expected = [word.format(folder=workshop.folder) for word in command]
    name = "longshore" if argv[-1] == "serve" else "Tide-Times"
    line = f"To connect it:  claude mcp add {name} -- {shlex.join(expected)}\n"
    main, terminal = pty.openpty()
    try:
        peer = workshop.spawn(*argv, stdin=terminal)
        os.close(terminal)
        eventually("the greeting", lambda: "To connect it" in peer.stderr and peer.stderr.endswith("\n"))
        assert line in peer.stderr
        os.write(main, b"\x04")
        assert peer.wait() == 0
    finally:
        os.close(main)


def test_an_interrupt_while_the_target_is_imported_is_no_trace(workshop: Workshop) -> None:
    peer = workshop.serve("import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n")
    assert peer.wait() == 130
    assert peer.stderr == ""


def test_a_server_that_a_client_starts_prints_no_greeting(workshop: Workshop) -> None:
    done = workshop.run([*LONGSHORE, "serve"], data=b"")
    assert (done.returncode, done.stderr) == (0, b"")
