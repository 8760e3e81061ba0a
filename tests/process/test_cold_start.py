"""Which modules are loaded at the moment when `initialize` is answered. Milliseconds vary by machine, modules don't."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

import longshore

from .conftest import Workshop
from .peer import encode, initialize

# `-S`: no site-packages and nothing that a development environment loads from there; both folders come by hand.
# typing_extensions is blocked: msgspec uses it where it is installed, and no dependency of ours installs it.
DRIVER = """
import sys
sys.path[:0] = sys.argv[1:3]
sys.modules["typing_extensions"] = None
import os
write, seen = os.write, []
def watch(fd, data):
    if not seen and b"serverInfo" in bytes(data):
        seen.extend(sys.modules)
    return write(fd, data)
os.write = watch
sys.argv = ["longshore", *sys.argv[3:]]
try:
    if sys.argv[1] == "serve":
        from longshore.__main__ import main
        main()
    else:
        with open(sys.argv[1]) as file:
            code = compile(file.read(), sys.argv[1], "exec")
        exec(code, {"__name__": "__main__", "__file__": sys.argv[1]})
finally:
    with open("modules.txt", "w") as file:
        file.write(" ".join(seen))
"""

SMALL = """
    from longshore import Server

    app = Server("weather", version="1.0.0")

    @app.tool
    async def forecast(city: str, days: int = 3) -> str:
        \"\"\"Fetch the weather forecast for a city.

        city: the city's name
        days: how many days ahead
        \"\"\"
        return f"sunny in {city} for {days} days"

    @app.tool
    def measure(where: str) -> int:
        return 3

    if __name__ == "__main__":
        app.run()
