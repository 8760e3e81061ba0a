"""Headers that say one thing and a body that says another: whoever trusts the headers must not be fooled.

A proxy in front of us may decide by `Mcp-Name: safe`. So a request whose body means `danger` is refused before anything
runs, whichever way the two were made to differ.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from premises import Site, opened, wait_cut_off

from posting import LEGACY, MODERN, PREFIX, Session, call, encode, modern, modern_headers, request
from serving import ABSENT, Exchange, request_head

MISMATCH = -32020


@pytest.fixture(scope="module", params=["uvicorn", "own"])
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("smuggling"), own=request.param == "own") as found:
        yield found


def sealed(text: str | bytes) -> str:
    data = text.encode() if isinstance(text, str) else text
    return f"=?base64?{b64encode(data).decode()}?="


NAMED: dict[str, tuple[dict[str, Any], str, str]] = {
    "tools/call": (request("tools/call", {"name": "danger"}), "safe", "danger"),
    "prompts/get": (request("prompts/get", {"name": "harm"}), "calm", "harm"),
    "resources/read": (request("resources/read", {"uri": "note://danger"}), "note://safe", "note://danger"),
}
"""For each method that is about something by name: the request, a harmless name, and the name in its body."""


def send(site: Site, message: dict[str, Any], *headers: tuple[str, str]) -> Exchange:
    message = modern(message)
    given = {name.lower() for name, _ in headers}
    usual = [pair for pair in modern_headers(message) if pair[0].lower() not in given]
    return site.send("POST", "/mcp", [*usual, *headers], encode(message)).finish()


def refused(site: Site, message: dict[str, Any], *headers: tuple[str, str], code: int = MISMATCH) -> str:
    """What a refused request is told."""
    with site.untouched():
        answer = send(site, message, *headers)
        assert (answer.status, answer.type) == (400, "application/json"), answer
        assert answer.json["id"] == message["id"]
        assert answer.json["error"]["code"] == code, answer
    return str(answer.json["error"]["message"])


# -- the name

LIES = {
    "another name": "{safe}",
    "another name, sealed": "{sealed safe}",
    "the name in capitals": "{DANGER}",
    "more than the name": "{danger}x",
    "a part of it": "{dange}",
    "both": "{safe} {danger}",
    "a list": "{safe},{danger}",
    "quoted": '"{danger}"',
    "escaped": "%64anger",
    "nothing": "",
    "the sealed name with the mark in capitals": "{SEALED danger}",
    "the sealed name without its end": "{open danger}",
    "the bare base64": "{bare danger}",
    "sealed twice": "{sealed twice}",
    "sealed with a line break after it": "{sealed danger LF}",
    "sealed with a header after it": "{sealed danger header}",
    "sealed with a zero after it": "{sealed danger NUL}",
    "sealed with a blank before it": "{sealed blank}",
    "sealed safe, then the name": "{sealed safe}{danger}",
    "base64 without padding": "{unpadded danger}",
    "base64 with padding in excess": "{overpadded danger}",
    "base64 that is spelled in another way": "{loose danger}",
    "base64 with a blank in it": "{gap danger}",
    "base64 of the address kind": "=?base64?_-_-?=",
    "no base64": "=?base64?!!!!?=",
    "base64 of nothing": "=?base64??=",
    "no text": "{sealed bytes}",
    "a mark inside of a mark": "=?base64?=",
    "in Latin-1": "{danger}\xe9",
}


def lie(kind: str, safe: str, danger: str) -> str:
    bare = b64encode(danger.encode()).decode()
    values = {
        "safe": safe,
        "danger": danger,
        "DANGER": danger.upper(),
        "dange": danger[:-1],
        "sealed safe": sealed(safe),
        "SEALED danger": sealed(danger).replace("base64", "BASE64"),
        "open danger": sealed(danger).removesuffix("?="),
        "bare danger": bare,
        "sealed twice": sealed(sealed(danger)),
        "sealed danger LF": sealed(danger + "\n"),
        "sealed danger header": sealed(f"{danger}\r\nMcp-Name: {danger}"),
        "sealed danger NUL": sealed(danger + "\0"),
        "sealed blank": sealed(" " + danger),
        "unpadded danger": f"=?base64?{b64encode(danger.encode() + b'x').decode().rstrip('=')}?=",
        "overpadded danger": f"=?base64?{bare}==?=",
        "loose danger": f"=?base64?{_loose(danger)}?=",
        "gap danger": f"=?base64?{bare[:4]} {bare[4:]}?=",
        "sealed bytes": sealed(b"\xff\xfe"),
    }
    text = LIES[kind]
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    assert "{" not in text
    return text


def _loose(text: str) -> str:
    """Base64 of the text and one more character or two, the bits that nothing stands in set: decoders drop them."""
    padded = text + "x" * (2 - len(text.encode()) % 3) if len(text.encode()) % 3 != 2 else text
    tight = b64encode(padded.encode()).decode()
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    assert tight.endswith("=")
    at = len(tight.rstrip("=")) - 1
    return tight[:at] + alphabet[alphabet.index(tight[at]) | 1] + tight[at + 1 :]


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("kind", LIES)
def test_a_name_that_is_not_the_bodys_has_nothing_run(site: Site, method: str, kind: str) -> None:
    message, safe, danger = NAMED[method]
    said = refused(site, message, ("Mcp-Name", lie(kind, safe, danger)))
    assert "Mcp-Name" in said
    assert said.isascii()
    assert said.isprintable()


@pytest.mark.parametrize("method", NAMED)
def test_a_missing_name_has_nothing_run(site: Site, method: str) -> None:
    assert "missing" in refused(site, NAMED[method][0], ("Mcp-Name", ABSENT))


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("order", ["safe first", "danger first", "danger twice", "in two spellings"])
def test_two_names_are_none(site: Site, method: str, order: str) -> None:
    message, safe, danger = NAMED[method]
    names = {
        "safe first": (("Mcp-Name", safe), ("Mcp-Name", danger)),
        "danger first": (("Mcp-Name", danger), ("Mcp-Name", safe)),
        "danger twice": (("Mcp-Name", danger), ("Mcp-Name", danger)),
        "in two spellings": (("MCP-NAME", danger), ("mcp-name", sealed(danger))),
    }[order]
    assert "more than once" in refused(site, message, *names)


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("between", ["\r", "\n", "\r\n ", "\r\n\t", "\0", "\x0b", "\x1b", "\x7f", "\nMcp-Name: "])
def test_a_header_that_holds_a_line_is_no_request(site: Site, method: str, between: str) -> None:
    message, safe, danger = NAMED[method]
    body, usual = encode(modern(message)), modern_headers(modern(message))[:-1]
    for value in (f"{safe}{between}{danger}", f"{danger}{between}{safe}", f"{danger}{between}"):
        with site.untouched():
            head = request_head(site.port, "POST", "/mcp", [*usual, ("Mcp-Name", value)], body)
            answer = site.write(head + body).begin()
            assert answer.status == 400
            wait_cut_off(answer)


@pytest.mark.parametrize("method", NAMED)
def test_the_name_as_it_should_be(site: Site, method: str) -> None:
    message, _, danger = NAMED[method]
    what = {"tools/call": "danger", "prompts/get": "harm", "resources/read": "note danger"}[method]
    for name in ("Mcp-Name", "mcp-name", "MCP-NAME"):
        for value in (danger, f"  {danger}\t ", sealed(danger), f" {sealed(danger)} "):
            before = site.premises.ran[what]
            assert send(site, message, (name, value)).status == 200
            assert site.premises.ran[what] == before + 1
    with site.untouched():
        near = send(site, message, ("Mcp_Name", "safe"), ("X-Mcp-Name", "safe"), ("Mcp-Name", ABSENT))
        assert near.status == 400  # a name that is nearly it is another one


def test_a_name_that_no_header_can_hold_comes_sealed(site: Site) -> None:
    message = request("resources/read", {"uri": "note://é€"})
    before = site.premises.ran["note é€"]
    assert send(site, message).status == 200
    assert send(site, message, ("Mcp-Name", sealed("note://é€"))).status == 200
    assert site.premises.ran["note é€"] == before + 2
    for value in ("note://é", "note://\xc3\xa9\xe2\x82\xac", sealed("note://é"), sealed("note://e\u0301€")):
        refused(site, message, ("Mcp-Name", value))


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("name", [7, None, ["danger"], {"name": "danger"}, True])
def test_a_body_whose_name_is_no_text_is_wrong_by_itself(site: Site, method: str, name: Any) -> None:
    key = "uri" if method == "resources/read" else "name"
    with site.untouched():
        answer = send(site, request(method, {key: name}), ("Mcp-Name", "safe"))
        assert answer.json["error"]["code"] == -32602


# -- the method and the version


@pytest.mark.parametrize(
    "method", ["tools/list", "TOOLS/CALL", "tools/callx", "", "=?base64?dG9vbHMvY2FsbA==?=", ABSENT]
)
def test_a_method_that_is_not_the_bodys_has_nothing_run(site: Site, method: str) -> None:
    refused(site, call("danger"), ("Mcp-Method", method))


@pytest.mark.parametrize(
    "version", ["2025-11-25", "2026-07-29", "2026-07-28x", "", ABSENT, "=?base64?MjAyNi0wNy0yOA==?="]
)
def test_a_version_that_is_not_the_bodys_has_nothing_run(site: Site, version: str) -> None:
    refused(site, call("danger"), ("MCP-Protocol-Version", version))


@pytest.mark.parametrize("name", ["Mcp-Method", "MCP-Protocol-Version"])
def test_two_of_the_others_are_none_either(site: Site, name: str) -> None:
    right = "tools/call" if name == "Mcp-Method" else MODERN
    for values in ((right, right), (right, "x"), ("x", right)):
        refused(site, call("danger"), *[(name, value) for value in values])


def test_headers_alone_run_nothing(site: Site) -> None:
    """The body is what is acted on; without one that says so, no header is."""
    for message in (modern(request("ping")), modern(request("tools/list"))):
        with site.untouched():
            headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "danger")]
            answer = site.send("POST", "/mcp", headers, encode(message)).finish()
            assert answer.status == 400


# -- arguments that stand in headers too

REGION = call("region", {"where": "eu", "size": 42})
RIGHT = (("Mcp-Param-Region", "eu"), ("Mcp-Param-Size", "42"))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Region", "us"),
        ("Region", "EU"),
        ("Region", ""),
        ("Region", ABSENT),
        ("Region", sealed("us")),
        ("Region", sealed("eu\r\n")),
        ("Region", "=?base64?ZXV=?="),
        ("Region", "=?base64?ZXU?="),
        ("Region", "=?base64?Z!U=?="),
        ("Region", "=?BASE64?ZXU=?="),
        ("Region", "eu\xa0"),
        ("Size", "43"),
        ("Size", "42.5"),
        ("Size", "042"),
        ("Size", "0x2a"),
        ("Size", "+42"),
        ("Size", "4_2"),
        ("Size", "4.2e1"),
        ("Size", "٤٢"),
        ("Size", ""),
        ("Size", ABSENT),
    ],
)
def test_an_argument_that_is_not_the_bodys_has_nothing_run(site: Site, name: str, value: str) -> None:
    header = f"Mcp-Param-{name}"
    others = [pair for pair in RIGHT if pair[0] != header]
    value = value if value.isascii() else value.encode().decode("latin-1")
    assert header in refused(site, REGION, *others, (header, value))


def test_two_of_an_argument_are_none(site: Site) -> None:
    for twice in (("eu", "eu"), ("eu", "us"), ("us", "eu")):
        refused(site, REGION, RIGHT[1], *[("Mcp-Param-Region", value) for value in twice])


def test_an_argument_in_the_header_alone_has_nothing_run(site: Site) -> None:
    refused(site, call("region", {"where": "eu"}), *RIGHT)
    refused(site, call("region", {"where": "eu", "size": None}), *RIGHT)


def test_arguments_as_they_should_be(site: Site) -> None:
    before = site.premises.ran["region"]
    for pairs in (RIGHT, (("mcp-param-region", sealed("eu")), ("MCP-PARAM-SIZE", " 42.0 "))):
        assert send(site, REGION, *pairs, ("Mcp-Param-Other", "x")).status == 200
    assert site.premises.ran["region"] == before + 2


# -- bodies that can be read in two ways


@pytest.mark.parametrize("method", NAMED)
@pytest.mark.parametrize("warm", [False, True])
def test_a_body_with_two_names_never_runs_the_one_that_the_header_hides(site: Site, method: str, warm: bool) -> None:
    """Which of the two counts is for the parser to say, but the header must agree with it."""
    _, safe, danger = NAMED[method]
    if warm:  # a tool that is called often is read by another parser
        for name in (safe, danger) if method == "tools/call" else ():
            for _ in range(6):
                assert send(site, call(name)).status == 200
    key = "uri" if method == "resources/read" else "name"
    good = encode(modern(request(method, {key: danger})))
    field = encode({key: danger})[1:-1]
    other = encode({key: safe})[1:-1]
    assert good.count(field) == 1
    what = {"tools/call": "danger", "prompts/get": "harm", "resources/read": "note danger"}[method]
    for both in (other + b", " + field, field + b", " + other):
        for named in (safe, danger):
            before = site.premises.ran.copy()
            headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", method), ("Mcp-Name", named)]
            answer = site.send("POST", "/mcp", headers, good.replace(field, both)).finish()
            assert answer.status in (200, 400)
            ran = [name for name in site.premises.ran if site.premises.ran[name] != before[name]]
            hidden = what if named == safe else {"danger": "safe", "harm": "calm", "note danger": "note safe"}[what]
            assert hidden not in ran


@pytest.mark.parametrize("first", ["tools/list", "tools/call"])
def test_a_body_with_two_methods_never_runs_the_one_that_the_header_hides(site: Site, first: str) -> None:
    second = "tools/call" if first == "tools/list" else "tools/list"
    good = encode(modern(call("danger")))
    both = encode({"method": first})[1:-1] + b", " + encode({"method": second})[1:-1]
    body = good.replace(encode({"method": "tools/call"})[1:-1], both)
    assert body != good
    with site.untouched():
        headers = [("MCP-Protocol-Version", MODERN), ("Mcp-Method", "tools/list")]
        site.send("POST", "/mcp", headers, body).finish()


def test_a_batch_hides_nothing(site: Site) -> None:
    with site.untouched():
        body = encode([modern(call("safe")), modern(call("danger", id=2))])
        answer = site.send("POST", "/mcp", modern_headers(modern(call("safe"))), body).finish()
        assert answer.status == 400


# -- from one era into the other


SPELLINGS = [PREFIX, PREFIX.replace("/", "\\/"), PREFIX.replace("i", "\\u0069", 1)]


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("version", [LEGACY, ABSENT])
def test_an_envelope_in_a_session_is_no_way_around_the_headers(site: Site, version: str, spelling: str) -> None:
    """A message of the modern era has the headers of the modern era, however its envelope is spelled."""
    session = Session(site.server).open()
    body = encode(modern(call("danger"))).replace(PREFIX.encode(), spelling.encode())
    headers = [("Mcp-Session-Id", session.id), ("MCP-Protocol-Version", version), ("Mcp-Name", "safe")]
    with site.untouched():
        answer = site.send("POST", "/mcp", headers, body).finish()
        assert (answer.status, answer.json["error"]["code"]) == (400, MISMATCH)
    session.delete().finish()


def test_a_batch_of_a_session_takes_no_modern_messages(site: Site) -> None:
    session = Session(site.server, "2025-03-26").open()
    with site.untouched():
        answer = session.post([modern(call("danger")), request("ping", id=2)]).finish()
        found = {message["id"]: message for message in answer.json}
        assert "error" in found[1]
        assert found[2]["result"] == {}
    session.delete().finish()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_the_endpoint_of_2024_takes_no_modern_messages(site: Site, spelling: str) -> None:
    stream = site.send("GET", "/sse")
    stream.wait(lambda it: it.events, "the address to POST to")
    endpoint = stream.events[0].data
    body = encode(modern(call("danger"))).replace(PREFIX.encode(), spelling.encode())
    with site.untouched():
        for headers in ([], modern_headers(modern(call("safe")))):
            assert site.send("POST", endpoint, headers, body).finish().status == 400
    stream.close()
    site.server.until(lambda: not site.premises.app.sse.open, "the end of the stream")
