"""`longshore browser`: install a browser for the browser tools, and say which one they use."""

from __future__ import annotations

import asyncio
import os
import shlex
import subprocess
from importlib import import_module
from typing import Final

import click

from longshore import config as configuration
from longshore.toolsets.browser.executable import (
    ENVIRONMENT,
    BrowserUnavailable,
    find_browser,
    install_commands,
    install_line,
    read_version,
)

START_SECONDS: Final = 15.0
"""A browser starts in a second or two; nobody waits longer than this for an answer about it."""


@click.group()
def browser() -> None:
    """Install a browser for the browser tools, or say which one they use."""


@browser.command()
def install() -> int:
    """Install Chromium with the system's package manager.

    It asks for no password: if the user may not install packages, it prints the line to run, and the exit code is 1.
    """
    path = _configured_path()
    try:
        found = find_browser(path)
        if read_version(found) is None:
            return _fail(f"{found} is there, but does not run; name another program in {ENVIRONMENT}")
        click.echo(f"a browser is there already: {_describe(found)}")
        return 0
    except BrowserUnavailable as problem:
        if path or os.environ.get(ENVIRONMENT):  # another browser would not be used
            return _fail(str(problem))
    commands = install_commands()
    if not commands:
        return _fail(
            f"this user can't install a browser; run this line, then `longshore browser status`:\n{install_line()}"
        )
    for command in commands:
        click.echo(f"running {shlex.join(command)}", err=True)
        if (code := _run(command)) != 0:
            return _fail(
                f"{shlex.join(command)} failed ({code}); mend what it says above, or install a browser yourself"
            )
    try:
        found = find_browser()
    except BrowserUnavailable as problem:
        return _fail(f"the package was installed, but {problem}")
    if read_version(found) is None:
        return _fail(f"{found} was installed, but does not run; `longshore browser status` says why")
    click.echo(f"installed {_describe(found)}")
    return 0


@browser.command()
def status() -> int:
    """Say which browser is used, and whether it starts.

    It looks for the program of toolsets.browser.path, of CHROME_PATH, then in the usual places. The exit code is 1 if
    there is none or it does not start.
    """
    try:
        found = find_browser(_configured_path())
        click.echo(_describe(found))
        notice = start_browser(found)
    except BrowserUnavailable as problem:
        return _fail(str(problem))
    click.echo(f"it starts. {notice}" if notice else "it starts")
    return 0


def start_browser(path: str) -> str | None:
    """Start a browser and end it. Returns the notice if its own sandbox is off; raises BrowserUnavailable."""
    from longshore.toolsets.browser.launch import LaunchOptions, launch

    async def start() -> str | None:
        try:
            async with asyncio.timeout(START_SECONDS):
                process = await launch(LaunchOptions(executable=path))
        except TimeoutError:
            raise BrowserUnavailable(f"{path} did not start within {START_SECONDS:g} s") from None
        await process.end()
        return process.notice

    return asyncio.run(start())


def _configured_path() -> str | None:
    """The program that the built-in server's configuration names."""
    from longshore.toolsets.browser.options import BrowserOptions

    app = import_module("longshore.__main__").find(None, None)  # it is outside the layers
    config = app.load_config()
    options = configuration.toolset_options(config, "browser", BrowserOptions)
    assert isinstance(options, BrowserOptions)
    return options.path or None


def _describe(path: str) -> str:
    version = read_version(path)
    return f"{path}, {version}" if version else f"{path}, which does not say its version"


def _run(command: list[str]) -> int:
    """Run a package manager, whose output goes to stderr."""
    environ = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=2, env=environ, check=False).returncode
    except OSError as problem:
        click.echo(str(problem), err=True)
        return problem.errno or 1


def _fail(text: str) -> int:
    click.echo(text, err=True)
    return 1
