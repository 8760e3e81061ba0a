"""Names of keys, and what a terminal sends for them."""

from __future__ import annotations

import pytest

from longshore.errors import ToolError
from longshore.toolsets.terminal.keys import NAMES, canonical_name, encode_keys

CASES = [
    ("a", b"a"),
    ("A", b"A"),
    ("é", "é".encode()),
    ("-", b"-"),
    ("enter", b"\r"),
    ("Return", b"\r"),
    ("tab", b"\t"),
    ("shift-tab", b"\x1b[Z"),
    ("esc", b"\x1b"),
    ("space", b" "),
    ("backspace", b"\x7f"),
    ("ctrl-c", b"\x03"),
    ("Ctrl+C", b"\x03"),
    ("C-c", b"\x03"),
    ("^C", b"\x03"),
    ("ctrl-space", b"\0"),
    ("ctrl-[", b"\x1b"),
    ("ctrl-\\", b"\x1c"),
    ("ctrl-?", b"\x7f"),
    ("ctrl-enter", b"\r"),
    ("alt-f", b"\x1bf"),
    ("alt-enter", b"\x1b\r"),
    ("ctrl-alt-x", b"\x1b\x18"),
    ("shift-a", b"A"),
    ("up", b"\x1b[A"),
    ("home", b"\x1b[H"),
    ("ctrl-left", b"\x1b[1;5D"),
    ("shift-alt-up", b"\x1b[1;4A"),
    ("delete", b"\x1b[3~"),
    ("page-down", b"\x1b[6~"),
    ("PgUp", b"\x1b[5~"),
    ("ctrl-page-up", b"\x1b[5;5~"),
    ("f1", b"\x1bOP"),
    ("f5", b"\x1b[15~"),
    ("f12", b"\x1b[24~"),
    ("shift-f1", b"\x1b[1;2P"),
]


@pytest.mark.parametrize(("name", "sent"), CASES, ids=[case[0] for case in CASES])
def test_sent(name: str, sent: bytes) -> None:
    assert encode_keys([name]) == sent


def test_arrows_have_another_form_in_application_mode() -> None:
    assert encode_keys(["up", "left", "ctrl-up", "f5"], application_cursor=True) == b"\x1bOA\x1bOD\x1b[1;5A\x1b[15~"


def test_every_name_is_a_key() -> None:
    assert all(encode_keys([name]) for name in NAMES)


@pytest.mark.parametrize(("name", "said"), [("entre", "did you mean enter"), ("ls -la", "send plain text as text")])
def test_an_unknown_key_is_refused(name: str, said: str) -> None:
    with pytest.raises(ToolError, match=said):
        encode_keys([name])


@pytest.mark.parametrize("name", ["ctrl-é", "ctrl-5", ""])
def test_a_key_that_does_not_exist_is_refused(name: str) -> None:
    with pytest.raises(ToolError, match="there is no key"):
        encode_keys([name])


@pytest.mark.parametrize("name", ["ctrl-c", "Ctrl+C", "^C", "C-c", "control-c"])
def test_one_key_has_one_name(name: str) -> None:
    assert canonical_name(name) == "ctrl-c"
