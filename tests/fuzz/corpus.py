"""The corpus: hostile requests, each with why it is there and the statuses that it may get.

An entry's text may hold `$NS` (the path of namespaces), `$POLARIS` (the same in Polaris's own API), `$APPLICABLE` (of
what policies apply), `$WH` (of the warehouse), `$ROOT` (the location of everything), `$KEY` (an idempotency key made
now) and `$TOKEN` (a page token of the tables in `db`). Long text is a list of parts, `[text, times]`. A body is such
text (`body`), JSON to be written compactly (`json`), or bytes (`base64`). In `json`, `{"$times": [text, times]}` is
long text, and `{"$each": [first, end, item]}` in an array are items with `$i` counted.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from arco_catalog.iceberg.json import JsonValue, dumps
from tests.fuzz.requests import key_of
from tests.fuzz.services import Address, Request
from tests.fuzz.specification import operations

FOLDER = Path(__file__).with_name("corpus")

Text = str | list[list[Any]]


@dataclass(frozen=True)
class Entry:
    """One hostile request, and the statuses that it may get."""

    name: str
    why: str
    method: str
    target: Text
    statuses: tuple[int, ...]
    headers: tuple[tuple[str, Text], ...]
    body: Mapping[str, Any]

    def request(self, address: Address, token: str) -> Request:
        """The request as it is sent to a catalog."""
        target = filled(self.target, address, token)
        headers = tuple((name, filled(value, address, token)) for name, value in self.headers)
        return Request(label_of(self.method, target), self.method, target, headers, self._body(address, token))

    def _body(self, address: Address, token: str) -> bytes:
        match self.body:
            case {"json": document}:
                return filled(dumps(expanded(document)).decode(), address, token).encode()
            case {"base64": encoded}:
                return base64.b64decode(encoded)
            case {"body": text}:
                return filled(text, address, token).encode()
            case _:
                return b""


def entries() -> Iterator[Entry]:
    """The whole corpus, file by file."""
    for file in sorted(FOLDER.glob("*.json")):
        for fields in json.loads(file.read_text()):
            yield Entry(
                name=f"{file.stem}: {fields['name']}",
                why=fields["why"],
                method=fields["method"],
                target=fields["target"],
                statuses=tuple(fields["statuses"]),
                headers=tuple((name, value) for name, value in fields.get("headers", [])),
                body={kind: fields[kind] for kind in ("json", "base64", "body") if kind in fields},
            )


def filled(text: Text, address: Address, token: str = "") -> str:
    """Text with its parts joined and its placeholders filled in."""
    if not isinstance(text, str):
        return "".join(filled(part, address, token) * times for part, times in text)
    values = {
        "$NS": address.namespaces,
        "$POLARIS": address.polaris,
        "$APPLICABLE": f"/polaris/v1/{address.warehouse}/applicable-policies",
        "$WH": f"/v1/{address.warehouse}",
        "$ROOT": address.root,
        "$KEY": key_of(address, 2**44),
        "$TOKEN": token,
        "$NOW": str(address.now_ms),
    }
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def expanded(document: JsonValue) -> JsonValue:
    """JSON with long text and long arrays written out."""
    match document:
        case {"$times": [str(text), int(times)]}:
            return text * times
        case dict():
            return {name: expanded(inner) for name, inner in document.items()}
        case list():
            return [item for each in document for item in _items(each)]
        case _:
            return document


def _items(item: JsonValue) -> Iterator[JsonValue]:
    match item:
        case {"$each": [int(first), int(end), each]}:
            for number in range(first, end):
                yield _counted(each, number)
        case _:
            yield expanded(item)


def _counted(item: JsonValue, number: int) -> JsonValue:
    match item:
        case "$i":
            return number
        case str():
            return item.replace("$i", str(number))
        case dict():
            return {name: _counted(inner, number) for name, inner in item.items()}
        case list():
            return [_counted(inner, number) for inner in item]
        case _:
            return item


def label_of(method: str, target: str) -> str:
    """The operation of the specification that a request is for; "" for none."""
    path = target.partition("?")[0]
    for label in operations():
        requested, _, template = label.partition(" ")
        if requested == method and re.fullmatch(re.sub(r"{.*?}", "[^/]+", template), path):
            return label
    return ""
