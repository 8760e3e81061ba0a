"""The file tools: read, write, edit, list, search, move and delete within the server's folders."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from time import monotonic, time
from typing import TYPE_CHECKING, Annotated, Final, Literal

from longshore.errors import ResourceNotFound, ToolError, WouldBlock
from longshore.files import user_directory
from longshore.protocol.content import Audio, Contents, Image, Text
from longshore.registry.token_budget import DEFAULT_TOKENS, LEAST_TOKENS, MOST_TOKENS, MaxTokens, fit_errors, fit_lines
from longshore.registry.toolset import Toolset, resource, tool
from longshore.sandbox.confined import ConfinedFiles
from longshore.sandbox.file_errors import FileError, explain, too_large
from longshore.sandbox.roots import Roots
from longshore.sandbox.trees import Entry, walk_tree
from longshore.sandbox.walking import read_rules_above
from longshore.schema.annotations import Hidden
from longshore.server.context import Context
from longshore.toolsets.filesystem import listing
from longshore.toolsets.filesystem.changing import Mode, edit_text, write_text
from longshore.toolsets.filesystem.edits import Edit
from longshore.toolsets.filesystem.file_info import describe_file, free_bytes, show_time
from longshore.toolsets.filesystem.listing import ListQuery, Sort, list_folder, show_size
from longshore.toolsets.filesystem.matches import Output
from longshore.toolsets.filesystem.options import FilesystemOptions
from longshore.toolsets.filesystem.reading import (
    ReadQuery,
    read_cached_file,
    read_contents,
    read_files,
    read_whole_file,
    rehearse,
)
from longshore.toolsets.filesystem.search_place import find_place, path_prefix
from longshore.toolsets.filesystem.shown_paths import show_name, show_path

# The parts for searching, deleting and watching are loaded with their first use: most sessions begin by reading.
if TYPE_CHECKING:
    from longshore.app import Server
    from longshore.toolsets.filesystem.trash import Trash
    from longshore.toolsets.filesystem.watched_files import WatchedFiles

MOST_CACHED: Final = 16
"""Sets of folders whose ConfinedFiles are kept. Each client may narrow the server's folders in its own way."""
PROGRESS_SECONDS: Final = 1.0
"""How often a long call reports that it is still at work."""
_FRAME_BYTES: Final = 4096
"""Of a result, what is not the text of a file."""
LATE_SECONDS: Final = 2.0
"""A client may be told that it watches before the watch begins. A change of these last seconds is reported then."""

Action = Literal["read", "write", "append", "list", "search", "move", "copy", "delete", "info", "mkdir"]
_TOOL_OF: Final[dict[Action, str]] = {
    "read": "fs_read", "write": "fs_write", "append": "fs_write", "list": "fs_list", "search": "fs_search",
    "move": "fs_move", "copy": "fs_move", "delete": "fs_delete", "info": "fs_info", "mkdir": "fs_write",
}  # fmt: skip
"""The tool that does the same. Who may not use it may not do that here either."""

# Parameters are None where they are left out: a default in the schema would cost a model tokens in every list.
Tokens = Annotated[MaxTokens, Hidden()]
Flag = bool | None
Target = Annotated[str, "file or folder"]
ExpectedHash = Annotated[str | None, "hash it must have"]
Glob = Annotated[str | None, "such as *.py or src/**"]
Gitignore = Annotated[Flag, "false: also ignored files"]
Cursor = Annotated[str | None, "of the last page"]

_WAIVED: Final = {
    "B52": "the schema says which parameters are optional, and words for it cost a model tokens in every list",
    "B56": "bounds would cost a model 12 tokens a number in every list, and the answers say them",
    "W25": "the answers say the bounds of max_tokens",
}
_OUTSIDE: Final = {"outside the folders": "use a path within those that fs_info shows"}
_CHANGED: Final = _OUTSIDE | {"changed since you read it": "read it again and repeat the change"}
_BUDGET: Final = f"Also takes max_tokens, the most tokens of the answer ({LEAST_TOKENS} to {MOST_TOKENS})"


