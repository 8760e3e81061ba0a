"""`longshore context`: look at the project's memory, draw it, export and import it, and check it."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Literal, get_args

import click
from msgspec.structs import replace

from longshore import config as configuration
from longshore.cli.context_copy import context_copy
from longshore.cli.options import FAILED
from longshore.cli.screen import Screen, many
from longshore.errors import ConfigError, StoreError, ToolError
from longshore.toolsets.context.options import ContextOptions
from longshore.toolsets.context.place import Place, find_place, is_address, keep_out_of_git
from longshore.toolsets.context.store import Store, StoreLimits, open_store

Format = Literal["native", "markdown", "server-memory"]
MOST_DRAWN: Final = 200
MOST_NOTES: Final = 100
"""Of an import."""
TEXT_CHARACTERS: Final = 300
"""Of a node's text, in the picture's titles."""


@click.group()
def context() -> None:
    """Look at, export, import and check the project's memory.

    It is that of `longshore serve` in this folder, unless --database names another.
    """


def _with_place(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which memory is meant."""
    for option in (
        click.option(
            "--config", "path", metavar="PATH", help="Read this file in place of the project's longshore.toml."
        ),
        click.option("--database", metavar="FILE", help="A SQLite file or postgresql:// address."),
    ):
        command = option(command)
    return command


context.add_command(context_copy)


@context.command()
@_with_place
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def stats(database: str | None, path: str | None, as_json: bool) -> None:
    """Show where it is, how large it is, and what it holds."""
    from longshore.registry.token_budget import DEFAULT_TOKENS
    from longshore.toolsets.context.answers import show_status

    with _opened(database, path) as (store, place, options):
        status = store.status()
        if as_json:
            Screen().json(status)
        else:
            events = store.events(newest_first=True, limit=10)
            Screen().text(show_status(status, place, events, options.allow_purge, DEFAULT_TOKENS))


@context.command()
@click.argument("words", nargs=-1, required=True)
@_with_place
@click.option("--kind", "kinds", multiple=True, help="Only nodes of this kind. Repeatable.")
@click.option("--path", "within", metavar="PATH", help="Only nodes of this file or folder of the project.")
@click.option("--as-of", metavar="TIME", help="What was true then: a date, or a time such as 2026-11-18T09:30:00Z.")
@click.option("--limit", type=click.IntRange(1, 100), default=10, help="Most hits.  [default: 10]")
@click.option("--max-tokens", type=click.IntRange(100, 25_000), default=2_000, help="Of the answer.  [default: 2000]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def query(
    words: tuple[str, ...],
    database: str | None,
    path: str | None,
    kinds: tuple[str, ...],
    within: str | None,
    as_of: str | None,
    limit: int,
    max_tokens: int,
    as_json: bool,
) -> None:
    """Search it, with the answer that an agent gets."""
    from longshore.toolsets.context.json_hits import pack_json
    from longshore.toolsets.context.packing import pack
    from longshore.toolsets.context.parameters import to_moment
    from longshore.toolsets.context.records import Query
    from longshore.toolsets.context.search import with_filters

    with _opened(database, path) as (store, place, _):
        moment = to_moment(as_of)
        wanted = with_filters(Query(text=" ".join(words), kinds=kinds, path=within or "", moment=moment, limit=limit))
        result = store.query(replace(wanted, path=place.stored_path(wanted.path, os.getcwd())))
    Screen().text(pack_json(result, max_tokens) if as_json else pack(result, max_tokens).text)


