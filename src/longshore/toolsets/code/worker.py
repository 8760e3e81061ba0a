"""The program in the sandbox that runs code: python -c SOURCE FD.

It gets code over a socket, and sends the tool calls that the code makes. Messages are lines of JSON. From the server:
`{"run": code, "file": name}`, and `{"id": n, "reply": response}` to a request. To the server:
`{"id": n, "tool": name, "args": […], "kwargs": {…}}`, `{"id": n, "read": uri}`, and after each run `{"done": file,
"failed": bool, "media": […], "links": […]}`. What the code prints goes to stdout.

It runs from this source, on the standard library alone. The code can do with this process what it likes, so the server
believes nothing that comes from it.
"""

from __future__ import annotations

import ast
import builtins
import json
import linecache
import os
import socket
import sys
import threading
import traceback
import types
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

CONCURRENT = frozenset({"gather", "create_task", "ensure_future", "wait_for", "as_completed", "shield"})
"""Functions of asyncio whose arguments are awaited later: tool calls that are given to them run at once."""
VALUE = "__value__"
"""The name that the value of the last line gets."""
_COROUTINE = 0x80


class ToolError(Exception):
    """A tool failed; the text is its own."""


ToolError.__module__ = builtins.__name__  # so that a traceback shows the plain name


class Media:
    """A picture or a sound. `display(it)`, or naming it in the last line, shows it."""

    def __init__(self, data: bytes, mime_type: str = "image/png") -> None:
        self.data, self.mime_type = data, mime_type

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it to a file."""
        with open(path, "wb") as file:
            file.write(self.data)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.mime_type}, {len(self.data):,} bytes>"


class Image(Media):
    """A picture."""


class Audio(Media):
    """A sound."""


class Link:
    """A link to a resource, such as a file that a tool has saved."""

    def __init__(self, block: dict[str, Any]) -> None:
        self.block = block
        self.uri, self.name, self.mime_type = block["uri"], block.get("name", ""), block.get("mimeType", "")

    def read(self) -> str | bytes:
        """What it leads to."""
        return _contents(connection.call({"read": self.uri})["contents"])

    def __repr__(self) -> str:
        return f"<Link {self.uri}>"


class Text(str):
    """The text of a result, with the pictures and links beside it."""

    media: list[Media]
    links: list[Link]


class Record(dict[str, Any]):
    """A structured result, with the pictures and links beside it."""

    media: list[Media]
    links: list[Link]


class Items(list[Any]):
    """A result that is a list, with the pictures and links beside it."""

    media: list[Media]
    links: list[Link]


def value_of(result: dict[str, Any]) -> Any:
    """The value of a tool's result. Raises ToolError if the tool failed."""
    blocks = [_block(block) for block in result.get("content", [])]
    texts = [block for block in blocks if isinstance(block, str)]
    if result.get("isError"):
        raise ToolError("\n".join(texts) or "the tool failed without saying why")
    if "structuredContent" in result:
        value: dict[str, Any] = result["structuredContent"]
        # What is no object comes wrapped in one.
        return _join(value["result"] if [*value] == ["result"] else value, blocks)
    if not texts:
        return blocks[0] if len(blocks) == 1 else (blocks or None)
    return _join(Text("\n".join(texts)), blocks)


def _join(value: Any, blocks: list[Any]) -> Any:
    """A value that has the pictures and links of these blocks as `media` and `links`."""
    media = [block for block in blocks if isinstance(block, Media)]
    links = [block for block in blocks if isinstance(block, Link)]
    if not (media or links or isinstance(value, Text)):
        return value
    match value:
        case str():
            joined: Text | Record | Items = Text(value)
        case list():
            joined = Items(value)  # pyright: ignore[reportUnknownArgumentType]
        case dict():
            joined = Record(value)  # pyright: ignore[reportUnknownArgumentType]
        case _:  # nothing can be attached to a number
            joined = Record(result=value)
    joined.media, joined.links = media, links
    return joined


def _block(block: dict[str, Any]) -> Any:
    match block.get("type"):
        case "text":
            return block["text"]
        case "image":
            return Image(b64decode(block["data"]), block["mimeType"])
        case "audio":
            return Audio(b64decode(block["data"]), block["mimeType"])
        case "resource_link":
            return Link(block)
        case "resource":
            return _contents([block["resource"]])
        case _:
            return block


def _contents(parts: list[dict[str, Any]]) -> str | bytes:
    if any("blob" in part for part in parts):
        return b"".join(b64decode(part.get("blob", "")) for part in parts)
    return "".join(part.get("text", "") for part in parts)


