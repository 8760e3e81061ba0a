"""`longshore lint`: targets, options, formats and exit codes."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import pytest

from longshore import Server, Tool
from longshore.cli.findings import CHARACTERS, SHOWN
from longshore.cli.main import run
from longshore.schema.lint.clients import CLIENTS
from longshore.schema.lint.rule import PROFILES
from longshore.schema.lint.rules import RULES
from serving import eventually, serve
from waiting import PATIENCE, is_alive

from .conftest import Workspace

GOOD: dict[str, Any] = {
    "name": "get_weather",
    "description": "Get the weather of a city",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string", "description": "its name"}}},
}
NO_ROOT: dict[str, Any] = {**GOOD, "name": "no_root", "inputSchema": {"properties": {}}}
WORDLESS: dict[str, Any] = {"name": "wordless", "inputSchema": {"type": "object", "properties": {}}}
HOSTILE: dict[str, Any] = {
    "name": "\x1b]0;owned\x07<b>|`@all",
    "description": "\x9b31m \u202e",
    "inputSchema": {"type": "object", "properties": {"a\x1b[5m|`<img>[x](y) @all": True}},
}


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rules(self) -> set[str]:
        return {each["rule"] for each in self.json["findings"]}


class Shore:
    """A project of its own, and the command run in it."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capture = capture

    def lint(self, *argv: str) -> Done:
        code = run(["lint", *argv])
        return Done(code, *self._capture.readouterr())

    def look(self, *argv: str) -> Done:
        return self.lint(*argv, "--format", "json")

    def write(self, name: str, value: Any) -> str:
        text = value if isinstance(value, str) else json.dumps(value)
        (self.folder / name).write_text(text)
        return name


@pytest.fixture
def shore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shore]:
    (tmp_path / ".git").mkdir()
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield Shore(tmp_path, capsys)
    for name in set(sys.modules) - before:
        if not name.startswith("longshore."):
            del sys.modules[name]


# -- lists in files


@pytest.mark.parametrize(
    "wrap",
    [
        lambda tools: tools,
        lambda tools: {"tools": tools, "nextCursor": "x"},
        lambda tools: {"jsonrpc": "2.0", "id": 1, "result": {"tools": tools}},
        lambda tools: {"tools": tools, "resources": [], "templates": [], "prompts": [], "instructions": None},
        lambda tools: {"server": {"name": "theirs", "instructions": "be kind"}, "tools": tools},
    ],
)
def test_a_list_is_read_in_each_of_its_forms(shore: Shore, wrap: Callable[[Any], Any]) -> None:
    done = shore.look(shore.write("list.json", wrap([GOOD, NO_ROOT])))
    assert (done.code, done.json["tools"], done.err) == (1, 2, "")
    assert "E01" in done.rules and done.json["server"] in ("list", "theirs")


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("no.json", None, "there is no such file"),
        ("broken.json", '{"tools": [', "holds no JSON"),
        ("empty.json", "", "holds no JSON"),
        ("other.json", '{"tools": 5}', "has no list of tools"),
        ("text.json", '"tools"', "has no list of tools"),
        ("./list.txt", "hello", "holds no JSON"),
        ("deep.json", "[" * 100_000, "deeper than"),
    ],
)
def test_a_file_without_a_list_is_refused_with_the_accepted_forms(
    shore: Shore, name: str, text: str | None, told: str
) -> None:
    if text is not None:
        shore.write(name, text)
    done = shore.lint(name)
    assert (done.code, done.out) == (2, "")
    assert told in done.err and "a tools/list result" in done.err


def test_a_client_configuration_is_refused_with_a_hint(shore: Shore) -> None:
    done = shore.lint(shore.write(".mcp.json", {"mcpServers": {"theirs": {"command": "x"}}}))
    assert done.code == 2 and "longshore lint NAME --config .mcp.json" in done.err


def test_a_pipe_is_read(shore: Shore) -> None:
    """As in `longshore lint <(some command)`."""
    reader, writer = os.pipe()
    os.write(writer, b"[]")
    os.close(writer)
    done = shore.lint(f"/proc/self/fd/{reader}")
    os.close(reader)
    assert (done.code, done.err) == (0, "")


