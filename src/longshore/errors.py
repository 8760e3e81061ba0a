"""Every public exception. Each knows its JSON-RPC code and its exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self


class LongshoreError(Exception):
    """The root of all exceptions that Longshore raises on purpose."""

    code: int = -32603
    exit_code: ClassVar[int] = 1


class RegistrationError(LongshoreError):
    """A tool, resource, prompt or callback is declared wrongly: three lines that say where, what and the fix."""

    exit_code = 2

    def __init__(self, where: str, what: str, fix: str) -> None:
        where, what, fix = (" ".join(line.split()) for line in (where, what, fix))
        super().__init__(f"{where}\n  {what}\n  fix: {fix}")
        self.where, self.what, self.fix = where, what, fix


class ConfigError(LongshoreError):
    """A configuration value can't be used: says file, line, key and the nearest valid key."""

    exit_code = 2


class StoreError(LongshoreError):
    """A store (of sessions and messages, or the context graph) could not do its work: says where, what and the fix."""

    def __init__(self, where: str, what: str, fix: str) -> None:
        super().__init__(f"store {where}: {what}; {fix}")
        self.where, self.what, self.fix = where, what, fix


class SandboxUnavailable(LongshoreError):
    """Commands can't be confined here as was asked for: says which mechanism is missing and the fix."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}; {fix}")
        self.what, self.fix = what, fix


class LifespanFailed(LongshoreError):
    """The state that a server opens at its start could not be opened: says which exception was raised."""


class TargetError(LongshoreError):
    """`longshore serve TARGET` could not find or load a server there."""

    exit_code = 2


class ProtocolError(LongshoreError):
    """A request that is refused with a JSON-RPC error of the given code."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class UnknownTool(ProtocolError):
    """There is no such tool, or it is off."""


class Unavailable(ProtocolError):
    """A part that the request needs is temporarily out of reach; the request may be sent again."""

    def __init__(self, what: str) -> None:
        super().__init__(-32603, f"{what} at the moment; try again")


class Forbidden(ProtocolError):
    """The caller may not do this: its token lacks scopes, or it has sent none."""

    def __init__(self, what: str, needed: frozenset[str], hint: str = "") -> None:
        super().__init__(-32600, f"{what} needs the scope {' '.join(sorted(needed))}{hint}")
        self.needed = needed


class ToolError(LongshoreError):
    """A tool's own failure, in the author's words; they reach the model as written."""


class QuotaReached(ToolError):
    """A principal has as many things open as it may have."""


class ToolTimeout(ToolError):
    """A tool's own failure because its time was over. Dialects with a code for that give it.

    `parameter` is what the caller may raise to give it longer; `rest` follows in the text.
    """

    def __init__(self, what: str, parameter: str = "", rest: str = "") -> None:
        self.what, self.parameter, self.rest = what, parameter, rest
        super().__init__(f"{what}; try a longer {parameter}{rest}" if parameter else f"{what}{rest}")

    def by(self, parameter: str) -> ToolTimeout:
        """The same failure of a tool that has another name for the parameter."""
        return ToolTimeout(self.what, parameter if self.parameter else "", self.rest)


class ResourceNotFound(LongshoreError):
    """No resource has this URI. A resource handler may raise it for a URI that its template matches."""

    code = -32602

    def __init__(self, uri: str, hint: str = "") -> None:
        super().__init__(f"no resource {uri!r}{hint}")
        self.uri = uri


class Cancelled(LongshoreError):
    """Raised by `ctx.raise_if_cancelled()` in a call that was cancelled or ran out of time."""


class WouldBlock(LongshoreError):
    """Raised by a tool with `run="inline_first"` on the serving thread: it can't answer at once, and needs a thread."""


class Declined(ToolError):
    """The person or the client said no to a question, or could not be asked."""


CAPABILITY_MISSING = -32021
"""A question needs what the client did not declare."""


class CapabilityMissing(ProtocolError):
    """The client did not declare what a question needs."""

    def __init__(self, message: str, required: dict[str, Any]) -> None:
        super().__init__(CAPABILITY_MISSING, message, {"requiredCapabilities": required})
        self.required = required


# What a client meets

