"""The answers of the context tools, as text that fits a token budget."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import TYPE_CHECKING, Final

from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, cut_line, fit_lines
from longshore.toolsets.context.checks import to_word
from longshore.toolsets.context.packing import (
    NAME_CHARACTERS,
    excerpt,
    indented,
    many,
    node_line,
    one_line,
    plain_or_quoted,
    quoted,
    show_time,
    source_label,
    source_name,
)
from longshore.toolsets.context.place import Place, strange_mode
from longshore.toolsets.context.records import (
    NOW,
    AddedItem,
    Details,
    Edge,
    ForgetMode,
    ForgetReport,
    GraphEvent,
    Interval,
    Microseconds,
    Moment,
    Node,
    Observation,
    Source,
    StoreStatus,
    Targeted,
)
from longshore.toolsets.context.rows import is_past, to_json

if TYPE_CHECKING:
    from longshore.toolsets.context.ingest import IngestReport

LEAST_TEXT: Final = 200
"""Characters of each text that are shown of a node, however many it has."""
LISTED: Final = 20
"""Ids that an answer lists."""
LABEL_CHARACTERS: Final = 3 * NAME_CHARACTERS
"""Of where a text or link comes from, and what became of it."""
ALSO_SAID: Final = 4
"""Observations of a node that the answer to an addition shows."""
SHOWN_CHANGES: Final = 5
"""In a status."""


# -- nodes


def show_nodes(
    found: Sequence[Details],
    max_tokens: int,
    *,
    moment: Moment = NOW,
    with_history: bool = False,
    around: tuple[Mapping[int, Node], Sequence[Edge]] | None = None,
    missing: Sequence[str] = (),
) -> str:
    """Nodes with all their observations and edges, then their neighbourhood, and the names that were not found."""
    texts = sum(len(each.observations) for each in found)
    room = max_tokens * CHARACTERS_PER_TOKEN * 7 // 10 // max(1, texts)
    lines = [_nothing_named(name, with_history) for name in missing]
    for each in found:
        lines += _show_node(each, max(LEAST_TEXT, room), moment, with_history)
    if around is not None:
        lines += _show_around(*around, {each.node.id for each in found})

    def rest(end: int) -> str:
        return f"{len(lines) - end:,} more; ask for fewer nodes, or with a higher max_tokens"

    return fit_lines(lines, max_tokens, rest).text


def _nothing_named(name: str, with_history: bool) -> str:
    more = "" if with_history else ", and history=true what was retracted"
    return f"Nothing is named {one_line(name)[:NAME_CHARACTERS]!r}: query_context finds nodes{more}."


def _show_node(details: Details, room: int, moment: Moment, with_history: bool) -> Iterator[str]:
    node = details.node
    yield node_line(node)
    facts = [f"created {show_time(node.created_at)}", f"changed {show_time(node.updated_at)}"]
    facts += [f"importance {node.importance:g}"] if node.importance != 0.5 else []
    facts += ["pinned"] if node.pinned else []
    facts += [_left(node)] if node.retracted_at is not None else []
    yield "  " + "; ".join(facts)
    if node.attributes:
        yield "  " + cut_line("attributes " + one_line(to_json(node.attributes)), room)
    for observation in details.observations:
        label = _observation_label(observation, details, with_history)
        yield indented(f"{label} {excerpt(observation.text, set(), room)}")
    if not details.observations:
        when = "then" if is_past(moment) else "now"
        yield "  no text" if with_history else f"  no text {when}; history=true shows what there was"
    for edge in details.edges:
        yield "  " + _edge_line(edge, node, details, with_history)


def _left(node: Node) -> str:
    at = show_time(node.retracted_at or 0)
    if node.retracted_as == "not in file":
        return f"not in its file since {at}: ingest_path brings it back when it is there again"
    return f"retracted {at}: restore brings it back"


def _observation_label(observation: Observation, details: Details, with_history: bool) -> str:
    """The label of an observation: its source, time and session, and in a history how it was closed."""
    source = details.sources.get(observation.source)
    facts = [source_label(observation, source)[1:-1], _recorded(observation, source)]
    if observation.confidence != 1:
        facts.append(f"confidence {observation.confidence:g}")
    facts += [f"contradicts o{other}" for other in details.contradicting.get(observation.id, ())[:LISTED]]
    return f"[{cut_line(one_line('; '.join(facts + _ends(observation, 'o', with_history))), LABEL_CHARACTERS)}]"


def _edge_line(edge: Edge, node: Node, details: Details, with_history: bool) -> str:
    other = edge.to_node if edge.from_node == node.id else edge.from_node
    there = details.neighbours.get(other, node)
    relation = to_word(edge.relation)
    arrow = f"{relation} →" if edge.from_node == node.id else f"← {relation}"
    source = details.sources.get(edge.source)
    facts = [f"from {source_name(source)}, {show_time(edge.valid_from)[:10]}", _recorded(edge, source)]
    label = cut_line(one_line("; ".join(facts + _ends(edge, "e", with_history))), LABEL_CHARACTERS)
    return f"e{edge.id} {arrow} {node_line(there)} [{label}]"


def _recorded(interval: Interval, source: Source | None) -> str:
    facts = ["recorded " + show_time(interval.recorded_at)]
    if source is not None:
        facts += [f"session {source.session}"] if source.session else []
        facts += [f"client {plain_or_quoted(source.client)}"] if source.client and (source.actor or source.uri) else []
    return ", ".join(facts)


def _ends(interval: Interval, letter: str, with_history: bool) -> list[str]:
    """The time until which something is said to be true and, in a history, how it was closed."""
    facts = [f"true until {show_time(interval.valid_to)}"] if interval.valid_to is not None else []
    if interval.superseded_at is None or not with_history:
        return facts
    at, by = show_time(interval.superseded_at), f"{letter}{interval.superseded_by}"
    has_next = interval.superseded_by is not None
    match interval.closed_as:
        case "retracted" | "retracted with node":
            facts.append(f"retracted {at}{f', restored as {by}' if has_next else ''}")
        case "recorded again":
            facts.append(f"recorded again{f' as {by}' if has_next else ''} {at}")
        case "not in file":
            facts.append(f"not in its file since {at}")
        case "ended":
            facts.append(f"ended{f', restored as {by}' if has_next else ''}, said {at}")
        case "superseded" | None:
            facts.append(f"superseded{f' by {by}' if has_next else ''} {at}")
    if interval.ended_at is not None:
        facts.append(f"true until {show_time(interval.ended_at)}")
    elif interval.closed_as == "superseded":
        facts.append("never true")
    return facts + ([f"reason: {interval.reason}"] if interval.reason else [])


def _show_around(nodes: Mapping[int, Node], edges: Sequence[Edge], shown: set[int]) -> Iterator[str]:
    others = [node for id_, node in nodes.items() if id_ not in shown]
    yield f"Around: {many(len(others), 'node')}, {many(len(edges), 'edge')}"
    yield from ("  " + node_line(node) for node in others)
    yield from (f"  e{edge.id} n{edge.from_node} {to_word(edge.relation)} → n{edge.to_node}" for edge in edges)


# -- changes


def show_added(added: Sequence[AddedItem], others: Mapping[int, Details], max_tokens: int) -> str:
    """The result of each added item; for a node that existed before, also its other observations."""
    lines = list[str]()
    for item in added:
        head = f"n{item.node} {to_word(item.kind)}: {quoted(item.name)}: {item.outcome}"
        head += f", o{item.observation}" if item.observation is not None else ""
        head += f", {show_ids('e', item.edges)}" if item.edges else ""
        head += f", made {show_ids('n', item.linked)}" if item.linked else ""
        lines.append(head)
        there = others.get(item.node)
        for observation in there.observations[:ALSO_SAID] if there is not None else ():
            if there is not None and observation.id != item.observation:
                text = cut_line(one_line(observation.text), LEAST_TEXT)
                label = source_label(observation, there.sources.get(observation.source))
                lines.append(indented(f"it says also {label} {text}"))

    def rest(end: int) -> str:
        return f"{len(lines) - end:,} lines more; all {len(added):,} items are stored"

    return fit_lines(lines, max_tokens, rest).text


def show_ids(letter: str, ids: Iterable[int]) -> str:
    """`n1, n2 and 5 more`."""
    return _some([f"{letter}{each}" for each in ids])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - LISTED:,} more" if len(names) > LISTED else ""
    return ", ".join(names[:LISTED]) + more


_DONE: Final[dict[ForgetMode, str]] = {"retract": "retracted", "restore": "restored", "purge": "purged"}


def preview_nodes(mode: ForgetMode, nodes: Sequence[Node], code: str, max_tokens: int) -> str:
    """The nodes that would be forgotten, and the code that confirms it."""
    if not nodes:
        return f"no nodes are chosen, so nothing would be {_DONE[mode]}"
    then = f'the same call with confirm="{code}" does it'
    lines = [f"{mode} would change {many(len(nodes), 'node')} with all they have; {then}:", *map(node_line, nodes)]
    return fit_lines(lines, max_tokens, lambda end: many(len(lines) - end, "more node")).text


def preview_targets(mode: ForgetMode, found: Targeted, max_tokens: int) -> str:
    """The nodes, observations and edges that ids name and that would be forgotten."""
    facts: list[Observation | Edge] = [*found.observations, *found.edges]
    if mode == "retract":
        nodes = [node for node in found.nodes if node.retracted_at is None]
        facts = [fact for fact in facts if fact.is_current]
    elif mode == "restore":
        nodes = [node for node in found.nodes if node.retracted_at is not None]
        facts = [fact for fact in facts if not fact.is_current and fact.superseded_by is None]
    else:
        nodes = list(found.nodes)
    lines = [f"{node_line(node)}, with all it has" for node in nodes]
    for fact in facts:
        owner = node_line(found.owners[fact.owner])
        if isinstance(fact, Observation):
            lines.append(indented(f"o{fact.id} of {owner}: {cut_line(one_line(fact.text), LEAST_TEXT)}"))
        else:
            lines.append(f"e{fact.id}: {owner} {to_word(fact.relation)} → {node_line(found.owners[fact.to_node])}")
    if not lines:
        return f"nothing would be {_DONE[mode]}: it is so already"
    return fit_lines([f"{mode} would change:", *lines], max_tokens, lambda end: f"{len(lines) - end + 1:,} more").text


def show_forgotten(mode: ForgetMode, report: ForgetReport) -> str:
    """`retracted n1 with o1, o2 and e1`, or the statement that nothing was changed."""
    done = _DONE[mode]
    parts = [
        f"{many(len(ids), noun)} ({show_ids(letter, ids)})"
        for letter, noun, ids in (
            ("n", "node", report.nodes),
            ("o", "observation", report.observations),
            ("e", "edge", report.edges),
        )
        if ids
    ]
    copies = f"; copies that may still hold it: {', '.join(report.backups)}" if report.backups else ""
    return f"{done} {', '.join(parts)}{copies}" if parts else f"nothing to be {done}: it was so already{copies}"


# -- files


def show_ingested(report: IngestReport, max_tokens: int) -> str:
    """The result of an ingest: counts of files and changes."""
    counts = ("added", "changed", "moved", "forgotten", "relinked", "unchanged")
    done = [f"{count:,} {name}" for name in counts if (count := getattr(report, name))]
    lines = [f"{one_line(report.path) or '.'}: {many(report.files, 'file')}: {', '.join(done) or 'nothing to read'}"]
    if report.parts:
        functions = many(report.functions, "function")
        lines.append(f"{many(report.parts, 'node')}, among them {functions}, of {report.bytes / 1e6:,.1f} MB")
    if report.secrets:
        lines.append(f"{many(report.secrets, 'credential')} not stored")
    if report.skipped:
        lines.append("skipped: " + ", ".join(f"{count:,} {why}" for why, count in sorted(report.skipped.items())))
    lines += map(one_line, report.limits)
    lines += [f"  {one_line(each.path)}: {one_line(each.what)}" for each in report.problems]
    return fit_lines(lines, max_tokens, lambda end: f"{len(lines) - end:,} lines more").text


# -- the whole store


def show_status(
    status: StoreStatus, place: Place, events: Sequence[GraphEvent], allow_purge: bool, max_tokens: int
) -> str:
    """The place and size of the store, and its last changes."""
    kinds = ", ".join(f"{to_word(kind)} {count:,}" for kind, count in status.kinds.items())
    changed = "never" if status.last_change_at is None else show_time(status.last_change_at)
    lines = [
        f"Place: {status.place}" + (f", because {place.why}" if place.why else ""),
        *([note] if (note := strange_mode(place.address)) else []),
        f"Project: {place.project or 'none'}",
        f"Nodes: {status.nodes:,}" + (f" ({kinds})" if kinds else ""),
        f"Observations: {status.observations:,} current, {status.superseded:,} superseded; edges: {status.edges:,}",
        f"Files ingested: {status.files:,}; sources: {status.sources:,}; words: {status.terms:,}",
        f"Size: {status.bytes / 1e6:,.1f} MB of at most {status.most_bytes / 1e6:,.0f} MB; {status.journal}",
        f"Events: {status.events:,}; last change: {changed}",
        f"Purging is {'allowed' if allow_purge else 'not allowed (allow_purge)'}.",
    ]
    lines += [f"  {line}" for line in show_events(events, SHOWN_CHANGES)]
    return fit_lines(lines, max_tokens).text


def show_events(events: Iterable[GraphEvent], most: int | None = None) -> list[str]:
    """A line for each change: `2026-11-18T09:30:00Z create n1; add n1 o2; link n1 e3, n1 e4 by alice`."""
    changes = groupby(events, key=lambda event: (event.at, event.actor))
    return [_show_change(at, actor, list(made)) for (at, actor), made in islice(changes, most)]


def _show_change(at: Microseconds, actor: str, events: Sequence[GraphEvent]) -> str:
    done = dict[str, list[str]]()
    for event in sorted(events, key=lambda event: event.sequence):
        ids = ((letter, id_) for letter, id_ in (("n", event.node), ("o", event.observation), ("e", event.edge)))
        done.setdefault(event.operation, []).append(
            " ".join(f"{letter}{id_}" for letter, id_ in ids if id_ is not None)
        )
    what = "; ".join(f"{operation} {_some(ids)}".strip() for operation, ids in done.items())
    by = f" by {cut_line(one_line(actor), NAME_CHARACTERS)}" if actor else ""
    reasons = dict.fromkeys(one_line(str(event.detail["reason"])) for event in events if "reason" in event.detail)
    return f"{show_time(at)} {what}{by}{cut_line(f': {chr(32).join(reasons)}', NAME_CHARACTERS) if reasons else ''}"
