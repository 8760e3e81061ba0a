"""The terminal tools: run, read, send, kill and list commands in a sandbox."""

from __future__ import annotations

import asyncio
import os
import shlex
from math import inf
from typing import Annotated, Any, Final, Literal
from weakref import WeakKeyDictionary

from longshore.errors import Declined, SandboxUnavailable, ToolError, ToolTimeout
from longshore.protocol.content import ResourceLink, Text
from longshore.registry.token_budget import DEFAULT_TOKENS, MOST_TOKENS, MaxTokens, fit_lines
from longshore.registry.toolset import Toolset, tool
from longshore.registry.views import View
from longshore.sandbox.launch import Launch
from longshore.sandbox.levels import Sandbox
from longshore.sandbox.roots import is_in
from longshore.schema.annotations import Hidden
from longshore.server.context import Context
from longshore.telemetry.recorder import reporter_of
from longshore.toolsets.terminal import options as terminal_options
from longshore.toolsets.terminal.answers import (
    describe,
    join,
    room_for_output,
    show_list_line,
    show_new_output,
    show_screen,
)
from longshore.toolsets.terminal.command import Command, start_command
from longshore.toolsets.terminal.commands import Commands
from longshore.toolsets.terminal.live_view import view_of
from longshore.toolsets.terminal.options import TerminalOptions
from longshore.toolsets.terminal.output import WholeLog
from longshore.toolsets.terminal.output_pattern import OutputPattern
from longshore.toolsets.terminal.policy import CommandPolicy, make_question
from longshore.toolsets.terminal.waiting import Until

ANSWER_SECONDS: Final = 25.0
"""An answer comes within it: many clients give up after 60 s, some after 30."""
CALL_SECONDS: Final = 60.0
"""The limit of a call that waits so long, independent of `server.timeout`, whose end would be that of the command."""
BACKGROUND_SECONDS: Final = 0.3
"""A command in the background is waited for so long: a wrong name or option shows at once."""
SEND_SECONDS: Final = 5.0
"""How long the output after a key is waited for."""
PROGRESS_SECONDS: Final = 1.0
MOST_SECONDS: Final = 7 * 24 * 3600.0

# Parameters are None where they are left out: a default in the schema would cost a model tokens in every list.
Flag = bool | None
Tokens = Annotated[MaxTokens, Hidden()]
Id = Annotated[str, "such as c1"]
Answer = list[Text | ResourceLink]

_WAIVED: Final = {
    "B52": "the schema says which parameters are optional, and words for it cost a model tokens in every list",
    "B56": "bounds would cost a model 12 tokens a number in every list, and the errors say them",
    "W29": "the caller names the variables of `env`",
}
_ERRORS: Final = {"no command": "take an id that terminal_list shows"}