def test_a_closed_stdin_is_an_error(shore: Shore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    done = shore.lint("-")
    assert (done.code, done.err) == (2, "stdin can't be read: it is closed\n")


def test_an_empty_list_is_clean(shore: Shore) -> None:
    done = shore.lint(shore.write("list.json", []))
    assert (done.code, done.out) == (0, "list: nothing found in 0 tools (0 tokens)\n")


def test_any_json_value_in_a_list_is_linted(shore: Shore) -> None:
    odd = [
        None,
        5,
        "x",
        [],
        {},
        {"name": 5},
        {"name": "a", "inputSchema": [True]},
        HOSTILE,
        {"name": "big", "x": 10**30},
    ]
    for form in ("text", "json", "sarif", "markdown"):
        done = shore.lint(shore.write("odd.json", odd), "--format", form)
        assert (done.code, done.err) == (1, "")


# -- how it is told, and what the exit code says


def test_text_is_grouped_by_tool_with_the_worst_first(shore: Shore) -> None:
    done = shore.lint(shore.write("list.json", [GOOD, WORDLESS, NO_ROOT]), "--profile", "mcp")
    lines = done.out.splitlines()
    heads = [line for line in lines if line and not line.startswith(" ")]
    assert heads[:2] == ["no_root", "wordless"] and heads[-1] == lines[-1]
    assert lines[1].startswith("  error    E01  inputSchema") and lines[2].startswith("      fix: ")
    assert lines[-1].startswith("list: 1 error, 1 warning in 3 tools (")
    assert "get_weather" not in done.out


@pytest.mark.parametrize(
    ("tools", "options", "code"),
    [
        ([GOOD], (), 0),
        ([WORDLESS], (), 0),
        ([WORDLESS], ("--strict",), 1),
        ([WORDLESS], ("--strict", "--level", "error"), 1),
        ([WORDLESS], ("--strict", "--waive", "W22=none needed"), 0),
        ([NO_ROOT], (), 1),
        ([NO_ROOT], ("--profile", "mcp", "--waive", "E01=asked upstream"), 0),
        ([NO_ROOT], ("--profile", "mcp", "--waive", "no_root:e01=asked upstream"), 0),
        ([NO_ROOT], ("--profile", "mcp", "--waive", "other:E01=asked upstream"), 1),
    ],
)
def test_the_exit_code_follows_level_strict_and_waivers(
    shore: Shore, tools: list[Any], options: tuple[str, ...], code: int
) -> None:
    assert shore.lint(shore.write("list.json", tools), *options).code == code


def test_findings_below_the_level_are_hidden_and_counted(shore: Shore) -> None:
    done = shore.lint(shore.write("list.json", [WORDLESS]), "--level", "error", "--profile", "mcp")
    assert "W22" not in done.out
    assert done.out.startswith("list: 1 warning in 1 tool (") and "1 below --level error" in done.out


@pytest.mark.parametrize("form", ["text", "json", "sarif", "markdown"])
def test_each_format_leaves_out_findings_below_the_level(shore: Shore, form: str) -> None:
    shore.write("list.json", [NO_ROOT, WORDLESS])
    waiver = ("--waive", "no_root:W22=none needed")
    told = shore.lint("list.json", "--format", form, "--profile", "mcp", *waiver, "--level", "error").out
    assert "E01" in told and "W22" not in told
    told = shore.lint("list.json", "--format", form, "--profile", "mcp", *waiver, "--level", "warning").out
    assert "E01" in told and "W22" in told


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_a_server_s_name_stays_on_its_line(shore: Shore, form: str) -> None:
    named = {"server": {"name": "a\n## b\n" + "x" * 10_000}, "tools": [WORDLESS] * 2}
    told = shore.lint(shore.write("list.json", named), "--format", form).out
    assert "\n## b" not in told and max(map(len, told.splitlines())) < 2 * CHARACTERS + 200


def test_json_has_everything(shore: Shore) -> None:
    done = shore.look(shore.write("list.json", [WORDLESS]), "--profile", "mcp", "--waive", "W22=none needed")
    assert done.json["counts"] == {"error": 0, "warning": 0, "info": 0, "waived": 1}
    assert done.json["tokens"] == -(-len(json.dumps([WORDLESS], separators=(",", ":"))) // 4)
    (found,) = done.json["findings"]
    assert set(found) == {"tool", "level", "rule", "message", "fix", "path", "profiles", "where", "waived"}
    assert (found["tool"], found["rule"], found["waived"]) == ("wordless", "W22", "none needed")


def test_sarif_has_rules_results_places_and_suppressions(shore: Shore) -> None:
    shore.write("list.json", [NO_ROOT, WORDLESS])
    done = shore.lint("list.json", "--format", "sarif", "--waive", "W22=none needed")
    assert done.json["version"] == "2.1.0" and done.json["$schema"].endswith("sarif-2.1.0.json")
    (log,) = done.json["runs"]
    rules = log["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for rule in rules:
        assert rule["shortDescription"]["text"] and rule["help"]["text"]
        assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")
    for result in log["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("error", "warning", "note") and result["message"]["text"]
        (place,) = result["locations"]
        assert place["logicalLocations"][0]["name"] in ("no_root", "wordless")
        assert place["physicalLocation"] == {"artifactLocation": {"uri": "list.json"}, "region": {"startLine": 1}}
    waived = [each["suppressions"] for each in log["results"] if each["ruleId"] == "W22"]
    assert waived == [[{"kind": "external", "justification": "none needed"}]]


def test_sarif_points_at_the_line(shore: Shore) -> None:
    shore.write("a server.py", PYTHON)
    (log,) = shore.lint("a server.py", "--format", "sarif").json["runs"]
    places = [each["locations"][0]["physicalLocation"] for each in log["results"] if each["ruleId"] == "E00"]
    assert [place["artifactLocation"]["uri"] for place in places] == ["a%20server.py"] * 2
    lines = PYTHON.splitlines()
    assert all(lines[place["region"]["startLine"] - 1].startswith("def ") for place in places)


@pytest.mark.parametrize("target", ["crowd.py", "crowd:app"])
def test_sarif_places_what_has_no_line_at_the_top_of_the_file(shore: Shore, target: str) -> None:
    """GitHub refuses the whole log for one result without a location."""
    head = "from longshore import Server, Tool\napp, schema = Server('crowd'), {'type': 'object', 'properties': {}}\n"
    many = "for n in range(41): app.add_tool(Tool(name=f'get_{n}', description='Get', input_schema=schema), print)\n"
    shore.write("crowd.py", head + many)
    (log,) = shore.lint(target, "--format", "sarif").json["runs"]
    (place,) = [each["locations"][0] for each in log["results"] if each["ruleId"] == "W28"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "crowd.py"}, "region": {"startLine": 1}}


def test_markdown_escapes_markup_in_findings(shore: Shore) -> None:
    done = shore.lint(shore.write("list.json", [HOSTILE, WORDLESS]), "--format", "markdown", "--waive", "W22=a|b @all")
    assert done.out.startswith("### longshore lint: list\n\n**")
    assert "<details><summary>waived</summary>" in done.out
    rows = [line for line in done.out.splitlines() if line.startswith("| ")]
    for row in rows:
        bare = row.replace("\\|", "")
        assert bare.count("|") in (4, 6), row
        outside = "".join(bare.split("`")[::2])
        assert "<" not in outside.replace("\\<", "") and "@all" not in outside


@pytest.mark.parametrize("form", ["text", "json", "sarif", "markdown"])
def test_control_characters_in_a_list_reach_no_terminal(shore: Shore, form: str) -> None:
    done = shore.lint(shore.write("list.json", [HOSTILE]), "--format", form)
    assert not set(done.out) & set("\x1b\x07\x9b\u202e\r")


def test_many_and_long_findings_are_cut_in_text_and_markdown_only(shore: Shore) -> None:
    many = [{**WORDLESS, "name": f"tool_{number}"} for number in range(SHOWN + 5)]
    shore.write("many.json", [*many, {**NO_ROOT, "name": "x" * 100_000}])
    text = shore.lint("many.json", "--profile", "mcp").out
    assert "more: --format json has them all" in text and text.count("W22") <= SHOWN
    assert max(map(len, text.splitlines())) < 2 * CHARACTERS + 100
    comment = shore.lint("many.json", "--format", "markdown", "--profile", "mcp", "--waive", "E01=" + "w" * 900).out
    assert len(comment) < 65_536 and "more." in comment and "| W22 | `tool_0` |" in comment
    assert len(shore.look("many.json", "--profile", "mcp").json["findings"]) > SHOWN


# -- what is said about wrong usage


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (["--waive", "E99=why", "list.json"], "there is no rule 'E99'"),
        (["--waive", "E01=", "list.json"], "a waiver says why: E01=REASON"),
        (["--waive", "E01", "list.json"], "a waiver says why"),
        (["--waive", "=why", "list.json"], "there is no rule ''"),
        (["--profile", "cluade", "list.json"], "cluade"),
        (["--format", "xml", "list.json"], "xml"),
        (["--as", "nobody", "list.json"], "nobody"),
        (["--as", "claude", "--format", "sarif", "list.json"], "--as prints text or json"),
        (["--as", "claude", "--fix", "list.json"], "take one"),
        (["--fix", "--format", "markdown", "list.json"], "--fix prints json, not markdown"),
        (["--explain", "E0"], "there is no rule 'E0'"),
        (["--explain", "E01", "--format", "sarif"], "docs/lint-rules.md"),
        (["list.json", "--", "npx", "x"], "either TARGET or a command"),
        (["npx", "some-server"], "longshore lint -- npx some-server"),
        (["caf\udce9.json"], "is no UTF-8"),
        (["--"], "after -- comes the command"),
        (["--config", "x.json"], "--config is a file"),
        (["--env", "A=b"], "--env is for a server that is run"),
        (["nothing.py"], "there is no such file"),
        (["no_such_module_here:app"], "there is no such module"),
        (["--", "no-such-program-here"], "no-such-program-here"),
        (["ftp://example.com/x"], "a URL begins with http"),
        ([""], "an empty TARGET"),
    ],
)
def test_a_target_that_cant_be_linted_exits_with_2(shore: Shore, argv: list[str], told: str) -> None:
    shore.write("list.json", [GOOD])
    done = shore.lint(*argv)
    assert (done.code, done.out) == (2, "")
    assert told in done.err and "Traceback" not in done.err


# -- the project's configuration


def test_a_project_configures_profiles_waivers_and_level(shore: Shore) -> None:
    shore.write("list.json", [NO_ROOT, WORDLESS])
    shore.write(
        "longshore.toml", '[lint]\nprofiles = ["mcp"]\nstrict = true\nlevel = "error"\n[lint.waive]\nE01 = "old"\n'
    )
    done = shore.lint("list.json")
    assert done.code == 1 and "W22" not in done.out and "1 waived" in done.out
    assert shore.look("list.json", "--waive", "wordless:W22=fine").code == 0
    assert "W22" in shore.lint("list.json", "--level", "warning").out
    assert {
        each for found in shore.look("list.json", "--profile", "claude").json["findings"] for each in found["profiles"]
    } >= {"claude"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[lint]\nprofiles = ["cluade"]\n', "longshore.toml:2: lint.profiles: no profile 'cluade'; there are mcp,"),
        ('[lint.waive]\nE99 = "why"\n', "longshore.toml:2: lint.waive.E99: there is no rule 'E99'"),
        ('[lint.waive]\n"a:E01" = ""\n', 'longshore.toml:2: lint.waive."a:E01": a waiver says why'),
        ("[lint.waive]\nE01 = 5\n", "longshore.toml:2: lint.waive.E01: a waiver says why"),
        ('[lint]\nlevel = "warn"\n', "did you mean warning?"),
    ],
)
def test_an_invalid_lint_configuration_names_its_place(shore: Shore, text: str, told: str) -> None:
    shore.write("list.json", [GOOD])
    shore.write("longshore.toml", text)
    done = shore.lint("list.json")
    assert (done.code, done.out) == (2, "") and told in done.err


