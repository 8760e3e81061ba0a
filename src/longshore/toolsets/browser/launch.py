"""Starting a browser over pipes, and ending it with all of its processes and files.

Between the server and the browser is a small process (`guard.py`), which deletes the browser's folder even if the
server is killed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, final

from msgspec import Struct

from longshore.sandbox.descendants import spared
from longshore.toolsets.browser.connection import CdpConnection, CdpError, ConnectionClosed
from longshore.toolsets.browser.executable import BrowserUnavailable, find_browser
from longshore.toolsets.browser.pipe import PipeTransport

START_SECONDS: Final = 30.0
"""A browser answers its first call within a second; on a busy machine with cold disks, within ten."""
CLOSE_SECONDS: Final = 2.0
"""The time for a browser to close by itself."""
END_SECONDS: Final = 10.0
"""The time for the guard to kill it and to delete its folder, before the server does."""
PIPE_BYTES: Final = 1 << 20
STDERR_BYTES: Final = 8192
"""How much of the end of the browser's stderr is kept for an error."""
_GUARD: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard.py")
_FLAGS: Final = (
    "--remote-debugging-pipe",
    "--no-startup-window",
    # no dialogs of a first start
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-search-engine-choice-screen",
    # no connections of its own
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-component-extensions-with-background-pages",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-quic",
    "--disable-breakpad",
    "--disable-field-trial-config",
    "--disable-client-side-phishing-detection",
    "--metrics-recording-only",
    "--no-pings",
    "--no-service-autorun",
    "--disable-features=Translate,MediaRouter,OptimizationHints,DialMediaRouteProvider,"
    "CertificateTransparencyComponentUpdater,AutofillServerCommunication,InterestFeedContentSuggestions,"
    "WebUIOmniboxPopup,WebUIOmniboxAimPopup",  # pages behind the address bar: a process more, a third of a start
    # no key ring of the user
    "--password-store=basic",
    "--use-mock-keychain",
    # background tabs work like the one in front
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-hang-monitor",
    "--disable-prompt-on-repost",
    "--disable-popup-blocking",
    "--disable-infobars",
    # a key scrolls at once, so that loading it causes counts as its effect
    "--disable-smooth-scrolling",
)
_WEBRTC_POLICY: Final = ("webrtc-ip-handling-policy", "force-webrtc-ip-handling-policy")
"""The flag's name in new and in old browsers. Each ignores the other."""
_ENVIRONMENT: Final = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "LANG",
        "LANGUAGE",
        "TZ",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "XAUTHORITY",
        "DBUS_SESSION_BUS_ADDRESS",
        "LD_LIBRARY_PATH",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "ALL_PROXY",
        "NO_PROXY",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
    ]
)
"""The variables that a browser needs. Others may hold secrets."""
_PREFIXES: Final = ("LC_", "XDG_", "FONTCONFIG_", "CHROME_", "NIX_")


class LaunchOptions(Struct, frozen=True):
    """How to start a browser. If the server is root, another user to run it as is found automatically."""

    executable: str | None = None
    headless: bool = True
    proxy: str | None = None
    width: int = 1280
    height: int = 720
    roots: Sequence[str] = ()
    """Configured folders, of which no program is taken that happens to be on PATH."""


class _Attempt(Struct, frozen=True):
    """The user to start it as, and whether with Chromium's own sandbox."""

    user: tuple[int, int] | None
    sandboxed: bool


class _Failed(Exception):
    """An attempt failed: the reason, and the next attempt, if one may succeed."""

    def __init__(self, text: str, *, user: bool = False, sandbox: bool = False) -> None:
        super().__init__(text)
        self.text, self.user, self.sandbox = text, user, sandbox


@final
class BrowserProcess:
    """A browser that this server started. It ends with `end`, or when the server's process does."""

    def __init__(
        self, connection: CdpConnection, guard: _Guard, executable: str, folder: str, notice: str | None
    ) -> None:
        self.connection = connection
        self.executable, self.folder, self.notice = executable, folder, notice
        self._guard = guard
        self._ending: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The browser's process, which leads its group."""
        return self._guard.pid

    def when_ended(self, report: Callable[[], object]) -> None:
        """Call this once when the browser has ended for any reason."""
        self._guard.when_ended(report)

    async def end(self) -> None:
        """Close the browser, kill its remaining processes, and delete its folder.

        Continues if the caller is cancelled.
        """
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.connection.send("Browser.close")
                await self._guard.ended.wait()
        except (TimeoutError, CdpError, ConnectionClosed):
            pass
        self.connection.close()
        await self._guard.end()


async def launch(options: LaunchOptions) -> BrowserProcess:
    """Start a browser. Raises BrowserUnavailable with the last lines of its output."""
    executable = find_browser(options.executable, options.roots)
    attempt: _Attempt = _Attempt(_unprivileged_user(), sandboxed=True)
    notice = None
    if attempt.user is None and os.geteuid() == 0:
        attempt, notice = _Attempt(None, sandboxed=False), _without_sandbox("there is no user nobody to run it as")
    while True:
        try:
            return await _try(executable, options, attempt, notice)
        except _Failed as failure:
            following = _next(attempt, failure)
            if following is None:
                raise BrowserUnavailable(f"{executable} did not start: {failure.text}") from None
            attempt, notice = following, _without_sandbox(failure.text)


