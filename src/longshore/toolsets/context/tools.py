"""The context tools: query, add, update, get, forget and ingest what is known of a project."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Lock
from time import time_ns
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from msgspec.structs import replace

from longshore.errors import ResourceNotFound, StoreError, ToolError
from longshore.protocol.content import Contents
from longshore.protocol.peer import Principal
from longshore.registry.token_budget import DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS, fit_errors
from longshore.registry.toolset import Toolset, prompt, resource, tool
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.denied import DENIED
from longshore.schema.annotations import Hidden
from longshore.server.context import Context
from longshore.toolsets.context import answers, packing
from longshore.toolsets.context.json_hits import pack_json
from longshore.toolsets.context.options import ContextOptions
from longshore.toolsets.context.packing import one_line, pack
from longshore.toolsets.context.parameters import (
    MOST_IDS,
    Flag,
    Ids,
    Item,
    Kinds,
    Mode,
    SecretRemover,
    Time,
    Tokens,
    to_items,
    to_moment,
    to_offset,
    to_targets,
    within,
)
from longshore.toolsets.context.place import Place, find_place, keep_out_of_git
from longshore.toolsets.context.records import (
    ForgetReport,
    Moment,
    NewSource,
    Node,
    NodeChange,
    Query,
    Targets,
)
from longshore.toolsets.context.search import with_filters
from longshore.toolsets.context.selecting import ID, NodeFilter
from longshore.toolsets.context.store import Store, StoreLimits, open_store
from longshore.toolsets.context.summary import list_recent, summarise
from longshore.toolsets.context.updates import apply_update, to_update
from longshore.toolsets.context.watched_nodes import NODE, RECENT, WatchedNodes, last_event_before

if TYPE_CHECKING:
    from longshore.app import Server

MOST_HITS: Final = 100
MOST_DEPTH: Final = 3
AT_ONCE: Final = 200
"""Nodes that one transaction retracts or purges: other writers wait for it."""
STATUS_EVENTS: Final = 50
LATE_MICROSECONDS: Final = 2_000_000
"""A client may learn that it watches before the watch begins. Changes of these last seconds are reported then."""
CALL_SECONDS: Final = 60.0
INGEST_SECONDS: Final = 3600.0
CLIENT_CHARACTERS: Final = 100
"""Of a client's name, which is a label in each source."""

_WAIVED: Final = {
    "B52": "the schema says which parameters are optional, and words for it cost a model tokens in every list",
    "B56": "bounds would cost a model 12 tokens a number in every list, and the errors say them",
    "W22": "reason, name, kind, pinned and format say it themselves, and words cost a model tokens in every list",
    "W25": "the answers say the bounds of max_tokens",
    "W29": "attributes are the caller's own",
}
_ERRORS: Final = {"there is no": "take an id that query_context or get_context shows"}
_TIMES: Final = (
    "Dates and times are ISO 8601, in UTC unless they say otherwise; a date means its beginning, as_of its end."
)