class Connection:
    """The socket to the server. Requests may be made by any thread; a thread of its own takes the answers."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = threading.Lock()
        self._process = os.getpid()
        self._waiting: dict[int, Callable[[dict[str, Any]], object]] = {}
        self._last = 0
        self.runs: SimpleQueue[dict[str, Any]] = SimpleQueue()

    def listen(self) -> None:
        """Take what the server sends, until it closes the socket."""
        with self._socket.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "run" in message:
                    self.runs.put(message)
                else:
                    self._waiting.pop(message["id"])(message)
        os._exit(0)

    def send(self, message: dict[str, Any]) -> None:
        data = _encode(message)
        with self._sending:
            self._socket.sendall(data)

    def request(self, message: dict[str, Any], take: Callable[[dict[str, Any]], object]) -> None:
        """Send a request; `take` gets the answer, on the listening thread."""
        if os.getpid() != self._process:
            raise RuntimeError("a forked process can't call tools: its answers would go to the first; use threads")
        with self._sending:
            self._last += 1
            id = self._last
        data = _encode({"id": id, **message})
        self._waiting[id] = take
        with self._sending:
            self._socket.sendall(data)

    def call(self, message: dict[str, Any]) -> Any:
        """Make a request and wait for the answer."""
        answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self.request(message, answers.put)
        return _read_answer(answers.get(), message)

    async def begin(self, message: dict[str, Any]) -> Any:
        """The same, without blocking the loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        answer: asyncio.Future[dict[str, Any]] = loop.create_future()

        def take(given: dict[str, Any]) -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(settle, given)

        def settle(given: dict[str, Any]) -> None:
            if not answer.done():
                answer.set_result(given)

        self.request(message, take)
        return _read_answer(await answer, message)


def _read_answer(answer: dict[str, Any], message: dict[str, Any]) -> Any:
    reply = answer["reply"]
    if "error" in reply:
        raise ToolError(reply["error"]["message"])
    return value_of(reply["result"]) if "tool" in message else reply["result"]


def _encode(message: dict[str, Any]) -> bytes:
    """A message as JSON. Raises ValueError for what JSON can't hold, as NaN and half a character."""
    return json.dumps(message, default=_plain, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _plain(value: Any) -> Any:
    """What JSON can hold of an argument."""
    if isinstance(value, Link):
        return value.uri
    if isinstance(value, Media):
        return b64encode(value.data).decode()
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, Iterable):
        return [*value]  # pyright: ignore[reportUnknownVariableType]
    raise TypeError(f"a tool can't take a {type(value).__name__}; give text, numbers, lists or dicts")


class Tool:
    """One tool: call it, or `await` the call."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return connection.call({"tool": self.__name__, "args": args, "kwargs": kwargs})

    def begin(self, *args: Any, **kwargs: Any) -> Awaitable[Any]:
        """Call it without waiting: the result has to be awaited."""
        return connection.begin({"tool": self.__name__, "args": args, "kwargs": kwargs})

    def __repr__(self) -> str:
        return f"<tool {self.__name__}>"


class Tools:
    """The tools of the server: `tools.NAME(…)` or `tools["NAME"](…)`."""

    def __getattr__(self, name: str) -> Tool:
        if name.startswith("__"):
            raise AttributeError(name)
        return Tool(name)

    def __getitem__(self, name: str) -> Tool:
        return Tool(name)


# -- running code


class Awaits(ast.NodeTransformer):
    """Lets tool calls be awaited and run concurrently: where they are awaited, they do not block the loop."""

    def visit_Await(self, node: ast.Await) -> ast.Await:
        self.generic_visit(node)
        if not _begin_call(node.value):
            node.value = ast.Call(ast.Name("__awaitable__", ast.Load()), [node.value], [])
        return node

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in CONCURRENT and name not in self.own:
            for argument in node.args:
                _begin_elements(argument)
            node.func = ast.copy_location(ast.Call(ast.Name("__concurrent__", ast.Load()), [node.func], []), node.func)
        return node

    def visit_Module(self, node: ast.Module) -> ast.Module:
        self.own = {each.name for each in ast.walk(node) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))}
        self.generic_visit(node)
        return node


def _begin_elements(node: ast.AST) -> None:
    """Begin the calls of tools that are this argument, or its elements. Calls within those wait."""
    if _begin_call(node):
        return
    match node:
        case ast.Starred(value=part) | ast.ListComp(elt=part) | ast.GeneratorExp(elt=part) | ast.Lambda(body=part):
            _begin_elements(part)
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Call(func=ast.Name(id="map" | "list"), args=parts):
            for part in parts:
                _begin_elements(part)
        case _:
            pass


def _begin_call(node: ast.AST) -> bool:
    """Turn a call of a tool into one that does not wait. False: it is something else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Attribute, ast.Subscript)):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr == "begin":
        return True
    if not isinstance(function.value, ast.Name) or function.value.id != "tools":
        return False
    node.func = ast.Attribute(function, "begin", ast.Load())
    return True


