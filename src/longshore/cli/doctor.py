"""`longshore doctor`: what works on this machine, what does not, why, and the fix."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib import import_module
from typing import Any, Literal

import click
from msgspec import Struct, json
from msgspec.structs import replace

from longshore import __version__
from longshore import config as configuration
from longshore.cli.screen import Line, Screen
from longshore.config.sections import PROFILE_OPTION
from longshore.errors import ConfigError, SandboxUnavailable

State = Literal["ok", "missing", "failed"]
"""`missing`: optional, and something else does its work or is weaker. `failed`: what is configured can't run."""
_STYLES: dict[State, str] = {"ok": "green", "missing": "yellow", "failed": "red"}


class Check(Struct, frozen=True):
    """One thing that was looked at."""

    name: str
    state: State
    detail: str = ""
    fix: str = ""


@click.command()
@click.argument("target", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--config", "path", metavar="PATH", help="Read this file in place of the project's longshore.toml.")
@click.option(
    PROFILE_OPTION,
    "profile",
    metavar="NAME",
    help="The profile of the built-in server that is meant: bb, brooklyn, browseros, ghost.",
)
def doctor(target: str | None, as_json: bool, path: str | None, profile: str | None) -> int:
    """Say what works here, what does not, and the fix.

    It looks at the configuration, folders, toolsets and sandbox of `longshore serve TARGET` in this folder, by default
    of the built-in server. The exit code is 1 if something that is configured can't run.
    """
    found = [Check("longshore", "ok", f"{__version__}, Python {platform.python_version()}, {sys.platform}")]
    app = import_module("longshore.__main__").find(target, profile)  # it is outside the layers
    try:
        config = configuration.load(path=path, toolsets=app.catalog.toolsets, defaults=app.defaults)
    except ConfigError as problem:
        found.append(Check("configuration", "failed", str(problem), "mend it; `longshore config check` tests it"))
    else:
        app.config = config
        found.append(Check("configuration", "ok", ", ".join(map(str, config.files)) or "no file, so the defaults"))
        found += [_folders(config), *_toolsets(app, config)]
    found += [_ripgrep(), *_mechanisms()]
    if as_json:
        click.echo(json.format(json.encode(found), indent=2))
    else:
        Screen().lines(line for check in found for line in show(check))
    return 1 if any(check.state == "failed" for check in found) else 0


def _folders(config: configuration.Config) -> Check:
    from longshore.server.call_files import read_roots

    try:
        roots = read_roots(config)
    except ConfigError as problem:
        return Check("folders", "failed", str(problem), "name folders that exist, by --root or server.roots")
    shown = ", ".join(roots.folders)
    if not shown:
        return Check("folders", "failed", roots.why)
    return Check("folders", "ok", f"{shown} ({roots.why})" if roots.why else shown)


def _toolsets(app: Any, config: configuration.Config) -> list[Check]:
    """A check for each toolset that is enabled."""
    from longshore.toolsets.browser.options import BrowserOptions
    from longshore.toolsets.terminal.options import TerminalOptions

    try:
        app.engine  # noqa: B018  (it initialises the toolsets)
    except ConfigError as problem:
        return [Check("toolsets", "failed", str(problem))]
    found = list[Check]()
    for handle in app.catalog.toolsets.values():
        if not configuration.toolset_enabled(config, handle.name, handle.toolset.enabled):
            continue
        ok = handle.check_available()
        count = sum(entry.toolset is handle for entry in app.engine.listed_tools())
        check = Check(handle.name, "ok" if ok else "failed", f"{count} tools" if ok else handle.unavailable)
        if handle.options_type is TerminalOptions:
            check = _confined(check, config)
        elif handle.options_type is BrowserOptions:
            check = _started(check, config) if ok else replace(check, fix="run `longshore browser install`")
        found.append(check)
    return found


def _confined(check: Check, config: configuration.Config) -> Check:
    """The terminal's check with its level and what enforces it, tried now: `available` relies on an earlier success."""
    from longshore.toolsets.terminal.options import TerminalOptions, make_sandbox

    options = configuration.toolset_options(config, check.name, TerminalOptions)
    assert isinstance(options, TerminalOptions)
    try:
        sandbox = make_sandbox(options)
    except SandboxUnavailable as problem:
        return Check(check.name, "failed", problem.what, problem.fix)
    by = "without confinement" if sandbox.level == "none" else f"by {sandbox.mechanism}"
    return replace(check, detail=f"{check.detail}, level {sandbox.level} {by}")


def _started(check: Check, config: configuration.Config) -> Check:
    """The browser's check with its program, which is started now."""
    from longshore.cli.browser import start_browser
    from longshore.sandbox.mechanisms import NAMESPACES
    from longshore.toolsets.browser.executable import BrowserUnavailable, find_browser, read_version
    from longshore.toolsets.browser.options import BrowserOptions

    options = configuration.toolset_options(config, check.name, BrowserOptions)
    assert isinstance(options, BrowserOptions)
    try:
        path = find_browser(options.path or None)
        notice = start_browser(path)
    except BrowserUnavailable as problem:
        return Check(check.name, "failed", str(problem), "mend what it says, or name another program in CHROME_PATH")
    check = replace(check, detail=f"{check.detail}, {path} ({read_version(path) or 'of an unknown version'}) starts")
    if notice is None:
        return check
    return replace(check, state="missing", detail=f"{check.detail}. {notice}", fix=NAMESPACES)


def _ripgrep() -> Check:
    from longshore.sandbox import landlock

    program = shutil.which("rg")
    if program is None:
        why = "not installed, so fs_search uses its own search, which is slower"
        return Check("ripgrep", "missing", why, "install ripgrep (sudo apt-get install ripgrep)")
    if not landlock.is_available():
        return Check("ripgrep", "missing", f"{program} can't be confined without landlock; fs_search does without it")
    return Check("ripgrep", "ok", f"{program}, for fs_search")


def _mechanisms() -> list[Check]:
    """A check for each mechanism that the terminal's sandbox can use."""
    from longshore.sandbox.mechanisms import mechanisms

    return [Check(each.name, "ok" if each.active else "missing", each.why, each.fix) for each in mechanisms()]


def show(check: Check) -> list[Line]:
    """A check as lines for a person."""
    said = f"{check.name}: {check.detail}" if check.detail else check.name
    lines: list[Line] = [(0, [(f"{check.state:8}", _STYLES[check.state]), (said, "")])]
    return [*lines, (8, [(f"fix: {check.fix}", "bold")])] if check.fix else lines
