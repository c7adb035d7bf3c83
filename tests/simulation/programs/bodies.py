"""Requests as the catalog gets them: bodies, and the operation that carries each out.

Whatever changes a table or view leaves a property of its own on it, so that a lost or doubled change shows.
"""

from collections.abc import Awaitable, Callable

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.iceberg.properties import COMMIT_APPENDS, REBASE
from arco_catalog.operations.commit import commit_table, commit_view
from arco_catalog.operations.create import create_table, create_view
from arco_catalog.operations.drop import drop_table, drop_view, unregister_table
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table, drop_generic_table
from arco_catalog.operations.governance import govern_namespace, govern_relation
from arco_catalog.operations.namespaces import create_namespace, drop_namespace, update_properties
from arco_catalog.operations.notifications import notify
from arco_catalog.operations.policies.attachments import attach_policy, detach_policy
from arco_catalog.operations.policies.policies import PolicyText, create_policy, drop_policy, update_policy
from arco_catalog.operations.register import register_table
from arco_catalog.operations.rename import rename_table, rename_view
from arco_catalog.operations.semantic_models import create_semantic_model, drop_semantic_model, replace_semantic_model
from arco_catalog.operations.transaction import commit_transaction
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.access import Securable
from arco_catalog.planning.answers import Answer
from arco_catalog.planning.governance import PROTECTED
from arco_catalog.planning.notifications import Event, Notification
from arco_catalog.protocol.catalog import Session
from tests.simulation.clients import build_from_nothing
from tests.simulation.programs.requests import Conditions, Name, Request, thing
from tools.support.request_bodies import schema, view_request

Perform = Callable[[Session], Awaitable[Answer]]

MARK = "by-"
SHARED_FOLDER = "memory:///wh/warehouse/shared"
MAIN = "main"
_PLACES = ("a", "b", "a/deeper")
PLACES = len(_PLACES)
EMPTY_LEVEL = PLACES + 1
"""The choice of a place that is refused: object stores take `a//deeper` and `a/deeper` for two."""


def properties_of(conditions: Conditions) -> JsonObject:
    """What every new table of a program has."""
    properties: JsonObject = {}
    if conditions.cleaning:
        properties["write.metadata.delete-after-commit.enabled"] = "true"
        properties["write.metadata.previous-versions-max"] = "1"
    if conditions.shared_folder:
        properties["write.metadata.path"] = SHARED_FOLDER
    if conditions.appends:
        properties[COMMIT_APPENDS] = REBASE
    return properties


def governance_patch(principal: str, *, owns: bool) -> JsonObject:
    """A change that leaves a tag of its own, and may take what others took."""
    tag: JsonObject = {f"arco.tag.{MARK}{principal}": principal}
    return {**tag, "arco.owner": principal} if owns else tag


def protection_patch(principal: str, *, lifts: bool) -> JsonObject:
    """A change that leaves a tag of its own, and protects what it names from drops and renames, or lifts that."""
    return {**governance_patch(principal, owns=False), PROTECTED: None if lifts else "true"}


def place(choice: int) -> str:
    """Where a table may be told to move: two places, and one inside the other."""
    folder = "a//deeper" if choice == EMPTY_LEVEL else _PLACES[choice]
    return f"memory:///wh/warehouse/places/{folder}"


def marked(principal: str) -> JsonObject:
    """The update that tells whose change this is."""
    return {"action": "set-properties", "updates": {f"{MARK}{principal}": "1"}}


def new_table(name: str, principal: str, conditions: Conditions, *, stage: bool = False) -> JsonObject:
    """The body of a create."""
    version: JsonObject = {"format-version": str(conditions.appends)} if conditions.appends else {}
    body: JsonObject = {
        "name": name,
        "schema": schema("x"),
        "properties": {f"{MARK}{principal}": "1", **version, **properties_of(conditions)},
    }
    return {**body, "stage-create": True} if stage else body


def new_view(name: str, principal: str) -> JsonObject:
    """The body of a view's create."""
    return view_request(name, {f"{MARK}{principal}": "1"})


def new_generic_table(name: str, choice: int) -> GenericTable:
    """A generic table at one of the places to which tables are moved, or at none."""
    return GenericTable(name, "delta", None if choice == PLACES else place(choice), None, {})


