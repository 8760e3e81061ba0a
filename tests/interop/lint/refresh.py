"""`python -m tests.interop.lint.refresh`: ask the servers anew, lint what they say, and keep both.

Then README.md beside it must say why each finding is there; the test tells what is missing.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[2]))  # as pytest does

from interop.lint.strangers import STRANGERS, ask, count, find, keep


def refresh() -> None:
    for peer in STRANGERS:
        with TemporaryDirectory() as folder:
            listed = ask(peer, Path(folder))
        findings = find(listed)
        keep("lists", peer, listed)
        keep("findings", peer, findings)
        print(peer, f"{len(listed['tools'])} tools", *(f"{rule}:{many}" for rule, many in count(findings).items()))


if __name__ == "__main__":
    refresh()
