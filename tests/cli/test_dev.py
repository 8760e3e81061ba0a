"""`longshore dev` over stdio and HTTP: a save is served at once, clients stay, an error keeps the last good version."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from http_process.serverproc import ServerProcess, environment, start
from posting import Session
from process.peer import LONGSHORE, Peer, call, failed, request, text_of
from waiting import eventually

ONE = '''
from longshore import Server, Toolset, tool
from prices import PRICE

app = Server("shop")


@app.tool(effects="read")
def price() -> str:
    """The price"""
    return PRICE


class Till(Toolset):
    """A till."""

    name = "till"

    def start(self) -> None:
        print("the till is open", file=__import__("sys").stderr)

    def stop(self) -> None:
        print("the till is closed", file=__import__("sys").stderr)

    @tool(effects="read")
    def count(self) -> str:
        """Count what is in the till"""
        return "nothing"


app.add_toolset(Till)
'''
TWO = (
    ONE
    + '''

@app.tool(effects="read")
def stock() -> str:
    """What is in stock"""
    return "7"
'''
)
BROKEN = ONE + "\ndef (:\n"
_CONSOLE = re.compile(r"The console:  (http://127\.0\.0\.1:(\d+)/console)#token=(\S+)")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "prices.py").write_text('PRICE = "3 crowns"\n')
    (tmp_path / ".git").mkdir()
    place = tmp_path / "server.py"
    place.write_text(ONE)
    return place


@pytest.fixture
def peer(file: Path) -> Iterator[Peer]:
    made = Peer([*LONGSHORE, "dev", str(file), "--port", "0"], file.parent, environment(file.parent))
    try:
        yield made
    finally:
        made.kill()


def tools(peer: Peer) -> list[str]:
    return [each["name"] for each in peer.ask(request("list", "tools/list"))["result"]["tools"]]


# -- stdio


def test_on_stdio_a_save_changes_the_tools_and_the_session_stays(peer: Peer, file: Path) -> None:
    peer.start()
    assert tools(peer) == ["price", "count"]
    assert text_of(peer.call("count")) == "nothing"
    file.write_text(TWO)
    peer.notice("notifications/tools/list_changed")
    assert tools(peer) == ["price", "count", "stock"]
    assert text_of(peer.call("stock")) == "7"
    eventually("the end of the old toolset", lambda: "the till is closed" in peer.stderr)
    peer.close_input()
    assert peer.wait() == 0
    assert "Traceback" not in peer.stderr


def test_a_module_beside_the_file_is_loaded_again_too(peer: Peer, file: Path) -> None:
    peer.start()
    assert text_of(peer.call("price")) == "3 crowns"
    (file.parent / "prices.py").write_text('PRICE = "4 crowns"\n')
    peer.notice("notifications/tools/list_changed")
    assert text_of(peer.call("price")) == "4 crowns"


def test_an_error_leaves_the_last_good_version_and_is_shown(peer: Peer, file: Path) -> None:
    peer.start()
    assert tools(peer) == ["price", "count"]
    file.write_text(BROKEN)
    eventually("the error on stderr", lambda: "SyntaxError" in peer.stderr)
    assert text_of(peer.call("price")) == "3 crowns"
    answer = peer.call("stock")
    assert "server.py has an error" in answer["error"]["message"]
    assert "SyntaxError" in answer["error"]["message"]
    found = _CONSOLE.search(peer.stderr)
    assert found is not None
    rows = ask(found, "history?limit=10")["records"]
    assert rows, "the console has what happened on stdio"
    file.write_text(TWO)
    peer.notice("notifications/tools/list_changed")
    assert text_of(peer.call("stock")) == "7"
    assert "has an error" not in peer.call("nothing")["error"]["message"]


def test_a_file_that_is_broken_at_the_start_is_served_when_it_is_repaired(file: Path) -> None:
    file.write_text(BROKEN)
    peer = Peer([*LONGSHORE, "dev", str(file), "--port", "0"], file.parent, environment(file.parent))
    try:
        peer.start()
        assert "SyntaxError" in peer.call("price")["error"]["message"]
        file.write_text(ONE)
        eventually("the tool", lambda: not failed_or_unknown(peer))
    finally:
        peer.kill()


def failed_or_unknown(peer: Peer) -> bool:
    answer = peer.ask(call("again", "price"))
    return "error" in answer or failed(answer)


def ask(console: re.Match[str], name: str) -> dict[str, object]:
    """An answer of the console's API."""
    headers = {"Authorization": f"Bearer {console[3]}"}
    with urlopen(Request(f"{console[1]}/api/{name}", headers=headers), timeout=20) as answer:
        found: dict[str, object] = json.load(answer)
        return found