def policy_type(choice: int) -> str:
    """One that is inherited, and one of users' own."""
    return "system.data-compaction" if choice else "ours"


def policy_text(principal: str) -> PolicyText:
    """What a policy says, and by whom, in content that either type allows."""
    return PolicyText(principal, '{"enable": true}')


def new_model(principal: str) -> JsonObject:
    """The document of a semantic model, which tells whose it is."""
    return {"version": "0.1.1", "semantic_model": f'{{"name": "{principal}"}}'}


def followed_folder(name: Name) -> str:
    """Where another catalog has the table that a name follows."""
    return f"memory:///wh/warehouse/followed/{'-'.join((*name[0], name[1]))}"


def followed_file(name: Name, at: int) -> str:
    """Its metadata file by one notification."""
    return f"{followed_folder(name)}/metadata/{at}.metadata.json"


def followed_uuid(name: Name) -> str:
    """Its uuid."""
    return f"6e9d1c5e-0a6b-4f2e-9d2c-{ord(name[1]):06x}{len(name[0][0]):06x}"


def commit_body(request: Request, principal: str, base: JsonObject | None, number: int) -> JsonObject:
    """The body of a commit. `base` is what its client saw of the table, for one that builds on that."""
    requirements: list[JsonValue] = []
    updates: list[JsonValue] = [marked(principal)]
    if request.needs is not None:
        requirements.append({"type": "assert-current-schema-id", "current-schema-id": request.needs})
    match request.kind:
        case "append" if base is not None:
            requirements.append({"type": "assert-table-uuid", "uuid": base["table-uuid"]})
            requirements.append({"type": "assert-ref-snapshot-id", "ref": MAIN, "snapshot-id": _current(base)})
            updates += _append(base, number)
        case "schema":
            columns = ("x", "y") if request.choice else ("x",)
            updates.insert(0, {"action": "add-schema", "schema": schema(*columns)})
            updates.insert(1, {"action": "set-current-schema", "schema-id": request.choice})
        case "no-op":
            updates = [{"action": "set-properties", "updates": {"nothing": "new"}}]
        case "move":
            updates.insert(0, {"action": "set-location", "location": place(request.choice)})
        case _:
            pass
    return {"requirements": requirements, "updates": updates}


def _current(base: JsonObject) -> JsonValue:
    return base.get("current-snapshot-id") if base.get("current-snapshot-id") not in (None, -1) else None


def manifest_list(base: JsonObject, number: int) -> str:
    """Where the manifest list of a snapshot that is appended to `base` lies."""
    return f"{base['location']}/metadata/snap-{number}.avro"


def _append(base: JsonObject, number: int) -> list[JsonValue]:
    last, ms = base.get("last-sequence-number"), base.get("last-updated-ms")
    assert isinstance(last, int)
    assert isinstance(ms, int)
    snapshot: JsonObject = {
        "snapshot-id": number,
        "sequence-number": last + 1,
        "timestamp-ms": ms + 1,
        "manifest-list": manifest_list(base, number),
        "summary": {"operation": "append"},
        "schema-id": 0,
    }
    current = _current(base)
    if current is not None:
        snapshot["parent-snapshot-id"] = current
    return [
        {"action": "add-snapshot", "snapshot": snapshot},
        {"action": "set-snapshot-ref", "ref-name": MAIN, "type": "branch", "snapshot-id": number},
    ]


def transaction_body(request: Request, principal: str, conditions: Conditions) -> JsonObject:
    """The body of a transaction."""
    requirements: list[JsonValue] = []
    if request.needs is not None:
        requirements = [{"type": "assert-current-schema-id", "current-schema-id": request.needs}]
    changes: list[JsonValue] = [
        {**_identified(name), "requirements": requirements, "updates": [marked(principal)]} for name in request.names
    ]
    for name in request.creates:
        made = build_from_nothing(principal)
        updates = made["updates"]
        assert isinstance(updates, list)
        properties: JsonObject = {"action": "set-properties", "updates": properties_of(conditions)}
        changes.append({**_identified(name), **made, "updates": [*updates, marked(principal), properties]})
    return {"table-changes": changes}


def staged_body(principal: str, staged: JsonObject) -> JsonObject:
    """The commit that makes a staged table."""
    body = build_from_nothing(principal)
    updates = body["updates"]
    assert isinstance(updates, list)
    return {
        **body,
        "updates": [*updates, {"action": "set-location", "location": staged["location"]}, marked(principal)],
    }


