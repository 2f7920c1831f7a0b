"""Engines that are ready, and captures that are decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import servers

from tailtrim.analysis.engines import EngineOptions, connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tailtrim.analysis.engines import Engine


#: Fixtures that start a server.
SERVERS = {"postgres_dsn", "sail_url", "spark_cluster"}


def pytest_itemcollected(item: pytest.Item) -> None:
    """Put what needs a server into the suite of engines."""
    if isinstance(item, pytest.Function) and SERVERS.intersection(item.fixturenames):
        item.add_marker(pytest.mark.engines)


@pytest.fixture(scope="session")
def postgres_dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.postgres(tmp_path_factory.mktemp("postgres")) as dsn:
        yield dsn


@pytest.fixture(scope="session")
def sail_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with servers.sail(tmp_path_factory.mktemp("sail")) as url:
        yield url


@pytest.fixture(scope="session")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[servers.Cluster]:
    with servers.spark(tmp_path_factory.mktemp("spark")) as cluster:
        yield cluster


@pytest.fixture(
    scope="module",
    params=[
        "duckdb",
        pytest.param("postgres", marks=pytest.mark.engines),
        pytest.param("sail", marks=pytest.mark.engines),
    ],
)
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    """Yield each engine that answers quickly; the Spark cluster has tests of its own."""
    pytest.importorskip("ibis", reason="engines need ibis-framework")
    servers_of = {"duckdb": None, "postgres": "postgres_dsn", "sail": "sail_url"}
    server = servers_of[request.param]
    options = EngineOptions(server=request.getfixturevalue(server) if server else None)
    name = "spark" if request.param == "sail" else request.param
    with connect(name, options) as at:
        yield at
