"""From the path as it was sent to a route and its decoded parameters.

Segments are split before they are decoded, so that a name may hold `%2F`, and decoded once, so that it may hold `%25`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from arco_catalog.http.route import PREFIX, Route
from arco_catalog.http.spelling import USUAL, Spelling

REMEMBERED_PATHS = 1_024
REMEMBERED_PATH_BYTES = 512
"""Longer paths are not worth the memory that a client could make them take."""


@dataclass(frozen=True, slots=True)
class Match:
    """A path that exists: its routes by method, and what stands in the places that the template names."""

    routes: Mapping[str, Route]
    params: Mapping[str, str]

    def route(self, method: str) -> Route | None:
        """The route of a method, None if there is none. GET's answers HEAD, too (RFC 9110, section 9.3.2)."""
        found = self.routes.get(method)
        return self.routes.get("GET") if found is None and method == "HEAD" else found

    @property
    def methods(self) -> Sequence[str]:
        """The methods that are supported here."""
        return sorted({*self.routes, *(["HEAD"] if "GET" in self.routes else [])})


@dataclass(frozen=True, slots=True)
class _Path:
    segments: tuple[str, ...]
    routes: Mapping[str, Route]

    @property
    def ends_in_literal(self) -> bool:
        """Whether it is a collection's, or that of an action, rather than that of something with a name."""
        return not self.segments[-1].startswith("{")

    def match(self, segments: Sequence[str]) -> Match | None:
        params: dict[str, str] = {}
        for expected, found in zip(self.segments, segments, strict=True):
            if expected.startswith("{"):
                params[expected[1:-1]] = found
            elif expected != found:
                return None
        return Match(self.routes, params)


class Router:
    """Finds routes. Where a literal segment and a parameter fit alike, the literal wins.

    Where a template has a prefix, the path without it is found too, after all others, with no `prefix` among its
    parameters: the specification calls it optional, and ClickHouse drops tables without it.

    One slash behind a literal is passed over: Polaris's client for Spark makes generic tables at `generic-tables/`.
    Behind a name it is not, since an empty name is most likely a mistake in how a client joins its paths.
    """

    def __init__(self, routes: Iterable[Route]) -> None:
        by_template: dict[str, dict[str, Route]] = {}
        for route in routes:
            if by_template.setdefault(route.template, {}).setdefault(route.method, route) is not route:
                raise ValueError(f"two routes for {route.endpoint}")
        paths = [_Path(tuple(template.split("/")[1:]), methods) for template, methods in by_template.items()]
        paths.sort(key=lambda path: [segment.startswith("{") for segment in path.segments])
        unprefixed = [_Path(_without_prefix(path.segments), path.routes) for path in paths if PREFIX in path.segments]
        self._by_length: dict[int, list[_Path]] = {}
        for path in paths + unprefixed:
            self._by_length.setdefault(len(path.segments), []).append(path)
        self._remembered = lru_cache(REMEMBERED_PATHS)(self._match)

    def match(self, raw_path: bytes, spelling: Spelling = USUAL) -> Match | None:
        """The routes at a path, None if there are none. Raises `BadRequest` for a path that does not decode."""
        return (self._remembered if len(raw_path) <= REMEMBERED_PATH_BYTES else self._match)(raw_path, spelling)

    def _match(self, raw_path: bytes, spelling: Spelling) -> Match | None:
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
    return next((match for path in paths if (match := path.match(segments)) is not None), None)


def _without_prefix(segments: Sequence[str]) -> tuple[str, ...]:
    return tuple(segment for segment in segments if segment != PREFIX)
