"""`brooklyn`: serve Brooklyn's tools, say what works, and check what its documents demand."""

from __future__ import annotations

from typing import Final

import click
import msgspec

from longshore import __version__
from longshore.cli.doctor import doctor
from longshore.cli.main import run
from longshore.cli.options import FAILED, TargetOrCommand, command_of
from longshore.cli.screen import Screen
from longshore.cli.serve import make_profile_command
from longshore.client.targets import serve_command
from longshore.config.sections import PROFILE_OPTION, SET_OPTION
from longshore.errors import TargetError

_PROFILE: Final = (PROFILE_OPTION, "brooklyn")
_SERVER: Final = tuple(serve_command(None, *_PROFILE, SET_OPTION, "server.transport=stdio", "--log-level", "debug"))
"""`brooklyn mcp start --log-level debug`, by this Python."""
_STATUS: Final = {"name": "brooklyn_status", "arguments": {"detail": "full"}}
_CODES: Final = "Exit codes: 0 as it should be; 1 findings; 2 the server could not be checked."


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="brooklyn", message="%(prog)s %(version)s")
def brooklyn() -> None:
    """Browser tools by Brooklyn's names."""


@brooklyn.group()
def mcp() -> None:
    """MCP on stdio."""


@brooklyn.group()
def web() -> None:
    """MCP over HTTP."""


@brooklyn.group()
def check() -> None:
    """Check a server against Brooklyn's documents."""


mcp.add_command(make_profile_command("brooklyn", "stdio"))
web.add_command(make_profile_command("brooklyn", "http"))


@brooklyn.command()
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def status(is_json: bool) -> int:
    """Say what works here, what does not, and the fix."""
    given = [*_PROFILE, "--json"] if is_json else [*_PROFILE]
    code: int = doctor.main(given, prog_name="brooklyn status", standalone_mode=False)
    return code


@mcp.command("status")
def mcp_status() -> int:
    """Start the server on stdio, and print what brooklyn_status answers."""
    from longshore.cli.exchange import exchange, request

    result = exchange(_SERVER, request(1, "tools/call", **_STATUS)).result(1)
    if "content" not in result:
        raise TargetError("the server did not answer brooklyn_status; brooklyn check protocol says more")
    Screen().json(found := msgspec.json.decode(result["content"][0]["text"]))
    return 0 if found["status"] == "ok" else FAILED


@check.command("schema", cls=TargetOrCommand, epilog=_CODES)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
@click.option("--strict", is_flag=True, help="Warnings fail too.")
@click.pass_context
def check_schema(ctx: click.Context, is_json: bool, strict: bool) -> int:
    """Check the tools that a server lists without a handshake.

    The server is our own, or that of a command after --.
    """
    from longshore.builtin import CATEGORIES
    from longshore.cli.brooklyn_checks import listed_tools
    from longshore.cli.findings import Report, as_json, as_lines
    from longshore.schema.lint.run import lint
    from longshore.schema.lint.tool_list import ToolList
    from longshore.schema.output import count_tokens

    argv = command_of(ctx)
    tools = listed_tools(argv or _SERVER)
    server = ToolList(name=argv[0] if argv else "brooklyn", tools=tuple(tools), categories=CATEGORIES)
    findings = tuple(lint(server, profiles=("mcp", "claude", "brooklyn")))
    report = Report(server=server.name, tools=len(tools), tokens=count_tokens(tools), findings=findings)
    if is_json:
        Screen().json(as_json(report))
    else:
        Screen().lines(as_lines(report))
    return FAILED if report.count("error") or (strict and report.count("warning")) else 0


@check.command("protocol", cls=TargetOrCommand, epilog=_CODES)
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check_protocol(ctx: click.Context, is_json: bool) -> int:
    """Check the messages of a server: without a handshake, with one, and of 2026-07-28.

    The server is our own, or that of a command after --.
    """
    from longshore.cli import brooklyn_checks
    from longshore.cli.check import show

    argv = command_of(ctx)
    fix = "" if argv else "brooklyn status says what can't run here"
    found = list(brooklyn_checks.check_protocol(argv or _SERVER, fix))
    if is_json:
        Screen().json(msgspec.to_builtins(found))
    else:
        Screen().lines(line for each in found for line in show(each))
    return FAILED if any(each.state == "failed" for each in found) else 0


def run_brooklyn(argv: list[str]) -> int:
    """Run a command line (without the program's name); the exit code."""
    return run(argv, brooklyn, "brooklyn")