_TEXT_CHARACTERS = 4000
_LINE_CHARACTERS = 500
"""What is shown of what a server says, and of its name and each line that it printed."""
_COMMANDS = {n: "\ufffd" for n in (*range(32), *range(127, 160)) if chr(n) not in "\t\n"}


def _fit(text: str, most: int) -> str:
    if len(text) > most:
        text = f"{text[:most]}… ({len(text):,} characters)"
    return text.translate(_COMMANDS)


def _restore(kind: type[ClientError], args: tuple[Any, ...], fields: dict[str, Any]) -> ClientError:
    made = kind.__new__(kind, *args)
    made.__dict__.update(fields)
    return made


class ClientError(LongshoreError):
    """Something went wrong with a server that we are a client of. Says which server, and what it last printed."""

    def __init__(
        self, what: str, server: str = "", said: str = "", *, fix: str = "", options: tuple[str, ...] = ()
    ) -> None:
        """`fix` says what to do; each `{}` in it stands for one of `options`, arguments of `Client`."""
        super().__init__(what)
        self.what, self.server, self.said, self.fix, self.options = what, server, said, fix, options

    def at(self, server: str, said: str = "") -> Self:
        """The same error, with the server and what it last printed."""
        self.server, self.said = self.server or server, self.said or said
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Not made again by its arguments: what it was made of is not what it has become."""
        return _restore, (type(self), self.args, vars(self))

    def advice(self, spelled: Mapping[str, str] | None = None) -> str:
        """The fix, with its options as Python spells them, or as given: the command line has others."""
        return self.fix.format(*((spelled or {}).get(name, f"{name}=") for name in self.options))

    def _line(self) -> str:
        what = _fit(f"{self.what}; {self.advice()}" if self.fix else self.what, _TEXT_CHARACTERS)
        return f"{_fit(self.server, _LINE_CHARACTERS)}: {what}" if self.server else what

    def __str__(self) -> str:
        """Fit for a terminal: what a server says can be long, and can hold commands for one. The fields have all."""
        text = self._line()
        if not self.said:
            return text
        lines = (_fit(line, _LINE_CHARACTERS) for line in self.said.splitlines())
        return f"{text}\n  it last said:\n" + "\n".join(f"  | {line}" for line in lines)


class ConnectError(ClientError):
    """A server could not be started, reached or agreed with."""

    exit_code = 3


class ConnectionLost(ClientError):
    """The connection to a server was lost. `unsent`: the request surely did not reach it, so it may be sent again."""

    exit_code = 3

    def __init__(self, what: str, server: str = "", said: str = "", *, unsent: bool = False) -> None:
        super().__init__(what, server, said)
        self.unsent = unsent


class CallTimeout(ClientError, TimeoutError):
    """A server did not answer in time. The request was cancelled."""

    exit_code = 4


class ServerError(ClientError):
    """A server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None, server: str = "", said: str = "") -> None:
        super().__init__(f"{message} ({code})", server, said)
        self.code, self.message, self.data = code, message, data


class BadAnswer(ClientError):
    """A server's answer breaks the protocol, or what the server itself has promised."""


class Unanswerable(ClientError):
    """A server's question that the client can't answer: there is no handler, or `on_sample` returned None."""

    def __init__(self, code: int, what: str, server: str = "", *, fix: str = "", options: tuple[str, ...] = ()) -> None:
        super().__init__(what, server, fix=fix, options=options)
        self.code = code


class ToolFailed(ClientError):
    """A tool was called and says that it failed; `result` is what it said."""

    def __init__(self, what: str, result: Any, server: str = "") -> None:
        super().__init__(what, server)
        self.result = result

    def __str__(self) -> str:
        """Without what the server printed meanwhile: nothing is wrong with it. `said` has that."""
        return self._line()


class HttpRefused(ClientError):
    """An HTTP answer that is not MCP; `status` and `body` say why."""

    exit_code = 3

    def __init__(
        self, status: int, body: bytes = b"", headers: Sequence[tuple[str, str]] = (), server: str = ""
    ) -> None:
        shown = body[:200].decode("utf-8", "replace").strip()
        super().__init__(f"HTTP status {status}" + (f": {shown}" if shown else ""), server)
        self.status, self.body, self.headers = status, body, list(headers)


class AuthorizationError(ClientError):
    """No token could be obtained: says at which step, and the fix."""

    exit_code = 3