# -- servers in Python

PYTHON = '''
from longshore import Server, Tool

print("printed while it was loaded")
app = Server("mine", waive={"W22": "they are clear enough"})
other = Server("other")


@app.tool
def add(*nums: int) -> int:
    """Add numbers."""
    return sum(nums)


@app.tool
def fine(city: str) -> str:
    """Get the weather."""
    return city


@app.tool
def loose(**any: int) -> int:
    return 0


app.add_tool(Tool(name="raw", description="Do it", input_schema={"type": "object", "anyOf": [{}]}), lambda *_: None)
app.run()
app.run(http=True)
'''


@pytest.mark.parametrize("target", ["harbour.py", "harbour.py:app", "harbour:app"])
def test_a_loaded_server_reports_every_refused_tool(shore: Shore, target: str) -> None:
    shore.write("harbour.py", PYTHON)  # there are tests called `server`, which Python may know already
    done = shore.look(target)
    assert (done.code, done.err) == (1, "printed while it was loaded\n")
    refused = [each for each in done.json["findings"] if each["rule"] == "E00"]
    assert [each["where"] for each in refused] == ["harbour.py:10 add(*nums)", "harbour.py:22 loose(**any)"]
    assert all(each["fix"] for each in refused) and done.json["tools"] == 2
    root = next(each for each in done.json["findings"] if each["rule"] == "E04")
    assert root["tool"] == "raw" and root["where"].startswith("harbour.py:")
    assert {each["waived"] for each in done.json["findings"] if each["rule"] == "W22"} == {"they are clear enough"}


