"""A process that ingests a folder and says which file it is at, until it has done all or is killed."""

from __future__ import annotations

import os
import sys

from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.roots import configured_roots
from longshore.toolsets.context.ingest import ingest
from longshore.toolsets.context.store import open_store


def main(place: str, root: str) -> None:
    store = open_store(place)
    files = ConfinedFiles(configured_roots([root]))
    ingest(store, files, progress=lambda done, total, path: os.write(1, f"{done} {total} {path}\n".encode()))
    store.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
