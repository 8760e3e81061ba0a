"""Ingest: updates the nodes of files after a folder, in time proportional to the changes.

A pass walks the folder and compares sizes and the times of inodes with those of the last pass; only files that differ
are opened, and only those whose content differs are parsed. Then names are resolved over all files, also for unchanged
files that refer to something that was added, moved or removed, and each file is written in one transaction.

A pass that is cancelled or killed leaves whole files, and the next one does the rest: what a file's change means for
others is written before the file itself is marked as read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import Final, TypeAlias, final

from msgspec import Struct, field
from msgspec.structs import replace

from longshore.errors import ToolError
from longshore.redaction import texts as secret_texts
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError
from longshore.toolsets.context import markdown_file, plain_file, python_file
from longshore.toolsets.context.checks import LINKS, PATH_CHARACTERS
from longshore.toolsets.context.file_parts import FILE, FUNCTION, METHOD, Import, ParsedFile
from longshore.toolsets.context.name_resolution import Declared, NameTable, words_of
from longshore.toolsets.context.ranking import PART_OF
from longshore.toolsets.context.records import FileState, NewItem, NewLink, NewSource
from longshore.toolsets.context.source_tree import Content, FileFacts, SourceTree, Unreadable, decode
from longshore.toolsets.context.store import Store

Progress: TypeAlias = Callable[[int, int, str], object]
"""Called with the steps that are done, all steps, and the file at work. Each file that has changed is two steps."""

CACHED_CHARACTERS: Final = 64_000_000
"""Of parsed texts that wait for all files to be parsed. Beyond it files are parsed a second time."""
MOST_PROBLEMS: Final = 50
"""Files that a report names; the rest is counted."""
MOST_PARTS: Final = 5_000
"""Of one file, which is written in one transaction. The standard library's largest has 400."""
MOVED_LIKENESS: Final = 0.5
"""Of a new file and one that is gone, from 0 to 1, to be taken for the same file. Git takes the same."""
COMPARED_CHARACTERS: Final = 2_000
"""Of two parts with one name, to tell how alike they are."""
CANDIDATES: Final = 5
"""Files that are gone with which a new one is compared."""
COMMON_LINE: Final = 20
"""Files that are gone which have a line: one that more of them have tells none from the others."""
_MOVED: Final = "moved"
"""Begins the parser of a file that has a new path, until its links are resolved again; the old path follows."""


class IngestLimits(Struct, frozen=True, kw_only=True):
    """The limits of one pass."""

    most_files: int = 50_000
    """Files of the folder. Beyond it the walk ends: the rest is not ingested, and nothing is forgotten."""

    most_file_bytes: int = 1_000_000
    """Of one file. Larger ones are data or made by programs; they are skipped, and forgotten if they were known."""

    most_bytes: int = 200_000_000
    """Read in one pass. The next pass goes on with the rest."""


DEFAULT_LIMITS: Final = IngestLimits()


class FileProblem(Struct, frozen=True):
    """A file that was skipped or read as plain text, and the reason."""

    path: str
    what: str


class IngestReport(Struct, kw_only=True):
    """The result of a pass: counts of files, unless stated otherwise."""

    path: str
    """Where it began, as it is stored."""
    files: int = 0
    """Found in the folder."""
    unchanged: int = 0
    added: int = 0
    changed: int = 0
    moved: int = 0
    forgotten: int = 0
    relinked: int = 0
    """Unchanged themselves, but they refer to what has changed."""
    skipped: Counter[str] = field(default_factory=Counter[str])
    """By reason: binary, too large, not UTF-8, unreadable, vanished, changed meanwhile, unusable name, …"""
    problems: list[FileProblem] = field(default_factory=list[FileProblem])
    """At most MOST_PROBLEMS: files that were skipped for another reason than their kind, or read as plain text only."""
    limits: list[str] = field(default_factory=list[str])
    """The limits that were reached, and what that means."""
    parts: int = 0
    """Nodes of the files that were added or changed."""
    functions: int = 0
    """Functions and methods among them."""
    secrets: int = 0
    """Credentials that were replaced by a marker."""
    bytes: int = 0
    """That were read."""
    cancelled: bool = False


class _Work(Struct, frozen=True):
    """A file whose nodes are to be written."""

    path: str
    state: FileState
    declared: Declared
    moved_from: str = ""
    is_new: bool = False
    is_relinked: bool = False


