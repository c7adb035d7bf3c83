"""Watches every applied write of a run, and holds requests against the rights that there were.

A request may have been carried out only if each right that it needs was held at some instant between the beginning of
the sending that carried it out and its effect: the registries of realm and catalog are read at instants of their own,
so each is looked for by itself. A change of the catalog's registry must have been allowed by the very state that it
replaced, or by what others left that share its commit.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from arco_catalog.iceberg.json import JsonObject, loads
from arco_catalog.state.fields import integer, mapping, sequence, text, texts
from arco_catalog.state.index import relation_key
from arco_catalog.state.paths import Paths, commit_key
from arco_catalog.state.realm import principal_key
from arco_catalog.state.registry import RegistryState
from arco_catalog.state.roles import catalog_role_key, granted_to
from arco_catalog.state.segments import Segment
from tests.simulation.access.policy import CACHED_S, ChangingPolicy
from tests.simulation.access.rights import CatalogState, Entries, Right, check_catalog, check_realm, has
from tests.simulation.history import Event
from tests.simulation.world import World
from tools.support.asgi_client import Answer

T = TypeVar("T")

NAMESPACE = ("db",)
DENIED = (401, 403, 404)


@dataclass
class Ask:
    """One request, however often it is sent. `principal` is the id of who asks. `abandoned`: nobody waits for its
    answer any more."""

    name: str
    principal: str
    method: str
    target: str
    body: JsonObject | None
    needs: Sequence[Right]
    reads: bool = False
    makes: str | None = None
    since: float = 0.0
    sendings: list["Sending"] = field(default_factory=list)
    landed: dict[str, list[str]] = field(default_factory=dict)
    """The metadata files of each attempt that took effect."""
    status: int | None = None
    abandoned: bool = False


@dataclass(frozen=True)
class Sending:
    """One sending of a request to a process."""

    process: str
    since: float


class Judge:
    """Sees everything. Raises `AssertionError` in the very instant in which something is wrong."""

    def __init__(self, world: World, realm: Paths, catalog: Paths, policy: ChangingPolicy | None = None) -> None:
        self.world = world
        self._policy = policy
        self._paths = {"realm": realm, "catalog": catalog}
        self._realms: list[tuple[float, Entries]] = []
        self._catalogs: list[tuple[float, CatalogState]] = []
        self.asks: dict[str, Ask] = {}
        self._effective: dict[str, str] = {}
        self._became_current: list[str] = []
        self._operations: set[str] = set()
        for which in self._paths:
            self._note(which, 0.0)
        self._see_pointers(None)
        world.observe(self.see)

    # Requests.

    def begins(self, ask: Ask) -> None:
        """A request is sent for the first time."""
        assert ask.name not in self.asks
        ask.since = self.world.loop.time()
        self.asks[ask.name] = ask

    def sends(self, ask: Ask, process: str) -> Sending:
        """A request is sent."""
        sending = Sending(process, self.world.loop.time())
        ask.sendings.append(sending)
        return sending

    def answered(self, ask: Ask, sending: Sending, answer: Answer) -> None:
        """A request was answered, with anything but a failure of ours."""
        now = self.world.loop.time()
        if answer.status >= 300:
            assert not ask.landed, f"{ask.name} was carried out, and told {answer.status}: {answer.body!r}"
            assert ask.status is None or ask.status >= 300, f"{ask.name} was told yes, and no"
            if answer.status in DENIED:
                assert self._may_be_refused(ask, now), f"{ask.name} had all rights all the time: {answer.body!r}"
        elif ask.reads:
            assert self._was_allowed(ask, sending.since, now), f"{ask.name} was answered without the right to it"
        else:
            assert len(ask.landed) == 1, f"{ask.name} was told yes, and is carried out {len(ask.landed)} times"
            [files] = ask.landed.values()
            told = answer.json.get("metadata-location") if answer.body else None
            assert told is None or self._shows(told, files), f"{ask.name} was told of {told}, and made {files}"
        ask.status = answer.status

    def _shows(self, told: object, files: Sequence[str]) -> bool:
        """Whether a state that was told of has what a request made: its file, or one that became current later."""
        current = self._became_current
        return told in current and any(current.index(str(told)) >= current.index(file) for file in files)

    def _may_be_refused(self, ask: Ask, now: float) -> bool:
        if not all(self._consents(ask, ask.since, now)):
            return True
        realms, catalogs = _during(self._realms, ask.since, now), _during(self._catalogs, ask.since, now)
        return not all(
            has(realm, catalog, ask.principal, right) for realm in realms for catalog in catalogs for right in ask.needs
        )

    def _was_allowed(
        self, ask: Ask, since: float, until: float, catalogs: Sequence[CatalogState] | None = None
    ) -> bool:
        """Whether every right was held at once at some instants, and the policy consented at one, or so short a time
        before that a process may remember it."""
        if not any(self._consents(ask, since - CACHED_S, until)):
            return False
        found = _during(self._catalogs, since, until) if catalogs is None else catalogs
        return any(
            all(has(realm, catalog, ask.principal, right) for right in ask.needs)
            for realm in _during(self._realms, since, until)
            for catalog in found
        )

    def _consents(self, ask: Ask, since: float, until: float) -> Sequence[bool]:
        """Whether the policy consented to a request, at each instant between two."""
        if self._policy is None:
            return [True]
        return [ask.principal not in denied for denied in _during(self._policy.denials, since, until)]

    # What root was told.

    def holds_no_longer(self, role: str, grant: JsonObject) -> None:
        """It was told that a role no longer holds a grant."""
        catalog = self._catalogs[-1][1].entries
        entry = catalog.get(catalog_role_key(role))
        held = {
            (tuple(texts(grant_, "namespace")), grant_["name"], privilege)
            for key, grant_ in catalog.items()
            if entry is not None
            and key.startswith(granted_to(text(entry, "entity")))
            and self._is_live(catalog, grant_)
            for privilege in texts(grant_, "privileges")
        }
        wanted = (tuple(texts(grant, "namespace")) if "namespace" in grant else (), grant.get("tableName"))
        assert (*wanted, grant["privilege"]) not in held, f"{grant} was revoked, and is still held"

    @staticmethod
    def _is_live(catalog: Entries, grant: JsonObject) -> bool:
        if grant["name"] is None:
            return True
        relation = catalog.get(relation_key(NAMESPACE, text(grant, "name")))
        return relation is not None and relation["entity"] == grant["securable"]

    def principal_named(self, name: str) -> str:
        """The id of the principal that has a name now."""
        return text(self._realms[-1][1][principal_key(name)], "entity")

    # What is seen.

    def see(self, event: Event) -> None:
        """One applied write."""
        if event.kind != "put":
            return
        catalog = self._paths["catalog"]
        if event.key == self._paths["realm"].manifest:
            self._note("realm", event.at)
        elif event.key == catalog.manifest:
            self._note("catalog", event.at)
            self._see_operations(event)
        elif event.key.startswith((catalog.pointers, catalog.transaction("").removesuffix(".json"))):
            self._see_pointers(event)

    def _note(self, which: str, now: float) -> None:
        paths, objects = self._paths[which], self.world.snapshot()

        def segment(name: str) -> Segment:
            key = paths.index_segment(name)
            return Segment.parse(name, objects[key], key)

        head = RegistryState.parse(objects[paths.manifest], None, "HEAD").with_segments(segment)
        entries = dict(head.index.scan(""))
        (check_realm if which == "realm" else check_catalog)(entries)
        if which == "realm":
            self._realms.append((now, entries))
        else:
            homes = self._catalogs[-1][1].next_homes() if self._catalogs else {}
            self._catalogs.append((now, CatalogState(entries, homes)))

    def _see_operations(self, event: Event) -> None:
        head = _json(self.world.snapshot()[event.key])
        states = [state for _, state in self._catalogs[-2:]]
        for operation in sequence(head, "operations"):
            assert isinstance(operation, dict)
            attempt = text(operation, "id")
            if attempt in self._operations:
                continue
            self._operations.add(attempt)
            ask = self._ask_of(operation)
            if ask is not None:
                entity = operation.get("entity")
                location = self._effective.get(entity) if isinstance(entity, str) else None
                self._lands(ask, attempt, location, event, states)

    def _see_pointers(self, event: Event | None) -> None:
        objects = self.world.snapshot()
        catalog = self._paths["catalog"]
        for key, body in objects.items():
            if not key.startswith(catalog.pointers):
                continue
            pointer = _json(body)
            intent = mapping(pointer, "intent")
            if intent:
                decision = objects.get(catalog.transaction(text(intent, "transaction")))
                if decision is not None and _json(decision)["status"] == "committed":
                    pointer = {**pointer, **mapping(intent, "state")}
            entity, location = text(pointer, "entity"), text(pointer, "metadata_location")
            before = self._effective.get(entity)
            self._effective[entity] = location
            if before != location:
                self._became_current.append(location)
            if event is None or before is None or before == location:
                continue  # one that was created counts when its name leads to it
            path = catalog.receipt("pending", commit_key(entity, location), integer(pointer, "metadata_ms"))
            receipt = _json(objects[path])
            ask = self._ask_of(receipt)
            if ask is not None:
                self._lands(ask, text(receipt, "attempt"), location, event)

    def _ask_of(self, record: JsonObject) -> Ask | None:
        """The request that a record is of, by the product that its client names itself."""
        client = mapping(record, "source").get("client_info")
        ask = self.asks.get(client.removesuffix("/1")) if isinstance(client, str) else None
        if ask is not None:
            assert record["principal_id"] == ask.principal, f"{ask.name} is recorded as somebody else's"
        return ask

    def _lands(
        self, ask: Ask, attempt: str, location: str | None, event: Event, catalogs: Sequence[CatalogState] | None = None
    ) -> None:
        files = ask.landed.setdefault(attempt, [])
        if location is not None:
            files.append(location)
        assert len(ask.landed) == 1, f"{ask.name} was carried out twice"
        assert ask.status is None or ask.status < 300, f"{ask.name} was told {ask.status}, and is carried out"
        since = min(sending.since for sending in ask.sendings if sending.process == event.process)
        allowed = self._was_allowed(ask, since, event.at, catalogs)
        assert allowed, f"{ask.name} was carried out without the right to it"

    def close(self) -> None:
        """Nothing is under way any more."""
        for ask in self._waited_for():
            assert ask.status is not None, f"{ask.name} was never answered"
            assert ask.reads or (ask.status < 300) == bool(ask.landed), f"{ask.name} was told {ask.status}"

    def _waited_for(self) -> Iterator[Ask]:
        return (ask for ask in self.asks.values() if not ask.abandoned)


def _during(states: Sequence[tuple[float, T]], since: float, until: float) -> Sequence[T]:
    """The states that there were between two instants."""
    ends = [start for start, _ in states[1:]] + [float("inf")]
    return [state for (start, state), end in zip(states, ends, strict=True) if start <= until and end >= since]


def _json(body: bytes) -> JsonObject:
    document = loads(body)
    assert isinstance(document, dict)
    return document
