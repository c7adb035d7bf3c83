"""Trino with `iceberg.rest-catalog.session=USER`: each of its users is the principal of that name, or of a token."""

import json
from collections.abc import Callable

import pytest
from trino.dbapi import Connection
from trino.exceptions import TrinoQueryError

from tests.engines.shell import Sql
from tests.engines.trino_releases import ARCHIVED, CHOSEN
from tests.engines.trino_server import run
from tests.engines.users import NAME, READER, STRANGER, WRITER, Users


def test_each_user_is_the_principal_of_its_name(trino_as: Callable[[str], Sql], users: Users) -> None:
    writer, reader = trino_as(WRITER), trino_as(READER)
    writer("CREATE SCHEMA users.by_name")
    writer("CREATE TABLE users.by_name.t (x bigint)")
    writer("INSERT INTO users.by_name.t VALUES 1, 2")

    assert reader("SELECT * FROM users.by_name.t ORDER BY x") == [(1,), (2,)]
    with pytest.raises(TrinoQueryError, match=f"Principal {READER} lacks the privilege TABLE_ADD_SNAPSHOT"):
        reader("INSERT INTO users.by_name.t VALUES 3")
    assert users.lake.rows("by_name.t") == [(1,), (2,)]
    receipts = json.loads(users.lake.server.receipts("by_name.t"))
    assert {(receipt["principal"], receipt["session"]) for receipt in receipts} == {(WRITER, users.engine_id)}


@pytest.mark.parametrize("user", [STRANGER, "root"])
def test_a_user_without_a_principal_or_who_manages_access_gets_nothing(
    user: str, trino_as: Callable[[str], Sql], users: Users
) -> None:
    with pytest.raises(TrinoQueryError, match="Failed to list namespaces"):  # it keeps the reason for its log
        trino_as(user)("SHOW SCHEMAS FROM users")


def with_token(connection: Connection, user: str, source: str, token: str | None) -> Sql:
    """Trino's SQL, of a user who brings a token."""
    brought = [] if token is None else [("token", token)]
    own = Connection(
        host=connection.host, port=connection.port, user=user, source=source, catalog=NAME, extra_credential=brought
    )
    return lambda statement: run(own, statement)


def test_a_user_who_brings_a_token_is_its_principal(
    trino_as: Callable[[str], Sql], trino_connection: Connection, users: Users
) -> None:
    trino_as(WRITER)("CREATE SCHEMA users.by_token")
    as_writer = with_token(trino_connection, STRANGER, "first", users.token(WRITER))
    as_writer("CREATE TABLE users.by_token.t (x bigint)")

    as_reader = with_token(trino_connection, STRANGER, "second", users.token(READER))
    assert as_reader("SELECT * FROM users.by_token.t") == []
    with pytest.raises(TrinoQueryError, match="Failed to drop table"):
        as_reader("DROP TABLE users.by_token.t")

    with_another = with_token(trino_connection, STRANGER, "first", users.token(READER))
    if CHOSEN is ARCHIVED:
        with_another("DROP TABLE users.by_token.t")  # the session of user and source keeps the first token
    else:
        with pytest.raises(TrinoQueryError, match="Failed to drop table"):
            with_another("DROP TABLE users.by_token.t")
        with pytest.raises(TrinoQueryError, match="Failed to list namespaces"):
            with_token(trino_connection, STRANGER, "first", None)("SHOW SCHEMAS FROM users")
        as_writer("DROP TABLE users.by_token.t")
    assert users.lake.tables("by_token") == []
