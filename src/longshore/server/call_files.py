"""Files of calls: the folders that each may touch, and the artifacts that they save and clients read."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Generator
from time import gmtime, monotonic, strftime
from typing import TYPE_CHECKING, Any, Final, Self, final

from longshore import config as configuration
from longshore.errors import ToolError, WouldBlock
from longshore.protocol.content import Contents, ResourceLink
from longshore.sandbox.artifacts import BINARY, READ_BYTES, Artifact, ArtifactStore
from longshore.sandbox.roots import Roots, configured_roots, default_roots
from longshore.server.client_roots import ANSWER_SECONDS, ClientRoots

if TYPE_CHECKING:
    from longshore.config import Config
    from longshore.files import Parts
    from longshore.server.call import Call
    from longshore.server.policy import Policy
    from longshore.telemetry.recorder import Recorder

_TEXT: Final = frozenset(
    f"application/{name}" for name in ("json", "x-ndjson", "xml", "javascript", "yaml", "toml", "sql")
)
"""Types that are text, beside text/… and those that end with +json or +xml."""


@final
class Folders(tuple[str, ...]):
    """The folders that a call may touch, as real paths. It can be awaited, for `await ctx.folders()`."""

    roots: Roots
    """These folders, with the other paths that lead to them."""

    def __new__(cls, roots: Roots) -> Self:
        made = super().__new__(cls, roots.folders)
        made.roots = roots
        return made

    def __await__(self) -> Generator[None, None, Folders]:
        yield from ()
        return self


def read_roots(config: Config) -> Roots:
    """The server's folders. Raises ConfigError for a configured one that is no folder."""
    paths = config.server.roots
    return configured_roots(paths, str(configuration.origin(config, "server.roots"))) if paths else default_roots()