def awaitable(value: Any) -> Awaitable[Any]:
    """What can be awaited: the value itself, or something that gives it at once."""
    return value if hasattr(value, "__await__") else _give(value)


async def _give(value: Any) -> Any:
    return value


def concurrent(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of asyncio as one that also takes the values of calls that were made before."""
    if not str(getattr(function, "__module__", "")).startswith("asyncio"):
        return function

    def call(*given: Any, **named: Any) -> Any:
        if function.__name__ == "gather":
            given = tuple(map(awaitable, given))
        elif function.__name__ == "as_completed":
            given = ([*map(awaitable, given[0])], *given[1:])
        elif given:
            given = (awaitable(given[0]), *given[1:])
        return function(*given, **named)

    return call


class Runner:
    """Runs pieces of code in one namespace."""

    def __init__(self) -> None:
        self._module = types.ModuleType("__main__")
        names = {"tools": Tools(), "display": self.display, "ToolError": ToolError, "Image": Image, "Link": Link}
        hidden = {"__awaitable__": awaitable, "__concurrent__": concurrent, "__builtins__": builtins}
        self._module.__dict__.update(names, **hidden, exit=sys.exit, quit=sys.exit)
        sys.modules["__main__"] = self._module
        self._loops: Any = None
        self._media: list[Media] = []
        self._links: list[Link] = []

    def run(self, code: str, file: str) -> None:
        """Run code, print the value of its last expression, and report to the server."""
        failed = False
        linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
        try:
            self.display(self._evaluate(code, file))
        except SystemExit as problem:
            failed = problem.code not in (None, 0)
            if failed:
                sys.stderr.write(f"the code ended by sys.exit({problem.code!r})\n")
        except BaseException as problem:
            failed = True
            sys.stderr.write(explain(problem))
        _flush()
        media = [{"mime_type": each.mime_type, "data": b64encode(each.data).decode()} for each in self._media]
        links = [each.block for each in self._links]
        self._media, self._links = [], []
        connection.send({"done": file, "failed": failed, "media": media, "links": links})

    def _evaluate(self, code: str, file: str) -> Any:
        """The value of the last line, if that is an expression."""
        tree = Awaits().visit(ast.parse(code, file))
        if tree.body and isinstance(tree.body[-1], ast.Expr):
            tree.body[-1] = ast.Assign([ast.Name(VALUE, ast.Store())], tree.body[-1].value)
        ast.fix_missing_locations(tree)
        names = self._module.__dict__
        compiled = compile(tree, file, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(compiled, names)  # noqa: S307 - that is what this process is for
        if compiled.co_flags & _COROUTINE:
            self._run_loop(running)
        return names.pop(VALUE, None)

    def _run_loop(self, work: Any) -> None:
        if self._loops is None:
            import asyncio

            self._loops = asyncio.Runner()
        self._loops.run(work)

    def display(self, *values: Any) -> None:
        """Show values in the answer: text and data are printed, pictures and links are shown as such."""
        for value in values:
            if isinstance(value, Media):
                self._media.append(value)
            elif isinstance(value, Link):
                self._links.append(value)
            elif _is_album(value):
                self.display(*value)
            elif value is not None:
                print(value if isinstance(value, str) else repr(value))
                if isinstance(value, (Text, Record, Items)):
                    self.display(*value.media, *value.links)


def _is_album(values: Any) -> bool:
    """Whether this is a list with pictures, sounds or links."""
    return isinstance(values, (list, tuple)) and any(isinstance(each, (Media, Link)) for each in values)  # pyright: ignore[reportUnknownVariableType]


def explain(problem: BaseException) -> str:
    """A traceback of the user's code alone, with those of the exceptions that led to it or are in it."""
    frames = [frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename.startswith("<code")]
    head = ["Traceback (most recent call last):\n", *traceback.format_list(frames)] if frames else []
    cause = f"{explain(problem.__cause__)}\nThis led to:\n\n" if problem.__cause__ else ""
    is_group = issubclass(type(problem), BaseExceptionGroup)
    parts = [explain(each) for each in getattr(problem, "exceptions", ()) if is_group]
    return "".join([cause, *head, *traceback.format_exception_only(problem), *parts])


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # the code has closed or replaced it
            pass


def main() -> None:
    """Run what the server sends, until it closes the socket."""
    threading.Thread(target=connection.listen, daemon=True).start()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="replace", line_buffering=True)  # type: ignore[union-attr]
    runner = Runner()
    while True:
        message = connection.runs.get()
        runner.run(message["run"], message["file"])


if __name__ == "__main__":
    connection = Connection(socket.socket(fileno=int(sys.argv[1])))
    main()
