"""The entry point: `longshore serve` and `python -m longshore` reach stdio without the command line's libraries.

Every other command line goes to `longshore.cli`. A user's mistake ends with a message and an exit code, never with a
traceback.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, NoReturn


def main(argv: list[str] | None = None) -> NoReturn:
    """The `longshore` command."""
    args = sys.argv[1:] if argv is None else argv
    if args == ["--version"] and _print_version():
        sys.exit(0)
    parsed = _read_serve(args)
    if parsed is not None:
        target, flags, config_path, profile = parsed
        serve(target, flags, config_path, profile)
        sys.exit(0)
    from longshore.cli.main import run

    sys.exit(run(args))


def _print_version() -> bool:
    """Print the version without the command line's libraries; False if that fails, which the command line reports."""
    from longshore import __version__

    try:
        os.write(1, f"longshore {__version__}\n".encode())
    except OSError:
        return False
    return True


def serve_profile(profile: str, program: str) -> NoReturn:
    """A command that serves one profile with the options of `serve`. `program` is what the user has typed for it."""
    args = sys.argv[1:]
    _serve_plainly(profile, args)
    from longshore.cli.main import run
    from longshore.cli.serve import make_profile_command

    sys.exit(run(args, make_profile_command(profile), program))


def bb_mcp_server() -> NoReturn:
    """The `bb-mcp-server` command: the profile `bb`."""
    serve_profile("bb", "bb-mcp-server")


def brooklyn() -> NoReturn:
    """The `brooklyn` command: the profile `brooklyn`, its state and its checks."""
    args = sys.argv[1:]
    if args[:2] == ["mcp", "start"]:
        _serve_plainly("brooklyn", ["--set", "server.transport=stdio", *args[2:]])
    from longshore.cli.brooklyn import run_brooklyn

    sys.exit(run_brooklyn(args))


def contextgraph_ghost() -> NoReturn:
    """The `contextgraph-ghost` command: the profile `ghost`."""
    serve_profile("ghost", "contextgraph-ghost")


def _serve_plainly(profile: str, args: list[str]) -> None:
    """Serve a profile and exit, if these are plain options of `serve`; anything else is for the command line."""
    parsed = _read_serve(["serve", *args])
    if parsed is None:
        return
    target, flags, config_path, other = parsed
    if target is None and other is None:
        serve(None, flags, config_path, profile)
        sys.exit(0)


def _read_serve(args: list[str]) -> tuple[str | None, dict[str, Any], str | None, str | None] | None:
    """The target, flags, configuration file and profile of a plain `serve`; None if it is anything else."""
    if not args or args[0] != "serve":
        return None
    from longshore.config.sections import CONFIG_OPTION, FLAGS, PROFILE_OPTION, REPEATABLE, SET_OPTION, SWITCHES

    target: str | None = None
    flags: dict[str, Any] = {}
    path: str | None = None
    profile: str | None = None
    rest = iter(args[1:])
    for arg in rest:
        option, equals, value = arg.partition("=")
        if arg in SWITCHES:
            flags[FLAGS[arg]] = "true"
        elif option in (CONFIG_OPTION, PROFILE_OPTION, SET_OPTION) or option in FLAGS:
            given = value if equals else next(rest, None)
            if given is None:
                return None
            if option == CONFIG_OPTION:
                path = given
            elif option == PROFILE_OPTION:
                profile = given
            elif option == SET_OPTION:
                key, equals, value = given.partition("=")
                if not equals:
                    return None
                flags[key] = value
            elif option in REPEATABLE:
                flags.setdefault(FLAGS[option], []).append(given)
            else:
                flags[FLAGS[option]] = given
        elif arg.startswith("-") or target is not None:
            return None
        else:
            target = arg
    return target, flags, path, profile


def serve(
    target: str | None, flags: Mapping[str, Any], config_path: str | None, profile: str | None, http_option: str = ""
) -> None:
    """Serve a target, or a profile of the built-in server, on stdio, or over HTTP where the configuration says so.

    `http_option` is one of the options that is for HTTP, if there is one.
    """
    from longshore.errors import LongshoreError
    from longshore.transports.descriptors import claim

    by_hand = os.isatty(0)
    try:
        reader, writer = claim()
        app = find(target, profile)
        if by_hand and "server.transport" not in app.defaults:  # else it may serve over HTTP, which greets too
            _greet(app.name, target, profile)
        app.show_console()
        app.serve(reader, writer, flags=flags, config_path=config_path, http_option=http_option)
    except LongshoreError as problem:
        sys.stderr.write(f"{problem}\n")
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:  # while the target is imported; later, signals are ours
        sys.exit(130)


def serve_http(target: str | None, flags: Mapping[str, Any], config_path: str | None, profile: str | None) -> None:
    """Serve a target, or a profile of the built-in server, over HTTP."""
    app = find(target, profile)
    app.show_console()
    app.serve_http(flags=flags, config_path=config_path)


def find(target: str | None, profile: str | None = None) -> Any:
    """The server of a target, or of a profile."""
    if target is None:
        from longshore.builtin import make

        return make(profile or "longshore")
    if profile is not None:
        from longshore.errors import ConfigError

        raise ConfigError(f"--profile {profile} is a server of its own, so it goes without {target}; use --dialect")
    from longshore.loader import load_server

    return load_server(target)


def _greet(name: str, target: str | None, profile: str | None) -> None:
    from longshore.transports.greeting import greet, longshore_command

    named: list[str] = [] if profile is None else ["--profile", profile]
    if target is not None:
        from longshore.loader import absolute

        named = [absolute(target)]
    greet(name, [*longshore_command(), "serve", *named])


def leave_out_working_folder() -> None:
    """Import nothing from the working folder, which `python -m` puts first on the path: tools write there."""
    if not sys.flags.safe_path:
        del sys.path[0]


if __name__ == "__main__":
    leave_out_working_folder()
    main()