class Filesystem(Toolset):
    """Files in the server's folders."""

    name = "filesystem"
    Options = FilesystemOptions
    uses_folders = True

    def __init__(self, options: FilesystemOptions, app: Server) -> None:
        self._options, self._app = options, app
        self._cached: dict[Roots, ConfinedFiles] = {}
        self._watched: WatchedFiles | None = None

    def warm_up(self) -> None:
        self.files_of(self._app.engine.executor.files.roots)
        rehearse()

    def stop(self) -> None:
        if self._watched is not None:
            self._watched.close()

    def status(self) -> dict[str, int]:
        return {"watched": 0 if self._watched is None else len(self._watched)}

    def check_watch(self, uri: str) -> None:
        """Raise FileError for what lies outside of the folders, or is denied."""
        self.files_of(self._app.engine.executor.files.roots).real_path(uri)

    def watched(self, uri: str) -> None:
        if self._watched is None:
            from longshore.toolsets.filesystem.watched_files import WatchedFiles

            self._watched = WatchedFiles(self._app.resource_changed)
        files = self.files_of(self._app.engine.executor.files.roots)
        self._watched.add(uri, files.real_path(uri))
        if time() - _last_change(files, uri) < LATE_SECONDS:
            self._app.resource_changed(uri)

    def unwatched(self, uri: str) -> None:
        if self._watched is not None:
            self._watched.remove(uri)

    @resource("file:///{+path}")
    def file(self, ctx: Context, path: str) -> Contents:
        """A file in the server's folders."""
        try:
            return read_contents(self._files(ctx), f"/{path}", self._options.max_file_size)
        except FileError as problem:
            raise ResourceNotFound(f"file:///{path}", f": {problem}") from None

    @tool(
        effects="read",
        run="inline_first",
        waive=_WAIVED,
        help="Also takes byte_offset and byte_limit in place of lines.",
        errors=_OUTSIDE,
        examples=[{"path": "src/app.py", "offset": 100, "limit": 50}, {"paths": ["a.txt", "b.txt"]}],
    )
    def fs_read(
        self,
        ctx: Context,
        path: Annotated[str | None, "absolute, or from the first folder of fs_info"] = None,
        paths: Annotated[list[str] | None, "several files"] = None,
        offset: Annotated[int | None, "first line, if not 1"] = None,
        limit: Annotated[int | None, "lines, if not all"] = None,
        tail: Annotated[int | None, "last lines"] = None,
        byte_offset: Annotated[int | None, Hidden()] = None,
        byte_limit: Annotated[int | None, Hidden()] = None,
        line_numbers: Annotated[Flag, "show them"] = None,
        max_tokens: MaxTokens = DEFAULT_TOKENS,
    ) -> list[Text | Image | Audio]:
        """Read a text file by lines, or a picture or sound."""
        query = ReadQuery(
            offset=offset,
            limit=limit,
            tail=tail,
            byte_offset=byte_offset,
            byte_limit=byte_limit,
            line_numbers=bool(line_numbers),
            max_tokens=max_tokens,
            max_file_size=self._options.max_file_size,
        )
        if not ctx.may_block:
            if path is None or paths:
                raise WouldBlock
            return [read_cached_file(self._known_files(ctx), path, query)]
        wanted = [*([] if path is None else [path]), *(paths or [])]
        with fit_errors(max_tokens):
            return read_files(self._files(ctx), wanted, query, ctx.raise_if_cancelled)

    @tool(
        effects="destroy",
        waive=_WAIVED,
        errors=_CHANGED | {"exists already": "choose another name, or leave out mode"},
        examples=[{"path": "notes/todo.txt", "content": "buy tea\n"}],
    )
    def fs_write(
        self,
        ctx: Context,
        path: Annotated[str, "the file"],
        content: Annotated[str, "the text"],
        mode: Annotated[Mode | None, "create: fail if it exists"] = None,
        expected_hash: ExpectedHash = None,
    ) -> str:
        """Write a text file and the folders above it. For small changes use fs_edit."""
        most = self._options.max_file_size
        return write_text(self._files(ctx), path, content, mode or "overwrite", expected_hash, most)

    @tool(
        effects="destroy",
        waive=_WAIVED,
        help=f"{_BUDGET}.",
        errors=_CHANGED | {"occurs several times": "add lines around it to old, or set replace_all"},
        examples=[{"path": "app.py", "edits": [{"old": "debug = True", "new": "debug = False"}]}],
    )
    def fs_edit(
        self,
        ctx: Context,
        path: Annotated[str, "the file"],
        edits: Annotated[list[Edit], "in order; old occurs once, or set replace_all"],
        dry_run: Annotated[Flag, "only show the diff"] = None,
        expected_hash: ExpectedHash = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Replace exact texts in a file, all or none, and show the diff."""
        most = self._options.max_file_size
        return edit_text(self._files(ctx), path, edits, expected_hash, most, max_tokens, dry_run=bool(dry_run))

    @tool(
        effects="read",
        waive=_WAIVED,
        help=f"{_BUDGET}, and limit, the most lines.",
        errors=_OUTSIDE,
        examples=[{"path": "src", "depth": 2, "glob": "*.py"}],
    )
    def fs_list(
        self,
        ctx: Context,
        path: Annotated[str | None, "folder, if not the first"] = None,
        depth: Annotated[int | None, "levels, 3 unless given"] = None,
        glob: Glob = None,
        gitignore: Gitignore = None,
        sort: Annotated[Sort | None, "order"] = None,
        cursor: Cursor = None,
        limit: Annotated[int, Hidden()] = listing.DEFAULT_LIMIT,
        max_tokens: Tokens = listing.DEFAULT_TOKENS,
    ) -> str:
        """List a folder as a tree with sizes."""
        path = "." if path is None else path
        files, options = self._files(ctx), self._options
        with fit_errors(max_tokens), explain(path), files.open_folder(path) as folder:
            query = ListQuery(
                depth=listing.DEFAULT_DEPTH if depth is None else depth,
                globs=() if glob is None else (glob,),
                gitignore=gitignore is not False,
                sort=sort or "name",
                limit=limit,
                cursor=cursor or "",
                max_tokens=max_tokens,
                deny=tuple(options.deny),
                within=folder.relative,
            )
            above = read_rules_above(files, folder) if query.gitignore else ()
            return list_folder(folder.descriptor, query, above=above, check=_checker(ctx)).text

    @tool(
        effects="read",
        waive=_WAIVED,
        help=f"{_BUDGET}.",
        errors=_OUTSIDE | {"the pattern": "escape what is plain text, or set literal"},
        examples=[{"pattern": "def \\w+_file", "path": "src", "glob": "*.py"}],
    )
    def fs_search(
        self,
        ctx: Context,
        pattern: Annotated[str, "regular expression within a line"],
        path: Annotated[str | None, "file or folder"] = None,
        glob: Glob = None,
        literal: Annotated[Flag, "pattern is plain text"] = None,
        ignore_case: Annotated[Flag, "a matches A"] = None,
        context: Annotated[int | None, "lines around"] = None,
        output: Annotated[Output | None, "lines, paths, or counts"] = None,
        gitignore: Gitignore = None,
        limit: Annotated[int | None, "100 unless given"] = None,
        cursor: Cursor = None,
        max_tokens: Tokens = DEFAULT_TOKENS,
    ) -> str:
        """Search the contents of files."""
        from longshore.toolsets.filesystem.search import SearchQuery, search

        path = "." if path is None else path
        files, options = self._files(ctx), self._options
        with ExitStack() as stack:
            stack.enter_context(fit_errors(max_tokens))
            stack.enter_context(explain(path))
            top, name = find_place(files, path, options.max_file_size)
            folder = stack.enter_context(files.open_folder(top))
            query = SearchQuery(
                pattern=pattern,
                literal=bool(literal),
                ignore_case=bool(ignore_case),
                globs=() if glob is None else (glob,),
                gitignore=gitignore is not False,
                context=context or 0,
                output=output or "content",
                limit=100 if limit is None else limit,
                cursor=cursor or "",
                max_tokens=max_tokens,
                deny=tuple(options.deny),
                within=folder.relative,
                max_file_size=options.max_file_size,
                file=name,
                prefix=path_prefix(files, folder),
                roots=files.roots.folders,
            )
            above = read_rules_above(files, folder) if query.gitignore else ()
            return search(folder.descriptor, query, above=above, check=_checker(ctx)).text

    @tool(
        effects="destroy",
        errors=_OUTSIDE | {"exists already": "choose another name, or set overwrite"},
        examples=[{"path": "a.txt", "to": "old/a.txt"}],
    )
    def fs_move(
        self,
        ctx: Context,
        path: Target,
        to: Annotated[str, "new path"],
        copy: Annotated[Flag, "leave the original"] = None,
        overwrite: Annotated[Flag, "what is there"] = None,
    ) -> str:
        """Move, rename or copy."""
        files = self._files(ctx)
        change = files.copy if copy else files.move
        change(path, to, overwrite=bool(overwrite), parents=True, check=_checker(ctx))
        return f"{'copied' if copy else 'moved'} {show_path(path)} to {show_path(to)}"

    @tool(effects="destroy", errors=_OUTSIDE)
    def fs_delete(
        self,
        ctx: Context,
        path: Annotated[str | None, "file or folder"] = None,
        restore: Annotated[str | None, "id to put back, at path if given"] = None,
        permanent: Annotated[Flag, "if allowed"] = None,
    ) -> str:
        """Move to the trash, restore from it, or list it."""
        files = self._files(ctx)
        if restore is not None:
            return f"restored {show_path(self._trash().restore(files, restore, path, _checker(ctx)))}"
        if path is None:
            return self._list_trash(files)
        if permanent:
            if not self._options.permanent_delete:
                raise ToolError("permanent is not allowed here (permanent_delete); leave it out, or ask the user")
            files.delete(path, tree=True)
            return f"deleted {show_path(path)} for ever"
        entry = self._trash().put(files, path, _checker(ctx))
        return f"deleted {show_path(path)}, {entry.size:,} bytes; to undo it: restore={entry.id}"

    @tool(effects="read", errors=_OUTSIDE)
    def fs_info(self, ctx: Context, path: Annotated[str | None, "file or folder"] = None) -> str:
        """Show a file's type, size, lines and hash; without a path, the folders, limits and free space."""
        files = self._files(ctx)
        if path is None:
            return self._describe_folders(files)
        with explain(path):
            if files.status(path).kind == "folder":
                return self._describe_folder(files, path)
            with files.open_file(path) as file:
                info = describe_file(file.fileno(), self._options.max_file_size, ctx.raise_if_cancelled)
        return info.show()

    @tool(effects="destroy", listed=False)
    def filesystem(
        self,
        ctx: Context,
        action: Annotated[Action, "what to do"],
        path: Annotated[str, "file or folder"] = ".",
        content: Annotated[str, "the text to write or append"] = "",
        to: Annotated[str, "the target of move and copy"] = "",
        pattern: Annotated[str, "the text to search for"] = "",
        cursor: Annotated[str | None, "of the last page of list or search"] = None,
    ) -> list[Text | Image | Audio]:
        """Read, write, list, search, move, copy, delete or describe files, by the name of the action.

        For programs: files are read whole. Those over max_file_size are neither read, written nor copied.
        """
        ctx.check_allowed(_TOOL_OF[action])
        files, most = self._files(ctx), self._options.max_file_size
        match action:
            case "read":
                room = self._app.engine.limits.frame_bytes - _FRAME_BYTES
                return [read_whole_file(files, path, most, room)]
            case "write" | "append":
                mode: Mode = "append" if action == "append" else "overwrite"
                done = write_text(files, path, content, mode, None, most, most)
            case "list":
                done = self.fs_list(ctx, path, cursor=cursor)
            case "search":
                done = self.fs_search(ctx, pattern, path, cursor=cursor)
            case "move" | "copy":
                if not to:
                    raise ToolError(
                        f"{action} needs `to`: the {'new path' if action == 'move' else 'path of the copy'}"
                    )
                if action == "copy":
                    _check_sizes(files, path, most)
                done = self.fs_move(ctx, path, to, copy=action == "copy")
            case "delete":
                done = self.fs_delete(ctx, path)
            case "info":
                done = self.fs_info(ctx, path)
            case "mkdir":
                made = files.make_folder(path)
                done = f"made {show_path(path)}" if made else f"{show_path(path)} was there already"
        return [Text(done)]

    # -- parts of the above

    def _files(self, ctx: Context) -> ConfinedFiles:
        """The files that a call may touch."""
        return self.files_of(ctx.folders().roots)

    def _known_files(self, ctx: Context) -> ConfinedFiles:
        """The same on the serving thread. Raises WouldBlock if they have not been used before."""
        files = self._cached.get(ctx.folders().roots)
        if files is None:
            raise WouldBlock
        return files

    def files_of(self, roots: Roots) -> ConfinedFiles:
        """The files in some roots, by the options."""
        files = self._cached.get(roots)
        if files is None:
            if len(self._cached) >= MOST_CACHED:
                self._cached.clear()
            # What is there decides what tools may do: the files that the user has trusted, the server's token.
            state = user_directory("state")
            read_only = [*self._options.read_only, *([state] if state else [])]
            files = ConfinedFiles(roots, read_only=read_only, deny=self._options.deny)
            self._cached[roots] = files
        return files

    def _trash(self) -> Trash:
        """The user's trash. Raises ToolError without one."""
        from longshore.toolsets.filesystem.trash import Trash

        folder = user_directory("data")
        if folder is None:
            raise ToolError("there is no trash, because the user has no home; ask the user to set XDG_DATA_HOME")
        options = self._options
        return Trash(os.path.join(folder, "trash"), most_bytes=options.trash_size, most_days=options.trash_days)

    def _list_trash(self, files: ConfinedFiles) -> str:
        entries = self._trash().list(files)
        lines = [f"{entry.id} {show_time(entry.deleted)} {entry.path} {show_size(entry.size)}" for entry in entries]
        return fit_lines(map(show_name, lines), rest=lambda end: f"{len(lines) - end:,} older").text or "nothing"

    def _describe_folder(self, files: ConfinedFiles, path: str) -> str:
        entries, more = files.list_folder(path)
        modified = show_time(files.status(path).status.st_mtime)
        return f"folder, entries: {len(entries):,}{' or more' if more else ''}, modified {modified}"

    def _describe_folders(self, files: ConfinedFiles) -> str:
        """The folders of a call, with their free space, and the limits."""
        options = self._options
        lines = [f"{root}: {show_size(free_bytes(root))} free" for root in files.roots.folders]
        lines += [f"read-only: {folder}" for folder in options.read_only]
        lines.append(f"files beyond {show_size(options.max_file_size)} are read in parts only (max_file_size)")
        if options.deny:
            lines.append(f"denied names: {' '.join(options.deny)}")
        return fit_lines(lines).text


def _last_change(files: ConfinedFiles, uri: str) -> float:
    """When a file or folder changed; if it does not exist, when its folder did. Raises FileError."""
    try:
        return files.status(uri).status.st_ctime
    except FileError as problem:
        if problem.kind != "missing":
            raise
    return files.status(os.path.dirname(files.real_path(uri))).status.st_ctime


def _check_sizes(files: ConfinedFiles, path: str, most: int) -> None:
    """Raise FileError if a file, or one in a folder, has more than `most` bytes."""
    with explain(path):
        entry = files.status(path, follow=False)
        if entry.kind == "folder":
            with files.open_folder(path) as folder:
                entry = max(walk_tree(folder.descriptor), key=_file_size, default=entry)
        if _file_size(entry) > most:
            raise too_large(_file_size(entry), most, "copy smaller files").at(entry.path)


def _file_size(entry: Entry) -> int:
    return entry.status.st_size if entry.kind == "file" else 0


def _checker(ctx: Context) -> Callable[[], None]:
    """A function for long work: it ends a cancelled call, and reports that one is still at work."""
    began = monotonic()
    reported = 0.0

    def check() -> None:
        nonlocal reported
        ctx.raise_if_cancelled()
        elapsed = monotonic() - began
        if elapsed - reported >= PROGRESS_SECONDS:
            reported = elapsed
            ctx.progress(round(elapsed), message=f"{elapsed:.0f} s")

    return check
