"""Files of a person's: read within a bound, and written whole or not at all."""

from __future__ import annotations

import os


def read_bounded(path: str, most: int) -> bytes:
    """What a file holds that a person named. One byte more than `most` says that there is more.

    It is waited for: what was named may be a pipe that another program fills. What nobody named is read by
    `longshore.config.reading`. Raises OSError, also for a folder.
    """
    with open(path, "rb") as file:
        return file.read(most + 1)


def write_whole(path: str | os.PathLike[str], data: bytes, mode: int | None = None) -> None:
    """Put bytes into a file in one step. Whoever reads meanwhile, or writes too, finds one content or another.

    Without `mode` it keeps what it has, and a new one gets what any new file gets. Raises OSError.
    """
    folder, name = os.path.split(os.path.abspath(path))
    os.makedirs(folder, mode=0o777 if mode is None else 0o700, exist_ok=True)
    draft = os.path.join(folder, f".{name}.{os.urandom(6).hex()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            os.fchmod(descriptor, _mode(path) if mode is None else mode)
            file.write(data)
        os.replace(draft, path)
    except BaseException:
        os.unlink(draft)
        raise


def forget_oldest(folder: str, most: int) -> None:
    """Leave the newest files of a folder that is ours alone. Raises OSError, also where another process was faster."""
    names = os.listdir(folder)
    if len(names) > most:
        paths = sorted((os.path.join(folder, name) for name in names), key=os.path.getmtime)
        for path in paths[: len(paths) - most]:
            os.unlink(path)


def _mode(path: str | os.PathLike[str]) -> int:
    """What the old file has, else what any new file gets."""
    try:
        return os.stat(path).st_mode & 0o777
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        return 0o666 & ~umask
