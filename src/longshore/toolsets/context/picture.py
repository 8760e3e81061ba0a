"""A picture of a neighbourhood: one SVG, or an HTML page with it, without scripts or external files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import hypot, sqrt
from typing import Final

from longshore.toolsets.context.file_parts import CLASS, FUNCTION, METHOD, SECTION
from longshore.toolsets.context.graph_layout import Point, area_of, lay_out
from longshore.toolsets.context.packing import one_line
from longshore.toolsets.context.records import Edge, Node

WIDTH, HEIGHT = 1280, 860
"""Of a picture of few nodes; one of many is larger."""
MARGIN_X, MARGIN_TOP, MARGIN_BOTTOM = 24, 66, 66
"""Above is the title, beneath the legend."""
RADIUS: Final = 11
NAME_CHARACTERS: Final = 26
TITLE_CHARACTERS: Final = 600
NAME_BELOW: Final = 22
"""How far the middle of a name is beneath its node."""
NAME_WIDTH, RELATION_WIDTH = 6.9, 5.4
"""Of a character of a name and of a relation, about."""
BOLD: Final = 1.18
"""How much wider the names of the nodes are that the picture begins with."""
COLOURS: Final = 8
"""Kinds with a colour and shape of their own; the rarest share the last."""
_PARTS: Final = frozenset((CLASS, FUNCTION, METHOD, SECTION))
"""Kinds whose names begin with those of what they are in."""

_SHAPES: Final = (
    '<circle r="11"/>',
    '<rect x="-10" y="-10" width="20" height="20" rx="3"/>',
    '<path d="M0-13 13 0 0 13-13 0Z"/>',
    '<path d="M0-13 12 9H-12Z"/>',
    '<path d="M-6.5-11H6.5L13 0 6.5 11H-6.5L-13 0Z"/>',
    '<path d="M0 13-12-9H12Z"/>',
    '<rect x="-13" y="-7.5" width="26" height="15" rx="7.5"/>',
    '<path d="M0-12 12-3 7.5 11H-7.5L-12-3Z"/>',
)
_STYLE: Final = """
svg{--back:#fcfcfb;--text:#1d1d1f;--dim:#6b6b70;--line:#a9a9b0;
--k0:#2f6fd0;--k1:#d9730d;--k2:#1f8a5b;--k3:#a3399c;--k4:#b8860b;--k5:#0f8b8d;--k6:#c0392b;--k7:#707078;
background:var(--back);font:12px system-ui,sans-serif;fill:var(--text)}
@media (prefers-color-scheme:dark){svg{--back:#17181b;--text:#ececf0;--dim:#a0a0a8;--line:#62626b;
--k0:#6ea8ff;--k1:#ffa54f;--k2:#4fcf94;--k3:#e07bd8;--k4:#e6c04d;--k5:#4fd0d2;--k6:#ff7b6b;--k7:#a8a8b0}}
.edge{stroke:var(--line);stroke-width:1.3;fill:none}.tip{fill:var(--line)}
.relation{font-size:10px;fill:var(--dim);text-anchor:middle;paint-order:stroke;stroke:var(--back);stroke-width:3px}
.name{text-anchor:middle;paint-order:stroke;stroke:var(--back);stroke-width:3.5px}
.node>*:first-child{stroke:var(--back);stroke-width:2}.start>*:first-child{stroke:var(--text);stroke-width:2.5}
.start .name{font-weight:600}.heading{font-size:16px;font-weight:600}.note{fill:var(--dim)}
""" + "".join(f".k{n}>*:first-child{{fill:var(--k{n})}}" for n in range(COLOURS))


def draw_page(svg: str, title: str) -> str:
    """An HTML page with a picture."""
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark">'
        f"<title>{_text(title)}</title>"
        "<style>body{margin:0}svg{display:block;width:100%;height:auto;max-height:100vh}</style>"
        f"</head><body>\n{svg}\n</body></html>\n"
    )


def draw(nodes: Sequence[Node], edges: Sequence[Edge], start: set[int], texts: Mapping[int, str], title: str) -> str:
    """The SVG of some nodes and the edges among them. `texts` are shown when the pointer rests on a node."""
    shown = {node.id for node in nodes}
    edges = [edge for edge in edges if edge.from_node in shown and edge.to_node in shown]
    widths = {node.id: name_width(node, is_bold=node.id in start) for node in nodes}
    width, height = WIDTH - 2 * MARGIN_X, HEIGHT - MARGIN_TOP - MARGIN_BOTTOM
    larger = max(1.0, sqrt(area_of(widths.values()) / (width * height)))
    width, height = round(width * larger), round(height * larger)
    laid = lay_out(widths, ((edge.from_node, edge.to_node) for edge in edges), width, height)
    points = {id_: (x + MARGIN_X, y + MARGIN_TOP - NAME_BELOW / 2) for id_, (x, y) in laid.items()}
    width, height = width + 2 * MARGIN_X, height + MARGIN_TOP + MARGIN_BOTTOM
    classes = _classes(nodes)
    counts = f"{_many(len(nodes), 'node')}, {_many(len(edges), 'edge')}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img"'
        f' aria-label="{_text(_short(title, 200))}">',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path class="tip" d="M0 0 8 4 0 8Z"/></marker></defs>',
        f'<text class="heading" x="24" y="34">{_text(_short(title, 90))}</text>',
        f'<text class="note" x="24" y="52">{counts}</text>',
        *_draw_edges(edges, points, widths),
        *(_draw_node(node, points[node.id], classes[node.kind], node.id in start, texts) for node in nodes),
        *_draw_legend(nodes, classes, height - 24),
        "</svg>",
    ]
    return "\n".join(parts)


def name_width(node: Node, *, is_bold: bool = False) -> float:
    """The approximate width of a node's name in the picture; at least that of its shape."""
    return max(2.0 * RADIUS, NAME_WIDTH * (BOLD if is_bold else 1.0) * len(_shown_name(node)))


def _shown_name(node: Node) -> str:
    """The name, cut to fit; of a path or a part of a file the end, which distinguishes it."""
    line = one_line(node.name)
    if len(line) > NAME_CHARACTERS and (node.name == node.path or node.kind in _PARTS):
        return "…" + line[1 - NAME_CHARACTERS :]
    return _short(line, NAME_CHARACTERS)


def _classes(nodes: Sequence[Node]) -> dict[str, int]:
    """A colour and shape for each kind, the commonest first."""
    common = Counter(node.kind for node in nodes)
    kinds = sorted(common, key=lambda kind: (-common[kind], kind))
    return {kind: min(place, COLOURS - 1) for place, kind in enumerate(kinds)}


def _draw_edges(edges: Sequence[Edge], points: Mapping[int, Point], widths: Mapping[int, float]) -> Iterator[str]:
    """Edges between the same nodes are one line. Relations are written where they cover nothing, else put in titles."""
    relations = dict[tuple[int, int], list[str]]()
    for edge in edges:
        relations.setdefault((edge.from_node, edge.to_node), []).append(edge.relation)
    taken = _Taken()
    for id_, (x, y) in points.items():
        taken.take(x, y, 2 * RADIUS, 2 * RADIUS)
        taken.take(x, y + NAME_BELOW, widths[id_], 14)
    for (start, end), words in relations.items():
        (x, y), (to_x, to_y) = points[start], points[end]
        name = ", ".join(dict.fromkeys(words))
        length = hypot(to_x - x, to_y - y)
        if start == end or length < 3 * RADIUS:
            continue
        # A bend keeps the edge of the other direction visible, and ends leave space for the shapes.
        nx, ny = (to_y - y) / length, (x - to_x) / length
        bend = min(24.0, length * 0.08)
        mid_x, mid_y = (x + to_x) / 2 + nx * bend, (y + to_y) / 2 + ny * bend
        x, y = _towards((x, y), (mid_x, mid_y), RADIUS + 3)
        from_below = mid_y - to_y > abs(mid_x - to_x)  # at the name, which would cover the tip
        to_x, to_y = _towards((to_x, to_y), (mid_x, mid_y), RADIUS + (24 if from_below else 6))
        line = f"M{x:.1f} {y:.1f}Q{mid_x:.1f} {mid_y:.1f} {to_x:.1f} {to_y:.1f}"
        yield f'<path class="edge" marker-end="url(#tip)" d="{line}"><title>{_text(_short(name, 200))}</title></path>'
        words_shown = _short(name, NAME_CHARACTERS)
        at_x, at_y = (x + 2 * mid_x + to_x) / 4, (y + 2 * mid_y + to_y) / 4
        if taken.take(at_x, at_y, RELATION_WIDTH * len(words_shown), 11):
            yield f'<text class="relation" x="{at_x:.1f}" y="{at_y + 3:.1f}">{_text(words_shown)}</text>'


class _Taken:
    """The rectangles that words and shapes occupy."""

    def __init__(self) -> None:
        self._boxes = list[tuple[float, float, float, float]]()

    def take(self, x: float, y: float, width: float, height: float) -> bool:
        """Occupy the rectangle around a point. False: a part of it is occupied."""
        if any(
            abs(x - other_x) * 2 < width + other_width and abs(y - other_y) * 2 < height + other_height
            for other_x, other_y, other_width, other_height in self._boxes
        ):
            return False
        self._boxes.append((x, y, width, height))
        return True


def _towards(point: Point, other: Point, distance: float) -> Point:
    """The point at this distance from the one towards the other."""
    dx, dy = other[0] - point[0], other[1] - point[1]
    share = distance / (hypot(dx, dy) or 1.0)
    return point[0] + dx * share, point[1] + dy * share


def _draw_node(node: Node, at: Point, number: int, is_start: bool, texts: Mapping[int, str]) -> str:
    about = f"n{node.id} {node.kind}: {node.name}" + (f" ({node.path})" if node.path else "")
    title = _short(f"{about}: {texts[node.id]}" if texts.get(node.id) else about, TITLE_CHARACTERS)
    return (
        f'<g class="node k{number}{" start" if is_start else ""}" transform="translate({at[0]:.1f} {at[1]:.1f})">'
        f"{_SHAPES[number]}<title>{_text(title)}</title>"
        f'<text class="name" y="26">{_text(_shown_name(node))}</text></g>'
    )


def _draw_legend(nodes: Sequence[Node], classes: Mapping[str, int], y: float) -> Iterator[str]:
    counts = Counter(node.kind for node in nodes)
    x = 34.0
    others = [kind for kind, number in classes.items() if number == COLOURS - 1]
    for kind, number in classes.items():
        if number == COLOURS - 1 and kind != others[0]:
            continue
        name = kind if number < COLOURS - 1 or len(others) == 1 else f"{len(others)} other kinds"
        count = counts[kind] if name == kind else sum(counts[each] for each in others)
        label = f"{_short(name, 20)} ({count:,})"
        yield (
            f'<g class="node k{number}" transform="translate({x:.0f} {y})">{_SHAPES[number]}'
            f'<text x="20" y="4">{_text(label)}</text></g>'
        )
        x += 52 + 7 * len(label)


def _many(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _short(text: str, most: int) -> str:
    line = one_line(text)
    return line if len(line) <= most else line[: most - 1] + "…"


def _text(text: str) -> str:
    """A text escaped for XML and HTML, without characters that XML does not allow."""
    return escape("".join(c for c in text if c >= " " and not "\ud800" <= c <= "\udfff" and c not in "\ufffe\uffff"))