def test_refused_resources_and_prompts_are_reported(shore: Shore) -> None:
    code = """
from longshore import Server
app = Server("mine")
@app.resource("no scheme")
def read() -> str: return ""
@app.prompt
def ask(*words: str) -> str: return ""
@app.completion("prompt", "word")
def complete(*words: str) -> list[str]: return []
@app.tool
def add(*nums: int) -> int: return 0
"""
    done = shore.look(shore.write("server.py", code))
    refused = [each["where"].split()[1] for each in done.json["findings"] if each["rule"] == "E00"]
    assert (done.code, refused) == (1, ["read()", "ask(*words)", "complete(*words)", "add(*nums)"])
    grouped = """
from longshore import Server, Toolset, tool
class Sums(Toolset):
    @tool
    def add(self, *nums: int) -> int: return 0
    @tool
    def loose(self, **any: int) -> int: return 0
    @tool
    def fine(self, number: int) -> int: return number
app = Server("sums")
app.add_toolset(Sums())
"""
    done = shore.look(shore.write("grouped.py", grouped))
    refused = [each["where"].split()[1] for each in done.json["findings"] if each["rule"] == "E00"]
    assert (refused, done.json["tools"]) == (["add(self,", "loose(self,"], 1)
    waived = shore.look(shore.write("again.py", code), "--waive", "E00=mended next week")
    assert (waived.code, waived.json["counts"]["waived"]) == (0, 4)


