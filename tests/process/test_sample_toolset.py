"""`examples/toolsets/logs.py` on a real server: options, availability, an unlisted tool, a budget and an artifact."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from longshore.registry.token_budget import count_tokens

from .conftest import Workshop
from .peer import LONGSHORE, Peer, call, modern, request, text_of

SAMPLE = Path(__file__).parents[2] / "examples/toolsets/logs.py"
MOST_LINES = 80


def serve(workshop: Workshop, settings: str = "") -> Peer:
    """The sample in a folder with logs, of which one is long."""
    logs = workshop.folder / "logs"
    logs.mkdir()
    (logs / "app.log").write_text("".join(f"line {n:04} was written\n" for n in range(2000)))
    (logs / "notes.txt").write_text("a note was written\n")
    workshop.write(f'[server]\nroots = ["logs"]\n[toolsets.logs]\n{settings}\n', "longshore.toml")
    return workshop.spawn(*LONGSHORE, "serve", str(SAMPLE))


def ask(peer: Peer, tool: str, **arguments: Any) -> dict[str, Any]:
    return peer.ask(modern(call("call", tool, **arguments)))


def test_the_sample_is_short() -> None:
    assert len(SAMPLE.read_text().splitlines()) <= MOST_LINES


def test_a_short_answer_is_whole(workshop: Workshop) -> None:
    answer = ask(serve(workshop), "search_logs", words="line 0007")
    assert text_of(answer) == "line 0007 was written"


def test_a_long_answer_fits_its_budget_and_links_to_the_whole(workshop: Workshop) -> None:
    peer = serve(workshop)
    [shown, link] = ask(peer, "search_logs", words="written", max_tokens=300)["result"]["content"]
    assert count_tokens(shown["text"]) <= 300
    assert shown["text"].startswith("line 0000") and shown["text"].endswith("line 1999 was written")
    assert "lines left out; the link has them all" in shown["text"]
    assert link["description"].startswith("2,000 lines with 'written'")
    [whole] = peer.ask(modern(request("read", "resources/read", uri=link["uri"])))["result"]["contents"]
    assert whole["text"].count("\n") == 1999


def test_the_options_come_from_the_configuration(workshop: Workshop) -> None:
    peer = serve(workshop, 'pattern = "*.txt"')
    assert text_of(ask(peer, "list_logs")) == f"{workshop.folder.resolve()}/logs/notes.txt (19 bytes)"


def test_an_unlisted_tool_can_be_called(workshop: Workshop) -> None:
    peer = serve(workshop)
    listed = peer.ask(modern(request("list", "tools/list")))["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["list_logs", "search_logs"]
    assert text_of(ask(peer, "count_lines", words="written")) == "2000"


def test_without_its_program_the_toolset_is_not_offered_and_the_log_says_why(workshop: Workshop) -> None:
    peer = serve(workshop, 'program = "no-such-grep"')
    assert peer.ask(modern(request("list", "tools/list")))["result"]["tools"] == []
    peer.close_input()
    peer.wait()
    assert "no-such-grep is not installed; install it, or set toolsets.logs.program" in peer.stderr