"""

# Every module of the standard library that may be there. A new one needs a reason: each costs every start.
STANDARD = {
    # the interpreter's own start
    "__main__", "_abc", "_codecs", "_frozen_importlib", "_frozen_importlib_external", "_imp", "_io", "_signal",
    "_thread", "_warnings", "_weakref", "abc", "builtins", "codecs", "encodings", "encodings.aliases",
    "encodings.utf_8", "io", "marshal", "posix", "sys", "time", "zipimport",
    # msgspec's: typing, and the types that it can decode
    "_collections", "_collections_abc", "_datetime", "_decimal", "_functools", "_operator", "_sre", "_typing", "_uuid",
    "collections", "collections.abc", "contextlib", "copyreg", "datetime", "decimal", "enum", "functools", "itertools",
    "keyword", "math", "numbers", "operator", "platform", "re", "re._casefix", "re._compiler", "re._constants",
    "re._parser", "reprlib", "textwrap", "types", "typing", "typing.io", "typing.re", "uuid", "warnings",
    # ours: files, pipes and signals
    "__future__", "_stat", "fcntl", "genericpath", "os", "os.path", "posixpath", "select", "signal", "stat",
    # running somebody's file
    "importlib", "importlib._bootstrap", "importlib._bootstrap_external", "importlib.machinery",
}  # fmt: skip

NEVER = {
    "asyncio", "logging", "inspect", "dataclasses", "threading", "json", "pathlib", "tomllib", "click", "rich",
    "jsonschema_rs", "pydantic", "socket", "selectors", "subprocess", "ssl", "traceback", "linecache", "tokenize",
    "ast", "dis", "random", "tempfile", "shutil", "ctypes", "difflib", "argparse", "importlib.metadata", "email",
    "concurrent", "queue", "heapq", "hashlib", "secrets", "locale", "gettext", "urllib", "urllib.parse",
}  # fmt: skip


def modules_at_initialize(workshop: Workshop, *argv: str) -> set[str]:
    paths = [str(Path(longshore.__file__).parents[1]), str(Path(msgspec.__file__).parents[1])]
    done = subprocess.run(
        [sys.executable, "-S", str(workshop.write(DRIVER, "driver.py")), *paths, *argv],
        cwd=workshop.folder,
        env={**workshop.env, "PYTHONWARNINGS": "ignore"},
        input=encode(initialize()),
        capture_output=True,
        timeout=30,
    )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["init"], done.stderr.decode()
    return set((workshop.folder / "modules.txt").read_text().split())


@pytest.fixture(params=["serve", "run", "builtin"])
def loaded(request: pytest.FixtureRequest, workshop: Workshop) -> set[str]:
    path = str(workshop.write(SMALL))
    argv = {"serve": ["serve", path], "run": [path], "builtin": ["serve"]}[request.param]
    return modules_at_initialize(workshop, *argv) - {"server"}


def test_only_msgspec_and_a_part_of_the_standard_library_is_loaded(loaded: set[str]) -> None:
    others = {name for name in loaded if name.partition(".")[0] not in ("longshore", "msgspec")}
    assert others - {"typing_extensions"} <= STANDARD


def test_nothing_slow_is_loaded(loaded: set[str]) -> None:
    assert not loaded & NEVER


def test_of_ours_only_what_an_answer_needs_is_loaded(loaded: set[str]) -> None:
    ours = {name for name in loaded if name.startswith("longshore")}
    late = {
        "longshore.cli.main", "longshore.cli.serve", "longshore.server.threads", "longshore.server.lists",
        "longshore.server.batch", "longshore.server.questions", "longshore.server.content_methods",
        "longshore.schema.infer", "longshore.schema.docstring", "longshore.schema.repair", "longshore.schema.validate",
        "longshore.registry.raw", "longshore.registry.prompt", "longshore.telemetry.stderr", "longshore.config.keys",
        "longshore.config.reference", "longshore.config.trust",
        "longshore.config.toml_file", "longshore.config.sources", "longshore.toolsets.discovery.survey",
    }  # fmt: skip
    assert not ours & late


def test_options_that_nobody_has_set_load_nothing_of_the_configuration(workshop: Workshop) -> None:
    path = workshop.write(
        """
        from typing import Annotated
        from msgspec import Struct
        from longshore import Folder, Server, Size, Toolset, Variable, tool
        app = Server("optional")

        class NotesOptions(Struct, frozen=True):
            folder: Annotated[Folder, Variable("NOTES")] = "notes"
            most: Size = 10

        class Notes(Toolset):
            Options = NotesOptions
            def __init__(self, options: NotesOptions) -> None: ...
            @tool
            def use(self) -> str: return ""

        app.add_toolset(Notes)
        """
    )
    loaded = modules_at_initialize(workshop, "serve", str(path)) - {"server"}
    others = {name for name in loaded if name.partition(".")[0] not in ("longshore", "msgspec")}
    assert others - {"typing_extensions"} <= STANDARD
    assert not loaded & {"longshore.config.keys", "longshore.config.sources", "longshore.config.toml_file"}


def test_a_resource_and_a_prompt_load_nothing_more_of_others(workshop: Workshop) -> None:
    path = workshop.write(
        """
        from longshore import Server
        app = Server("more")

        @app.resource("weather://{city}/now")
        def now(city: str) -> str:
            return city

        @app.prompt
        def plan(city: str) -> str:
            return city
        """
    )
    loaded = modules_at_initialize(workshop, "serve", str(path)) - {"server"}
    others = {name for name in loaded if name.partition(".")[0] not in ("longshore", "msgspec")}
    assert others - {"typing_extensions"} <= STANDARD


def test_the_version_loads_nothing_but_the_entry_point() -> None:
    program = """
import sys
sys.path.insert(0, sys.argv[1])
from longshore.__main__ import main
try:
    main(["--version"])
finally:
    print(*sys.modules)
"""
    source = str(Path(longshore.__file__).parents[1])
    argv = [sys.executable, "-S", "-c", program, source]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30)
    version, loaded = done.stdout.splitlines()
    assert (done.returncode, version, done.stderr) == (0, f"longshore {longshore.__version__}", "")
    assert {name for name in loaded.split() if name.startswith("longshore")} == {"longshore", "longshore.__main__"}
    assert {name for name in loaded.split() if name.partition(".")[0] != "longshore"} <= STANDARD
