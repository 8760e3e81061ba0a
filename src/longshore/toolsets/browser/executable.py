"""Finding a browser of the Chromium family on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from longshore.errors import ToolError
from longshore.sandbox.programs import find_program, is_program

ENVIRONMENT: Final = "CHROME_PATH"
_COMMANDS: Final = (
    *("google-chrome-stable", "google-chrome", "chrome", "chromium", "chromium-browser"),
    *("microsoft-edge-stable", "microsoft-edge", "brave-browser", "brave"),
)
_LINUX_PLACES: Final = (
    "/opt/google/chrome/chrome",
    "/usr/lib/chromium/chromium",
    "/usr/lib64/chromium-browser/chromium-browser",
    "/snap/bin/chromium",
    "/opt/microsoft/msedge/msedge",
    "/opt/brave.com/brave/brave",
)
_MAC_APPS: Final = ("Google Chrome", "Chromium", "Microsoft Edge", "Brave Browser")
_INSTALLERS: Final = (
    ("apt-get", "apt-get install -y chromium"),
    ("dnf", "dnf install -y chromium"),
    ("pacman", "pacman -S --noconfirm chromium"),
    ("zypper", "zypper install -y chromium"),
    ("apk", "apk add chromium"),
)

_VERSION: Final = re.compile(r"[^\n]{1,50}?[0-9]+(\.[0-9]+)+")
_VERSION_SECONDS: Final = 10.0


class BrowserUnavailable(ToolError):
    """There is no usable browser. The text says how to get one."""


def find_browser(path: str | None = None, roots: Sequence[str] = ()) -> str:
    """The browser to start: the given one, the environment's, or one in the usual folders that is not in the roots."""
    if path:
        return _given(path, "the option", roots)
    if value := os.environ.get(ENVIRONMENT):
        return _given(value, f"the environment variable {ENVIRONMENT}", roots)
    for candidate in _usual_places(roots):
        if is_program(candidate):
            return candidate
    raise BrowserUnavailable(
        f"there is no Chrome, Chromium, Edge or Brave here; install one ({install_line()}), "
        f"or name its program in {ENVIRONMENT}"
    )


def install_line(platform: str = sys.platform) -> str:
    """The command that installs a browser with the system's package manager."""
    line = _installer(platform)
    if line is None:
        return "see https://www.chromium.org/getting-involved/download-chromium"
    return line if platform == "darwin" or os.geteuid() == 0 else f"sudo {line}"


def install_commands(platform: str = sys.platform) -> list[list[str]]:
    """The commands by which this user may install a browser; none if that takes another user or is unknown."""
    line = _installer(platform)
    may = shutil.which("brew") is not None if platform == "darwin" else os.geteuid() == 0
    if line is None or not may:
        return []
    # Debian's images have no list of packages, and an old list names files that are no longer there.
    before = [["apt-get", "update"]] if line.startswith("apt-get") else []
    return [*before, line.split()]


def read_version(path: str) -> str | None:
    """The version line of a browser's program, such as "Chromium 141.0.7390.37"; None if it does not run."""
    try:
        done = subprocess.run(
            [path, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_VERSION_SECONDS,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.match(done.stdout.decode(errors="replace").strip())
    return found[0] if found else None


def _installer(platform: str) -> str | None:
    if platform == "darwin":
        return "brew install --cask google-chrome"
    return next((line for program, line in _INSTALLERS if shutil.which(program)), None)


def _given(path: str, source: str, roots: Sequence[str]) -> str:
    path = os.path.expanduser(path)
    found = find_program(path, roots) if os.sep not in path else path if is_program(path) else None
    if found is None:
        raise BrowserUnavailable(
            f"{source} names {path!r}, which is no program; "
            f"give the path of a Chrome, Chromium, Edge or Brave, or install one ({install_line()})"
        )
    return os.path.abspath(found)


def _usual_places(roots: Sequence[str]) -> list[str]:
    found = [path for name in _COMMANDS if (path := find_program(name, roots))]
    if sys.platform == "darwin":
        folders = ("/Applications", os.path.expanduser("~/Applications"))
        return [f"{folder}/{app}.app/Contents/MacOS/{app}" for app in _MAC_APPS for folder in folders] + found
    return [*found, *_LINUX_PLACES]