def test_refusals_before_a_failed_load_are_reported(shore: Shore) -> None:
    refused = "@app.tool\ndef add(*nums: int) -> int: return 0\n"
    ending = "@app.tool(timout=3)\ndef late() -> None: ...\n"
    code = "from longshore import Server\napp = Server('a')\n" + refused + ending
    done = shore.lint(shore.write("server.py", code))
    assert (done.code, done.out) == (2, "")
    assert "it takes *nums" in done.err and "did you mean timeout=?" in done.err


def test_output_of_the_loaded_server_does_not_reach_stdout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    code = "import os\nfrom longshore import Server\napp = Server('mine')\nos.system('echo from a child')\n"
    (tmp_path / "printing.py").write_text(code)
    assert run(["lint", str(tmp_path / "printing.py"), "--format", "json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out)["server"] == "mine" and err == "from a child\n"


def test_a_python_file_without_a_server_is_explained(shore: Shore) -> None:
    shore.write("theirs.py", "x = 1\n")
    done = shore.lint("theirs.py")
    assert done.code == 2 and f"longshore … -- {sys.executable} " in done.err


MOUNTING = """
import sys
from longshore import Server, Tool
app = Server("gateway")
behind = Server("behind")
behind.add_tool(Tool(name="raw", description="Do it", input_schema={"type": "object", "anyOf": [{}]}), print)
app.mount(behind, prefix="near")
app.mount([sys.executable, "-c", "print('the ship sank')"], prefix="sunk")
app.mount([sys.executable, "stranger.py", "lists"], prefix="odd")
"""


def test_mounted_servers_are_linted_and_absent_ones_named(shore: Shore) -> None:
    shore.write("stranger.py", dedent(STRANGER))
    done = shore.look(shore.write("gateway.py", MOUNTING))
    assert done.code == 1 and done.json["tools"] == 1
    findings = done.json["findings"]
    assert {(each["tool"], each["where"]) for each in findings if each["tool"]} == {("near_raw", "mounted near")}
    lost = [each for each in findings if each["rule"] == "E00"]
    assert {(each["level"], each["where"]) for each in lost} == {("warning", "mounted odd")}
    assert "left out: the definition of 'no_schema' can't be used" in lost[0]["message"]
    assert [each["level"] for each in findings] == sorted(each["level"] for each in findings)
    assert "mounted server 'sunk' has been down for" in done.err and "its tools are not looked at" in done.err


def test_the_timeout_bounds_the_wait_for_a_mounted_server(shore: Shore) -> None:
    mute = 'app.mount([sys.executable, "-c", "input(); input()"], prefix="mute")\n'
    shore.write("patient.py", "import sys\nfrom longshore import Server\napp = Server('a')\n" + mute)
    done = shore.lint("patient.py", "--timeout", "1")
    assert done.code == 0 and "'mute' has not answered yet" in done.err
    assert "give it more by --timeout; its tools are not looked at" in done.err


def test_declared_categories_add_the_brooklyn_profile(shore: Shore) -> None:
    head, body = (
        "from longshore import Server\napp = Server('a'{})\n",
        "@app.tool\ndef get_it() -> str:\n    'Get it'\n",
    )
    assert "B61" not in shore.look(shore.write("without.py", head.format("") + body)).rules
    assert "B61" in shore.look(shore.write("within.py", head.format(", categories=['a-b']") + body)).rules


# -- our own


@pytest.mark.parametrize("argv", [(), ("builtin",)])
def test_the_built_in_server_breaks_no_rule_at_any_level(shore: Shore, argv: tuple[str, ...]) -> None:
    done = shore.look(*argv, "--strict")
    assert (done.code, [each for each in done.json["findings"] if not each["waived"]]) == (0, [])
    assert done.json["tools"] >= 4 and shore.lint(*argv).out.startswith("longshore: nothing found in ")


# -- the other things that it prints


def test_fix_prints_mended_tools_and_changes_no_file(shore: Shore) -> None:
    shore.write("list.json", [NO_ROOT, WORDLESS, 5])
    before = (shore.folder / "list.json").read_bytes()
    done = shore.lint("list.json", "--fix", "--profile", "mcp")
    mended = done.json["tools"]
    assert mended[0]["inputSchema"]["type"] == "object" and mended[1:] == [WORDLESS, 5]
    assert "mended no_root: E01" in done.err and "left: " in done.err
    assert (shore.folder / "list.json").read_bytes() == before
    kept = shore.lint("list.json", "--fix", "--profile", "mcp", "--waive", "E01=as it is").json["tools"]
    assert "type" not in kept[0]["inputSchema"]


def test_every_rule_explains_itself(shore: Shore) -> None:
    listed = shore.lint("--explain", "all").out
    for rule in RULES:
        assert f"{rule.id}  " in listed
        text = shore.lint("--explain", rule.id.lower()).out
        assert text.startswith(f"{rule.id}  ") and rule.why in text and "\ngood:\n" in text
        assert ("\nbad:\n" in text) is bool(rule.bad.tools)
    told = shore.lint("--explain", "all", "--format", "json").json
    assert [each["id"] for each in told] == [rule.id for rule in RULES]
    assert [each["id"] for each in told if each["bad"] == each["good"]] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_as_prints_the_list_as_a_client_passes_it(shore: Shore, client: str) -> None:
    shore.write("list.json", [GOOD])
    text, data = shore.lint("list.json", "--as", client), shore.look("list.json", "--as", client)
    assert (text.code, data.code) == (0, 0)
    assert "get_weather" in text.out and "get_weather" in json.dumps(data.json)


# -- real processes: servers of others

STRANGER = """
    import json, os, sys
    mode = sys.argv[1]
    def answer(id, **more):
        print(json.dumps({"jsonrpc": "2.0", "id": id, **more}), flush=True)
    for line in sys.stdin:
        said = json.loads(line)
        if said.get("method") == "initialize":
            known = {"serverInfo": {"name": "stranger", "version": "1"}, "capabilities": {"tools": {}}}
            answer(said["id"], result={"protocolVersion": "2025-06-18", **known})
        elif said.get("method") == "tools/list" and mode == "hangs":
            open("hanging", "w").write(str(os.getpid()))
        elif said.get("method") == "tools/list" and mode == "lists":
            first = "cursor" not in said.get("params", {})
            tools = [{"name": "no_schema"}, 5] if first else [{"name": 7, "inputSchema": []}]
            answer(said["id"], result={"tools": tools, **({"nextCursor": "2"} if first else {})})
        elif "id" in said:
            answer(said["id"], error={"code": -32601, "message": "no method " + said["method"]})
"""


def test_a_command_is_started_and_its_list_linted_as_it_came(workspace: Workspace) -> None:
    path = str(workspace.write("stranger.py", STRANGER))
    done = workspace.run("lint", "--format", "json", "--", sys.executable, path, "lists")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["server"], report["tools"]) == ("stranger", 3)
    assert {each["rule"] for each in report["findings"]} >= {"E01", "E16"}
    workspace.write(
        ".mcp.json", json.dumps({"mcpServers": {"theirs": {"command": sys.executable, "args": [path, "refuses"]}}})
    )
    done = workspace.run("lint", "theirs")
    assert (done.returncode, done.stdout) == (2, b"") and b"no method tools/list" in done.stderr
    done = workspace.run("lint", "--timeout", "0.3", "--", sys.executable, path, "hangs")
    assert (done.returncode, done.stdout) == (2, b"") and b"--timeout" in done.stderr


def test_a_url_is_linted(workspace: Workspace) -> None:
    app = Server("afar", standards="off")
    schema = {"type": "object", "anyOf": [{}]}
    app.add_tool(Tool(name="raw", description="Do it", input_schema=schema), lambda arguments, context: None)
    with serve(app.asgi()) as served:
        done = workspace.run("lint", f"http://127.0.0.1:{served.port}/mcp", "--format", "json")
    assert done.returncode == 1, done.stderr
    report = json.loads(done.stdout)
    assert (report["server"], report["tools"]) == ("afar", 1)
    assert "E04" in {each["rule"] for each in report["findings"]}


def test_a_terminal_gets_colours_and_lines_of_its_width(workspace: Workspace) -> None:
    workspace.write("list.json", json.dumps([NO_ROOT, HOSTILE, WORDLESS]))
    screen = workspace.terminal("lint", "list.json", columns=50)
    assert screen.end() == 1
    import re

    assert "\x1b[1;31merror" in screen.seen and "\x1b]" not in screen.seen
    plain = re.sub(r"\x1b\[[0-9;]*m", "", screen.seen)
    assert max(len(line.rstrip()) for line in plain.splitlines()) <= 50


def test_rules_clients_and_profiles_are_completed() -> None:
    from click.shell_completion import ShellComplete

    from longshore.cli.main import cli

    def tab(*words: str) -> list[str]:
        completes = ShellComplete(cli, {}, "longshore", "_LONGSHORE_COMPLETE")
        return [each.value for each in completes.get_completions(list(words[:-1]), words[-1])]

    assert "E04" in tab("lint", "--explain", "E") and "W22" not in tab("lint", "--explain", "E")
    assert "get_weather:E04=" in tab("lint", "--waive", "get_weather:E0")
    assert tab("lint", "--as", "cl") == ["claude"]
    assert tab("lint", "--profile", "") == list(PROFILES)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupt_ends_the_server_too(workspace: Workspace, number: int, code: int) -> None:
    path = str(workspace.write("stranger.py", STRANGER))
    child = workspace.start("lint", "--", sys.executable, path, "hangs")
    hanging = workspace.folder / "hanging"
    pid = int(eventually(lambda: hanging.exists() and hanging.read_text(), "the list"))
    os.kill(child.pid, number)
    assert child.wait(PATIENCE) == code
    assert not is_alive(pid)


def test_a_closed_pipe_prints_no_error(workspace: Workspace) -> None:
    workspace.write("many.json", json.dumps([{**WORDLESS, "name": f"tool_{number}"} for number in range(SHOWN)]))
    child = workspace.start("lint", "many.json", stdout=-1, stderr=-1)
    assert child.stdout is not None and child.stderr is not None
    child.stdout.close()
    child.wait(PATIENCE)
    assert child.stderr.read() == b""


def test_a_full_disk_is_an_error(workspace: Workspace) -> None:
    workspace.write("list.json", "[]")
    with open("/dev/full", "wb") as full:
        child = workspace.start("lint", "list.json", stdout=full, stderr=-1)
    assert child.wait(PATIENCE) == 2 and child.stderr is not None
    assert child.stderr.read() == b"the output could not be written: No space left on device\n"
