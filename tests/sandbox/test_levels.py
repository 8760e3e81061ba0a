"""What commands can see, change and reach at each level, by both mechanisms."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import pytest
from msgspec.structs import replace
from tests.sandbox.confined_commands import MECHANISMS, PYTHON, SECONDS, SECRET, STARTS, Place, host_with, start

from longshore.errors import SandboxUnavailable, ToolError
from longshore.sandbox.launch import Launch, Level, Limits
from longshore.sandbox.levels import make_sandbox
from longshore.sandbox.mechanisms import detect_host, mechanisms

CONFINED: tuple[Level, ...] = ("read-only", "workspace", "workspace+net")
each_start = pytest.mark.parametrize(("level", "mechanism"), STARTS)
both = pytest.mark.parametrize("mechanism", MECHANISMS)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@both
@pytest.mark.parametrize("level", CONFINED)
def test_user_data_outside_of_the_roots_is_invisible(place: Place, mechanism: str, level: Level) -> None:
    sandbox = place.sandbox(level, mechanism)
    secrets = ("~/.ssh/id_ed25519", str(place.other / "plan"), "../notes/plan", "/etc/shadow")
    for path in secrets:
        done = place.shell(sandbox, f"cat {path}")
        assert done.code == 1 and SECRET not in done.text and "root:" not in done.text, path
    done = place.shell(sandbox, f"ls -a ~ {place.other} /root /home; find / -name id_ed25519 2>/dev/null")
    assert "id_ed25519" not in done.text and "plan" not in done.text


@both
def test_a_link_in_a_root_leads_nowhere_outside(place: Place, mechanism: str) -> None:
    sandbox = place.sandbox("workspace", mechanism)
    script = f"ln -s {place.other} out; ln -s ~/.ssh/id_ed25519 key; cat key out/plan; echo changed > out/plan"
    assert SECRET not in place.shell(sandbox, script).text
    assert SECRET not in place.shell(sandbox, "cat key out/plan").text  # also of a later command
    assert (place.other / "plan").read_text() == SECRET


@both
@pytest.mark.parametrize(("level", "changes"), [("read-only", False), ("workspace", True), ("workspace+net", True)])
def test_the_roots_change_only_where_the_level_says_so(
    place: Place, mechanism: str, level: Level, changes: bool
) -> None:
    (place.root / "old").write_text("old")
    sandbox = place.sandbox(level, mechanism)
    done = place.shell(sandbox, "cat old && echo new > new && rm old && mkdir -p a/b && mv new a/b/c && cat a/b/c")
    assert (done.code == 0) == changes and done.text.startswith("old"), done
    assert (place.root / "a" / "b" / "c").exists() == changes and (place.root / "old").exists() != changes


@both
@pytest.mark.parametrize("level", CONFINED)
def test_nothing_outside_of_the_roots_can_be_changed(place: Place, mechanism: str, level: Level) -> None:
    before = place.tree()
    tried = (
        f"{place.other}/longshore-test",
        f"{place.home}/work/longshore-test",
        "/usr/longshore-test",
        "/etc/longshore-test",
        "/longshore-test",
        "/dev/longshore-test",
        sys.base_prefix + "/longshore-test",
    )
    sandbox = place.sandbox(level, mechanism)
    for path in tried:
        place.shell(sandbox, f"echo x > {path}; mkdir {path}-folder; rm -rf {place.other} {place.home}/work/notes")
        assert not os.path.lexists(path) and not os.path.lexists(f"{path}-folder")
    assert place.tree() == before


@both
@pytest.mark.parametrize("level", CONFINED)
def test_modes_times_and_attributes_outside_of_the_roots_stay(place: Place, mechanism: str, level: Level) -> None:
    path = place.other / "plan"
    before = path.stat()
    script = f"chmod 777 {path}; touch -d 2001-01-01 {path}; chown 65534 {path}; ln {path} linked && chmod 777 linked; "
    script += f'{PYTHON} -c \'import os, sys; os.setxattr(sys.argv[1], "user.x", b"x")\' {path}'
    place.shell(place.sandbox(level, mechanism), script)
    assert path.stat() == before and os.listxattr(path) == []


@both
@pytest.mark.parametrize("level", CONFINED)
def test_temporary_files_are_private_and_deleted(place: Place, mechanism: str, level: Level) -> None:
    sandbox = place.sandbox(level, mechanism)
    done = place.shell(sandbox, 'echo x > "${TMPDIR:-/tmp}/mine" && ls "${TMPDIR:-/tmp}" && echo "${TMPDIR:-/tmp}"')
    assert done.code == 0 and "mine" in done.text.split(), done
    assert not os.path.exists(os.path.join(done.text.split()[-1], "mine"))
    assert "mine" not in place.shell(sandbox, 'ls "${TMPDIR:-/tmp}"').text.split()


NETWORK = """
import socket, sys
def attempt(what, make):
    try:
        make()
    except OSError as problem:
        print(what, "refused")
    else:
        print(what, "DONE")
