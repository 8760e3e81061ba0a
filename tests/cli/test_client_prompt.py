"""`longshore prompt` and `longshore complete` with pipes: output and exit codes."""

from __future__ import annotations

import json

import pytest

from .conftest import Workspace

LIBRARY = """
    from longshore import Image, Message, Server

    app = Server("library")

    @app.prompt
    def review(code: str, language: str = "python") -> str:
        \"\"\"Review a piece of code.

        code: what to review
        \"\"\"
        return f"Review this {language}:\\n{code}"

    @app.prompt
    def talk() -> list[Message]:
        return [Message("user", "Look."), Message("user", Image(b"\\x89PNG-data")), Message("assistant", "I see.")]

    @app.completion("review", "language")
    async def languages(text: str, given: dict[str, str]) -> list[str]:
        known = ("python", "perl") if given.get("code") == "$x" else ("python", "rust")
        return [name for name in known if name.startswith(text)]

    @app.completion("review", "code")
    async def codes(text: str) -> list[str]:
        return [f"{text}{n}" for n in range(250)]

    @app.resource("library://books/{number}")
    def book(number: str) -> str:
        return number

    @app.completion("library://books/{number}", "number")
    async def numbers(text: str) -> list[str]:
        return [f"{text}1", f"{text}2"]
"""


@pytest.fixture
def library(workspace: Workspace) -> Workspace:
    workspace.write("library.py", LIBRARY)
    return workspace


def test_a_single_message_is_its_text_and_nothing_else(library: Workspace) -> None:
    library.write("code.txt", "x = 1\n")
    done = library.run("prompt", "library.py", "review", "code=@code.txt", "language=ü")
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, "Review this ü:\nx = 1\n", b"")


def test_several_messages_have_their_roles(library: Workspace) -> None:
    done = library.run("prompt", "library.py", "talk", "--save", "out")
    assert (done.returncode, done.stdout) == (0, b"user:\nLook.\n\nuser:\n\nassistant:\nI see.\n")
    assert b"saved as out/talk-1.png" in done.stderr
    assert (library.folder / "out/talk-1.png").read_bytes() == b"\x89PNG-data"


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_a_prompt_as_json_is_the_whole_record(library: Workspace, era: str) -> None:
    record = json.loads(library.run("prompt", "library.py", "review", "code=1", "--json", "--era", era).stdout)
    content = {"type": "text", "text": "Review this python:\n1"}
    assert record["messages"] == [{"role": "user", "content": content}]
    assert record["description"] == "Review a piece of code."


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["reviw"], "library.py: there is no prompt 'reviw'; did you mean 'review'?\n"),
        (["review"], "review was not asked for:\n  code: missing, a string: what to review\n"),
        (["review", "code=1", "tone=x"], "review was not asked for:\n  tone: there is no such argument; there are code,"
         " language\n"),
        (["review", "code"], "'code' is no key=value (a command line as TARGET is one word, in quotes)\n"),
        (["review", "code:=1"], "review was not asked for:\n  code: expected a string, got a number\n"),
    ],
)  # fmt: skip
def test_a_prompt_is_not_asked_for_with_wrong_words(library: Workspace, words: list[str], said: str) -> None:
    done = library.run("prompt", "library.py", *words)
    assert (done.returncode, done.stdout, done.stderr.decode()) == (2, b"", said)


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_values_are_completed_one_a_line(library: Workspace, era: str) -> None:
    done = library.run("complete", "library.py", "review", "language", "", "--era", era)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"python\nrust\n", b"")
    done = library.run("complete", "library.py", "library://books/{number}", "number", "7", "--era", era)
    assert (done.returncode, done.stdout) == (0, b"71\n72\n")


def test_other_arguments_are_sent_with_a_completion(library: Workspace) -> None:
    done = library.run("complete", "library.py", "review", "language", "p", "code=$x", "--json")
    assert json.loads(done.stdout) == {"values": ["python", "perl"], "total": 2, "hasMore": False}


def test_a_cut_list_of_values_says_so(library: Workspace) -> None:
    done = library.run("complete", "library.py", "review", "code", "a")
    assert done.stdout.count(b"\n") == 100
    assert done.stderr == b"[the first 100 of 250; a longer VALUE leaves fewer]\n"


def test_a_completion_that_the_server_refuses_fails(library: Workspace) -> None:
    done = library.run("complete", "library.py", "reviw", "language", "p")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"reviw" in done.stderr


def test_a_server_without_completions_is_explained(library: Workspace) -> None:
    done = library.run("complete", "server.py", "x", "y", "", "--era", "legacy")
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"it has no completions" in done.stderr
