"""Smaller tables and filters that show a fault."""

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from arco_catalog.iceberg.json import JsonObject, JsonValue

Fails = Callable[[JsonObject, JsonValue], Awaitable[bool]]
"""Whether a table, by its description, and a filter still show the fault."""


async def shrunk(description: JsonObject, drawn: JsonValue, fails: Fails) -> tuple[JsonObject, JsonValue]:
    """The smallest table and filter that show the fault and can be reached by leaving out one part after another."""
    while True:
        for smaller in [
            *((description, each) for each in _filters(drawn)),
            *((each, drawn) for each in _tables(description)),
        ]:
            if await fails(*smaller):
                description, drawn = smaller
                break
        else:
            return description, drawn


def _filters(drawn: JsonValue) -> Iterator[JsonValue]:
    if not isinstance(drawn, dict):
        return
    yield True
    for name in ("left", "right", "child"):
        if name in drawn:
            yield drawn[name]
            yield from ({**drawn, name: smaller} for smaller in _filters(drawn[name]))
    values = drawn.get("values")
    if isinstance(values, list) and len(values) > 1:
        yield from ({**drawn, "values": each} for each in _without_one(values))


def _tables(description: JsonObject) -> Iterator[JsonObject]:
    steps: list[Any] = description["steps"]  # type: ignore[assignment]  # as it was drawn
    yield from ({**description, "steps": each} for each in _without_one(steps))
    for place, step in enumerate(steps):
        for smaller in _steps(step):
            yield {**description, "steps": [*steps[:place], smaller, *steps[place + 1 :]]}


def _steps(step: dict[str, Any]) -> Iterator[JsonObject]:
    if "groups" in step:
        yield from ({**step, "groups": groups} for groups in _without_one(step["groups"]))
        for place, group in enumerate(step["groups"]):
            for rows in _without_one(group["rows"]):
                if rows:
                    groups = [*step["groups"][:place], {**group, "rows": rows}, *step["groups"][place + 1 :]]
                    yield {**step, "groups": groups}


def _without_one(values: list[Any]) -> Iterator[list[Any]]:
    return (values[:place] + values[place + 1 :] for place in range(len(values)))
