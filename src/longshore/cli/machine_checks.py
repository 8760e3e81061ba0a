"""The checks of `longshore doctor` of this machine: toolsets, sandbox, browser, store, port, and the clients' files."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from longshore import config as configuration
from longshore.cli.check import Check
from longshore.errors import ConfigError, SandboxUnavailable, StoreError


def check_machine(app: Any, config: configuration.Config) -> Iterator[Check]:
    """The checks of a server's configuration, beside those of `check_mechanisms`."""
    yield _folders(config)
    yield from _toolsets(app, config)
    yield _store(config)
    yield _port(config)


def check_mechanisms() -> Iterator[Check]:
    """The programs and mechanisms that the built-in tools use."""
    yield _ripgrep()
    yield from _mechanisms()


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
        if not (app.engine.policy.is_toolset_enabled(handle) and not app.engine.policy.is_idle(handle)):
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
    from longshore.sandbox.programs import find_program

    program = find_program("rg")
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


# -- HTTP


def _store(config: configuration.Config) -> Check:
    """The store of `serve --http`, which is opened and asked."""
    import asyncio

    from longshore.stores import open_store

    url = config.http.store
    if url is None:
        return Check("store", "ok", "memory; sessions over HTTP end with the server")

    async def ask() -> None:
        store = open_store(url)
        try:
            await store.get("longshore-doctor")
        finally:
            await store.close()

    try:
        asyncio.run(ask())
    except (ConfigError, StoreError, OSError) as problem:
        return Check("store", "failed", str(problem), "start it, or set http.store to another one")
    return Check("store", "ok", url.partition(":")[0])


def _port(config: configuration.Config) -> Check:
    """Whether `serve --http` could listen now."""
    host, port = config.http.host, config.http.port
    where = f"{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as problem:
        fix = "it may be a Longshore that runs already; else serve --http --port NUMBER"
        return Check("port", "missing", f"{where} can't be listened on: {problem.strerror or problem}", fix)
    return Check("port", "ok", f"{where} is free, for serve --http")


# -- clients


def check_clients() -> Iterator[Check]:
    """The clients of this machine, their files, and the servers in them."""
    from longshore.cli.install import find_folders, list_clients

    try:
        rows = list(list_clients(find_folders()))
    except ConfigError as problem:
        yield Check("clients", "missing", str(problem))
        return
    here = [row for row in rows if row["here"] or row["scope"] == "project"]
    for row in here:
        name = f"{row['title']}{' in this project' if row['scope'] == 'project' else ''}"
        if row["problem"]:
            yield Check(name, "failed", row["problem"], "mend that line; the client can't read the file either")
        elif row["gone"]:
            what = f"{row['file']}: {row['gone'][0]} starts a program that is not there: {row['programs'][0]}"
            yield Check(name, "missing", what, _fix_gone(row))
        else:
            yield Check(name, "ok", f"{row['file']}: {', '.join(row['servers']) or 'no servers'}")
    if not here:
        fix = "longshore install --list names all that it knows, and where their files are"
        yield Check("clients", "missing", "none was found here", fix)


def _fix_gone(row: dict[str, Any]) -> str:
    name, project = row["gone"][0], " --project" if row["scope"] == "project" else ""
    if name in row["written"]:
        return f"longshore install {row['client']} --name {name}{project} --force"
    return f"install it, or delete {name} from the file"
