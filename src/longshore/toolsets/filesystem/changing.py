"""Writing and editing text files, and the answers about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from longshore.registry.token_budget import CHARACTERS_PER_TOKEN, LEAST_TOKENS, count_tokens, cut_line, fit_errors
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError, explain, too_large
from longshore.sandbox.file_type import detect_file_type
from longshore.toolsets.filesystem.edits import Edit, apply_edits
from longshore.toolsets.filesystem.file_info import HASH_CHARACTERS, check_hash, hash_bytes, read_whole
from longshore.toolsets.filesystem.shown_paths import show_path
from longshore.toolsets.filesystem.text_changes import Diff

Mode = Literal["overwrite", "create", "append"]


def write_text(
    files: ConfinedFiles,
    path: str,
    content: str,
    mode: Mode,
    expected_hash: str | None,
    max_file_size: int,
    most: int | None = None,
) -> str:
    """Write or append a text, with the folders above the file, unless its hash is not the expected one.

    If the file would have more than `most` bytes, it stays as it was.
    """
    append = mode == "append"
    with explain(path):
        data = _encode(files, path, content, append)
        if expected_hash is None and append:
            size = files.append(path, data, parents=True, most=most).status.st_size
            return f"appended {len(data):,} bytes to {show_path(path)}, now {size:,}"
        known = None
        if expected_hash is not None:
            old, known = _read(files, path, expected_hash, max_file_size)
            data = old + data if append else data
        if most is not None and len(data) > most:
            raise too_large(len(data), most, "write less")
        files.write(path, data, overwrite=mode != "create", parents=True, expected_hash=known)
    return f"wrote {show_path(path)}, {len(data):,} bytes, hash {_short(hash_bytes(data))}"


def edit_text(
    files: ConfinedFiles,
    path: str,
    edits: Sequence[Edit],
    expected_hash: str | None,
    max_file_size: int,
    max_tokens: int,
    *,
    dry_run: bool,
) -> str:
    """Apply edits to a file, unless it has changed since it was read, and show the diff."""
    with fit_errors(max_tokens), explain(path):
        data, known = _read(files, path, expected_hash, max_file_size)
        edited = apply_edits(data, edits)
        if not dry_run:
            files.write(path, edited.data, expected_hash=known)
    count = f"{edited.replacements:,} replacement{'' if edited.replacements == 1 else 's'}"
    done, hashed = ("would edit", known) if dry_run else ("edited", hash_bytes(edited.data))
    heading = "\n".join([f"{done} {show_path(path)}: {count}, hash {_short(hashed)}", *edited.notes])
    return _show_diff(heading, edited.diff, max_tokens)


def _show_diff(heading: str, diff: Diff, max_tokens: int) -> str:
    """A heading, and below it as much of the diff as fits; without room for both, the diff alone."""
    heading = cut_line(heading, CHARACTERS_PER_TOKEN * max(0, max_tokens - LEAST_TOKENS) - 2)
    room = max_tokens - count_tokens(f"{heading}\n")
    return f"{heading}\n{diff.text(room)}" if heading and room >= LEAST_TOKENS else diff.text(max_tokens)


def _read(files: ConfinedFiles, path: str, expected_hash: str | None, max_file_size: int) -> tuple[bytes, str]:
    """The bytes of a file and their hash. Raises FileError if another is expected."""
    with files.open_file(path) as file:
        data = read_whole(file.fileno(), max_file_size)
    known = hash_bytes(data)
    if expected_hash is not None:
        check_hash(known, expected_hash)
    return data, known


def _encode(files: ConfinedFiles, path: str, content: str, append: bool) -> bytes:
    """A text in UTF-8, or in the encoding of the file that it is appended to."""
    encoding = "utf-8"
    if append:
        try:
            with files.open_file(path) as file:
                found = detect_file_type(file.fileno()).text
                encoding = found.encoding if found is not None else encoding
        except FileError as problem:
            if problem.kind != "missing":
                raise
    try:
        return content.encode(encoding)
    except UnicodeEncodeError as problem:
        what = f"{problem.object[problem.start]!a} can't be written in {encoding}"
        raise FileError("", "encoding", what, "use another character", encoding=encoding) from None


def _short(hashed: str) -> str:
    return hashed[:HASH_CHARACTERS]
