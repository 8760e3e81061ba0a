"""The site of these tests: one for each module, which leaves it as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from console.site import Site, opened


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with opened(tmp_path_factory.mktemp("console")) as found:
        yield found


@pytest.fixture
def site(shared_site: Site) -> Site:
    """The site, once the server has noticed that the pages and calls of the test before are gone."""
    live, engine = shared_site.console._live, shared_site.app.engine
    shared_site.server.until(lambda: not (live.pages or engine.executor.live or engine.tap.watchers), "a quiet site")
    return shared_site
