"""Code mode: `run_code` runs Python in the sandbox, whose `tools` are the tools of the server."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import UNSET, Raw

from longshore.errors import SandboxUnavailable, ToolError, Unanswerable
from longshore.mounting.relayed_questions import capabilities_of, read_question, write_answer
from longshore.protocol.content import Audio, CallResult, Image, ResourceLink, Text
from longshore.registry.token_budget import DEFAULT_TOKENS, MaxTokens
from longshore.registry.toolset import Toolset, tool
from longshore.registry.views import View
from longshore.sandbox.launch import Launch
from longshore.sandbox.levels import Sandbox
from longshore.schema.annotations import Hidden
from longshore.server.context import Context
from longshore.server.held_calls import MEMO_KEY, HeldCall, HeldCalls
from longshore.server.inner_calls import InnerCalls, InnerLink
from longshore.toolsets.catalog.stubs import parameter_order, python_name
from longshore.toolsets.code import options as code_options
from longshore.toolsets.code.options import CodeOptions
from longshore.toolsets.code.process import CodeProcess, Media, Message, ProcessEnded, start_process
from longshore.toolsets.code.processes import Processes, Roots
from longshore.toolsets.terminal.live_view import view_of
from longshore.wire.codec import INVALID_PARAMS

if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.registry.tool import Entry

MOST_SECONDS: Final = 600.0
"""The longest that code may run. Longer work belongs into a command of the terminal."""
CODE_CHARACTERS: Final = 200_000
"""The longest code. A model writes less in one call, and a longer program belongs into a file."""
INLINE_BYTES: Final = 1 << 20
"""Pictures and sounds in one answer. Those beyond it are linked."""


class Code(Toolset):
    """Python code that calls tools."""

    name = "code"
    Options = CodeOptions
    enabled = False  # form "code" of the catalogue enables it
    stateful = True
    uses_folders = True
    stop_seconds = 6.0
    available = code_options.available

    def __init__(self, options: CodeOptions, app: Server) -> None:
        self.options, self._app = options, app
        self._sandbox: Sandbox | None = None
        self._processes = Processes(options, self._start)
        self._held = HeldCalls("the code that asked", lambda text: app.recorder.problem("warning", f"run_code: {text}"))

    async def stop(self) -> None:
        await self._processes.close_all()

    def views(self) -> list[View]:
        shown = [(view_of(owner, name, each.command), name) for owner, name, each in self._processes.everything()]
        return [msgspec.structs.replace(view, title=f"code session {name}") for view, name in shown]

    @tool(
        category="discovery",
        effects="destroy",
        open_world=True,
        artifacts=True,
        replay=True,
        timeout=False,
        catalog_forms=["code"],
        errors={"ToolError": "a tool refused or failed; the text is its own", "session": "take another name"},
        examples=[{"code": "for line in tools.fs_search(pattern='TODO').splitlines()[:3]:\n    print(line)"}],
        waive={"B56": "the error says the bounds, and they would cost a model tokens in every list"},
    )
    async def run_code(
        self,
        ctx: Context,
        code: Annotated[str, "Python"],
        timeout_ms: Annotated[int | None, "60000 unless given"] = None,
        session: Annotated[str | None, "a name: variables stay for its next call"] = None,
        max_tokens: Annotated[MaxTokens, Hidden()] = DEFAULT_TOKENS,
    ) -> CallResult:
        """Run Python on the project's files, in a sandbox. tools.NAME(…) calls a tool.

        What is printed and the last value come back.
        """
        if isinstance(ctx.call.link.home, InnerLink):  # also by call_tool, whose link is wrapped
            raise ToolError("code can't run code: call the function itself")
        if len(code) > CODE_CHARACTERS:
            raise ToolError(f"the code has {len(code):,} characters; at most {CODE_CHARACTERS:,} can be given")
        seconds = self.options.run_seconds if timeout_ms is None else timeout_ms / 1000
        if not 0 < seconds <= MOST_SECONDS:
            raise ToolError(f"timeout_ms={timeout_ms}: give 1 to {MOST_SECONDS * 1000:.0f}")
        await self._app.engine.wait_for_mounts()  # their tools have no parameters before
        roots = tuple(await ctx.folders())
        capabilities = capabilities_of(ctx.call.peer)
        if ctx.call.peer.revision.modern:
            capabilities.pop("roots", None)  # it is deprecated there: folders are not narrowed by it

        async def work(held: HeldCall) -> CallResult:
            run = _Run(self._app, ctx, held, capabilities, seconds, max_tokens)
            try:
                async with self._processes.use(ctx.principal.name, session, roots) as (process, is_new):
                    return await run.run(process, code, f"new session {session!r}" if session and is_new else "")
            except _Stopped as stopped:
                return stopped.answer

        id = await ctx.once(MEMO_KEY, lambda: self._held.start(ctx.call, work))
        result: CallResult = await self._held.wait(id, ctx.call)
        return result

    async def _start(self, roots: Roots) -> CodeProcess:
        async def launch(argv: Sequence[str]) -> Launch:
            def make() -> Launch:
                self._sandbox = sandbox = self._sandbox or code_options.make_sandbox(self.options)
                return sandbox.launch(argv, cwd=roots[0], env={}, roots=roots, name="code")

            return await asyncio.to_thread(make)

        try:
            return await start_process(launch, roots)
        except SandboxUnavailable as problem:
            raise ToolError(str(problem)) from None
        except OSError as problem:
            raise ToolError(f"the code can't be started: {problem.strerror}") from None


class _Stopped(Exception):
    """The code did not come to its end."""

    def __init__(self, answer: CallResult) -> None:
        super().__init__()
        self.answer = answer


class _Run:
    """One run of code for a call."""

    def __init__(
        self,
        app: Server,
        ctx: Context,
        held: HeldCall,
        capabilities: dict[str, Any],
        seconds: float,
        max_tokens: int,
    ) -> None:
        self._app, self._ctx, self._held, self._max_tokens = app, ctx, held, max_tokens
        self._calls = InnerCalls(app.engine, ctx.call, capabilities, lambda: held.call, self._ask, self._report)
        self._seconds = seconds
        self._clock: asyncio.Timeout | None = None
        self._asking = 0
        self._left = 0.0
        self._reports = 0
        self._orders = dict[str, list[str]]()
        """The parameters of each tool that was called, in the order of its stub."""

    async def run(self, process: CodeProcess, code: str, note: str) -> CallResult:
        """Run the code, and make the answer. Raises _Stopped if it did not come to its end."""
        start = process.command.output.size
        try:
            async with asyncio.timeout(self._seconds) as self._clock:
                done = await process.run(code, self._calls, self._arguments)
        except TimeoutError:
            why = f"the code did not end within {self._seconds:g} s (timeout_ms)"
        except ProcessEnded as problem:
            why = str(problem)
        else:
            return await self._answer(process, start, done, note)
        process.command.read_rest()
        raise _Stopped(await self._answer(process, start, Message(failed=True), why))

    # -- the answer

    async def _answer(self, process: CodeProcess, start: int, done: Message, note: str) -> CallResult:
        shown = process.command.output.ends(start, self._room(), "the link has them")
        text = shown.text.removesuffix("\n")
        texts = [each for each in (text, f"[{note}]" if note else "") if each]
        if not texts and not done.media and not done.links:
            texts = ["[nothing was printed, and the last line has no value]"]
        content: list[Any] = [Text("\n".join(texts))] if texts else []
        if not shown.complete:
            content.append(await self._save("output.txt", process.output_since(start), "text/plain", "all output"))
        left = INLINE_BYTES
        for number, media in enumerate(done.media, 1):
            left -= len(media.data)
            content.append(await self._show(media, number, inline=left >= 0))
        content += [_link(each) for each in done.links]
        return CallResult(content, is_error=True if done.failed else UNSET)

    async def _show(self, media: Media, number: int, *, inline: bool) -> Any:
        if not inline:
            ending = re.sub(r"\W", "", media.mime_type.rpartition("/")[2])[:8] or "bin"
            return await self._save(f"shown-{number}.{ending}", media.data, media.mime_type, "shown by the code")
        kind = Audio if media.mime_type.startswith("audio/") else Image
        return kind(media.data, media.mime_type)

    async def _save(self, name: str, data: bytes, mime_type: str, about: str) -> ResourceLink:
        return await asyncio.to_thread(self._ctx.save_artifact, name, data, mime_type, about)

    def _room(self) -> int:
        return max(100, self._max_tokens - 40)

    # -- what the code asks for

    def _arguments(self, name: str, args: Sequence[Raw], kwargs: dict[str, Raw]) -> tuple[str, Raw]:
        """The name and arguments of a call, from how `tool_api` shows the tool in Python."""
        entry = self._find(name)
        if entry is None:  # the engine says what is similar
            return name, Raw(msgspec.json.encode(kwargs))
        order = self._orders.get(entry.name)
        if order is None:
            order = self._orders[entry.name] = parameter_order(entry.describe()["inputSchema"])
        return entry.name, Raw(msgspec.json.encode(_by_name(name, args, kwargs, order)))

    def _find(self, name: str) -> Entry | None:
        """The tool of this name, which may be written as Python can write it."""
        engine = self._app.engine
        found = engine.tools.get(name) or engine.find_renamed(name)
        return found or next((each for each in engine.tools.values() if python_name(each.name) == name), None)

    async def _ask(self, method: str, params: Any) -> Any:
        """Put a question of a called tool to the user. The time limit of the code stops meanwhile."""
        self._stop_clock()
        try:
            question = read_question("", method, params)
            return write_answer(await self._held.ask(question, "code"))
        except ToolError as problem:
            raise Unanswerable(INVALID_PARAMS, str(problem)) from None
        finally:
            self._start_clock()

    def _stop_clock(self) -> None:
        self._asking += 1
        if self._asking == 1 and self._clock is not None and (until := self._clock.when()) is not None:
            self._left = until - asyncio.get_running_loop().time()
            self._clock.reschedule(None)

    def _start_clock(self) -> None:
        self._asking -= 1
        if not self._asking and self._clock is not None and not self._clock.expired():
            self._clock.reschedule(asyncio.get_running_loop().time() + self._left)

    def _report(self, text: str) -> None:
        """Pass on progress of a called tool."""
        self._reports += 1
        call = self._held.call
        if call is not None:
            call.context.progress(self._reports, message=text)


def _by_name(tool: str, args: Sequence[Raw], kwargs: dict[str, Raw], order: Sequence[str]) -> dict[str, Raw]:
    """All arguments by the names of the schema, given its parameters in the order of the stub. Raises ToolError."""
    names = {python_name(each): each for each in order}
    given = {names.get(key, key): value for key, value in kwargs.items()}
    if len(args) > len(order):
        raise ToolError(f"{tool} takes at most {len(order)} arguments, and {len(args)} were given")
    if twice := next((key for key in order[: len(args)] if key in given), None):
        raise ToolError(f"{tool}: {twice!r} was given twice, by position and by name")
    return dict(zip(order, args, strict=False)) | given


def _link(shown: Any) -> ResourceLink:
    fields = {"description": shown.description, "mime_type": shown.mime_type, "size": shown.size}
    return ResourceLink(shown.uri, shown.name, **{key: value for key, value in fields.items() if value is not None})