def _next(attempt: _Attempt, failure: _Failed) -> _Attempt | None:
    if failure.user and attempt.user is not None:
        return _Attempt(None, sandboxed=False)
    if failure.sandbox and attempt.sandboxed:
        return _Attempt(attempt.user, sandboxed=False)
    return None


def _without_sandbox(why: str) -> str:
    return (
        "The browser runs without its own sandbox, so a page that breaks out of its renderer has the browser's rights. "
        f"With the sandbox it did not start: {why}"
    )


async def _try(executable: str, options: LaunchOptions, attempt: _Attempt, notice: str | None) -> BrowserProcess:
    folder = _make_folder(attempt.user)
    connection = CdpConnection()
    guard = _Guard(folder)
    try:
        read, write = guard.start([executable, *_flags(options, attempt, folder)], attempt.user)
        await PipeTransport(connection).open(read, write)
        await guard.listen()
        await connection.call("Browser.getVersion", seconds=START_SECONDS)
        return BrowserProcess(connection, guard, executable, folder, notice)
    except (ConnectionClosed, CdpError, TimeoutError, OSError) as problem:
        connection.close()
        await guard.end()
        raise _explain(problem, guard, options) from None
    except BaseException:  # cancelled
        connection.close()
        guard.abandon()
        raise


def _explain(problem: Exception, guard: _Guard, options: LaunchOptions) -> _Failed:
    words = guard.last_words()
    after = f"; its last words:\n{words}" if words else ""
    if guard.problem is not None:
        number, text = guard.problem
        return _Failed(text, user=number in (errno.EACCES, errno.EPERM, errno.EINVAL))
    if isinstance(problem, TimeoutError):
        return _Failed(f"no answer within {START_SECONDS:g} s{after}")
    if isinstance(problem, ConnectionClosed):
        sandbox = "sandbox" in words.lower()
        if not options.headless and not sandbox and "display" in words.lower():
            return _Failed("there is no display here that it could open a window on; leave headless out")
        return _Failed(f"it ended before it answered{after}", sandbox=sandbox)
    return _Failed(f"{problem}{after}")


@final
class _Guard:
    """The guard's process, as the server sees it."""

    def __init__(self, folder: str) -> None:
        self.pid = 0
        self.problem: tuple[int, str] | None = None
        self.ended = asyncio.Event()
        self._report_end: Callable[[], object] = lambda: None
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._lifeline = self._status = self._stderr = -1
        self._readers: list[asyncio.BaseTransport] = []
        self._words = _Tail()
        self._said = _Tail()

    def start(self, argv: list[str], user: tuple[int, int] | None) -> tuple[int, int]:
        """Start it. Returns the server's ends of the protocol's pipes, to read from and to write to."""
        uid, gid = user or (-1, -1)
        lifeline, self._lifeline = os.pipe()
        self._status, status = os.pipe()
        self._stderr, stderr = os.pipe()
        their_read, our_write = os.pipe()
        our_read, their_write = os.pipe()
        for pipe in (our_write, our_read):
            _enlarge(pipe)
        passed = (lifeline, status, their_read, their_write)
        numbers = [str(each) for each in (uid, gid, *passed)]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", _GUARD, *numbers, self._folder, *argv],
                env=_environment(self._folder, user),
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                pass_fds=passed,
                start_new_session=True,
            )
            spared.add(self._process.pid)  # at the end of the server it still has to delete the folder
        except BaseException:
            os.close(our_read)
            os.close(our_write)
            raise
        finally:
            for each in (*passed, stderr):
                os.close(each)
        return our_read, our_write

    def when_ended(self, report: Callable[[], object]) -> None:
        """Call this once when it has ended, and with it the browser."""
        self._report_end = report
        if self.ended.is_set():
            report()

    async def listen(self) -> None:
        """Follow the guard's status, and the browser's stderr."""
        loop = asyncio.get_running_loop()
        said, words = partial(_Listener, self._said, self._read_status, self._lost), partial(_Listener, self._words)
        for descriptor, make_protocol in ((self._status, said), (self._stderr, words)):
            file = os.fdopen(descriptor, "rb", 0)
            transport, _ = await loop.connect_read_pipe(make_protocol, file)
            self._readers.append(transport)

    def last_words(self) -> str:
        """The last lines of the browser's stderr."""
        return "\n".join(self._words.data.decode(errors="replace").strip().splitlines()[-8:])

    def _read_status(self) -> None:
        for line in self._said.data.decode(errors="replace").splitlines():
            kind, _, rest = line.partition(" ")
            if kind == "pid":
                self.pid = int(rest)
            elif kind == "errno":
                number, _, text = rest.partition(" ")
                self.problem = int(number), text

    def _lost(self) -> None:
        """The guard has ended, and with it the browser. If it was killed, the server has to delete the folder."""
        if self._process is not None:
            spared.discard(self._process.pid)
            self._process.wait()  # it holds no descriptor any more: this takes microseconds
            self._clean_up()
        self.ended.set()
        self._report_end()

    async def end(self) -> None:
        """Close the lifeline and wait for the guard. If it has ended or hangs, do its work."""
        self._close_lifeline()
        if self._process is not None and self._readers:
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self.ended.wait()
            except TimeoutError:
                self._process.kill()
                self._process.wait()
        self._finish()

    def abandon(self) -> None:
        """Close the lifeline without waiting: the guard does the rest."""
        self._close_lifeline()
        if self._process is None:
            self._finish()
            return
        process = self._process
        self._close_readers()

        def wait() -> None:
            process.wait()
            spared.discard(process.pid)

        asyncio.get_running_loop().run_in_executor(None, wait)

    def _finish(self) -> None:
        self._report_end()
        if self._process is not None:
            spared.discard(self._process.pid)
        self._close_readers()
        self._clean_up()

    def _clean_up(self) -> None:
        """Do the guard's remaining work: kill the browser and delete its folder."""
        if not os.path.lexists(self._folder):
            return
        import shutil

        if self.pid:
            try:
                os.killpg(self.pid, 9)
            except OSError:
                pass
        shutil.rmtree(self._folder, ignore_errors=True)

    def _close_lifeline(self) -> None:
        if self._lifeline >= 0:
            os.close(self._lifeline)
            self._lifeline = -1

    def _close_readers(self) -> None:
        if not self._readers:
            for descriptor in (self._status, self._stderr):
                if descriptor >= 0:
                    os.close(descriptor)
            self._status = self._stderr = -1
        for transport in self._readers:
            transport.close()


