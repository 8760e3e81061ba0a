"""What MCP deprecates of HTTP still works, and whoever runs the server hears of it once."""

from __future__ import annotations

from pathlib import Path

from premises import opened


def test_the_transport_of_2024_is_noted_once(tmp_path: Path) -> None:
    with opened(tmp_path) as site:
        for _ in range(2):
            stream = site.send("GET", "/sse")
            stream.wait(lambda it: it.events, "the address to POST to")
            stream.close()
        site.server.until(lambda: not site.premises.app.sse.open, "the end of the streams")
        [problem] = site.premises.problems
        assert problem.level == "notice"
        assert "HTTP+SSE (GET /sse)" in problem.text