def _identified(name: Name) -> JsonObject:
    return {"identifier": {"namespace": [*name[0]], "name": name[1]}}


def performing(request: Request, body: JsonObject) -> Perform:
    """How the catalog carries out a mutation."""
    if request.kind == "transaction":
        changes = [_change(change) for change in _list(body["table-changes"])]
        return lambda session: commit_transaction(session, changes)
    if request.namespace:
        return _on_namespace(request, body)
    (namespace, name), to = request.names[0], request.to
    match request.kind:
        case "create" | "stage":
            return lambda session: create_table(session, namespace, body)
        case "create-view":
            return lambda session: create_view(session, namespace, body)
        case "commit-view":
            return lambda session: commit_view(session, namespace, name, body)
        case "register":
            return lambda session: register_table(session, namespace, name, str(body["file"]), request.flag)
        case "drop":
            return lambda session: drop_table(session, namespace, name, purge=request.flag)
        case "unregister":
            return lambda session: unregister_table(session, namespace, name)
        case "create-generic":
            generic = new_generic_table(name, request.choice)
            return lambda session: create_generic_table(session, namespace, generic)
        case "drop-generic":
            return lambda session: drop_generic_table(session, namespace, name)
        case "create-policy":
            said, of = policy_text(str(body["by"])), policy_type(request.choice)
            return lambda session: create_policy(session, namespace, name, of, said)
        case "update-policy":
            said = policy_text(str(body["by"]))
            return lambda session: update_policy(session, namespace, name, request.needs, said)
        case "drop-policy":
            return lambda session: drop_policy(session, namespace, name, detach_all=request.flag)
        case "attach" if to is not None:
            return lambda session: attach_policy(session, namespace, name, _target(to), {})
        case "detach" if to is not None:
            return lambda session: detach_policy(session, namespace, name, _target(to))
        case "follow" | "drop-followed":
            event = Event.UPDATE if request.kind == "follow" else Event.DROP
            file = followed_file(request.names[0], request.choice)
            told = Notification(event, request.choice, followed_uuid(request.names[0]), file)
            return lambda session: notify(session, namespace, name, told)
        case "create-model":
            return lambda session: create_semantic_model(session, namespace, name, body)
        case "replace-model":
            document, expected = new_model(str(body["by"])), str(body["expected"])
            return lambda session: replace_semantic_model(session, namespace, name, expected, document)
        case "drop-model":
            return lambda session: drop_semantic_model(session, namespace, name)
        case "govern" | "govern-view" | "protect":
            return lambda session: govern_relation(session, namespace, name, thing(request.kind), body)
        case "drop-view":
            return lambda session: drop_view(session, namespace, name)
        case "undrop":
            return lambda session: undrop(session, namespace, name)
        case "rename" if to is not None:
            return lambda session: rename_table(session, (namespace, name), to)
        case "rename-view" if to is not None:
            return lambda session: rename_view(session, (namespace, name), to)
        case _:
            return lambda session: commit_table(session, namespace, name, body)


def _target(to: Name) -> Securable:
    namespace, name = to
    return Securable(namespace, name, "table-like") if name else Securable(namespace)


def _on_namespace(request: Request, body: JsonObject) -> Perform:
    updates = body.get("updates")
    new = {str(key): str(value) for key, value in updates.items()} if isinstance(updates, dict) else {}
    match request.kind:
        case "create-namespace":
            return lambda session: create_namespace(session, request.namespace, new)
        case "govern-namespace" | "protect-namespace":
            return lambda session: govern_namespace(session, request.namespace, body)
        case "drop-namespace":
            return lambda session: drop_namespace(session, request.namespace)
        case _:
            gone = [str(key) for key in _list(body.get("removals", []))]
            return lambda session: update_properties(session, request.namespace, gone, new)


def _list(value: JsonValue) -> list[JsonValue]:
    assert isinstance(value, list)
    return value


def _change(change: JsonValue) -> tuple[tuple[str, ...], str, JsonObject]:
    assert isinstance(change, dict)
    identifier = change["identifier"]
    assert isinstance(identifier, dict)
    return tuple(str(level) for level in _list(identifier["namespace"])), str(identifier["name"]), change