def ingest(
    store: Store,
    files: ConfinedFiles,
    path: str = ".",
    *,
    base: str | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    limits: IngestLimits = DEFAULT_LIMITS,
    source: NewSource | None = None,
    progress: Progress = lambda _done, _total, _path: None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> IngestReport:
    """Update the store after a file, or the files beneath a folder. Raises FileError and StoreError.

    Stored paths begin at `base`, an absolute folder (the first root, if it is None); give the project's, so that all
    servers of a project name a file alike. `include` and `exclude` are globs in .gitignore's syntax, from `path` on;
    files that they leave out stay as they are. `source` says who ingests. It blocks: run it in a thread.
    """
    tree = SourceTree(files, path, base or files.roots.folders[0], include, exclude)
    states = store.file_states()
    if not tree.exists and not any(map(tree.covers, states)):
        raise FileError(path, "missing")
    if tree.is_ignored and not any(map(tree.covers, states)):
        what = "it is ignored, or in an ignored folder: a .gitignore names it, or it is made by git or other programs"
        raise FileError(path, "invalid", what, "name another path, or change the .gitignore")
    return _Pass(store, tree, states, limits, source or NewSource(), progress, is_cancelled).run()


class _Cancelled(Exception):
    pass


@final
class _Pass:
    """One pass over a tree."""

    def __init__(
        self,
        store: Store,
        tree: SourceTree,
        states: dict[str, FileState],
        limits: IngestLimits,
        source: NewSource,
        progress: Progress,
        is_cancelled: Callable[[], bool],
    ) -> None:
        self._store, self._tree, self._states, self._limits = store, tree, states, limits
        self._source, self._progress, self._is_cancelled = source, progress, is_cancelled
        self._report = IngestReport(path=tree.stored(tree.real_path))
        self._parsed = dict[str, ParsedFile]()
        self._cached = 0
        self._imports = dict[str, tuple[Import, ...]]()
        self._counted = set[str]()
        self._done = self._total = 0

    def run(self) -> IngestReport:
        try:
            found, is_complete = self._walk()
            gone = [p for p in self._states if p not in found and self._tree.covers(p)] if is_complete else []
            candidates = self._differing(found, gone)
            if candidates or gone:
                self._total = 2 * len(candidates)
                self._update(candidates, gone)
        except _Cancelled:
            self._report.cancelled = True
        return self._report

    # -- what has changed

    def _walk(self) -> tuple[dict[str, FileFacts], bool]:
        """The files of the tree, and whether the list is complete."""
        found = dict[str, FileFacts]()
        for path, facts in self._tree.walk():
            if len(found) >= self._limits.most_files:
                what = f"the folder has more than {self._limits.most_files:,} files: the rest was left out"
                self._report.limits.append(what)
                return found, False
            if not found or len(found) % 256 == 0:
                self._check()
            found[path] = facts
        return found, True

    def _differing(self, found: dict[str, FileFacts], gone: list[str]) -> list[str]:
        """The files that have to be opened. Known files that are too large now count as deleted."""
        differing = list[str]()
        for path, facts in found.items():
            state = self._states.get(path)
            if facts.size > self._limits.most_file_bytes:
                self._skip(path, "too large")
                if state is not None:
                    gone.append(path)
            elif state is None and _is_unusable(path):
                self._skip(path, "unusable name")
            elif state is None or facts != (state.size, state.modified_ns) or not _is_current(path, state.parser):
                differing.append(path)
            elif reason := state.parser.partition(" ")[2]:
                self._report.skipped[reason] += 1
            else:
                self._report.unchanged += 1
        self._report.files = len(found)
        return differing

    def _update(self, candidates: list[str], gone: list[str]) -> None:
        """Parse the changed files, resolve names, and write."""
        before = {path: frozenset(names) for path, names in self._store.names_in_files().items()}
        works = [work for path in candidates if (work := self._examine(path)) is not None]
        works = self._with_changed_moves(self._with_moves(works, gone), gone)
        written = {work.path: work for work in works}
        left = set(gone)
        after = {path: names for path, names in before.items() if path in self._states and path not in left}
        after |= {path: work.declared for path, work in written.items()}
        words = _changed_words(works, gone, before, self._states)
        relinked = list(self._affected(words, left | written.keys(), after)) if words else []
        table = NameTable(after.items(), self._imports_of)
        for work in works:
            if work.moved_from:
                self._move(work)
        for work in (*relinked, *works):
            self._write(work, table)
        moved = {work.moved_from for work in works}
        for path in gone:
            if path not in moved:
                self._check()
                self._store.forget_file(path, self._source_of(path))
                self._report.forgotten += 1

    def _examine(self, path: str) -> _Work | None:
        """Read and parse a file. None if its content is known already, or is not ingested."""
        self._check()
        self._progress(self._done, self._total, path)
        self._done += 1
        state = self._states.get(path)
        try:
            if self._report.bytes >= self._limits.most_bytes:
                self._reach_byte_limit()
                raise Unreadable("not yet: limit of bytes")
            content = self._read(path)
            self._report.bytes += content.facts.size
            new = _state(path, content)
            if state is not None and state.hash == new.hash and _is_current(path, state.parser):
                self._store.save_file_state(replace(new, parser=state.parser), self._source_of(path))
                self._report.unchanged += 1
                self._done += 1
                return None
            parsed = self._parse(path, content)
        except Unreadable as problem:
            return self._leave_out(path, problem, state)
        return _Work(path, new, _declared(parsed), is_new=state is None)

    def _leave_out(self, path: str, problem: Unreadable, state: FileState | None) -> _Work | None:
        """Record a file that is not ingested.

        Files that are no text are stored as such, so that they are not opened again.
        """
        self._done += 1
        self._skip(path, problem.reason)
        if problem.content is None:
            return None
        self._parsed[path] = ParsedFile("", ())
        known = _state(path, problem.content)
        return _Work(path, replace(known, parser=f"{known.parser} {problem.reason}"), frozenset(), is_new=state is None)

    def _with_moves(self, works: list[_Work], gone: list[str]) -> list[_Work]:
        """The same files; a new file with the content of a deleted one is a moved one."""
        by_hash = dict[str, list[str]]()
        for path in gone:
            if self._states[path].size:
                by_hash.setdefault(self._states[path].hash, []).append(path)
        result = list[_Work]()
        for work in works:
            same = by_hash.get(work.state.hash, []) if work.is_new else []
            if same:
                name = work.path.rpartition("/")[2]
                same.sort(key=lambda old: old.rpartition("/")[2] != name)
                work = replace(work, moved_from=same.pop(0), is_new=False)
            result.append(work)
        return result

    def _with_changed_moves(self, works: list[_Work], gone: list[str]) -> list[_Work]:
        """The same files; a new file much like a deleted one is a moved and changed one."""
        left = sorted(set(gone) - {work.moved_from for work in works})
        if not left or not any(work.is_new for work in works):
            return works
        old = _GoneFiles()
        for path in left:
            self._check()
            old.add(path, self._store.texts_in_file(path))
        result = list[_Work]()
        for work in works:
            parsed = self._parsed.get(work.path) if work.is_new and not work.moved_from else None
            if parsed is not None and parsed.parts:
                best, likeness = "", MOVED_LIKENESS
                for path in old.candidates(work.path, parsed):
                    self._check()
                    if (alike := _likeness(parsed, old.texts[path])) >= likeness and (not best or alike > likeness):
                        best, likeness = path, alike
                if best:
                    del old.texts[best]
                    work = replace(work, moved_from=best, is_new=False)
            result.append(work)
        return result

    def _affected(self, words: set[bytes], others: set[str], after: dict[str, Declared]) -> Iterator[_Work]:
        """Unchanged files that contain one of these words, and so may refer to a changed part."""
        for path, state in self._states.items():
            if path in others or path not in after or not path.endswith(_LINKING) or " " in state.parser:
                continue
            self._check()
            try:
                content = self._tree.read(path, self._limits.most_file_bytes)
                if content.hash == state.hash and not words.isdisjoint(_words(path, content.data)):
                    parsed = self._parse(path, content)
                    yield _Work(path, state, _declared(parsed), is_relinked=True)
            except Unreadable:
                continue  # it is outside this tree, or the next pass will notice its change

    # -- parsing

    def _parse(self, path: str, content: Content) -> ParsedFile:
        """The parts of a file's text, without secrets. Raises Unreadable."""
        text, secrets = secret_texts.remove_secrets(decode(content))
        parsed = _parse(text, path)
        self._imports[path] = tuple(each for each in parsed.references if isinstance(each, Import))
        if self._cached < CACHED_CHARACTERS:
            self._cached += len(text)
            self._parsed[path] = parsed
        if path not in self._counted:
            self._counted.add(path)
            self._report.secrets += secrets
            if parsed.problem:
                self._name(path, parsed.problem)
        return parsed

    def _imports_of(self, path: str) -> tuple[Import, ...]:
        """The imports of a Python file, which is parsed for them if it is unchanged."""
        if path not in self._imports:
            self._imports[path] = ()
            try:
                content = self._tree.read(path, self._limits.most_file_bytes)
                references = _parse(decode(content), path).references
                self._imports[path] = tuple(each for each in references if isinstance(each, Import))
            except Unreadable:
                pass
        return self._imports[path]

    # -- writing

    def _move(self, work: _Work) -> None:
        """Give the nodes of a file that has moved their new path, so that they keep their ids and history."""
        self._check()
        state = replace(work.state, parser=f"{_MOVED} {work.moved_from}")
        self._store.move_file(work.moved_from, state, self._source_of(work.path))

    def _write(self, work: _Work, table: NameTable) -> None:
        self._check()
        if not work.is_relinked:
            self._progress(self._done, self._total, work.path)
            self._done += 1
        state, parsed = work.state, self._parsed.pop(work.path, None)
        try:
            if parsed is None:  # too large to store
                content = self._read(work.path)
                state, parsed = _state(work.path, content), self._parse(work.path, content)
            items = _items(work.path, parsed, table)
            self._store.replace_file(state, items, self._source_of(work.path))
        except Unreadable as problem:
            self._skip(work.path, problem.reason)
            return
        except ToolError as problem:
            self._skip(work.path, "refused by the store")
            self._name(work.path, str(problem))
            return
        if work.is_relinked:
            self._report.relinked += 1
        elif parsed.parts:
            self._count(work, parsed)

    def _count(self, work: _Work, parsed: ParsedFile) -> None:
        report = self._report
        report.parts += len(parsed.parts)
        report.functions += sum(part.kind in (FUNCTION, METHOD) for part in parsed.parts)
        if work.moved_from:
            report.moved += 1
        elif work.is_new:
            report.added += 1
        else:
            report.changed += 1

    # -- small parts

    def _read(self, path: str) -> Content:
        """A file's content. A file that changes during the read is read once more. Raises Unreadable."""
        try:
            return self._tree.read(path, self._limits.most_file_bytes)
        except Unreadable as problem:
            if problem.reason != "changed meanwhile":
                raise
            return self._tree.read(path, self._limits.most_file_bytes)

    def _check(self) -> None:
        if self._is_cancelled():
            raise _Cancelled

    def _skip(self, path: str, reason: str) -> None:
        self._report.skipped[reason] += 1
        if reason not in ("binary", "not UTF-8", "not yet: limit of bytes"):
            self._name(path, reason)

    def _name(self, path: str, what: str) -> None:
        if len(self._report.problems) < MOST_PROBLEMS:
            self._report.problems.append(FileProblem(path.encode(errors="replace").decode(), what))

    def _reach_byte_limit(self) -> None:
        what = f"{self._limits.most_bytes:,} bytes were read: ingest again to go on with the rest"
        if what not in self._report.limits:
            self._report.limits.append(what)

    def _source_of(self, path: str) -> NewSource:
        return replace(self._source, type="file", uri=path)


# Parsers

_SECRETS: Final = f"secrets/{secret_texts.VERSION}"
_LINKING: Final = (*python_file.ENDINGS, *markdown_file.ENDINGS)
"""Files that refer to others."""


def _parser(path: str) -> str:
    """The parser of a file, by its name, with the version of all that determines its output."""
    if path.endswith(python_file.ENDINGS):
        return f"{python_file.PARSER}+{_SECRETS}"
    if path.endswith(markdown_file.ENDINGS):
        return f"{markdown_file.PARSER}+{_SECRETS}"
    return f"{plain_file.PARSER}+{_SECRETS}"


def _parse(text: str, path: str) -> ParsedFile:
    if path.endswith(python_file.ENDINGS):
        parsed = python_file.parse_python(text, path)
    elif path.endswith(markdown_file.ENDINGS):
        parsed = markdown_file.parse_markdown(text, path)
    else:
        return plain_file.parse_plain(text, path)
    if len(parsed.parts) > MOST_PARTS:
        return plain_file.parse_plain(text, path, f"more than {MOST_PARTS:,} parts: read as plain text")
    return parsed


def _words(path: str, data: bytes) -> Iterator[bytes]:
    """The words by which a file may refer to others, found faster than by parsing it."""
    if path.endswith(python_file.ENDINGS):
        return python_file.referring_words(data)
    return markdown_file.referring_words(data)


def _is_current(path: str, parser: str) -> bool:
    return parser.partition(" ")[0] == _parser(path)


def _state(path: str, content: Content) -> FileState:
    size, modified_ns = content.facts
    return FileState(path=path, size=size, modified_ns=modified_ns, hash=content.hash, parser=_parser(path))


def _is_unusable(path: str) -> bool:
    """Whether a path can't be stored: it is not Unicode, too long, or looks like a credential itself."""
    if not path.isprintable() or len(path) > PATH_CHARACTERS:
        return True
    return bool(secret_texts.remove_secrets(path)[1])


def _declared(parsed: ParsedFile) -> Declared:
    return frozenset((part.kind, part.name) for part in parsed.parts)


@final
class _GoneFiles:
    """The texts of deleted files, indexed by line: comparing each of them with each new file would take hours."""

    def __init__(self) -> None:
        self.texts = dict[str, dict[tuple[str, str], str]]()
        """By path; one that was found again may be deleted."""
        self._by_line = dict[int, list[str]]()
        self._by_name = dict[str, list[str]]()

    def add(self, path: str, texts: dict[tuple[str, str], str]) -> None:
        self.texts[path] = texts
        self._by_name.setdefault(path.rpartition("/")[2], []).append(path)
        for line in _lines(texts.values()):
            having = self._by_line.setdefault(line, [])
            if len(having) <= COMMON_LINE:
                having.append(path)

    def candidates(self, path: str, parsed: ParsedFile) -> list[str]:
        """The deleted files to compare a new one with: those with the most lines in common, or with its name."""
        shared = Counter[str]()
        for line in _lines(part.text for part in parsed.parts):
            having = self._by_line.get(line, ())
            if len(having) <= COMMON_LINE:
                shared.update(having)
        for other in self._by_name.get(path.rpartition("/")[2], ())[:CANDIDATES]:
            shared[other] += 1
        found = sorted((other for other in shared if other in self.texts), key=lambda other: (-shared[other], other))
        return found[:CANDIDATES]


def _lines(texts: Iterable[str]) -> set[int]:
    """The lines of some texts, each as a number."""
    return {hash(line.strip()) for text in texts for line in text.split("\n") if line.strip()}


def _likeness(parsed: ParsedFile, old: dict[tuple[str, str], str]) -> float:
    """How similar two files are, from 0 to 1: their parts with the same kind and name, weighted by similar text."""
    own = {(part.kind, part.kind != FILE and part.name): part.text for part in parsed.parts if part.text}
    before = {(kind, kind != FILE and name): text for (kind, name), text in old.items()}
    shared = own.keys() & before.keys()
    if 2 * len(shared) < max(len(own), len(before), 1):
        return 0.0
    alike = sum(_alike(own[key][:COMPARED_CHARACTERS], before[key][:COMPARED_CHARACTERS]) for key in sorted(shared))
    return alike / max(len(own), len(before))


def _alike(text: str, other: str) -> float:
    return 1.0 if text == other else SequenceMatcher(None, text.split(), other.split(), autojunk=False).ratio()


def _changed_words(
    works: list[_Work], gone: list[str], before: dict[str, Declared], states: dict[str, FileState]
) -> set[bytes]:
    """The words by which other files may refer to added or removed parts."""
    words = set[str]()
    for path in gone:
        words |= words_of(path, before.get(path, frozenset()))
    for work in works:
        old = before.get(work.path, frozenset())
        parser, _, moved_from = states[work.path].parser.partition(" ") if work.path in states else (_MOVED, "", "")
        if parser == _MOVED:  # by a pass that ended before it wrote the links
            words |= words_of(work.path, work.declared) | words_of(moved_from, frozenset())
        elif changed := old ^ work.declared:
            # The file's own node is among them if it was forgotten.
            words |= words_of(work.path if (FILE, work.path) in changed else "", changed)
    return {word.encode() for word in words}


def _items(path: str, parsed: ParsedFile, table: NameTable) -> list[NewItem]:
    """The nodes of a file, with their links."""
    links = dict[int, list[NewLink]]()
    for at, part in enumerate(parsed.parts):
        if part.parent is not None:
            parent = parsed.parts[part.parent]
            links.setdefault(at, []).append(NewLink(to=parent.name, relation=PART_OF, kind=parent.kind, path=path))
    for link in table.links(path, parsed):
        kind, name, file = link.target
        new = NewLink(to=name, relation=link.relation, kind=kind, path=file, weight=link.weight)
        links.setdefault(link.part, []).append(new)
    return [
        NewItem(
            kind=part.kind,
            name=part.name,
            text=part.text,
            path=path,
            links=tuple(links.get(at, ())[:LINKS]),
            attributes={"lines": [part.first_line, part.last_line]},
        )
        for at, part in enumerate(parsed.parts)
    ]