class ContextTools(Toolset):
    """A project memory."""

    name = "context"
    Options = ContextOptions
    uses_folders = True

    def __init__(self, options: ContextOptions, app: Server) -> None:
        self._options, self._app = options, app
        self._opening = Lock()
        self._store: Store | None = None
        self._place: Place | None = None
        self._watched: WatchedNodes | None = None
        self._session = os.urandom(4).hex()
        """Names the run of this process in sources: not every client has a session."""

    def stop(self) -> None:
        if self._watched is not None:
            self._watched.close()
        if self._store is not None:
            self._store.close()

    def status(self) -> dict[str, Any]:
        place = {} if self._store is None else {"place": self._store.place}
        return place | {"watched": 0 if self._watched is None else len(self._watched)}

    # -- reading

    @tool(
        effects="read",
        waive=_WAIVED,
        timeout=CALL_SECONDS,
        errors={"as_of": "write a date as 2026-11-18, or a time as 2026-11-18T09:30:00Z"},
        help=f'Words may be missing from a hit; "quoted phrases", kind:x and path:x narrow. {_TIMES}'
        f" max_tokens is {LEAST_TOKENS} to {MOST_TOKENS}.",
        examples=[{"query": "how do we rotate keys"}, {"query": "auth", "kinds": ["decision"], "as_of": "2026-01-31"}],
    )
    def query_context(
        self,
        ctx: Context,
        query: Annotated[str, "words or a question"],
        kinds: Kinds = None,
        path: Annotated[str | None, "file or folder"] = None,
        as_of: Time = None,
        limit: Annotated[int | None, "default 10"] = None,
        cursor: Annotated[str | None, "of the last answer"] = None,
        max_tokens: Annotated[int | None, "default 2000"] = None,
        format: Literal["text", "json"] | None = None,
    ) -> str:
        """Search what is known of this project."""
        budget = packing.DEFAULT_TOKENS if max_tokens is None else max_tokens
        if not LEAST_TOKENS <= budget <= MOST_TOKENS:
            raise ToolError(f"max_tokens={budget}: give {LEAST_TOKENS} to {MOST_TOKENS:,}")
        with fit_errors(budget), self._using() as store:
            wanted = Query(
                text=query,
                kinds=tuple(kinds or ()),
                path=path or "",
                moment=to_moment(as_of),
                limit=within(limit, 10, MOST_HITS, "limit"),
                offset=to_offset(cursor),
            )
            wanted = with_filters(wanted)
            result = store.query(replace(wanted, path=self._stored_path(ctx, wanted.path)))
            return (
                pack_json(result, budget) if (format or self._options.format) == "json" else pack(result, budget).text
            )

    @tool(
        effects="read",
        waive=_WAIVED,
        errors=_ERRORS,
        timeout=CALL_SECONDS,
        help=f"{_TIMES} Also takes max_tokens, the most tokens of the answer ({LEAST_TOKENS} to {MOST_TOKENS}).",
        examples=[{"ids": ["n12", "Night job"], "depth": 2}, {"ids": ["n12"], "history": True}],
    )
    def get_context(
        self,
        ctx: Context,
        ids: Annotated[Ids, "such as n12, names or paths"],
        depth: Annotated[int | None, "neighbours too, to 3"] = None,
        history: Annotated[Flag, "the past too"] = None,
        as_of: Time = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Show nodes whole: observations, edges and sources."""
        if not 0 <= (depth or 0) <= MOST_DEPTH:
            raise ToolError(f"depth={depth}: give 0 to {MOST_DEPTH}")
        moment = to_moment(as_of)
        with fit_errors(max_tokens), self._using() as store:
            found, missing = self._find(ctx, store, ids, moment, include_retracted=bool(history))
            shown = [
                details
                for node in found
                if (details := store.details(node.id, moment, with_history=bool(history))) is not None
            ]
            around = store.neighbourhood([node.id for node in found], depth, moment) if depth and found else None
            if missing and not found:
                raise ToolError(answers.show_nodes([], max_tokens, missing=missing))
            return answers.show_nodes(
                shown, max_tokens, moment=moment, with_history=bool(history), around=around, missing=missing
            )

    @tool(effects="read", timeout=CALL_SECONDS)
    def context_status(self, max_tokens: Tokens = DEFAULT_TOKENS) -> str:
        """Show the memory's place, size and last changes."""
        with self._using() as store:
            assert self._place is not None
            events = store.events(newest_first=True, limit=STATUS_EVENTS)
            allowed = self._options.allow_purge
            return answers.show_status(store.status(), self._place, events, allowed, max_tokens)

    # -- changing

    @tool(
        effects="write",
        idempotent=True,
        waive=_WAIVED,
        errors={"nodes are named": "link to one of the ids that the error lists"},
        timeout=CALL_SECONDS,
        help="An item has a name or a text. One with the kind, name and path of a node adds to it, and the same text"
        " again changes nothing. links: to is an id or a name, which is made if there is none. contradicts is an"
        f" observation's id, importance 0 to 1. {_TIMES}",
        examples=[
            {
                "items": [
                    {
                        "kind": "decision",
                        "name": "Token format",
                        "text": "Tokens are JWTs, signed with Ed25519.",
                        "links": [{"to": "auth service", "relation": "decided_for"}],
                    }
                ]
            }
        ],
    )
    def add_context(
        self,
        ctx: Context,
        items: Annotated[list[Item], "to: id or name"],
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Remember facts, decisions or notes, and links. Equal ones are merged."""
        if not items:
            raise ToolError("there are no items; give at least one, with a name or a text")
        with fit_errors(max_tokens), self._using() as store:
            new, note = to_items(items)
            new = [replace(item, path=self._stored_path(ctx, item.path)) for item in new]
            added = store.add(new, self._source(ctx))
            merged = [item.node for item in added if item.outcome == "merged"][: answers.LISTED]
            others = {node: details for node in merged if (details := store.details(node)) is not None}
            return note + answers.show_added(added, others, max_tokens - len(note) // 3)

    @tool(
        effects="write",
        waive=_WAIVED,
        errors=_ERRORS | {"is not current": "update the observation that the error names"},
        timeout=CALL_SECONDS,
        help="text supersedes an observation (o34, or the only one of a node). The old one stays in the history, as"
        " true until valid_from, or until now; with correction, as never true. valid_to ends an observation or an edge"
        " (e56) without a new one. The other fields are those of a node; it also has path, importance (0 to 1) and"
        f" attributes. {_TIMES}",
        examples=[{"id": "o34", "text": "The port is 8080.", "reason": "moved behind the proxy"}],
    )
    def update_context(
        self,
        ctx: Context,
        id: Annotated[str, "n12, o34 or e56"],
        text: Annotated[str | None, "supersedes the old one"] = None,
        correction: Annotated[Flag, "the old was never true"] = None,
        reason: str | None = None,
        valid_from: Time = None,
        valid_to: Time = None,
        contradicts: Annotated[str | None, "such as o35"] = None,
        name: str | None = None,
        kind: str | None = None,
        pinned: Flag = None,
        importance: Annotated[float | None, Hidden()] = None,
        path: Annotated[str | None, Hidden()] = None,
        attributes: Annotated[dict[str, Any] | None, Hidden()] = None,
    ) -> str:
        """Supersede a text, end an observation or edge, or change a node."""
        secrets = SecretRemover()
        kind, name, path = secrets.clean_word(kind), secrets.clean(name), secrets.clean(path)
        update = to_update(
            NodeChange(kind=kind, name=name, path=path, importance=importance, pinned=pinned, attributes=attributes),
            text=secrets.clean(text),
            correction=correction,
            reason=reason,
            valid_from=valid_from,
            valid_to=valid_to,
            contradicts=contradicts,
        )
        with fit_errors(DEFAULT_TOKENS), self._using() as store:
            if isinstance(update, NodeChange) and update.path:
                update = replace(update, path=self._stored_path(ctx, update.path))
            return secrets.note + apply_update(store, id, update, self._source(ctx))

    @tool(
        effects="destroy",
        waive=_WAIVED,
        errors=_ERRORS | {"dry_run": "look at what is chosen first"},
        timeout=CALL_SECONDS,
        help="retract closes a node with its observations and edges, or one of these, for a reason; restore brings back"
        " what was retracted. purge erases text, history and index for good, if allow_purge is set. kinds and path"
        " choose nodes without ids, for restore retracted ones: dry_run shows them with a code, and the same call with"
        " that code as confirm does it.",
        examples=[{"ids": ["o34"]}, {"path": "src/old", "dry_run": True}],
    )
    def forget_context(
        self,
        ctx: Context,
        ids: Annotated[Ids | None, "n12, o34, e56"] = None,
        kinds: Annotated[list[str] | None, "instead, choose nodes"] = None,
        path: Annotated[str | None, "of a folder"] = None,
        mode: Annotated[Mode | None, "default retract"] = None,
        reason: Annotated[str | None, Hidden()] = None,
        dry_run: Annotated[Flag, "only show them; first, unless by ids"] = None,
        confirm: Annotated[str | None, "code of the dry run"] = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Retract, restore or purge nodes, observations or edges."""
        how, by_filter = mode or "retract", bool(kinds or path)
        if bool(ids) == by_filter:
            raise ToolError("give either ids, or kinds and path to choose nodes")
        if how == "purge" and not self._options.allow_purge:
            raise ToolError("purge is not allowed here (allow_purge); retract it, or ask the user")
        with fit_errors(max_tokens), self._using() as store:
            if not by_filter:
                targets = to_targets(ids or [])
                if dry_run:
                    return answers.preview_targets(how, store.targeted(targets, how), max_tokens)
                return answers.show_forgotten(how, store.forget(how, targets, self._source(ctx), reason or ""))
            chosen = NodeFilter(kinds=tuple(kinds or ()), path=self._stored_path(ctx, path or ""))
            nodes, code = store.choose(chosen, how)
            if dry_run:
                return answers.preview_nodes(how, nodes, code, max_tokens)
            if confirm is None:
                raise ToolError("kinds and path need dry_run=true first: it shows the nodes, and the code for confirm")
            if confirm.strip() != code:
                raise ToolError(
                    "other nodes are chosen now than by the dry run of that code, or they have changed; repeat it"
                )
            return self._forget_all(ctx, store, how, nodes, reason or "")

    @tool(
        effects="write",
        idempotent=True,
        waive=_WAIVED,
        errors={"outside the folders": "use a path within those that fs_info shows"},
        timeout=INGEST_SECONDS,
        help="Files that .gitignore names are left out. Also takes include and exclude, lists of globs.",
        examples=[{"path": "docs"}],
    )
    def ingest_path(
        self,
        ctx: Context,
        path: Annotated[str, "file or folder"],
        include: Annotated[list[str] | None, Hidden()] = None,
        exclude: Annotated[list[str] | None, Hidden()] = None,
    ) -> str:
        """Remember files, or those of a folder that have changed."""
        folders = ctx.folders()
        with self._using() as store:
            assert self._place is not None
            from longshore.toolsets.context.ingest import ingest

            report = ingest(
                store,
                ConfinedFiles(folders.roots, deny=DENIED),
                path,
                base=self._place.project,
                include=tuple(include or ()),
                exclude=tuple(exclude or ()),
                source=self._source(ctx),
                progress=ctx.progress,
                is_cancelled=lambda: ctx.cancelled,
            )
            ctx.raise_if_cancelled()
            return answers.show_ingested(report, DEFAULT_TOKENS)

    # -- resources and the prompt

    @resource(NODE + "{id}", mime_type="text/plain")
    def context_node(self, id: str) -> Contents:
        """A node of the project's memory."""
        with self._using() as store:
            match = ID.fullmatch(id if id.startswith("n") else f"n{id}")
            details = store.details(int(match[2])) if match is not None else None
            if details is None or details.node.retracted_at is not None:
                raise ResourceNotFound(f"{NODE}{id}", ": there is no such node")
            return Contents(f"{NODE}{id}", text=answers.show_nodes([details], DEFAULT_TOKENS), mime_type="text/plain")

    @resource(RECENT, mime_type="text/plain")
    def recent_context(self) -> Contents:
        """What has changed last in the project's memory."""
        with self._using() as store:
            return Contents(RECENT, text=list_recent(store), mime_type="text/plain")

    def watched(self, uri: str) -> None:
        with self._using() as store, self._opening:
            if self._watched is None:
                self._watched = WatchedNodes(store, self._app.resource_changed)
            self._watched.add(uri, last_event_before(store, time_ns() // 1000 - LATE_MICROSECONDS))

    def unwatched(self, uri: str) -> None:
        if self._watched is not None:
            self._watched.remove(uri)

    @prompt
    def load_context(self, topic: str = "") -> str:
        """Load what is known of this project.

        topic: what you are about to work on
        """
        with self._using() as store:
            return summarise(store, topic)

    # -- the store

    def reading(self) -> AbstractContextManager[Store]:
        """The store, for a person who looks at it: `with tools.reading() as store:`. Raises ToolError."""
        return self._using()

    @contextmanager
    def _using(self) -> Generator[Store]:
        """The store, opened at the first use. Its errors are raised as errors of the tool."""
        try:
            yield self._open()
        except StoreError as problem:
            raise ToolError(str(problem)) from None

    def _open(self) -> Store:
        with self._opening:
            if self._store is None:
                options = self._options
                self._place = find_place(options.database, self._app.engine.executor.files.roots.folders)
                if not options.database:
                    keep_out_of_git(self._place.address)
                limits = StoreLimits(most_bytes=options.max_bytes, history_days=options.history_days or None)
                self._store = open_store(self._place.address, limits)
            return self._store

    def _source(self, ctx: Context) -> NewSource:
        """The source of a change: the session, client and principal of the call."""
        client = ctx.client
        label = one_line(f"{client.get('name') or ''} {client.get('version') or ''}")[:CLIENT_CHARACTERS]
        actor = "" if ctx.principal.name == Principal().name else ctx.principal.name
        return NewSource(session=self._session, client=label, actor=one_line(actor)[:CLIENT_CHARACTERS])

    # -- parts of the above

    def _forget_all(self, ctx: Context, store: Store, how: Mode, nodes: Sequence[Node], reason: str) -> str:
        """Forget many nodes, a batch in each transaction."""
        report = ForgetReport()
        for start in range(0, len(nodes), AT_ONCE):
            ctx.raise_if_cancelled()
            ctx.progress(start, len(nodes))
            some = Targets(nodes=tuple(node.id for node in nodes[start : start + AT_ONCE]))
            done = store.forget(how, some, self._source(ctx), reason)
            report = ForgetReport(
                nodes=report.nodes + done.nodes,
                observations=report.observations + done.observations,
                edges=report.edges + done.edges,
                backups=done.backups,
            )
        return answers.show_forgotten(how, report)

    def _find(
        self, ctx: Context, store: Store, ids: Sequence[str], moment: Moment, *, include_retracted: bool
    ) -> tuple[list[Node], list[str]]:
        """The nodes with these ids, names or paths, and the references that match none. Raises ToolError."""
        if not 0 < len(ids) <= MOST_IDS:
            raise ToolError(f"{len(ids)} ids: give 1 to {MOST_IDS}")
        found, missing = dict[int, Node](), list[str]()
        for reference in ids:
            meant = {reference}
            if ID.fullmatch(reference.strip()) is None:
                with suppress(ToolError):  # without a folder it may still be a name
                    meant.add(self._stored_path(ctx, reference))
            nodes = [
                n for each in sorted(meant) for n in store.resolve(each, moment, include_retracted=include_retracted)
            ]
            found.update((node.id, node) for node in nodes)
            missing += [] if nodes else [reference]
        return list(found.values()), missing

    def _stored_path(self, ctx: Context, given: str) -> str:
        """A path of a call in the form that nodes have. Raises ToolError."""
        if not given:
            return ""
        assert self._place is not None
        return self._place.stored_path(given, ctx.folders().roots.folders[0])
