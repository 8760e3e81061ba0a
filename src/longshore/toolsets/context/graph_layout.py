"""The positions of nodes in a picture: forces push all of them apart and pull linked ones together.

Parts without links between them get rectangles of their own, and nodes without links a grid. Names stand beneath their
nodes; no name covers another, if the rectangle has room for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, cos, hypot, pi, sin, sqrt
from typing import Final, NamedTuple

Point = tuple[float, float]

STEPS: Final = 250
SEPARATING_STEPS: Final = 300
ROW: Final = 44.0
"""Height of a node with its name beneath it."""
GAP: Final = 10.0
"""Between two names in a row."""
ROOM: Final = 3.0
"""How many times the area of all nodes with their names a rectangle needs for a picture that can be read."""
_GOLDEN_ANGLE: Final = pi * (3 - sqrt(5))
_GRAVITY: Final = 0.06
"""Pulls everything to the middle."""


class Rectangle(NamedTuple):
    """A rectangle by its upper left corner and size."""

    x: float
    y: float
    width: float
    height: float


def area_of(widths: Iterable[float]) -> float:
    """The area that a picture of nodes with names of these widths needs."""
    return ROOM * sum(_area(width) for width in widths)


def lay_out(
    widths: Mapping[int, float], links: Iterable[tuple[int, int]], width: float, height: float
) -> dict[int, Point]:
    """A point for each node, given the widths of their names, with all names inside the rectangle.

    Equal graphs have equal points.
    """
    linked = dict[int, set[int]]()
    for one, other in links:
        if one != other and one in widths and other in widths:
            linked.setdefault(one, set()).add(other)
            linked.setdefault(other, set()).add(one)
    parts = _parts(widths, linked)
    if single := [node for node in widths if node not in linked]:
        parts.append(single)
    points = dict[int, Point]()
    for part, box in _share(parts, Rectangle(0, 0, width, height), widths):
        if len(parts) > 1:
            box = Rectangle(box.x + GAP, box.y + GAP, max(1.0, box.width - 2 * GAP), max(1.0, box.height - 2 * GAP))
        inside = _grid(part, box, widths) if part[0] not in linked else _by_forces(part, linked, box, widths)
        points.update(inside)
    return {node: _inside(points[node], widths[node], width, height) for node in widths}


def _inside(point: Point, name: float, width: float, height: float) -> Point:
    """The point moved so that its name is inside: the rectangle of a small part may be narrower than its names."""
    x, y = point
    return min(max(x, name / 2), max(name / 2, width - name / 2)), min(max(y, 0.0), height)


def _area(width: float) -> float:
    return (width + GAP) * ROW


def _parts(nodes: Iterable[int], linked: Mapping[int, set[int]]) -> list[list[int]]:
    """The linked nodes by connected part of the graph, the largest first."""
    parts, seen = list[list[int]](), set[int]()
    for start in nodes:
        if start in seen or start not in linked:
            continue
        part, waiting = list[int](), [start]
        seen.add(start)
        while waiting:
            part.append(node := waiting.pop())
            waiting += sorted(linked[node] - seen)
            seen |= linked[node]
        parts.append(sorted(part))
    return sorted(parts, key=lambda part: (-len(part), part[0]))


def _share(
    parts: Sequence[list[int]], box: Rectangle, widths: Mapping[int, float]
) -> list[tuple[list[int], Rectangle]]:
    """A rectangle for each part, in proportion to its names: the longer side is divided between two halves."""
    if len(parts) <= 1:
        return [(part, box) for part in parts]
    sizes = [sum(_area(widths[node]) for node in part) for part in parts]
    total, half, cut = sum(sizes), 0.0, 0
    while cut < len(parts) - 1 and (cut == 0 or half + sizes[cut] / 2 <= total / 2):
        half += sizes[cut]
        cut += 1
    ratio = half / total
    if box.width >= box.height * 2:
        first = box._replace(width=box.width * ratio)
        second = box._replace(x=box.x + first.width, width=box.width - first.width)
    else:
        first = box._replace(height=box.height * ratio)
        second = box._replace(y=box.y + first.height, height=box.height - first.height)
    return [*_share(parts[:cut], first, widths), *_share(parts[cut:], second, widths)]


def _grid(part: list[int], box: Rectangle, widths: Mapping[int, float]) -> dict[int, Point]:
    """Rows of nodes without links."""
    widest = max(widths[node] for node in part) + GAP
    columns = max(1, min(len(part), int(box.width // widest)))
    rows = ceil(len(part) / columns)
    across, down = box.width / columns, min(box.height / rows, 2.5 * ROW)
    return {
        node: (box.x + (at % columns + 0.5) * across, box.y + (at // columns + 0.5) * down)
        for at, node in enumerate(part)
    }


def _by_forces(
    part: list[int], linked: Mapping[int, set[int]], box: Rectangle, widths: Mapping[int, float]
) -> dict[int, Point]:
    """The positions of the nodes of one part, by the forces of Fruchterman and Reingold (1991)."""
    place = {node: index for index, node in enumerate(part)}
    pairs = sorted({(min(place[a], place[b]), max(place[a], place[b])) for a in part for b in linked[a]})
    ideal = 0.9 * sqrt(box.width * box.height / len(part))
    points = [_on_spiral(index, ideal) for index in range(len(part))]
    heat = max(box.width, box.height) / 8
    for step in range(STEPS):
        forces = _forces(points, pairs, ideal, box.width / box.height)
        limit = heat * (1 - step / STEPS) + 0.5
        for index, (x, y) in enumerate(forces):
            length = hypot(x, y) or 1.0
            share = min(length, limit) / length
            points[index] = (points[index][0] + x * share, points[index][1] + y * share)
    halves = [(widths[node] + GAP) / 2 for node in part]
    room = max(halves)
    fitted = _fit(points, max(1.0, box.width - 2 * room), max(1.0, box.height - ROW))
    separated = _separate([(x + room, y + ROW / 2) for x, y in fitted], halves, box.width, box.height)
    return {node: (x + box.x, y + box.y) for node, (x, y) in zip(part, separated, strict=True)}


def _on_spiral(index: int, ideal: float) -> Point:
    angle, distance = index * _GOLDEN_ANGLE, ideal * sqrt(index) * 0.7
    return distance * cos(angle), distance * sin(angle)


def _forces(points: list[Point], pairs: list[tuple[int, int]], ideal: float, aspect: float) -> list[list[float]]:
    # Gravity is weaker sideways, since the picture is wider than it is high.
    forces = [[-x * _GRAVITY / aspect, -y * _GRAVITY * aspect] for x, y in points]
    square = ideal * ideal
    for here, (x, y) in enumerate(points):
        own = forces[here]
        for there in range(here + 1, len(points)):
            dx, dy = x - points[there][0], y - points[there][1]
            away = square / (dx * dx + dy * dy + 0.01)
            fx, fy = dx * away, dy * away
            own[0] += fx
            own[1] += fy
            forces[there][0] -= fx
            forces[there][1] -= fy
    for here, there in pairs:
        dx, dy = points[there][0] - points[here][0], points[there][1] - points[here][1]
        pull = hypot(dx, dy) / ideal
        forces[here][0] += dx * pull
        forces[here][1] += dy * pull
        forces[there][0] -= dx * pull
        forces[there][1] -= dy * pull
    return forces


def _fit(points: list[Point], width: float, height: float) -> list[Point]:
    """The points moved and scaled into the rectangle, at most twice as far apart as they were."""
    left, top = min(x for x, _ in points), min(y for _, y in points)
    wide, high = max(x for x, _ in points) - left, max(y for _, y in points) - top
    across, down = min(2.0, width / wide) if wide else 1.0, min(2.0, height / high) if high else 1.0
    return [
        ((x - left) * across + (width - wide * across) / 2, (y - top) * down + (height - high * down) / 2)
        for x, y in points
    ]


def _separate(points: list[Point], halves: list[float], width: float, height: float) -> list[Point]:
    """The points pushed apart where nodes or names would cover each other, as far as there is room."""
    moved = [[x, y] for x, y in points]
    for _ in range(SEPARATING_STEPS):
        is_done = True
        for index, here in enumerate(moved):
            for other in range(index + 1, len(moved)):
                there = moved[other]
                dx, dy = here[0] - there[0], here[1] - there[1]
                apart = halves[index] + halves[other]
                over_x, over_y = apart - abs(dx), ROW - abs(dy)
                if over_x <= 0 or over_y <= 0:
                    continue
                is_done = False
                # Along the axis on which they have to go less far, if there is room for both.
                is_across = width >= 2 * apart and (over_x < over_y * 2 or height < 2 * ROW)
                axis, over, sign = (0, over_x, dx) if is_across else (1, over_y, dy)
                step = over / 3 + 0.1 if sign >= 0 else -over / 3 - 0.1
                here[axis] += step
                there[axis] -= step
        for point, half in zip(moved, halves, strict=True):
            point[0] = min(max(point[0], half), max(half, width - half))
            point[1] = min(max(point[1], ROW / 2), max(ROW / 2, height - ROW / 2))
        if is_done:
            break
    return [(x, y) for x, y in moved]
