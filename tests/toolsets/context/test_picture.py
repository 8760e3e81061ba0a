"""The picture of a neighbourhood."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from longshore.toolsets.context.graph_layout import lay_out
from longshore.toolsets.context.picture import COLOURS, draw, draw_page, name_width
from longshore.toolsets.context.records import Edge, Node

SVG = "{http://www.w3.org/2000/svg}"


def edge(start: int, end: int, relation: str = "calls") -> Edge:
    return Edge(
        id=start * 100 + end, from_node=start, relation=relation, to_node=end, source=1, valid_from=0, recorded_at=0
    )


HUB_AND_PAIR = [*((0, n) for n in (1, 2, 4, 5, 6, 7, 8, 11, 12, 21, 28)), (3, 9)]
"""The pair's rectangle is narrower than its names."""


@example(29, HUB_AND_PAIR)
@given(st.integers(0, 40), st.lists(st.tuples(st.integers(0, 45), st.integers(0, 45)), max_size=80))
def test_all_names_are_in_the_rectangle(count: int, links: list[tuple[int, int]]) -> None:
    widths = {n: 20.0 + 37 * n % 160 for n in range(count)}
    points = lay_out(widths, links, 1200, 800)
    assert list(points) == list(range(count))
    for node, (x, y) in points.items():
        assert widths[node] / 2 - 1 <= x <= 1201 - widths[node] / 2 and -1 <= y <= 801
    assert points == lay_out(widths, links, 1200, 800), "always the same"


def test_linked_nodes_are_nearer_than_others() -> None:
    ring = [(n, (n + 1) % 12) for n in range(12)]
    points = lay_out(dict.fromkeys(range(12), 60.0), ring, 1000, 700)

    def distance(a: int, b: int) -> float:
        return ((points[a][0] - points[b][0]) ** 2 + (points[a][1] - points[b][1]) ** 2) ** 0.5

    linked = [distance(a, b) for a, b in ring]
    others = [distance(a, b) for a, b in combinations(range(12), 2) if (a, b) not in ring and (b, a) not in ring]
    assert sum(linked) / len(linked) < 0.6 * sum(others) / len(others)


FOLDERS = "src/longshore/toolsets/context", "docs/adr", "tests/toolsets/context", "benchmarks"


def project(count: int) -> list[Node]:
    """Nodes with names as long as those of a project are."""
    files = [f"{FOLDERS[n % 4]}/{'0023-the-context-graph-' * (n % 2)}part_{n}.py" for n in range(count)]
    sections = [Node(id=n, kind="section", name=f"Guide > Key rotation of service {n}") for n in range(1, count, 2)]
    return [*(Node(id=n, kind="file", name=files[n], path=files[n]) for n in range(0, count, 2)), *sections]


@pytest.mark.parametrize("count", [2, 13, 30, 60, 120])
@pytest.mark.parametrize("shape", ["star", "tree", "pairs", "few", "none"])
def test_no_name_covers_another_and_the_picture_is_filled(count: int, shape: str) -> None:
    edges = {
        "star": [edge(0, n) for n in range(1, count)],
        "tree": [edge(n // 3, n) for n in range(1, count)],
        "pairs": [edge(n, n + 1) for n in range(0, count - 1, 2)],
        "few": [edge(0, n) for n in range(1, count // 2)],
        "none": [],
    }[shape]
    nodes = project(count)
    bold = set(range(0, count, 2))
    tree = ElementTree.fromstring(draw(nodes, edges, bold, {}, "title"))
    width, height = (float(each) for each in tree.attrib["viewBox"].split()[2:])
    boxes = dict[int, tuple[float, float, float]]()
    for group in tree.iter(SVG + "g"):
        title = group.find(SVG + "title")
        if title is not None and title.text:
            id_ = int(title.text.split()[0][1:])
            x, y = (float(each) for each in group.attrib["transform"][10:-1].split())
            boxes[id_] = (x, y, name_width(next(node for node in nodes if node.id == id_), is_bold=id_ in bold))
    assert len(boxes) == count
    for (x, y, wide), (other_x, other_y, other_wide) in combinations(boxes.values(), 2):
        assert abs(x - other_x) >= (wide + other_wide) / 2 - 1 or abs(y - other_y) >= 34
    for x, y, wide in boxes.values():
        assert wide / 2 <= x <= width - wide / 2 and 50 <= y <= height - 50
    if count >= 13 and shape != "none":
        left, right = (
            min(x - wide / 2 for x, _, wide in boxes.values()),
            max(x + wide / 2 for x, _, wide in boxes.values()),
        )
        assert right - left > 0.6 * width
        assert max(y for _, y, _ in boxes.values()) - min(y for _, y, _ in boxes.values()) > 0.5 * height


def test_what_begins_like_others_is_shown_by_its_end() -> None:
    method = Node(id=2, kind="method", name="ContextToolsOfAProject.query_context", path="tools.py")
    note = Node(id=3, kind="note", name="Why the keys are rotated at night", path="tools.py")
    svg = draw([*project(2), method, note], [], set(), {}, "title")
    assert ">…oolsets/context/part_0.py<" in svg and ">…Key rotation of service 1<" in svg
    assert ">…sOfAProject.query_context<" in svg and ">Why the keys are rotated …<" in svg


@given(st.text(max_size=200), st.text(max_size=60), st.text(max_size=60))
def test_any_names_are_only_text(name: str, kind: str, relation: str) -> None:
    nodes = [
        Node(id=1, kind=kind, name=name, path=name),
        Node(id=2, kind="fact", name="</text><script>alert(1)</script>"),
    ]
    svg = draw(nodes, [edge(1, 2, relation), edge(2, 2)], {1}, {1: name}, name)
    tree = ElementTree.fromstring(svg)
    assert {element.tag for element in tree.iter()} <= {
        SVG + tag for tag in ("svg", "style", "defs", "marker", "path", "text", "g", "title", "circle", "rect")
    }
    page = draw_page(svg, name)
    assert "<script" not in page and "default-src 'none'" in page


def test_kinds_have_colours_shapes_and_a_legend() -> None:
    nodes = [Node(id=n, kind=f"kind {n % 12}", name=f"node {n}") for n in range(1, 40)]
    svg = draw(nodes, [edge(1, 2), edge(2, 1, "uses")], {1}, {1: "what it says"}, "title")
    tree = ElementTree.fromstring(svg)
    titles = [each.text or "" for each in tree.iter(SVG + "title")]
    assert "n1 kind 1: node 1: what it says" in titles and {"calls", "uses"} <= set(titles)
    legend = [each.text or "" for each in tree.iter(SVG + "text") if (each.text or "").endswith(")")]
    assert len(legend) == COLOURS and legend[-1] == "5 other kinds (15)"
    assert "prefers-color-scheme:dark" in svg
