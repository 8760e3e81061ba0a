"""`longshore trust`: let a configuration file count though tools could write it."""

from __future__ import annotations

import os

import click

from longshore import config as configuration
from longshore.cli.config import rows
from longshore.cli.screen import Screen, aligned
from longshore.config import Config
from longshore.config.foreign import ForeignSettings
from longshore.config.reference import list_values
from longshore.config.sources import Sources
from longshore.config.toml_file import read_text
from longshore.config.trust import change_record, read_record
from longshore.errors import ConfigError


@click.command()
@click.argument("file", required=False)
@click.option("--list", "listed", is_flag=True, help="List the files that you have trusted.")
@click.option("--remove", is_flag=True, help="Trust the file no longer.")
def trust(file: str | None, listed: bool, remove: bool) -> None:
    """Trust a configuration file that tools could write.

    Tools can write the files in the roots of a server. So a configuration file there counts only if you have trusted
    it by this command, and with the content that it had then. The command prints what the file sets. Servers that run
    apply it.

    FILE is a longshore.toml, or the file of another program that a profile reads. The default is the file that
    `longshore serve` finds in this folder.
    """
    screen, record = Screen(), configuration.trust_file()
    if record is None:
        raise ConfigError("no home folder is known, so there is no place to record trust; set XDG_STATE_HOME")
    if listed:
        for path, text in read_record(record).items():
            screen.text(f"{path}: {_state(path, text)}")
        return
    path = os.path.abspath(os.path.expanduser(file)) if file else configuration.project_file()
    if remove:
        known = path in read_record(record)
        change_record(record, path, None)
        screen.text(f"{path} is trusted no longer" if known else f"{path} was not trusted")
        return
    text = read_text(path, path)
    values = list_values(_read(path, text), {})
    set_here = [each for each in values if each.origin.kind in ("project", "user")]
    screen.text(f"{path} sets\n{aligned(rows(set_here, with_origin=False))}" if set_here else f"{path} sets nothing")
    change_record(record, path, text)
    screen.text("trusted")


def _read(path: str, text: str) -> Config:
    """What a file alone sets. Raises ConfigError."""
    sources = Sources(os.path.dirname(path), None, {path: text})
    if path.endswith(".json"):
        from longshore.builtin import BROWSEROS_CONFIG

        foreign = ForeignSettings(BROWSEROS_CONFIG, path, "", {path: text})
        sources.add_foreign(foreign.of_file())
    else:
        sources.add_file("project", path)
    return sources.build(())


def _state(path: str, text: str) -> str:
    if not os.path.exists(path):
        return "deleted since"
    try:
        return "unchanged" if read_text(path, path) == text else "changed since"
    except ConfigError:
        return "changed since"
