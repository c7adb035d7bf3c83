"""What a catalog states of itself in `/v1/config`."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from arco_catalog.prove.network import NEVER_SENT, Network
from arco_catalog.prove.program import Features
from arco_catalog.prove.requests import Request

ALWAYS_SUPPORTED = ("POST /v1/{prefix}/tables/rename", "POST /v1/{prefix}/transactions/commit")
"""Of the endpoints that the specification lists for a catalog that advertises none, those that not all catalogs
have."""
EXISTS = "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}"


class NoCatalog(Exception):
    """No Iceberg REST catalog answers at the URI, or not with a configuration: it refuses the login, or fails."""


@dataclass(frozen=True, slots=True)
class Catalog:
    """The catalog's prefix with the leading slash, empty if it has none, and `features`: the operations and faults that
    programs for it may have."""

    prefix: str
    features: Features


async def read_catalog(network: Network, warehouse: str | None, *, kills: bool) -> Catalog:
    """Reads the configuration of a catalog from the first server, by one request. Without a list of endpoints there,
    or with an empty one, renames and transactions count as supported, and HEAD of a table does not. `kills` is whether
    the servers can be killed. Raises `NoCatalog` if this server does not answer, or not with status 200 and an object.
    """
    query = f"?{urlencode({'warehouse': warehouse})}" if warehouse else ""
    answer = (await network.send(Request("GET", f"/v1/config{query}"), 0)).answer
    if answer is None or answer is NEVER_SENT:
        raise NoCatalog(
            "No server answers at the first URL (no connection, a broken one, or no answer in time): check the URL, "
            "and whether the server runs"
        )
    if answer.code != 200 or not isinstance(answer.body, dict):
        stated = f"status {answer.code} {answer.error}".rstrip()
        raise NoCatalog(
            f"The server answers /v1/config with {stated}, expected status 200 and a JSON object: check the token "
            "and the warehouse, and the URL if it may be of no Iceberg REST catalog"
        )
    settings = {**_texts(answer.body.get("defaults")), **_texts(answer.body.get("overrides"))}
    endpoints = answer.body.get("endpoints")
    offered: Sequence[object] = endpoints if isinstance(endpoints, list) and endpoints else ALWAYS_SUPPORTED
    rename, transaction = (endpoint in offered for endpoint in ALWAYS_SUPPORTED)
    keys = isinstance(answer.body.get("idempotency-key-lifetime"), str)
    prefix = settings.get("prefix", "")
    features = Features(rename, transaction, EXISTS in offered, keys, kills)
    return Catalog(f"/{quote(prefix, safe='/')}" if prefix else "", features)


def _texts(value: object) -> dict[str, str]:
    """Returns the entries of an object as texts, without null ones; empty for any other value."""
    items = value.items() if isinstance(value, dict) else ()
    return {str(name): str(text) for name, text in items if text is not None}
