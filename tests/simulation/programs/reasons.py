"""Whether a definite no was true: for each kind of request and each refusal, the states of the catalog that explain it.

No refusal is believed that nothing here explains.
"""

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CommitFailed,
    ConflictPolicyAttachment,
    Forbidden,
    NamespaceNotEmpty,
    NoSuchMapping,
    NoSuchNamespace,
    NoSuchPolicy,
    NoSuchSemanticModel,
    NoSuchTable,
    NoSuchView,
    NotFound,
    PolicyInUse,
    PolicyVersionMismatch,
    Refusal,
    SemanticModelVersionMismatch,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.planning.names import no_such
from arco_catalog.state.locations import Location
from arco_catalog.state.transaction import LEASE_MS
from tests.simulation.programs import rows
from tests.simulation.programs.bodies import EMPTY_LEVEL, PLACES, place
from tests.simulation.programs.history import Asked, History
from tests.simulation.programs.requests import NOTIFICATIONS, Name, Request, thing
from tests.simulation.programs.states import CatalogState
from tests.simulation.runtime import EPOCH_MS

KEY_AHEAD_MS = 5 * 60_000
TICK = 2.0
"""Seconds: the store tells whole ones."""


def explained(history: History, asked: Asked, refusal: Refusal) -> bool:
    """Whether a definite no was true at some instant since the request was sent."""
    if isinstance(refusal, Forbidden):
        return any(asked.since <= at <= asked.until for at in history.denials)
    if isinstance(refusal, BadRequest) and asked.request.kind == "register" and "and is deleted" in refusal.message:
        return asked.body.get("file") in history.claimed_to_remove
    if isinstance(refusal, BadRequest) and "are being deleted" in refusal.message:
        return any(_is_purging(moment.state) for moment in history.window(asked.since, asked.until))
    if isinstance(refusal, BadRequest) and "whose files only that catalog may delete" in refusal.message:
        name = asked.request.names[0]
        found = [(moment.state, moment.state.relation(name)) for moment in history.window(asked.since, asked.until)]
        return asked.request.flag and any(there is not None and there.entity not in at.marks for at, there in found)
    if isinstance(refusal, BadRequest) and "cannot be attached to" in refusal.message:
        to = asked.request.to
        kinds = [moment.state.relation(to) for moment in history.window(asked.since, asked.until)] if to else []
        return any(there is not None and there.kind in ("view", "generic-table") for there in kinds)
    if isinstance(refusal, BadRequest) and "empty level" in refusal.message:
        return asked.request.kind in ("move", "create-generic") and asked.request.choice == EMPTY_LEVEL
    if isinstance(refusal, BadRequest) and "unknown snapshot" in refusal.message:
        states = [moment.state for moment in history.window(asked.since, asked.until)]
        documents = [document_of(history, state, asked.request.names[0]) for state in states]
        return any(each is not None and rows.lacks_snapshot(asked.body, each) for each in documents)
    if isinstance(refusal, BadRequest) and "overlap" not in refusal.message:
        return _key_ahead(asked)
    if isinstance(refusal, CommitFailed) and "can't be read" in refusal.message:
        return any(asked.since <= at <= asked.until for at in history.denials)
    if isinstance(refusal, CommitFailed) and "is protected" in refusal.message:
        return any(_protects(moment.state, asked.request) for moment in history.window(asked.since, asked.until))
    if isinstance(refusal, CommitFailed) and "under way" in refusal.message:
        return _in_the_way(history, asked)
    return any(_explains(history, moment.state, asked, refusal) for moment in history.window(asked.since, asked.until))


def _is_purging(state: CatalogState) -> bool:
    return any(stone.purging for stones in state.stones.values() for stone in stones)


def _protects(state: CatalogState, request: Request) -> bool:
    """Whether what a request would take a name from is protected."""
    if request.kind == "drop-namespace":
        return state.protects(state.spaces.get(request.namespace))
    takes = request.flag if request.kind == "register" else request.kind.startswith(("drop", "rename", "unregister"))
    there = state.names.get(request.names[0]) if takes else None
    return there is not None and state.protects(there.entity)


def _key_ahead(asked: Asked) -> bool:
    """A key may lie five minutes in the future, by the store's clock."""
    if asked.key_ms is None:
        return False
    return asked.key_ms > EPOCH_MS + asked.since * 1000 + KEY_AHEAD_MS - TICK * 1000


