"""`python -m tests.interop.lint.refresh`: record the lists of the servers and their findings.

Then README.md beside it must say why each finding is there; the test tells what is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))  # as pytest does

from interop.lint.third_party import SERVERS, ask, count, find, record


def refresh() -> None:
    for peer in SERVERS:
        with TemporaryDirectory() as folder:
            listed = ask(peer, Path(folder))
        findings = find(listed)
        record("lists", peer, listed)
        record("findings", peer, findings)
        print(peer, f"{len(listed['tools'])} tools", *(f"{rule}:{many}" for rule, many in count(findings).items()))


if __name__ == "__main__":
    refresh()
