"""Processes that are killed while they ingest: the next pass completes what they began."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from counts import count

from .graphs import opened
from .projects import content, links, put, run

CHILD = Path(__file__).parent / "ingest_child.py"
MODULES = 40


def change(root: Path, chance: random.Random, turn: int) -> None:
    """Write, move and delete some of the files, which call each other."""
    for _ in range(15):
        number = chance.randrange(MODULES)
        path = root / f"m{number}.py"
        if path.exists() and chance.random() < 0.2:
            path.unlink()
        elif path.exists() and chance.random() < 0.3:
            path.replace(root / f"m{chance.randrange(MODULES)}.py")
        else:
            other = chance.randrange(MODULES)
            text = f"from m{other} import f{other}\n\ndef f{number}():\n    return f{other}() + {turn}\n\n"
            put(path, text + f"class C{number}:\n    def g{chance.randrange(9)}(self): '''{'word ' * 50}'''\n")


def ingest_until_killed(place: Path, root: Path, steps: int) -> None:
    argv = [sys.executable, "-W", "error", CHILD, place, root]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdout is not None
        for _ in range(steps):
            if not child.stdout.readline():
                break
        child.kill()


def test_a_killed_pass_is_completed_by_the_next(tmp_path: Path) -> None:
    chance, root, place = random.Random(11), tmp_path / "project", tmp_path / "context.db"
    for number in range(MODULES):
        put(root / f"m{number}.py", f"def f{number}():\n    return {number}\n")
    for turn in range(count(5)):
        change(root, chance, turn)
        ingest_until_killed(place, root, chance.randrange(1, 60))
        with opened(place) as store:
            assert store.check() == []
            known = store.file_states()
            names = store.names_in_files()
            for path in known:  # no half file: what has a state has its nodes
                assert known[path].parser.startswith("moved") or ("file", path) in names[path]
            run(store, root)
            with opened(tmp_path / f"fresh{turn}.db") as fresh:
                run(fresh, root)
                assert content(store) == content(fresh)
                assert links(store) == links(fresh)
            assert store.check() == []
