"""Starting real browsers, and what is left of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.services import skip
from tests.waiting import eventually, is_alive

from longshore.toolsets.browser import launch as launching
from longshore.toolsets.browser.connection import ConnectionClosed
from longshore.toolsets.browser.executable import BrowserUnavailable
from longshore.toolsets.browser.launch import BrowserProcess, LaunchOptions, launch

from .test_connection import evaluate, open_page

SERVER = """
import asyncio
from longshore.toolsets.browser.launch import LaunchOptions, launch

async def main():
    process = await launch(LaunchOptions())
    await process.connection.call("Target.createTarget", {"url": "about:blank"})
    print(process.folder, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def processes(folder: str) -> dict[int, list[str]]:
    """The processes that have a browser's folder in their command line."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace").replace("\0", " ").split(" ")
        except OSError:
            continue
        if any(folder in word for word in words) and is_alive(int(path.parent.name)):
            found[int(path.parent.name)] = words
    return found


def assert_nothing_left(folder: str) -> None:
    eventually("no process", lambda: not processes(folder))
    eventually("no folder", lambda: not os.path.lexists(folder))


def script(folder: Path, text: str) -> str:
    """A program that every user may run."""
    path = folder / "browser"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    while folder != folder.parent and os.stat(folder).st_uid == os.geteuid():
        folder.chmod(folder.stat().st_mode | 0o011)
        folder = folder.parent
    return str(path)


async def test_a_page_loads(chromium: BrowserProcess, serve_pages) -> None:  # type: ignore[no-untyped-def]
    session = await open_page(chromium.connection)
    loaded = asyncio.Event()
    chromium.connection.listen(session, lambda method, _: method == "Page.loadEventFired" and loaded.set())
    await chromium.connection.call("Page.enable", session=session)
    await chromium.connection.call("Page.navigate", {"url": serve_pages({"/": "<title>Hello</title>"})}, session)
    await asyncio.wait_for(loaded.wait(), 30)
    assert await evaluate(chromium.connection, session, "document.title") == "Hello"


def confined_renderers(folder: str) -> list[int]:
    """The renderers, if there are any and all of them have a filter of system calls."""
    pids = [pid for pid, words in processes(folder).items() if "--type=renderer" in words]
    return pids if all("\nSeccomp:\t2\n" in Path(f"/proc/{pid}/status").read_text() for pid in pids) else []


async def test_the_sandbox_is_on_and_the_user_unprivileged(chromium: BrowserProcess) -> None:
    if chromium.notice is not None:
        skip(chromium.notice, by_kernel=True)
    await open_page(chromium.connection)
    async with asyncio.timeout(10):  # a renderer confines itself while it starts
        while not (renderers := confined_renderers(chromium.folder)):
            await asyncio.sleep(0.02)
    assert not any("--no-sandbox" in words for words in processes(chromium.folder).values())
    for pid in renderers:
        assert os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid")
    status = Path(f"/proc/{chromium.pid}/status").read_text().splitlines()
    fields = dict(line.split(":\t", 1) for line in status if ":\t" in line)
    assert "0" not in fields["Uid"].split()
    if os.geteuid() == 0:
        assert fields["Groups"].strip() == ""
        assert "0" not in fields["Gid"].split()
        assert int(fields["CapEff"], 16) == 0


async def test_ending_leaves_nothing_and_can_be_repeated(chromium: BrowserProcess) -> None:
    await open_page(chromium.connection)
    assert processes(chromium.folder)
    await asyncio.gather(chromium.end(), chromium.end())
    assert_nothing_left(chromium.folder)
    await chromium.end()
    assert chromium.connection.is_closed


async def test_a_cancelled_end_goes_on(chromium: BrowserProcess) -> None:
    ending = asyncio.ensure_future(chromium.end())
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    await chromium.end()
    assert_nothing_left(chromium.folder)


async def test_a_browser_that_hangs_is_killed(chromium: BrowserProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "CLOSE_SECONDS", 0.2)
    os.kill(chromium.pid, signal.SIGSTOP)
    await chromium.end()
    assert_nothing_left(chromium.folder)


async def test_waiting_calls_of_a_killed_browser_raise(chromium: BrowserProcess) -> None:
    session = await open_page(chromium.connection)
    waiting = chromium.connection.send(
        "Runtime.evaluate", {"expression": "new Promise(() => 0)", "awaitPromise": True}, session
    )
    os.kill(chromium.pid, signal.SIGKILL)
    with pytest.raises(ConnectionClosed):
        await asyncio.wait_for(waiting, 30)
    assert_nothing_left(chromium.folder)  # even before end()
    await chromium.end()


async def test_a_browser_ends_by_itself_when_its_pipe_closes(chromium: BrowserProcess) -> None:
    guard = chromium._guard._process
    assert guard is not None
    guard.send_signal(signal.SIGSTOP)
    try:
        chromium.connection.close()
        await asyncio.to_thread(eventually, "its end", lambda: not is_alive(chromium.pid))
    finally:
        guard.send_signal(signal.SIGCONT)
    await chromium.end()
    assert_nothing_left(chromium.folder)


async def test_a_killed_guard_leaves_nothing_after_the_end(chromium: BrowserProcess) -> None:
    guard = chromium._guard._process
    assert guard is not None
    guard.kill()
    await chromium.end()
    assert_nothing_left(chromium.folder)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_of_a_killed_server(number: signal.Signals, browser_path: str) -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        folder = server.stdout.readline().decode().strip()
        assert folder and len(processes(folder)) > 2
        server.send_signal(number)
        server.wait(30)
    assert_nothing_left(folder)


def make_old(folder: str) -> None:
    os.utime(folder, (0, 0))


async def test_the_next_browser_deletes_what_is_left_of_a_server_and_guard_killed_together(browser_path: str) -> None:
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        folder = server.stdout.readline().decode().strip()
        server.send_signal(signal.SIGSTOP)
        guards = [pid for pid, words in processes(folder).items() if any("guard.py" in word for word in words)]
        os.kill(guards[0], signal.SIGKILL)
        server.kill()
    await asyncio.to_thread(eventually, "no process", lambda: not processes(folder))
    assert os.path.isdir(folder)
    make_old(folder)
    running = await launch(LaunchOptions())
    try:
        await asyncio.to_thread(assert_nothing_left, folder)
        make_old(running.folder)
        await (await launch(LaunchOptions())).end()
        assert os.path.isdir(running.folder)  # its guard has it locked
    finally:
        await running.end()


async def test_a_launch_that_is_cancelled_leaves_nothing(
    browser_path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = _record_folders(monkeypatch)
    starting = asyncio.ensure_future(launch(LaunchOptions(executable=script(tmp_path, "sleep 1000"))))
    while not folders or not processes(folders[0]):
        await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await asyncio.to_thread(assert_nothing_left, folders[0])


async def test_a_program_that_is_no_browser_gives_its_last_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = _record_folders(monkeypatch)
    with pytest.raises(BrowserUnavailable, match=r"(?s)ended before it answered.*libnss3 is missing"):
        await launch(LaunchOptions(executable=script(tmp_path, "echo libnss3 is missing >&2; exit 3")))
    assert len(folders) == 1
    assert_nothing_left(folders[0])


async def test_a_window_without_a_display_is_refused_in_one_line(
    browser_path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(BrowserUnavailable) as caught:
        await launch(LaunchOptions(executable=browser_path, headless=False))
    assert str(caught.value).endswith("there is no display here that it could open a window on; leave headless out")
    assert "\n" not in str(caught.value)


async def test_a_killed_guard_leaves_nothing_while_the_server_goes_on(chromium: BrowserProcess) -> None:
    guards = [pid for pid, words in processes(chromium.folder).items() if any("guard.py" in word for word in words)]
    assert len(guards) == 1
    os.kill(guards[0], signal.SIGKILL)
    async with asyncio.timeout(10):
        await chromium.connection.wait_closed()
    await asyncio.to_thread(assert_nothing_left, chromium.folder)


async def test_a_program_that_does_not_answer_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "START_SECONDS", 0.5)
    folders = _record_folders(monkeypatch)
    with pytest.raises(BrowserUnavailable, match=r"(?s)no answer within 0\.5 s"):
        await launch(LaunchOptions(executable=script(tmp_path, "setsid sleep 1000 & sleep 1000")))
    assert_nothing_left(folders[0])


async def test_a_file_that_can_not_be_run_is_named(tmp_path: Path) -> None:
    path = Path(script(tmp_path, ""))
    path.write_bytes(b"\x7fELF not really")
    with pytest.raises(BrowserUnavailable, match="browser did not start: Exec format error"):
        await launch(LaunchOptions(executable=str(path)))


async def test_without_a_usable_sandbox_it_starts_with_a_notice(browser_path: str, tmp_path: Path) -> None:
    refuse = f'case "$*" in *--no-sandbox*) exec {browser_path} "$@";; esac; echo "No usable sandbox!" >&2; exit 1'
    process = await launch(LaunchOptions(executable=script(tmp_path, refuse)))
    try:
        assert process.notice is not None
        assert "without its own sandbox" in process.notice
        assert "No usable sandbox!" in process.notice
    finally:
        await process.end()


async def test_a_program_closed_to_other_users_runs_as_root_with_a_notice(browser_path: str, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        skip("only root drops to another user", by_kernel=True)
    path = script(tmp_path, f'exec {browser_path} "$@"')
    os.chmod(path, 0o700)
    process = await launch(LaunchOptions(executable=path))
    try:
        assert process.notice is not None
        assert "Permission denied" in process.notice
    finally:
        await process.end()
    assert_nothing_left(process.folder)


async def test_the_environment_keeps_our_secrets(chromium: BrowserProcess) -> None:
    names = {each.partition(b"=")[0] for each in Path(f"/proc/{chromium.pid}/environ").read_bytes().split(b"\0")}
    assert b"PATH" in names
    assert not [name for name in names if b"PYTEST" in name]


async def test_descriptors_are_given_back(browser_path: str) -> None:
    await (await launch(LaunchOptions())).end()
    before = sorted(os.listdir("/proc/self/fd"))
    await (await launch(LaunchOptions())).end()
    await asyncio.sleep(0)
    assert len(os.listdir("/proc/self/fd")) <= len(before)


def _record_folders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Collects the folders that launches make."""
    made: list[str] = []
    make = launching._make_folder

    def record(user: tuple[int, int] | None) -> str:
        made.append(make(user))
        return made[-1]

    monkeypatch.setattr(launching, "_make_folder", record)
    return made