class Terminal(Toolset):
    """Commands in a sandbox."""

    name = "terminal"
    Options = TerminalOptions
    stateful = True
    uses_folders = True
    stop_seconds = 6.0
    available = terminal_options.available

    def __init__(self, options: TerminalOptions, server: Any = None) -> None:
        self.options = options
        self._policy = CommandPolicy(options.policy, options.allow)
        self._commands = Commands(
            most_running=options.most_running, idle_seconds=options.idle_seconds, started=reporter_of(server)
        )
        self._sandbox: Sandbox | None = None
        self._logs: WeakKeyDictionary[Command, ResourceLink] = WeakKeyDictionary()

    async def stop(self) -> None:
        await self._commands.close_all()

    def views(self) -> list[View]:
        return [view_of(owner, id, command) for owner, id, command in self._commands.everything()]

    def status(self) -> dict[str, Any]:
        return {"level": self.options.level, "policy": self.options.policy}

    @tool(
        effects="destroy",
        artifacts=True,
        replay=True,
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        errors={"is not allowed": "run one of the commands that the error names", "commands run": "end one of them"},
        examples=[{"command": "pytest -q 2>&1 | tail -20"}, {"argv": ["git", "commit", "-m", "it's"], "cwd": "src"}],
    )
    async def terminal_run(
        self,
        ctx: Context,
        command: Annotated[str | None, "for the shell"] = None,
        argv: Annotated[list[str] | None, "instead, without a shell"] = None,
        cwd: Annotated[str | None, "folder, if not the first"] = None,
        env: Annotated[dict[str, str] | None, "more variables"] = None,
        stdin: Annotated[str | None, "input; else it has none"] = None,
        timeout_ms: Annotated[int | None, "most it may run"] = None,
        on_timeout: Annotated[Literal["kill", "background"] | None, "kill unless given"] = None,
        background: Annotated[Flag, "answer at once"] = None,
        pty: Annotated[Flag, "on a terminal, for terminal_send"] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Answer:
        """Run a command. If it takes more than 25 s it goes on, and terminal_read gets the rest."""
        seconds = _seconds(timeout_ms, MOST_SECONDS)
        id, started = await self._start(ctx, command, argv, cwd, env, stdin, terminal=bool(pty))
        if seconds is not None and on_timeout != "background":
            started.end_after(seconds)
        most = BACKGROUND_SECONDS if background else ANSWER_SECONDS
        if seconds is not None and on_timeout == "background":
            most = min(most, seconds)
        with self._commands.use(ctx.principal.name, id):
            await self._wait_for_end(ctx, started, most)
        return await self._answer(ctx, id, started, max_tokens)

    @tool(
        effects="read",
        artifacts=True,
        timeout=CALL_SECONDS,
        waive=_WAIVED,
        errors=_ERRORS,
        examples=[{"id": "c1", "pattern": "listening on .*:\\d+"}, {"id": "c1", "tail": 20}],
    )
    async def terminal_read(
        self,
        ctx: Context,
        id: Id,
        cursor: Annotated[int | None, "byte to read from, if not what is new"] = None,
        tail: Annotated[int | None, "the last lines instead"] = None,
        screen: Annotated[Flag, "what a terminal shows instead"] = None,
        wait: Annotated[Literal["output", "exit"] | None, "first"] = None,
        pattern: Annotated[str | None, "regular expression to wait for"] = None,
        timeout_ms: Annotated[int | None, "most to wait, up to 25000"] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> Answer:
        """Read the output of a command, of a finished one too."""
        seconds = _seconds(timeout_ms, ANSWER_SECONDS)
        with self._commands.use(ctx.principal.name, id) as command:
            found = True
            if wait or pattern or seconds is not None:
                expected = None if pattern is None else OutputPattern(pattern)
                until: Until = "output" if wait == "output" or (not wait and not pattern) else "exit"
                after = command.seen if cursor is None else max(0, cursor)
                reason = await command.wait(seconds or ANSWER_SECONDS, until=until, after=after, pattern=expected)
                found = reason == "match" or pattern is None
            where = " in new output; cursor=0 looks in all of it" if cursor is None else ""
            note = [] if found else [Text(f"[no match of {pattern!r}{where}]")]
            if screen:
                return [Text(_screen_of(id, command, max_tokens)), *note]
            if tail is not None:
                shown = command.output.tail(max(1, tail), room_for_output(max_tokens))
                command.seen = shown.cursor
                return [Text(join(shown.text, describe(id, command))), *note]
            if cursor is not None:
                page = command.output.page(max(0, cursor), room_for_output(max_tokens))
                return [Text(join(page.text, f"[cursor={page.cursor}]\n{describe(id, command)}")), *note]
            return [*await self._answer(ctx, id, command, max_tokens), *note]

    @tool(
        effects="destroy",
        waive=_WAIVED,
        errors=_ERRORS | {"pty=true": "run the command again with pty"},
        examples=[{"id": "c1", "text": "yes", "keys": ["enter"]}, {"id": "c1", "keys": ["ctrl-c"]}],
    )
    async def terminal_send(
        self,
        ctx: Context,
        id: Id,
        text: Annotated[str | None, "to type"] = None,
        keys: Annotated[list[str] | None, "then, such as enter, ctrl-c, up, f5"] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Type into a command that runs with pty, and show what it prints then."""
        if not text and not keys:
            raise ToolError("give a text to type, or keys to press")
        with self._commands.use(ctx.principal.name, id) as command:
            after = command.output.size
            command.press(keys or [], (text or "").replace("\r\n", "\n").replace("\n", "\r").encode())
            await command.wait(SEND_SECONDS, until="quiet", after=after)
            if command.screen is not None and command.screen.is_drawn:
                return show_screen(id, command, max_tokens)
            return show_new_output(id, command, max_tokens, f"terminal_read cursor={after} has them").text

    @tool(effects="destroy", errors=_ERRORS)
    async def terminal_kill(self, ctx: Context, id: Id, max_tokens: Tokens = DEFAULT_TOKENS) -> str:
        """End a command with all of its processes. Its output can still be read."""
        with self._commands.use(ctx.principal.name, id) as command:
            await command.end()
            return show_new_output(id, command, max_tokens, "terminal_read has them").text

    @tool(effects="read", waive={"W31": "it has a token budget, and at most 40 lines"})
    async def terminal_list(self, ctx: Context, max_tokens: Tokens = DEFAULT_TOKENS) -> str:
        """List your commands, running and the last 32 finished, each with its state and last line."""
        lines = [show_list_line(id, command) for id, command in self._commands.all(ctx.principal.name).items()]
        return fit_lines(lines, max_tokens).text or "no commands"

    @tool(effects="destroy", replay=True, timeout=CALL_SECONDS, listed=False)
    async def terminal(
        self,
        ctx: Context,
        command: Annotated[str, "for the shell"],
        cwd: Annotated[str | None, "folder, if not the first"] = None,
        timeout: Annotated[float | None, "seconds that it may run"] = None,
        env: Annotated[dict[str, str] | None, "more variables"] = None,
    ) -> str:
        """Run a command to its end. It is for programs: beyond `timeout` it fails, and its output is always a text."""
        ctx.check_allowed("terminal_run")
        if timeout is not None and timeout <= 0:
            raise ToolError(f"timeout={timeout:g}: give more than 0 seconds")
        id, started = await self._start(ctx, command, None, cwd, env, None, terminal=False)
        if timeout is not None:
            started.end_after(min(timeout, MOST_SECONDS))
        with self._commands.use(ctx.principal.name, id):
            await self._wait_for_end(ctx, started, inf)
        shown = show_new_output(id, started, MOST_TOKENS, f"terminal_read id={id} cursor=0 has them").text
        if started.is_over_time:
            raise ToolTimeout(f"the command did not end within {timeout:g} s (its timeout). It had printed:\n{shown}")
        return shown

    # -- parts of a run

    async def _start(
        self,
        ctx: Context,
        command: str | None,
        argv: list[str] | None,
        cwd: str | None,
        env: dict[str, str] | None,
        stdin: str | None,
        *,
        terminal: bool,
    ) -> tuple[str, Command]:
        """Start a command that is allowed. Returns its id too."""
        chosen = self._policy.read(command, argv, env)
        text = command or shlex.join(chosen)
        if self._policy.asks and not await self._is_allowed(ctx, make_question(text, cwd, env, stdin)):
            raise Declined("the user did not allow this command")
        folders = tuple(await ctx.folders())
        launch = await self._launch(chosen, _find_folder(cwd, folders), env or {}, folders, terminal=terminal)
        given = None if stdin is None else stdin.encode()
        try:
            return await self._commands.start(
                ctx.principal.name, lambda: start_command(launch, text, stdin=given, terminal=terminal)
            )
        except BaseException:
            launch.close()
            raise

    async def _is_allowed(self, ctx: Context, question: str) -> bool:
        answer = await ctx.elicit(question, bool, key="run")
        return answer.accepted and answer.value is not False

    async def _launch(
        self, argv: tuple[str, ...], cwd: str, env: dict[str, str], roots: tuple[str, ...], *, terminal: bool
    ) -> Launch:
        def make() -> Launch:
            self._sandbox = sandbox = self._sandbox or terminal_options.make_sandbox(self.options)
            return sandbox.launch(argv, cwd=cwd, env=env, roots=roots, name="command", terminal=terminal)

        making = asyncio.get_running_loop().run_in_executor(None, make)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_close_unused)
            raise
        except SandboxUnavailable as problem:
            raise ToolError(str(problem)) from None
        except OSError as problem:
            raise ToolError(f"the command can't be started: {problem.strerror}") from None

    async def _wait_for_end(self, ctx: Context, command: Command, seconds: float) -> None:
        """Wait until a command ends, or waits for input on its terminal. A cancelled call ends it."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        try:
            while (left := until - loop.time()) > 0 and command.is_running:
                if await command.wait(min(left, PROGRESS_SECONDS)) == "time":
                    ctx.progress(command.seconds, message=command.output.last_line() or None)
                    if command.screen is not None and command.waits_for_input:
                        return
        except asyncio.CancelledError:
            command.begin_end()
            raise

    async def _answer(self, ctx: Context, id: str, command: Command, max_tokens: int) -> Answer:
        """New output, or the screen that it draws on. After the end also the log, if a part is left out."""
        if command.is_running and command.screen is not None and command.screen.is_drawn:
            return [Text(show_screen(id, command, max_tokens))]
        start = command.seen
        note = f"terminal_read cursor={start} has them" if command.is_running else "the log has them"
        shown = show_new_output(id, command, max_tokens, note)
        if shown.complete or command.is_running:
            return [Text(shown.text)]
        if command not in self._logs:
            log = WholeLog(command.output)
            self._logs[command] = await asyncio.to_thread(
                ctx.save_artifact, f"{id}.log", log, "text/plain", f"the output of {command.text[:100]!r}"
            )
        return [Text(shown.text), self._logs[command]]


def _close_unused(making: asyncio.Future[Launch]) -> None:
    """Free the launch of a call that was cancelled while a thread created it."""
    if not making.cancelled() and making.exception() is None:
        making.result().close()


def _screen_of(id: str, command: Command, max_tokens: int) -> str:
    if command.screen is None:
        raise ToolError(f"{id} has no screen: run it with pty")
    return show_screen(id, command, max_tokens)


def _seconds(timeout_ms: int | None, most: float) -> float | None:
    if timeout_ms is None:
        return None
    if not 0 < timeout_ms <= most * 1000:
        raise ToolError(f"timeout_ms={timeout_ms}: give 1 to {most * 1000:.0f}")
    return timeout_ms / 1000


def _find_folder(cwd: str | None, folders: tuple[str, ...]) -> str:
    """The folder to run in. Raises ToolError unless it is one of the server's folders or inside one."""
    if cwd and "\0" in cwd:
        raise ToolError("a NUL character can't be in cwd; leave it out")
    path = os.path.realpath(os.path.join(folders[0], cwd or ""))
    if not is_in(path, folders):
        raise ToolError(f"{cwd!r} is outside the folders that commands may use: {', '.join(folders)}")
    if not os.path.isdir(path):
        raise ToolError(f"there is no folder {cwd or path!r}; give an existing one as cwd")
    return path