class _Tail:
    """The end of a stream."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, data: bytes) -> None:
        self.data = (self.data + data)[-STDERR_BYTES:]


class _Listener(asyncio.Protocol):
    def __init__(
        self, tail: _Tail, heard: Callable[[], None] | None = None, lost: Callable[[], None] | None = None
    ) -> None:
        self._tail, self._heard, self._lost = tail, heard, lost

    def data_received(self, data: bytes) -> None:
        self._tail.add(data)
        if self._heard is not None:
            self._heard()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  (asyncio's signature)
        if self._lost is not None:
            self._lost()


def _flags(options: LaunchOptions, attempt: _Attempt, folder: str) -> list[str]:
    flags = [*_FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={options.width},{options.height}"]
    if options.headless:
        flags += ["--headless=new", "--hide-scrollbars", "--mute-audio"]
    if not attempt.sandboxed:
        flags.append("--no-sandbox")
    if options.proxy is not None:
        # loopback too, and nothing outside the proxy: WebRTC would send its packets directly
        flags += [f"--proxy-server={options.proxy}", "--proxy-bypass-list=<-loopback>"]
        flags += [f"--{name}=disable_non_proxied_udp" for name in _WEBRTC_POLICY]
    return flags


def _environment(folder: str, user: tuple[int, int] | None) -> dict[str, str]:
    ours = {
        name: value for name, value in os.environ.items() if name.upper() in _ENVIRONMENT or name.startswith(_PREFIXES)
    }
    ours["TMPDIR"] = ours["BREAKPAD_DUMP_LOCATION"] = folder
    if user is not None:  # root's folders are closed to it
        for name in [each for each in ours if each.startswith("XDG_")]:
            del ours[name]
        ours["HOME"] = folder
    return ours


def _unprivileged_user() -> tuple[int, int] | None:
    """The user and group to run a browser as: None for the server's own, unless that is root."""
    if os.geteuid() != 0:
        return None
    import pwd

    try:
        found = pwd.getpwnam("nobody")
    except KeyError:
        return None
    return found.pw_uid, found.pw_gid


def _make_folder(user: tuple[int, int] | None) -> str:
    """An empty folder for everything that the browser writes, that only its user can read."""
    usual = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108
    parent = usual if user is None or _is_open_to_all(usual) else "/tmp"  # noqa: S108
    folder = os.path.join(os.path.abspath(parent), f"longshore-browser-{os.urandom(8).hex()}")
    os.mkdir(folder, 0o700)
    if user is not None:
        os.chown(folder, *user)
    return folder


def _is_open_to_all(folder: str) -> bool:
    """Whether every user can reach what is in a folder."""
    path: str = os.path.realpath(folder)
    while True:
        try:
            if not os.stat(path).st_mode & 0o001:
                return False
        except OSError:
            return False
        if path == "/":
            return True
        path = os.path.dirname(path)


def _enlarge(pipe: int) -> None:
    """Let a pipe hold a screenshot at once."""
    try:
        import fcntl

        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
    except (AttributeError, OSError):
        pass  # not Linux, or the user's pipes exceed their limit already