@context.command()
@click.argument("start", nargs=-1)
@_with_place
@click.option(
    "--output", metavar="FILE", default="context.html", help="An .html or .svg file.  [default: context.html]"
)
@click.option("--depth", type=click.IntRange(0, 3), default=1, help="Links from the start.  [default: 1]")
@click.option("--limit", type=click.IntRange(1, MOST_DRAWN), default=60, help="Most nodes.  [default: 60]")
def graph(start: tuple[str, ...], database: str | None, path: str | None, output: str, depth: int, limit: int) -> None:
    """Draw a part of it, as a page that needs no network and no script.

    START is where the picture begins: ids such as n12, names, or the words of a query. The default is what has changed
    last.
    """
    from longshore.toolsets.context.neighbourhood import draw_around
    from longshore.toolsets.context.picture import draw_page
    from longshore.toolsets.context.records import Query

    with _opened(database, path) as (store, place, _):
        found = [node for each in start for node in store.resolve(each)]
        if start and not found:
            found = [hit.node for hit in store.query(Query(text=" ".join(start), limit=10)).hits]
        if not start:
            found = store.recent(max(1, limit // 3))
        found = [node for node in found if node.retracted_at is None][:limit]
        if not found:
            what = f"nothing is found by {' '.join(start)!r}" if start else "it is empty"
            raise StoreError(store.place, what, "add to it first, or begin with other words")
        title = " ".join(start) or os.path.basename(place.project) or "context"
        drawn = draw_around(store, found, depth, limit, title)
    _write(output, [(drawn.svg if output.lower().endswith(".svg") else draw_page(drawn.svg, title)).encode()])
    left = f"; --limit left out {drawn.left_out:,}" if drawn.left_out > 0 else ""
    Screen().note(f"drew {many(drawn.nodes, 'node')} in {output}{left}")


@context.command()
@_with_place
@click.option("--format", "form", type=click.Choice(list(get_args(Format))), default="native")
@click.option("--output", metavar="FILE", help="Write to a file.  [default: stdout]")
def export(database: str | None, path: str | None, form: Format, output: str | None) -> None:
    """Print all of it.

    native is JSON lines with all that there is, the past too. markdown is a page that people read and edit, and
    server-memory the file of the official memory server: both have only what is current.
    """
    from longshore.toolsets.context.markdown_format import export_markdown
    from longshore.toolsets.context.native_format import export_native
    from longshore.toolsets.context.server_memory import export_server_memory

    with _opened(database, path) as (store, _, _):
        lines: Iterable[bytes]
        match form:
            case "native":
                lines = export_native(store)
            case "markdown":
                lines = (line.encode("utf-8", "replace") for line in export_markdown(store))
            case "server-memory":
                lines = export_server_memory(store)
        ended = (line + b"\n" for line in lines)
        if output is not None:
            _write(output, ended)
            return
        screen = Screen()
        for line in ended:
            screen.text(line.decode()) if screen.out_is_terminal else screen.data(line)


@context.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@_with_place
@click.option("--format", "form", type=click.Choice(list(get_args(Format))), help="[default: what it looks like]")
def import_(file: str, database: str | None, path: str | None, form: Format | None) -> int:
    """Add what a file holds, of an export or of the official memory server.

    Nothing is replaced, and importing the same file again changes nothing. Lines of server-memory or Markdown that
    can't be read are reported and left out; the exit code is then 1. A native export is imported whole or not at all.
    """
    from longshore.toolsets.context.markdown_format import TITLE, import_markdown
    from longshore.toolsets.context.native_format import import_native
    from longshore.toolsets.context.records import NewSource
    from longshore.toolsets.context.server_memory import import_server_memory

    source = NewSource(type="import", uri=os.path.basename(file))
    with _opened(database, path, must_exist=False) as (store, _, _), open(file, "rb") as lines:
        if form is None:
            first = lines.readline().lstrip()
            is_page = first.startswith(TITLE.encode())
            form = "markdown" if is_page else "native" if first.startswith(b'{"context":') else "server-memory"
            lines.seek(0)
        imports = {"native": import_native, "markdown": import_markdown, "server-memory": import_server_memory}
        done = imports[form](store, lines, source)
    screen = Screen()
    for note in list(done.notes)[:MOST_NOTES]:
        screen.note(note)
    for problem in done.problems:
        screen.fail(problem)
    added = [many(count, noun) for count, noun in _counted(done.nodes, done.observations, done.edges)]
    screen.text(f"added {', '.join(added)}; {done.known:,} were known already")
    return FAILED if done.problems else 0


def _counted(*counts: int) -> Iterable[tuple[int, str]]:
    return zip(counts, ("node", "observation", "edge"), strict=True)


@context.command()
@_with_place
@click.option("--repair", is_flag=True, help="Make the index again, and remove orphans.")
def doctor(database: str | None, path: str | None, repair: bool) -> int:
    """Check the file, its index and its references.

    The exit code is 0 if all is well or was repaired, else 1. For a damaged file it prints what to do.
    """
    from longshore.toolsets.context.orphans import find_orphans, remove_orphans

    screen = Screen()
    with _opened(database, path) as (store, place, _):
        damage = store.database.check()
        if damage:
            for line in damage[:20]:
                screen.fail(line)
            screen.fail(
                f"fix: keep a copy of {place.address}, then restore a backup, or what `sqlite3 FILE .recover` reads"
            )
            return FAILED
        problems = [*store.check(), *(f"{count:,} {name}" for name, count in find_orphans(store).items())]
        if problems and repair:
            remove_orphans(store)
            texts = store.rebuild_index()
            left = [*store.check(), *find_orphans(store)]
            screen.text(f"{store.place}: repaired: {'; '.join(problems)} (the index has {texts:,} texts)")
            for line in left:
                screen.fail(f"not repaired: {line}")
            return FAILED if left else 0
        if problems:
            for line in problems:
                screen.fail(line)
            screen.fail("fix: longshore context doctor --repair")
            return FAILED
        status = store.status()
        screen.text(
            f"{store.place}: ok: {status.nodes:,} nodes, {status.observations:,} observations, schema {status.schema}"
        )
        return 0


# -- the parts of the above


@contextmanager
def _opened(
    database: str | None, path: str | None, *, must_exist: bool = True
) -> Generator[tuple[Store, Place, ContextOptions]]:
    """The memory that the options mean, with what it was opened by. A ToolError of it is a StoreError here."""
    from longshore.server.call_files import read_roots

    app = import_module("longshore.__main__").find(None, None)  # it is outside the layers
    config = app.load_config(path)
    options = configuration.toolset_options(config, "context", ContextOptions)
    assert isinstance(options, ContextOptions)
    place = find_place(database or options.database, read_roots(config).folders)
    if not is_address(place.address):
        if must_exist and not os.path.exists(place.address):
            raise StoreError(place.address, "there is no memory yet", "an agent's add_context makes it, or `import`")
        if not (database or options.database):
            keep_out_of_git(place.address)
    store = open_store(place.address, StoreLimits(most_bytes=options.max_bytes))
    try:
        yield store, place, options
    except ToolError as problem:
        raise ConfigError(str(problem)) from None
    finally:
        store.close()


def _write(output: str, parts: Iterable[bytes]) -> None:
    """Write a file that only its user reads, in one step: a failure leaves the old one. Raises StoreError."""
    draft = f"{output}.{os.urandom(4).hex()}"
    try:
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as file:
            file.writelines(parts)
        os.replace(draft, output)
    except OSError as problem:
        raise StoreError(output, f"it can't be written ({problem.strerror})", "name another file") from None
    finally:
        if os.path.exists(draft):
            os.unlink(draft)
