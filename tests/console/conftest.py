"""The site of these tests: one for each module, which changes nothing of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.site import Site, opened


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("console")) as found:
        yield found
