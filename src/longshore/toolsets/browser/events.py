"""The events of a tab: console messages, network requests, and notices for the next answer, all bounded."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final, Generic, Literal, Protocol, TypeVar, final

from msgspec import Struct

from longshore.errors import ToolError
from longshore.invisible import CONTROLS, MARKS, TAGS
from longshore.toolsets.browser.masking import Secrets

MOST_ENTRIES: Final = 1_000
"""Entries of each log. A page can write without end; the oldest are dropped."""
MOST_NOTICES: Final = 20
"""Different notices of one answer. More would bury what the action did."""
MOST_TEXT: Final = 2_000
"""Characters of a console message."""
MOST_CALLS: Final = 10
"""Calls of a message's stack."""
MOST_URL: Final = 500
"""Characters of a URL. A data: URL can have megabytes."""
MOST_HEADERS: Final = 50
"""Headers of a message. Few have more than thirty."""
_SECRET_HEADERS: Final = frozenset({"authorization", "cookie", "set-cookie", "proxy-authorization", "x-api-key"})
_USER: Final = re.compile(r"(?<=://)[^/?#\s]*@")
CANCELLED: Final = "cancelled"
ENDED_BEFORE: Final = "its page or worker ended before it"
"""The result is unknown: the browser cancels most of these requests, and reports none."""
FIRST_TAB: Final = "t1"
"""The tab whose refs do not begin with its id."""
NOTICE_TEXT: Final = 200
"""Characters of a page's text in a notice."""

Level = Literal["error", "warning", "info", "debug"]
_LEVELS: Final[dict[str, Level]] = {
    "error": "error",
    "assert": "error",
    "warning": "warning",
    "debug": "debug",
    "verbose": "debug",
}
_UNSEEN: Final = re.compile(f"[{CONTROLS}{MARKS}{TAGS}\ud800-\udfff]")


def without_unseen(text: str) -> str:
    """A page's text without invisible characters, which a model reads and a person does not see."""
    return _UNSEEN.sub("", text)


def without_user(text: str) -> str:
    """A text without the users and passwords in its addresses."""
    return _USER.sub("", text) if "@" in text else text


def clean(text: str, most: int = NOTICE_TEXT) -> str:
    """A page's text on one line, without invisible characters, cut to a length."""
    folded = " ".join(without_unseen(text[: most * 4]).split())
    return folded if len(folded) <= most else f"{folded[:most]}…"


_LABEL: Final = " (the page's words in this are untrusted)"


class PageError(ToolError):
    """An error that quotes the page, and is labelled so at its end, because errors have no fence."""

    def __init__(self, text: str) -> None:
        super().__init__(labelled(text))


def labelled(text: str) -> str:
    """The text of an error that quotes the page."""
    return text + _LABEL


def unlabelled(problem: ToolError) -> str:
    """The text of an error without its label, for a text that has its own."""
    return str(problem).removesuffix(_LABEL)


class _Numbered(Protocol):
    @property
    def number(self) -> int: ...


E = TypeVar("E", bound=_Numbered)


class Entries(Struct, Generic[E], frozen=True):
    """Entries of a log after a cursor."""

    entries: list[E]
    cursor: int
    """Give it as `since` for what comes after these."""
    dropped: int
    """Entries after the asked-for cursor that are no longer there."""


@final
class LogRing(Generic[E]):
    """The newest entries of a log. Each has a number, counted from 1."""

    def __init__(self, most: int = MOST_ENTRIES) -> None:
        self._entries: deque[E] = deque(maxlen=most)
        self.last = 0

    def __iter__(self) -> Iterator[E]:
        return iter(self._entries)

    def next_number(self) -> int:
        self.last += 1
        return self.last

    def add(self, entry: E) -> None:
        self._entries.append(entry)

    def since(self, cursor: int = 0) -> Entries[E]:
        """The entries whose number is greater than `cursor`."""
        kept = [entry for entry in self._entries if entry.number > cursor]
        return Entries(kept, self.last, max(0, self.last - max(0, cursor)) - len(kept))


class ConsoleEntry(Struct, frozen=True):
    """A message in the console, or an uncaught exception."""

    number: int
    level: Level
    text: str
    where: str
    """The script's URL and line."""
    stack: str = ""
    """The calls that led there, a line each."""


