"""The content of a response: its status, error, the state of its table, the names in a listing."""

from collections.abc import Mapping
from dataclasses import dataclass

from arco_catalog.prove.history import Status, TableState
from arco_catalog.prove.requests import COMMITS, CREATOR, Base

MAX_COMMITS = 10_000


class ForeignAnswer(Exception):
    """An answer of the catalog that has another form than the Iceberg REST specification requires."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response: the status code, the parsed JSON of the body (None without a body, and for one that is no
    JSON), and the ETag."""

    code: int
    body: object = None
    etag: str = ""

    @property
    def status(self) -> Status:
        """How the operation ended for the client: done for a status below 400, refused for one below 500, else
        unknown."""
        if self.code < 400:
            return Status.DONE
        return Status.REFUSED if self.code < 500 else Status.UNKNOWN

    @property
    def error(self) -> str:
        """The type of the error in the body of a response (`error.type`); empty if there is none."""
        error = self.body.get("error") if isinstance(self.body, dict) else None
        kind = error.get("type") if isinstance(error, dict) else None
        return kind if isinstance(kind, str) else ""


def table_in(answer: Answer) -> Base:
    """Returns the table in a response: the creation, the ids of the first `MAX_COMMITS` commits and the snapshot, and
    what the next commit needs besides. Raises `ForeignAnswer` if there is none, if `arco prove` did not make it, or if
    a field is not of the type that the specification requires."""
    metadata = _object(_object(answer.body).get("metadata"))
    properties = _object(metadata.get("properties"))
    creator, commits = properties.get(CREATOR), properties.get(COMMITS, "")
    uuid, location = metadata.get("table-uuid"), metadata.get("location")
    snapshot = metadata.get("current-snapshot-id")
    texts = (creator, commits, uuid, location)
    if not all(isinstance(text, str) for text in texts) or not isinstance(snapshot, int | None):
        raise ForeignAnswer(
            "The answer counts as unknown: it has no table that `arco prove` made, or one without a valid uuid, "
            "location or snapshot id"
        )
    ids = tuple(str(commits).split()[:MAX_COMMITS])
    state = TableState(str(creator), ids, str(uuid), None if snapshot == -1 else snapshot)
    number, updated = metadata.get("last-sequence-number", 0), metadata.get("last-updated-ms", 0)
    if not isinstance(number, int) or not isinstance(updated, int):
        raise ForeignAnswer("The answer has a table whose last-sequence-number or last-updated-ms is no integer")
    return Base(state, str(location), number, updated, answer.etag)


def names_in(answer: Answer) -> tuple[frozenset[str], str | None]:
    """Returns the names of the tables in a page of a listing, without their namespaces, and the token of the next page;
    None after the last page. Raises `ForeignAnswer` if the answer is no listing."""
    body = _object(answer.body)
    identifiers, token = body.get("identifiers"), body.get("next-page-token")
    if not isinstance(identifiers, list) or not isinstance(token, str | None):
        raise ForeignAnswer("The answer is no listing of tables")
    return frozenset(str(_object(identifier).get("name")) for identifier in identifiers), token or None


def _object(value: object) -> Mapping[str, object]:
    """Returns the value if it is a JSON object. Raises `ForeignAnswer` for any other value."""
    if not isinstance(value, dict):
        raise ForeignAnswer("The answer does not have an object that the specification requires")
    return value
