"""A configuration file of each client, as people have them: with comments, other servers and odd formatting."""

from __future__ import annotations

from pathlib import Path

from longshore.client.config_places import UserFolders, user_folders
from longshore.install.clients import CLIENTS, ClientRecord

FOLDER = Path(__file__).parent / "samples"
NAMES = [client.name for client in CLIENTS]


def sample(client: ClientRecord) -> bytes:
    ending = {"jsonc": "json", "toml": "toml", "yaml": "yaml"}[client.form]
    return (FOLDER / f"{client.name}.{ending}").read_bytes()


def folders(home: Path) -> UserFolders:
    found = user_folders({"HOME": str(home), "PATH": "/usr/bin"}, "linux")
    assert found is not None
    return found