class NetworkExchange(Struct):
    """A request and its response or failure."""

    number: int
    request_id: str
    session: str
    """The session that its last event came from, which has the body."""
    loader: str
    """The id of the document that sent it."""
    method: str
    url: str
    kind: str
    """As browsers name it: Document, XHR, Fetch, Script, Image …"""
    started: float
    status: int = 0
    mime: str = ""
    bytes: int = 0
    seconds: float | None = None
    """How long it took. None while it runs."""
    problem: str = ""
    """Why there is no answer."""
    is_reported: bool = False
    """Whether an answer says what came of it, so that no notice need."""
    sent: str = ""
    """The headers of the request, a line each, without the values of those that hold secrets."""
    received: str = ""

    @property
    def failed(self) -> bool:
        return bool(self.problem) or self.status >= 400


@final
class Notices:
    """Events for the next answer. Equal ones are counted; above a limit, only their number is reported."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._more = 0

    def add(self, text: str) -> None:
        if text in self._counts or len(self._counts) < MOST_NOTICES:
            self._counts[text] = self._counts.get(text, 0) + 1
        else:
            self._more += 1

    def remove(self, text: str) -> None:
        """Remove a notice that was added once."""
        count = self._counts.pop(text, 0)
        if count > 1:
            self._counts[text] = count - 1

    def take(self) -> list[str]:
        """Return and remove the notices since the last call."""
        taken = [text if n == 1 else f"{text} ({n} times)" for text, n in self._counts.items()]
        if self._more:
            taken.append(f"{self._more} more events: read the console and the network log")
        self._counts, self._more = {}, 0
        return taken


@final
class RefNumbers:
    """The numbers of a tab's last ref in the main frame and of its last frame: no ref ever means another element."""

    def __init__(self, tab: str = FIRST_TAB) -> None:
        self.tab = tab
        self.prefix = "" if tab == FIRST_TAB else tab
        """The prefix of the refs, so that each names one element among all tabs of a browser."""
        self.last = 0
        self.last_frame = 1


