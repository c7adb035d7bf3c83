"""Checks the URLs of stores and of allowed locations on the command line, and makes them canonical."""

from collections.abc import Mapping, Sequence

from arco_catalog.cli.errors import CliError
from arco_catalog.iceberg.errors import CatalogError
from arco_catalog.state.locations import Location
from storage_backends.open import canonical_url

WITHOUT_BUCKETS = ("file", "memory")
"""Schemes of locations without a bucket."""
_SETTINGS = "--allowed-location or ARCO_ALLOWED_LOCATIONS,"


def canonical_urls(store: str, allowed: Sequence[str], environment: Mapping[str, str]) -> tuple[str, list[str]]:
    """Returns the URL of a store, and the URLs of allowed locations, in the canonical form that engines use in
    locations of tables. Raises `ValueError` for a store that is no URL, and `CliError` for an allowed location that is
    none or names no bucket."""
    return canonical_url(store, environment), [_allowed_url(each, environment) for each in allowed]


def _allowed_url(url: str, environment: Mapping[str, str]) -> str:
    """Returns the canonical form of an allowed location. Raises `CliError` for an invalid one."""
    try:
        canonical, location = canonical_url(url, environment), Location.parse(url)
    except (CatalogError, ValueError) as error:
        raise CliError(f"{_SETTINGS} {url}: {error}") from error
    bucket = location.uri.partition("://")[2].partition("/")[0]
    if not bucket and location.scheme not in WITHOUT_BUCKETS:
        raise CliError(f"{_SETTINGS} {url}: it names no bucket: write {location.scheme}://bucket/path")
    return canonical
