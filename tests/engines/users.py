"""A realm whose principals are the users of Trino."""

from collections.abc import Mapping
from dataclasses import dataclass

import jwt

from arco_catalog.iceberg.json import JsonObject
from tests.engines.lake import Lake
from tests.engines.principals import Principals
from tests.engines.realm import Realm
from tests.engines.trino_server import trino_properties

NAME = "users"
ENGINE = "trino_engine"
WRITER, READER, STRANGER = "writer", "an_analyst", "a_stranger"
"""Users of Trino. The last one is no principal."""


@dataclass(frozen=True)
class Users:
    """The principals of a realm by their names, with their credentials. `ENGINE` acts for the others."""

    principals: Principals
    credentials: Mapping[str, str]

    @property
    def lake(self) -> Lake:
        """The catalog as the engine's own principal logs in to it."""
        owner = self.principals.realm.owner
        return Lake(NAME, owner.server, owner.bystander, {}, self.principals.login(self.credentials[ENGINE]))

    @property
    def trino_properties(self) -> dict[str, str]:
        """The settings of a catalog, as docs/engines/trino.md has them for sessions of users."""
        return {**trino_properties(self.lake), "iceberg.rest-catalog.session": "USER"}

    @property
    def engine_id(self) -> str:
        """The id of the engine's own principal."""
        return str(jwt.decode(self.token(ENGINE), options={"verify_signature": False})["sub"])

    def token(self, user: str) -> str:
        """A new token of a principal."""
        return self.principals.headers(self.credentials[user])["Authorization"].removeprefix("Bearer ")


def make_users(realm: Realm) -> Users:
    """Makes the principals."""
    principals = Principals(realm)

    def on_catalog(privilege: str) -> JsonObject:
        return {"type": "catalog", "privilege": privilege}

    reading = [on_catalog(privilege) for privilege in ("TABLE_READ_DATA", "TABLE_LIST", "NAMESPACE_LIST")]
    made = {
        ENGINE: principals.make(ENGINE, on_catalog("CATALOG_READ_PROPERTIES"), **{"arco.act-for-others": "true"}),
        WRITER: principals.make(WRITER, on_catalog("CATALOG_MANAGE_CONTENT")),
        READER: principals.make(READER, *reading, on_catalog("NAMESPACE_READ_PROPERTIES")),
    }
    return Users(principals, made)