def test_the_wire_of_stdio_is_shown_while_a_page_asks_for_it(peer: Peer) -> None:
    peer.start()
    eventually("the console's address", lambda: _CONSOLE.search(peer.stderr))
    found = _CONSOLE.search(peer.stderr)
    assert found is not None
    address = Request(f"{found[1]}/api/stream?wire=1", headers={"Authorization": f"Bearer {found[3]}"})
    with urlopen(address, timeout=20) as stream:
        data = (json.loads(line[6:]) for line in stream if line.startswith(b"data: "))
        assert "calls" in next(data), "the first state: the page is open"
        assert text_of(peer.call("price")) == "3 crowns"
        shown = (frame for each in data for frame in each.get("frames", ()))
        received, sent = next(shown), next(shown)
    assert [received["direction"], sent["direction"]] == ["in", "out"]
    assert [received["transport"], sent["transport"]] == ["stdio", "stdio"]
    assert '"price"' in received["text"]
    assert "3 crowns" in sent["text"]


def test_the_console_beside_stdio_shows_the_calls_of_the_client(peer: Peer) -> None:
    peer.start()
    assert text_of(peer.call("price")) == "3 crowns"
    eventually("the console's address", lambda: _CONSOLE.search(peer.stderr))
    found = _CONSOLE.search(peer.stderr)
    assert found is not None
    assert ask(found, "overview")["name"] == "shop"
    [row] = ask(found, "history?tool=price")["records"]  # type: ignore[misc]
    assert row["transport"] == "stdio"  # type: ignore[index]


# -- HTTP


def test_over_http_a_save_changes_the_tools_and_the_session_stays(file: Path) -> None:
    argv = (*LONGSHORE, "dev", str(file), "--http", "--port", "0")
    with start(None, folder=file.parent, argv=argv) as server:
        session = Session(server).open()  # type: ignore[arg-type]
        stream = session.get().begin()
        assert session.call("price") == "3 crowns"
        file.write_text(TWO)
        stream.wait(lambda it: any("list_changed" in event.data for event in it.events), "the notification")
        assert session.call("stock") == "7"
        assert address(server)
        file.write_text(ONE)
        eventually("the end of the tool", lambda: "error" in session.ask("tools/call", {"name": "stock"}))
        assert session.call("price") == "3 crowns"


def address(server: ServerProcess) -> re.Match[str]:
    found = _CONSOLE.search(server.stderr)
    assert found is not None, server.stderr
    return found


def test_serve_prints_the_console_s_address_and_its_token_opens_it(file: Path) -> None:
    with start(str(file), folder=file.parent) as server:
        assert ask(address(server), "overview")["read_only"] is False


def test_with_the_key_off_there_is_no_console(file: Path) -> None:
    with start(str(file), "--set", "http.console=false", folder=file.parent) as server:
        assert "console" not in server.stderr
        assert server.send("GET", "/console").finish().status == 404


# -- wrong use


@pytest.mark.parametrize("target", ["nothing.py", "longshore.builtin"])
def test_what_is_no_file_is_refused(file: Path, target: str) -> None:
    peer = Peer([*LONGSHORE, "dev", target], file.parent, environment(file.parent))
    try:
        assert peer.wait() == 2
        assert "there is no such file" in peer.stderr
    finally:
        peer.kill()