@final
class TabLog:
    """The console, the network log, the notices and the refs of a tab. They stay when its page is replaced."""

    def __init__(self, secrets: Secrets | None = None, refs: RefNumbers | None = None) -> None:
        """`secrets` are those of the browser: a form can be submitted to another tab."""
        self.secrets = secrets or Secrets()
        self.console: LogRing[ConsoleEntry] = LogRing()
        self.network: LogRing[NetworkExchange] = LogRing()
        self.notices = Notices()
        self.refs = refs or RefNumbers()
        self._running: dict[str, NetworkExchange] = {}
        """By id, which stays when a frame's document, or a worker's script, goes on in another session."""

    def take(self, session: str, method: str, params: dict[str, Any]) -> None:
        """An event of a page."""
        match method:
            case "Network.requestWillBeSent":
                self._started(session, params)
            case "Network.responseReceived":
                self._answered(session, params)
            case "Network.loadingFinished":
                self._finished(session, params, "")
            case "Network.loadingFailed":
                why = params.get("blockedReason") or params.get("errorText") or "failed"
                self._finished(session, params, CANCELLED if params.get("canceled") else str(why))
            case "Runtime.consoleAPICalled":
                self._console(params)
            case "Runtime.exceptionThrown":
                self._exception(params.get("exceptionDetails", {}))
            case "Log.entryAdded":
                self._entry(params.get("entry", {}))
            case _:
                pass

    def mask(self, text: str) -> str:
        """An address, or a text with some, without users and with dots for parameters that have a secret's value."""
        return self.secrets.mask_parameters(without_user(text))

    def exchange(self, number: int) -> NetworkExchange | None:
        return next((each for each in self.network if each.number == number), None)

    def running(self) -> list[NetworkExchange]:
        """The requests that have not ended."""
        return list(self._running.values())

    def session_ended(self, session: str) -> None:
        """A worker or a frame has ended, and its requests with it."""
        for exchange in self.running():
            if exchange.session == session:
                self._end(exchange, ENDED_BEFORE)

    def document_ended(self, loader: str) -> None:
        """A document was replaced or removed, and its requests with it: the browser reports none of these."""
        for exchange in self.running():
            if exchange.loader == loader:
                self._end(exchange, ENDED_BEFORE)

    def omit(self, request_id: str) -> None:
        """Give no notice of this request: the answer contains its result."""
        for exchange in self.network:
            if exchange.request_id == request_id and not exchange.is_reported:
                exchange.is_reported = True
                if exchange.seconds is not None:
                    self.notices.remove(_failure(exchange))

    # -- network

    def _started(self, session: str, params: dict[str, Any]) -> None:
        before = self._running.pop(params["requestId"], None)
        redirect = params.get("redirectResponse")
        if before is not None and redirect:
            before.status, before.seconds = int(redirect.get("status", 0)), time.monotonic() - before.started
        request = params.get("request", {})
        exchange = NetworkExchange(
            self.network.next_number(),
            params["requestId"],
            session,
            str(params.get("loaderId", "")),
            clean(str(request.get("method", "GET")), 20),
            clean(self.mask(str(request.get("url", ""))), MOST_URL),
            str(params.get("type", "Other")),
            time.monotonic(),
            sent=self.mask(_headers(request)),
        )
        self.network.add(exchange)
        while len(self._running) >= MOST_ENTRIES:
            self._running.pop(next(iter(self._running)))
        self._running[exchange.request_id] = exchange

    def _answered(self, session: str, params: dict[str, Any]) -> None:
        exchange = self._running.get(params["requestId"])
        if exchange is not None:
            exchange.session = session
            response = params.get("response", {})
            exchange.status = int(response.get("status", 0))
            exchange.mime = clean(str(response.get("mimeType", "")), 100)
            exchange.received = self.mask(_headers(response))

    def _finished(self, session: str, params: dict[str, Any], problem: str) -> None:
        exchange = self._running.get(params["requestId"])
        if exchange is not None:
            exchange.session, exchange.bytes = session, int(params.get("encodedDataLength", 0))
            self._end(exchange, problem)

    def _end(self, exchange: NetworkExchange, problem: str) -> None:
        del self._running[exchange.request_id]
        is_cancelled = problem in (CANCELLED, ENDED_BEFORE)
        if is_cancelled and exchange.status:
            problem = ""  # the page did not read the body, or may not: a response came
        exchange.seconds, exchange.problem = time.monotonic() - exchange.started, clean(problem, 100)
        is_silent = exchange.is_reported or exchange.url.endswith("/favicon.ico") or (is_cancelled and problem)
        if exchange.failed and not is_silent:
            self.notices.add(_failure(exchange))

    # -- console

    def _console(self, params: dict[str, Any]) -> None:
        level = _LEVELS.get(str(params.get("type")), "info")
        text = " ".join(_shown(argument) for argument in params.get("args", ())[:20])
        frames = params.get("stackTrace", {}).get("callFrames", ())
        self._add(level, text, self._where(frames[0]) if frames else "", self._stack(frames))

    def _exception(self, details: dict[str, Any]) -> None:
        frames = details.get("stackTrace", {}).get("callFrames", ())
        self._add("error", f"uncaught {exception_text(details)}", self._where(details), self._stack(frames))

    def _entry(self, entry: dict[str, Any]) -> None:
        if entry.get("source") != "network":  # these are in the network log
            self._add(_LEVELS.get(str(entry.get("level")), "info"), str(entry.get("text", "")), self._where(entry))

    def _where(self, place: dict[str, Any]) -> str:
        url = clean(self.mask(str(place.get("url") or "")), MOST_URL)
        return f"{url}:{int(place.get('lineNumber') or 0) + 1}" if url else ""

    def _stack(self, frames: Sequence[dict[str, Any]]) -> str:
        names = ((clean(self.mask(str(each.get("functionName") or "")), 100), self._where(each)) for each in frames)
        return "\n".join(f"  at {name or '(anonymous)'} ({where})" for name, where in islice(names, MOST_CALLS))

    def _add(self, level: Level, text: str, where: str, stack: str = "") -> None:
        text = clean(self.mask(text), MOST_TEXT)
        self.console.add(ConsoleEntry(self.console.next_number(), level, text, where, stack))
        if level == "error":
            self.notices.add(f"console error: {clean(text)}")


def _failure(exchange: NetworkExchange) -> str:
    return f"{exchange.method} {clean(exchange.url)}: {exchange.problem or exchange.status}"


def _headers(message: dict[str, Any]) -> str:
    """The headers of a request or response, a line each."""
    given = list(dict(message.get("headers", {})).items())[:MOST_HEADERS]
    return "\n".join(
        f"{clean(name, 100)}: {'(not shown)' if name.lower() in _SECRET_HEADERS else clean(str(value))}"
        for name, value in given
    )


def exception_text(details: dict[str, Any]) -> str:
    """The message of an exception, without its stack."""
    thrown = details.get("exception", {})
    text = thrown.get("description") or thrown.get("value") or details.get("text") or "exception"
    return clean(str(text).split("\n    at ")[0], 500)


def _shown(argument: dict[str, Any]) -> str:
    """A console argument as the browser's console displays it."""
    if "value" in argument:
        value = argument["value"]
        return value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    preview = argument.get("preview")
    if preview and preview.get("properties"):
        parts = [f"{each.get('name')}: {each.get('value', '…')}" for each in preview["properties"]]
        array = preview.get("subtype") == "array"
        inside = ", ".join(each.split(": ", 1)[1] if array else each for each in parts)
        return f"[{inside}]" if array else f"{{{inside}}}"
    return str(argument.get("unserializableValue") or argument.get("description") or argument.get("type", ""))