@final
class CallFiles:
    """The folders and artifacts of one server's calls."""

    def __init__(self, policy: Policy, recorder: Recorder) -> None:
        self._policy = policy
        self._recorder = recorder
        self._roots: tuple[list[str], Folders] | None = None
        self._store: ArtifactStore | None = None

    # -- folders

    @property
    def roots(self) -> Roots:
        """The server's folders. They are made on first use, and again if the configuration names others."""
        config = self._policy.config
        if self._roots is None or self._roots[0] != config.server.roots:
            roots = read_roots(config)
            self._roots = config.server.roots, Folders(roots)
            if roots.why:
                self._recorder.problem("notice", f"files are in {', '.join(roots.folders) or 'no folder'}: {roots.why}")
        return self._roots[1].roots

    async def folders(self, call: Call) -> Folders:
        """The folders that a call may touch. Asks the client for its roots if need be."""
        from asyncio import get_running_loop, timeout_at

        loop = get_running_loop()
        until = loop.time() + ANSWER_SECONDS
        while _must_ask(call):
            answered = loop.create_future()
            client = self._client(call)
            client.request(call, lambda future=answered: future.done() or future.set_result(None))  # type: ignore[misc]
            try:
                async with timeout_at(until):
                    await answered
            except TimeoutError:
                client.give_up()
        return self._allowed(call)

    def wait_for_folders(self, call: Call) -> Folders:
        """The same, for a call that runs on a thread."""
        until = monotonic() + ANSWER_SECONDS
        while _must_ask(call):
            answered = allocate_lock()
            answered.acquire()
            release = answered.release
            call.executor.post(lambda release=release: self._client(call).request(call, release))  # type: ignore[misc]
            if not answered.acquire(timeout=max(0.0, until - monotonic())):
                call.executor.post(lambda: self._client(call).give_up())
                break
        return self._allowed(call)

    def known_folders(self, call: Call) -> Folders:
        """The same without waiting for anybody, for paths that are opened without links. Raises WouldBlock."""
        known = self._roots
        if known is None or known[0] != self._policy.config.server.roots:
            raise WouldBlock
        folders = known[1]
        if _has_roots(call):
            client = call.session.client_roots
            if client is None or not client.current:
                raise WouldBlock
            if client.uris is not None:
                folders = Folders(client.narrowed_before(folders.roots))
        if not folders:
            raise WouldBlock
        return folders

    def _client(self, call: Call) -> ClientRoots:
        session = call.session
        if session.client_roots is None:
            session.client_roots = ClientRoots(lambda text: self._recorder.problem("warning", text))
        return session.client_roots  # type: ignore[no-any-return]

    def _allowed(self, call: Call) -> Folders:
        roots, client = self.roots, call.session.client_roots
        if _has_roots(call) and client is not None and (uris := client.uris) is not None:
            narrowed = roots.narrow(uris)
            client.narrowed = roots, uris, narrowed
            roots = narrowed
        if not roots.folders:
            raise ToolError(f"{call.entry.name} may touch no folder: {roots.why}")
        return Folders(roots)

    # -- artifacts

    @property
    def store(self) -> ArtifactStore:
        """The artifact store, in the user's cache directory."""
        if self._store is None:
            import os

            from longshore.files import user_directory

            folder = user_directory("cache")
            if folder is None:
                raise ToolError("artifacts can't be stored: the user has no home; set XDG_CACHE_HOME")
            self._store = ArtifactStore(os.path.join(folder, "artifacts"))
        return self._store

    def save(
        self, call: Call, name: str, data: bytes | str | Parts, mime_type: str | None, description: str | None
    ) -> ResourceLink:
        """Store a file for the principal of a call."""
        if not call.entry.artifacts:
            raise ToolError(f"{call.entry.name} saves an artifact; declare it with artifacts=True, so clients can read")
        kind = (mime_type or "").partition(";")[0].strip() or _guess(
            name, "text/plain" if isinstance(data, str) else BINARY
        )
        stored = data.encode("utf-8", "replace") if isinstance(data, str) else data
        made = self.store.put(call.link.principal.name, name, stored, kind)
        until = f"can be read until {strftime('%Y-%m-%d %H:%M', gmtime(made.expires))} UTC"
        about = f"{description}; {until}" if description else until
        return ResourceLink(made.uri, made.name, description=about, mime_type=kind, size=made.size)

    def read(self, call: Call, id: str, name: str, offset: int, length: int) -> list[Contents]:
        """A range of an artifact of the call's principal, and where the rest is."""
        found = self.store.find(call.link.principal.name, id, name)
        data = self.store.read(found, offset, length)
        end = offset + len(data)
        text = _decode(data, end >= found.size) if _is_text(found.mime_type) else None
        if text is None:
            contents = Contents(call.arguments.uri, blob=data, mime_type=found.mime_type)
        else:
            end = offset + len(text.encode())
            contents = Contents(call.arguments.uri, text=text, mime_type=found.mime_type)
        return [contents] if end >= found.size else [contents, _rest(found, offset, end, length)]


def _has_roots(call: Call) -> bool:
    """Whether the client has roots that narrow the server's: in 2026-07-28 they are deprecated."""
    return "roots" in call.peer.capabilities and not call.peer.revision.modern


def _must_ask(call: Call) -> bool:
    client: Any = call.session.client_roots
    return _has_roots(call) and not call.session.input_ended and (client is None or not client.current)


def _rest(found: Artifact, offset: int, end: int, length: int) -> Contents:
    """The note that follows a part: what it was, and the URI of the next."""
    following = f"{found.uri}?offset={end}" + (f"&length={length}" if length != READ_BYTES else "")
    note = f"[bytes {offset:,} to {end:,} of {found.size:,}; the rest: {following}]"
    return Contents(following, text=note, mime_type="text/plain")


def _guess(name: str, default: str) -> str:
    """The MIME type that a name's ending says."""
    from mimetypes import MimeTypes

    kind, encoding = MimeTypes().guess_type(name, strict=False)
    return default if kind is None or encoding is not None else kind


def _is_text(mime_type: str) -> bool:
    return mime_type.startswith("text/") or mime_type in _TEXT or mime_type.endswith(("+json", "+xml"))


def _decode(data: bytes, is_end: bool) -> str | None:
    """The text of a range, without a character that its end divides. None: it is no UTF-8."""
    from codecs import getincrementaldecoder

    try:
        text = getincrementaldecoder("utf-8")().decode(data, is_end)
    except UnicodeDecodeError:
        return None
    return text if text or not data else None
