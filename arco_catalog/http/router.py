"""Finds the route of a path and decodes its parameters.

The path is split into segments before these are decoded, so a name may contain `%2F`; each is decoded once, so a name
may contain `%25`.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from arco_catalog.http.route import PREFIX, Route
from arco_catalog.http.spelling import USUAL, Spelling
from storage_backends.lazy_dataclass import dataclass

REMEMBERED_PATHS = 1_024
REMEMBERED_PATH_BYTES = 512
"""Longer paths are not cached, because clients could fill the memory with them."""


@dataclass(frozen=True, slots=True)
class Match:
    """The result of finding a path: the routes of the path by their methods, and the decoded values of the template's
    parameters. The path may have no route for the request's method."""

    routes: Mapping[str, Route]
    params: Mapping[str, str]

    def route(self, method: str) -> Route | None:
        """Returns the route of a method, None if there is none. The route of GET also serves HEAD, if HEAD has none
        (RFC 9110, section 9.3.2)."""
        found = self.routes.get(method)
        return self.routes.get("GET") if found is None and method == "HEAD" else found

    @property
    def methods(self) -> Sequence[str]:
        """The supported methods of the path, sorted."""
        return sorted({*self.routes, *(["HEAD"] if "GET" in self.routes else [])})


@dataclass(frozen=True, slots=True)
class _Path:
    """A path template in segments, and the routes that have it, by method."""

    segments: tuple[str, ...]
    routes: Mapping[str, Route]

    @property
    def ends_in_literal(self) -> bool:
        """Whether the path is that of a collection or an action, not that of an object with a name."""
        return not self.segments[-1].startswith("{")

    def match(self, segments: Sequence[str]) -> Match | None:
        """Returns the routes of this path and the parameters if these segments, of which there are as many, fit the
        template, else None."""
        params: dict[str, str] = {}
        for expected, found in zip(self.segments, segments, strict=True):
            if expected.startswith("{"):
                params[expected[1:-1]] = found
            elif expected != found:
                return None
        return Match(self.routes, params)


class Router:
    """Finds the routes of a path. A literal segment of a template has precedence over a parameter.

    A path may lack the `prefix` of its template, and its match then has no such parameter: the specification calls the
    prefix optional, and ClickHouse drops tables without it. Templates with all their segments have precedence.

    One slash after a literal at the end of a path is ignored, because Polaris's client for Spark creates generic tables
    at `generic-tables/`. After a name it is not ignored: the empty segment is more likely a client's mistake.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        by_template: dict[str, dict[str, Route]] = {}
        for route in routes:
            if by_template.setdefault(route.template, {}).setdefault(route.method, route) is not route:
                raise ValueError(f"the table of routes has two routes for {route.endpoint}")
        paths = [_Path(tuple(template.split("/")[1:]), methods) for template, methods in by_template.items()]
        paths.sort(key=lambda path: [segment.startswith("{") for segment in path.segments])
        unprefixed = [_Path(_without_prefix(path.segments), path.routes) for path in paths if PREFIX in path.segments]
        self._by_length: dict[int, list[_Path]] = {}
        for path in paths + unprefixed:
            self._by_length.setdefault(len(path.segments), []).append(path)
        self._remembered = lru_cache(REMEMBERED_PATHS)(self._match)

    def match(self, raw_path: bytes, spelling: Spelling = USUAL) -> Match | None:
        """Returns the routes of a path and its parameters, decoded by the client's `spelling`; None if there are none.
        Raises `BadRequest` for a path that does not decode."""
        return (self._remembered if len(raw_path) <= REMEMBERED_PATH_BYTES else self._match)(raw_path, spelling)

    def _match(self, raw_path: bytes, spelling: Spelling) -> Match | None:
        """Returns the match for a path, None if no template fits; a slash at the end of a collection's path is ignored.
        Raises as `match` does."""
        if not raw_path.startswith(b"/"):
            return None
        segments = [spelling.decode(segment) for segment in raw_path[1:].split(b"/")]
        if segments[-1] == "":
            shorter = (path for path in self._by_length.get(len(segments) - 1, ()) if path.ends_in_literal)
            collection = _first(shorter, segments[:-1])
            if collection is not None:
                return collection
        return _first(self._by_length.get(len(segments), ()), segments)


def _first(paths: Iterable[_Path], segments: Sequence[str]) -> Match | None:
    """Returns the match of the first of these paths that fits the segments; None if none does."""
    return next((match for path in paths if (match := path.match(segments)) is not None), None)


def _without_prefix(segments: Sequence[str]) -> tuple[str, ...]:
    """Returns the segments of a template without the one for the catalog's prefix."""
    return tuple(segment for segment in segments if segment != PREFIX)