def _in_the_way(history: History, asked: Asked) -> bool:
    """Whether a transaction over what a commit names was undecided meanwhile, and within its lease."""
    names = [name for name in asked.request.names if asked.request.kind not in ("rename", "drop", "undrop", "create")]
    for transaction in history.transactions.values():
        until = min(transaction.decided, transaction.begun + LEASE_MS / 1000 + TICK)
        for moment in history.window(asked.since, asked.until):
            for name in names:
                there = moment.state.names.get(name)
                laid = None if there is None else transaction.entities.get(there.entity)
                if laid is not None and laid <= asked.until and until >= asked.since:
                    return True
        if asked.request.kind == "transaction" and any(
            laid <= asked.until and until >= asked.since
            for name, laid in transaction.names.items()
            if name in asked.request.creates
        ):
            return True
    return False


def _explains(history: History, state: CatalogState, asked: Asked, refusal: Refusal) -> bool:
    request = asked.request
    kind = thing(request.kind)
    match refusal:
        case NoSuchTable() if request.kind == "undrop":
            stones = state.stones.get(request.names[0])
            return not stones or stones[-1].purged
        case NoSuchTable() if request.kind in ("attach", "detach"):
            return request.to is not None and bool(request.to[1]) and state.target(request.to) is None
        case NoSuchPolicy() | NoSuchMapping() | PolicyInUse() | PolicyVersionMismatch() | ConflictPolicyAttachment():
            return _of_policy(state, asked, refusal)
        case SemanticModelVersionMismatch():
            model = state.relation(request.names[0], kind)
            return model is not None and state.models.get(model.entity) != asked.body["expected"]
        case NoSuchTable() | NoSuchView() | NoSuchSemanticModel():
            if type(refusal) is not type(no_such(kind, (), "")):
                return False
            if request.kind in ("create", "stage", "create-view", "create-generic", "create-model", "register"):
                return False
            return any(state.relation(name, kind) is None for name in request.names)
        case NoSuchNamespace():
            if request.kind in ("attach", "detach"):
                return request.to is not None and not request.to[1] and request.to[0] not in state.namespaces
            spaces = [request.namespace] if request.namespace else [name[0] for name in _made(asked)]
            return any(space not in state.namespaces for space in spaces)
        case AlreadyExists():
            return _taken(history, state, asked)
        case BadRequest() if asked.request.kind in ("create", "stage", "register", "undrop", "create-generic"):
            return _taken(history, state, asked)
        case BadRequest():
            return _overlaps(state, asked)
        case NamespaceNotEmpty():
            inside = (*state.names, *state.policies)
            return request.kind == "drop-namespace" and any(held == request.namespace for held, _ in inside)
        case CommitFailed():
            return _commit_fails(history, state, asked, refusal)
        case NotFound() if request.kind == "undrop":
            return any(stone.purging or stone.purged for stone in state.stones.get(request.names[0], ()))
        case NotFound():
            return request.kind == "register" and any(each.file == asked.body.get("file") for each in history.deletions)
        case _:
            return False


def _of_policy(state: CatalogState, asked: Asked, refusal: Refusal) -> bool:
    """Whether a refusal that only requests about policies meet was so."""
    request = asked.request
    policy, target = state.policies.get(request.names[0]), None if request.to is None else state.target(request.to)
    if policy is None:
        return isinstance(refusal, NoSuchPolicy)
    match refusal:
        case NoSuchMapping():
            return target is not None and (target, policy.entity) not in state.attached
        case PolicyInUse():
            return not request.flag and state.in_use(policy.entity)
        case PolicyVersionMismatch():
            return policy.version != request.needs
        case _:
            return isinstance(refusal, ConflictPolicyAttachment) and target is not None and state.rival(policy, target)


def _made(asked: Asked) -> list[Name]:
    """The names that a request gives to something."""
    request = asked.request
    if request.to is not None:
        return [request.to]
    if request.creates:
        return [*request.creates]
    makes = ("create", "stage", "create-view", "create-generic", "create-model", "register", "undrop", "create-policy")
    return [*request.names] if request.kind in makes else []