port = int(sys.argv[1])
def udp():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(b"x", ("127.0.0.1", port))
        s.connect(("192.0.2.1", 53))
attempt("tcp", lambda: socket.create_connection(("127.0.0.1", port), 5))
attempt("udp", udp)
attempt("abstract", lambda: socket.socket(socket.AF_UNIX).connect("\\0longshore-test-" + sys.argv[1]))
attempt("unix", lambda: socket.socket(socket.AF_UNIX).connect(sys.argv[2]))
attempt("raw", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).bind(("eth0", 0)))
attempt("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).connect((2, port)))
a, b = socket.socketpair(); a.send(b"pair works"); print(b.recv(20).decode())
"""


@both
@pytest.mark.parametrize("level", CONFINED)
def test_sockets_reach_nobody_outside_but_with_a_network(
    place: Place, mechanism: str, level: Level, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        port = server.getsockname()[1]
        abstract.bind(f"\0longshore-test-{port}")
        abstract.listen()
        path = str(tmp_path / "other" / "socket")
        with socket.socket(socket.AF_UNIX) as unix:
            unix.bind(path)
            unix.listen()
            done = place.python(place.sandbox(level, mechanism), NETWORK, str(port), path)
    assert done.code == 0, done
    lines = done.text.splitlines()
    expected = {"tcp refused", "udp refused", "abstract refused", "unix refused", "raw refused", "vsock refused"}
    if level == "workspace+net":
        expected = expected - {"tcp refused", "udp refused"} | {"tcp DONE"}
        lines = [line for line in lines if not line.startswith("udp")]  # whether there is a way out is the machine's
        if mechanism == "bubblewrap":  # the namespace of abstract sockets is the network's
            expected = expected - {"abstract refused"} | {"abstract DONE"}
    assert set(lines) == expected | {"pair works"}


@both
@pytest.mark.parametrize("level", CONFINED)
def test_tm_7_other_processes_can_be_neither_signalled_nor_read(place: Place, mechanism: str, level: Level) -> None:
    with subprocess.Popen(["sleep", "600"], env={"TOKEN": SECRET}) as victim:
        sandbox = place.sandbox(level, mechanism)
        done = place.shell(sandbox, f"kill -9 {victim.pid}; cat /proc/{victim.pid}/environ /proc/{os.getpid()}/environ")
        assert victim.poll() is None and SECRET not in done.text and "PATH=" not in done.text
        victim.kill()


@each_start
def test_tm_7_variables_come_from_the_allow_list(place: Place, mechanism: str, level: Level) -> None:
    place.environ |= {"AWS_SECRET_ACCESS_KEY": SECRET, "OPENAI_API_KEY": SECRET, "LC_TIME": "C", "LD_PRELOAD": SECRET}
    sandbox = place.sandbox(level, mechanism)
    text = place.shell(sandbox, "env; cat /proc/self/environ /proc/$PPID/environ", ASKED="for").text
    assert SECRET not in text and "AWS" not in text and "LD_PRELOAD" not in text
    assert {"ASKED=for", "LC_TIME=C", "PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb"} <= set(text.splitlines())


@both
def test_a_preloaded_library_is_loaded_inside_only(place: Place, mechanism: str) -> None:
    source = '#include <stdio.h>\n__attribute__((constructor)) static void f(void) { fopen(PATH, "w"); }'
    mark = place.other / "loaded"
    (place.root / "evil.c").write_text(source)
    sandbox = place.sandbox("workspace", mechanism)
    build = f"cc -shared -fPIC '-DPATH=\"{mark}\"' -o evil.so evil.c"
    assert place.shell(sandbox, build).code == 0
    assert place.shell(sandbox, "echo here", LD_PRELOAD=str(place.root / "evil.so")) == (0, "here\n")
    assert not mark.exists()


@each_start
def test_tm_1_metacharacters_in_argv_are_inert(place: Place, mechanism: str, level: Level) -> None:
    words = ["a; touch pwned", "$(touch pwned)", "`touch pwned`", "| touch pwned", "--bind", "/", "\n", "*", "é\udcff"]
    done = place.run(place.sandbox(level, mechanism), "printf", "%s|", *words)
    assert done == (0, "|".join(words[:-1]) + "|é\ufffd|")
    assert not (place.root / "pwned").exists()


@both
@pytest.mark.parametrize("where", ["argv", "variable", "value"])
def test_a_nul_character_is_refused(place: Place, mechanism: str, where: str) -> None:
    bad = "x\0--bind\0/\0/"
    sandbox = place.sandbox("workspace", mechanism)
    argv, env = ["true", bad] if where == "argv" else ["true"], {}
    if where != "argv":
        env = {bad: "x"} if where == "variable" else {"x": bad}
    with pytest.raises(ToolError, match="NUL"):
        sandbox.launch(argv, cwd=str(place.root), env=env, roots=[str(place.root)], name="test")


@each_start
def test_tm_6_a_command_inherits_no_descriptor_and_reads_nothing(place: Place, mechanism: str, level: Level) -> None:
    done = place.shell(place.sandbox(level, mechanism), "cat; ls /proc/self/fd | tr '\\n' ' '")
    assert done == (0, "0 1 2 3 ")  # the fourth is of ls itself


@each_start
@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)])
def test_the_exit_code_is_the_commands(place: Place, mechanism: str, level: Level, script: str, code: int) -> None:
    assert place.shell(place.sandbox(level, mechanism), script).code == code


@each_start
@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/no/such/program", 127), ("./plain", 126)])
def test_a_program_that_can_not_be_run_has_the_exit_code_of_a_shell(
    place: Place, mechanism: str, level: Level, program: str, code: int
) -> None:
    (place.root / "plain").write_text("no program")
    done = place.run(place.sandbox(level, mechanism), program, "-a", "x")
    assert done.code == code and program in done.text and "bwrap" not in done.text


@pytest.mark.parametrize("name", ["", "A=B"])
def test_a_variable_needs_a_name(place: Place, name: str) -> None:
    with pytest.raises(ToolError, match=f"'{name}' can't be the name of a variable"):
        place.sandbox().launch(["true"], cwd=str(place.root), env={name: "x"}, roots=[str(place.root)], name="test")


SIGNALLED = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
inner = os.fork()
if not inner:
    os.setsid()
    print("ready", flush=True)
signal.sigwait([signal.SIGTERM])
if inner:
    os.waitpid(inner, 0)
print("outer" if inner else "inner", flush=True)
os._exit(3)
"""


@each_start
def test_a_signal_reaches_every_process_of_the_command_only(place: Place, mechanism: str, level: Level) -> None:
    launch = place.launch(place.sandbox(level, mechanism), PYTHON, "-I", "-c", SIGNALLED)
    with launch, start(launch) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        launch.signal(process.pid, signal.SIGTERM)
        text = process.communicate(timeout=SECONDS)[0].decode()
    assert (process.returncode, text) == (3, "inner\nouter\n")


@each_start
def test_an_interactive_command_has_the_terminal_it_is_given(place: Place, mechanism: str, level: Level) -> None:
    # It waits for a blocked signal: a handler that runs just before a read leaves the read waiting.
    source = """
import os, signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
print(os.isatty(0), os.tcgetpgrp(0) == os.getpgrp(), os.environ["TERM"], flush=True)
print(signal.sigwait([signal.SIGINT]).name, flush=True)
"""
    ours, theirs = pty.openpty()
    sandbox = place.sandbox(level, mechanism)
    with place.launch(sandbox, PYTHON, "-I", "-c", source, terminal=True) as launch:
        process = subprocess.Popen(
            launch.argv,
            env=launch.env,
            cwd=launch.cwd,
            pass_fds=launch.pass_fds,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        with open(ours, "r+b", buffering=0) as terminal:
            assert terminal.read(100) == b"True True xterm-256color\r\n"
            terminal.write(b"\x03")
            text = b""
            while b"SIGINT" not in text:
                text += terminal.read(100)
            assert process.wait(SECONDS) == 0


def test_each_mechanism_that_is_switched_off_is_named_with_its_fix() -> None:
    host = replace(host_with("landlock"), cgroups="no cgroups here", is_root=False)
    make_sandbox("workspace", host=host)
    for changed, missing in (
        ({"landlock": 5}, "landlock 5"),
        ({"landlock": 0}, "none"),
        ({"seccomp": False}, "seccomp"),
        ({"mounts": False}, "mounts"),
    ):
        weaker = replace(host, **changed)
        for level in CONFINED:
            with pytest.raises(SandboxUnavailable, match=missing) as refused:
                make_sandbox(level, host=weaker)
            assert "apt-get install bubblewrap" in refused.value.fix and "switched off" in refused.value.what
        assert make_sandbox("limits", host=weaker).mechanism == "rlimits"
        inactive = [one for one in mechanisms(weaker) if not one.active]
        assert {"bubblewrap", "cgroups"} < {one.name for one in inactive} and all(one.fix for one in inactive)


def test_root_needs_cgroups_for_counting_processes_unless_told_not_to() -> None:
    host = replace(detect_host(), cgroups="no cgroups here", is_root=True)
    for level in ("limits", *CONFINED):
        with pytest.raises(SandboxUnavailable, match="no cgroups here"):
            make_sandbox(level, host=host)
        make_sandbox(level, host=host, limits=Limits(processes=None))
    assert make_sandbox("none", host=host).mechanism == "none"


def test_a_bubblewrap_that_does_not_work_has_another_fix() -> None:
    host = replace(detect_host(), bubblewrap="bwrap does not work here: no permission", seccomp=False)
    with pytest.raises(SandboxUnavailable, match="user namespaces"):
        make_sandbox("workspace", host=host)


def test_the_mechanism_is_named() -> None:
    host = detect_host()
    assert make_sandbox("workspace", host=host).mechanism.startswith("bubblewrap + ")
    assert make_sandbox("workspace", host=host_with("landlock")).mechanism.startswith("landlock + seccomp + ")


@both
@pytest.mark.parametrize("root", ["home", "above", "two", "nested"])
def test_roots_may_be_and_hold_the_home_folder_or_each_other(place: Place, mechanism: str, root: str) -> None:
    home, above = str(place.home), str(place.home.parent)
    roots = {"home": [home], "above": [above], "two": [str(place.root), str(place.other)], "nested": [home, above]}[
        root
    ]
    sandbox = place.sandbox("workspace", mechanism)
    script = f"echo new > here && cat here && cat {place.other}/plan && touch {place.other}/there"
    launch = sandbox.launch(["sh", "-c", script], cwd=str(place.root), env={}, roots=roots, name="test")
    with launch, start(launch) as process:
        text = process.communicate(timeout=SECONDS)[0].decode()
    seen = root != "home"
    assert (text == f"new\n{SECRET}", (place.other / "there").exists()) == (seen, seen), text
    assert (place.root / "here").read_text() == "new\n"


@both
def test_the_whole_machine_as_a_root_can_be_read_and_not_changed_at_read_only(place: Place, mechanism: str) -> None:
    sandbox = place.sandbox("read-only", mechanism)
    script = f"cat {place.other}/plan; echo x > {place.other}/plan"
    launch = sandbox.launch(["sh", "-c", script], cwd=str(place.root), env={}, roots=["/"], name="test")
    with launch, start(launch) as process:
        text = process.communicate(timeout=SECONDS)[0].decode()
    assert text.startswith(SECRET) and (place.other / "plan").read_text() == SECRET


def test_proxies_are_passed_with_a_network_and_without_passwords(place: Place) -> None:
    place.environ |= {"https_proxy": "http://proxy:3128", "HTTP_PROXY": f"http://me:{SECRET}@proxy:3128"}
    for level, expected in (("workspace", False), ("workspace+net", True)):
        lines = place.shell(place.sandbox(cast(Level, level)), "env").text.splitlines()
        assert ("https_proxy=http://proxy:3128" in lines) == expected and not [line for line in lines if SECRET in line]


@both
def test_a_launch_that_several_threads_close_is_released_once(place: Place, mechanism: str) -> None:
    """A command may end by itself while it is killed. A descriptor closed twice may be somebody else's by then."""
    sandbox = place.sandbox("workspace", mechanism)
    for _ in range(20):
        launch = place.launch(sandbox, "true")
        barrier = threading.Barrier(8)

        def close(launch: Launch = launch, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            launch.close()

        with start(launch) as process, ThreadPoolExecutor(8) as threads:
            process.communicate(timeout=SECONDS)
            for closing in [threads.submit(close) for _ in range(8)]:
                closing.result(SECONDS)


def test_without_linux_the_fix_is_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of Linux is no advice on macOS."""
    monkeypatch.setattr(sys, "platform", "darwin")
    host = detect_host.__wrapped__()
    fixes = {each.name: each.fix for each in mechanisms(host) if not each.active}
    assert set(fixes) == {"bubblewrap", "landlock", "seccomp", "mounts", "cgroups"}
    assert {fix[:24] for fix in fixes.values()} == {"run the server on Linux,"}
    with pytest.raises(SandboxUnavailable, match=r"the level workspace can't be enforced: bubblewrap needs Linux; run"):
        make_sandbox("workspace", host=host)
