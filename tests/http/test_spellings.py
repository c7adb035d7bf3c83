"""Every name, as every client spells it, at a server that gets paths as they were sent."""

import asyncio
from collections.abc import Iterator, Mapping

import pytest

from tests.http.naming import Naming, Send
from tests.http.spellings import CLICKHOUSE, ICEBERG_GO, ICEBERG_RUST, JAVA, NAMES, NEVER, SPELLERS, Speller, lost
from tests.support.http_service import HttpService
from tools.support.request_bodies import schema

every_client = pytest.mark.parametrize("speller", SPELLERS, ids=str)


@pytest.fixture
def send() -> Iterator[Send]:
    """Sends to a new server."""
    service = HttpService()
    with asyncio.Runner() as runner:

        def to_server(method: str, target: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
            answer = runner.run(service.client.send(method, target, body, headers))
            return answer.status, answer.body

        yield to_server


@every_client
@pytest.mark.parametrize("name", NAMES)
def test_a_name_works_in_every_client_s_spelling_or_is_refused_to_the_client_that_would_lose_it(
    send: Send, speller: Speller, name: str
) -> None:
    Naming(speller, send).works_unless_lost(name)


@every_client
@pytest.mark.parametrize(("name", "why"), NEVER)
def test_a_name_that_some_path_could_not_carry_is_refused_to_all(
    send: Send, speller: Speller, name: str, why: str
) -> None:
    Naming(speller, send).is_refused(name, why)


@pytest.mark.parametrize(
    ("speller", "name"),
    [(speller, name) for speller in SPELLERS for name in NAMES if not lost(speller, name)],
    ids=str,
)
def test_what_one_client_made_another_finds(send: Send, speller: Speller, name: str) -> None:
    maker, finder = Naming(JAVA, send), Naming(speller, send)
    maker.make("db")
    made = maker.done("POST", "/v1/wh/namespaces/db/tables", {"name": name, "schema": schema("x")})

    found = finder.done("GET", speller.target("namespaces", ("db",), "tables", name))

    assert found["metadata-location"] == made["metadata-location"]


@pytest.mark.parametrize("speller", [ICEBERG_GO, ICEBERG_RUST, CLICKHOUSE], ids=str)
def test_who_leaves_a_plus_bare_drops_the_table_with_the_plus_and_not_the_one_with_the_space(
    send: Send, speller: Speller
) -> None:
    maker, naming = Naming(JAVA, send), Naming(speller, send)
    maker.make("db")
    for name in ("a b", "a+b"):
        maker.done("POST", "/v1/wh/namespaces/db/tables", {"name": name, "schema": schema("x")})

    naming.done("DELETE", speller.target("namespaces", ("db",), "tables", "a+b"))

    left = naming.done("GET", "/v1/wh/namespaces/db/tables")["identifiers"]
    assert left == [{"namespace": ["db"], "name": "a b"}]


@pytest.mark.parametrize("name", ["a b", "a%2Fb", "a/b", "a?", "#"])
def test_clickhouse_makes_nothing_that_it_could_not_ask_for(send: Send, name: str) -> None:
    naming = Naming(CLICKHOUSE, send)

    why = naming.refused("/v1/wh/namespaces", {"namespace": [name]})

    assert "ClickHouse does not escape it in paths" in why


def test_the_java_client_to_come_which_writes_a_space_as_percent_20_is_understood_too(send: Send) -> None:
    naming = Naming(JAVA, send)
    naming.make("we ird+")
    for path in ("we+ird%2B", "we%20ird%2B"):
        assert naming.done("GET", f"/v1/wh/namespaces/{path}")["namespace"] == ["we ird+"]


@pytest.mark.parametrize("parent", ["a%20b", "a%2520b"])
def test_a_parent_is_found_whether_pyiceberg_encodes_it_once_or_twice(send: Send, parent: str) -> None:
    naming = Naming(SPELLERS[1], send)
    naming.make("a b")
    naming.make("a b", "inner")

    listed = naming.done("GET", f"/v1/wh/namespaces?parent={parent}")

    assert listed["namespaces"] == [["a b", "inner"]]


def test_of_others_a_parent_is_decoded_once(send: Send) -> None:
    naming = Naming(JAVA, send)
    for name in ("a b", "a%20b"):
        naming.make(name)
        naming.make(name, f"in {name}")

    assert naming.done("GET", "/v1/wh/namespaces?parent=a%2520b")["namespaces"] == [["a%20b", "in a%20b"]]
