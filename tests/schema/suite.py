"""Runs the JSON Schema Test Suite through our own way to validate: `python -m tests.schema.suite FOLDER`.

FOLDER is a checkout of the suite, or `.suite` after `make suite`. The required cases of a draft are run, `optional/`
not. What the cases expect to be fetched from localhost:1234 is read from `remotes/` and handed to `compile`, which
never fetches anything itself. A schema that is a boolean, which no tool can have, is put into an `allOf`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from longshore.schema.validate import SchemaProblem, Validator, compile

DRAFTS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "7": "http://json-schema.org/draft-07/schema#",
    "6": "http://json-schema.org/draft-06/schema#",
    "4": "http://json-schema.org/draft-04/schema#",
}


def run(folder: Path, draft: str) -> tuple[int, list[str]]:
    """How many cases there are, and a line for each that came out wrong."""
    documents = dict(remotes(folder, draft))
    count, wrong = 0, list[str]()
    for path in sorted((folder / "tests" / f"draft{draft}").glob("*.json")):
        for group in msgspec.json.decode(path.read_bytes()):
            where = f"{path.name}: {group['description']}"
            try:
                validator = compile(schema_of(group["schema"], draft), documents)
            except SchemaProblem as problem:
                wrong.append(f"{where}: {problem}")
                count += len(group["tests"])
                continue
            wrong += [f"{where}: {case}" for case in failed(validator, group["tests"])]
            count += len(group["tests"])
    return count, wrong


def failed(validator: Validator, cases: list[dict[str, Any]]) -> Iterator[str]:
    """The cases whose verdict is another, and those where verdict and explanation differ."""
    for case in cases:
        if validator.is_valid(case["data"]) is not case["valid"]:
            yield case["description"]
        elif bool(validator.errors(case["data"])) is case["valid"]:
            yield f"{case['description']} (explained otherwise than judged)"


def schema_of(schema: Any, draft: str) -> dict[str, Any]:
    """The schema with its dialect, which the files of older drafts leave to whoever runs them."""
    written = schema if isinstance(schema, dict) else {"allOf": [schema]}
    return written if "$schema" in written else {"$schema": DRAFTS[draft], **written}


def remotes(folder: Path, draft: str) -> Iterator[tuple[str, Any]]:
    """The documents at localhost:1234 for this draft: its own files, and the common ones in its dialect."""
    for path in sorted((folder / "remotes").rglob("*.json")):
        place = path.relative_to(folder / "remotes").as_posix()
        document = msgspec.json.decode(path.read_bytes())
        newer = draft in ("7", "6", "4") and "$defs" in document
        if place.startswith(f"draft{draft}/") or not (place.startswith("draft") or newer):
            yield f"http://localhost:1234/{place}", schema_of(document, draft)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.schema.suite", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draft", choices=list(DRAFTS), default="2020-12")
    options = parser.parse_args()
    count, wrong = run(options.folder, options.draft)
    for line in wrong:
        print(line)
    print(f"draft {options.draft}: {count - len(wrong)} of {count} pass")
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