def _taken(history: History, state: CatalogState, asked: Asked) -> bool:
    request = asked.request
    if request.kind == "create-namespace":
        return request.namespace in state.namespaces
    if request.kind == "create-policy":
        return request.names[0] in state.policies
    if request.kind in NOTIFICATIONS:
        there = state.names.get(request.names[0])
        stranger = there is not None and (there.kind != "table" or state.files.get(there.entity) is None)
        return stranger or request.choice <= state.notified.get(request.names[0], -1)
    if request.kind == "register":
        there = state.names.get(request.names[0])
        if there is not None and not (request.flag and there.kind == "table"):
            return True
        document = history.documents.get(str(asked.body["file"]), {})
        return state.taken(_locations(document), () if there is None else (there.entity,))
    if request.kind == "undrop":
        stones = state.stones.get(request.names[0], ())
        held = _locations(_document(history, state.files.get(stones[-1].entity))) if stones else []
        held += stones[-1].locations if stones and stones[-1].kind == "generic-table" else ()
        return request.names[0] in state.names or state.taken(held)
    wanted = [place(request.choice)] if request.kind == "create-generic" and request.choice < PLACES else []
    overlaps = state.taken([Location.parse(each).normal for each in wanted])
    return overlaps or any(name in state.names for name in _made(asked))


def _commit_fails(history: History, state: CatalogState, asked: Asked, refusal: CommitFailed) -> bool:
    request = asked.request
    if request.kind == "undrop":
        stones = state.stones.get(request.names[0], ())
        return bool(stones) and stones[-1].purging
    if "table already exists" in refusal.message:
        return any(name in state.names for name in request.creates)
    if _overlaps(state, asked):
        return True
    if request.kind in ("add-rows", "compact"):
        document = document_of(history, state, request.names[0])
        return document is not None and rows.is_lost(request, asked.body, document)
    documents = [document_of(history, state, name) for name in request.names if state.relation(name, "table")]
    return any(not _holds(requirement, document) for requirement in _requirements(asked) for document in documents)


def _overlaps(state: CatalogState, asked: Asked) -> bool:
    """Whether a commit asked for a place that somebody else holds."""
    request = asked.request
    if request.kind == "move":
        there = state.names.get(request.names[0])
        wanted = [Location.parse_stored(place(request.choice)).normal]
        return there is not None and state.taken(wanted, (there.entity,))
    return request.kind == "transaction" and bool(request.creates) and state.taken(_locations(_creation(asked)))


def _creation(asked: Asked) -> JsonObject:
    """What a staged create says of its location."""
    changes = asked.body.get("table-changes")
    updates = changes[0].get("updates") if isinstance(changes, list) and isinstance(changes[0], dict) else None
    found = [each for each in updates or [] if isinstance(each, dict)] if isinstance(updates, list) else []
    places = [each["location"] for each in found if each.get("action") == "set-location"]
    return {"location": places[0]} if places else {}


def _requirements(asked: Asked) -> list[JsonObject]:
    body = asked.body
    changes = body.get("table-changes")
    first = changes[0] if isinstance(changes, list) and asked.request.names else body
    wanted = first.get("requirements") if isinstance(first, dict) else None
    return [each for each in wanted if isinstance(each, dict)] if isinstance(wanted, list) else []


def _holds(requirement: JsonObject, document: JsonObject | None) -> bool:
    if document is None:
        return False
    match requirement["type"]:
        case "assert-current-schema-id":
            return document.get("current-schema-id") == requirement["current-schema-id"]
        case "assert-table-uuid":
            return document.get("table-uuid") == requirement["uuid"]
        case "assert-ref-snapshot-id":
            refs = document.get("refs")
            found = refs.get(str(requirement["ref"])) if isinstance(refs, dict) else None
            return (found.get("snapshot-id") if isinstance(found, dict) else None) == requirement["snapshot-id"]
        case _:
            return True


def document_of(history: History, state: CatalogState, name: Name) -> JsonObject | None:
    """The metadata behind a name."""
    return _document(history, state.file(name)) or None


def _document(history: History, file: str | None) -> JsonObject:
    return {} if file is None else history.documents.get(file, {})


def _locations(document: JsonObject) -> list[str]:
    """The locations that metadata names, as the registry keeps them."""
    properties = document.get("properties")
    written = properties.get("write.metadata.path") if isinstance(properties, dict) else None
    return [Location.parse(each).normal for each in (document.get("location"), written) if isinstance(each, str)]


def locations_of(history: History, file: str | None) -> list[str]:
    """The locations that a metadata file names, as the registry stores them; none without a file."""
    return _locations(_document(history, file))
