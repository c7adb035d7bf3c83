"""Policies and semantic models in the simulated world: whatever goes wrong, each request that was told yes was done
once, each that was told no was refused for a reason that there was, and the registry fits together at every instant
(docs/design/polaris.md)."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from arco_catalog.iceberg.errors import (
    AlreadyExists,
    BadRequest,
    CommitStateUnknown,
    ConflictPolicyAttachment,
    KeyInProgress,
    NoSuchMapping,
    NoSuchNamespace,
    NoSuchPolicy,
    NoSuchSemanticModel,
    NoSuchTable,
    PolicyInUse,
    PolicyVersionMismatch,
    Refusal,
    SemanticModelVersionMismatch,
    Unavailable,
)
from arco_catalog.iceberg.json import JsonObject
from arco_catalog.operations.create import create_table
from arco_catalog.operations.drop import drop_table
from arco_catalog.operations.generic_tables import GenericTable, create_generic_table
from arco_catalog.operations.history import OWN
from arco_catalog.operations.namespaces import drop_namespace
from arco_catalog.operations.policies.attachments import attach_policy, detach_policy
from arco_catalog.operations.policies.policies import (
    PolicyText,
    create_policy,
    drop_policy,
    load_policy,
    update_policy,
)
from arco_catalog.operations.rename import rename_table
from arco_catalog.operations.semantic_models import (
    create_semantic_model,
    drop_semantic_model,
    load_semantic_model,
    replace_semantic_model,
)
from arco_catalog.operations.undrop import undrop
from arco_catalog.planning.access import Securable
from arco_catalog.planning.answers import Answer
from arco_catalog.protocol.catalog import Session
from arco_catalog.state.fields import integer, mapping, optional_text, sequence, text
from arco_catalog.state.paths import Paths
from arco_catalog.state.registry import RegistryState
from storage_backends import StoreUnavailable, Version
from tests.simulation import history
from tests.simulation.clients import EAGER, Perform
from tests.simulation.polaris_snapshot import Snapshot
from tests.simulation.world import DIED, World
from tools.support.catalog_fixture import NS, CatalogFixture
from tools.support.request_bodies import schema, uuid7

MANIFEST = Paths("wh").manifest
X = ("x",)
OURS = PolicyText(None, "x")
COMPACTION = PolicyText(None, '{"enable": true}')
DOCUMENT: JsonObject = {"version": "0.1.1", "semantic_model": "{}"}

Reason = Callable[[Snapshot], bool]
"""Whether a refusal was so at one instant."""


async def _answer(perform: Perform, session: Session) -> Answer:
    return await perform(session)


@dataclass
class Clients:
    """Processes that are asked at once, and who watches the registry."""

    world: World
    snapshots: list[Snapshot] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    """Operations of the registry's, by whom they were asked for."""
    expected_versions: dict[str, str] = field(default_factory=dict)
    """Which version of the model, or policy, each replacement is for."""
    detaching: set[str] = field(default_factory=set)
    """Who drops a policy with all its attachments."""
    _asked: int = 0

    def __post_init__(self) -> None:
        self.world.observe(self._see)

    def fixture(self, process: str) -> CatalogFixture:
        """The catalog, as a process serves it."""
        of = self.world.process(process)
        return CatalogFixture(of.store, of.runtime, EAGER)

    # What is seen.

    def _see(self, event: history.Event) -> None:
        if event.key != MANIFEST:
            return
        head = RegistryState.parse(self.world.snapshot()[MANIFEST], Version(""), "HEAD")
        seen = Snapshot.of(head.index)
        before = self.snapshots[-1] if self.snapshots else seen
        recorded = [each for each in sequence(head.document, "operations") if isinstance(each, dict)]
        operations = [each for each in recorded if text(each, "kind") not in OWN]
        self.done.update(text(each, "principal") for each in operations)
        self._check_pairs(before, seen, operations)
        self._check_versions(before, seen, operations)
        self.snapshots.append(seen)

    def _check_pairs(self, before: Snapshot, seen: Snapshot, operations: Sequence[JsonObject]) -> None:
        """What is attached follows from what was, and from what was done to it; both sides have it."""
        expected = set(before.attached)
        for operation in operations:
            kind, policy = text(operation, "kind"), optional_text(operation, "entity") or ""
            if kind in ("attach-policy", "detach-policy"):
                pair = text(mapping(operation, "target"), "entity"), policy
                (expected.add if kind == "attach-policy" else expected.discard)(pair)
            elif kind == "drop-policy":
                used = {target for target, by in expected if by == policy} - before.dropped
                detached = text(operation, "principal") in self.detaching
                assert not used or detached, f"a policy was dropped that was attached to {used}"
                expected = {(target, by) for target, by in expected if by != policy}
            elif kind == "drop-namespace":
                expected = {(target, by) for target, by in expected if target != policy}
        assert seen.attached == expected, f"{seen.attached} are attached, which should be {expected}"
        assert seen.attached == seen.targets.keys(), f"{seen.attached} from the one side, {seen.targets} from the other"
        named = seen.names()
        types: Counter[tuple[str, str]] = Counter()
        for (target, policy), name in seen.targets.items():
            (entry,) = (each for each in seen.policies.values() if each.entity == policy)
            types[target, entry.policy_type] += entry.inheritable
            assert target in named or target in seen.dropped, f"{target} is not there any more"
            assert named.get(target, name) == name, f"{target} is {named[target]} now, and its policies say {name}"
        assert all(count <= 1 for count in types.values()), f"several policies of one type are attached: {types}"

    def _check_versions(self, before: Snapshot, seen: Snapshot, operations: Sequence[JsonObject]) -> None:
        """A replacement is made of the version that it is for, and that of a model is no other's."""
        old, new = before.relations.get("m"), seen.relations.get("m")
        for operation in operations:
            wanted = self.expected_versions.get(text(operation, "principal"))
            if text(operation, "kind") == "replace-semantic-model":
                assert old is not None
                assert old.value == wanted, f"{wanted} was to be replaced, and {old.value} was"
            elif text(operation, "kind") == "update-policy":
                version, now = before.policies[text(operation, "name")].version, seen.policies[text(operation, "name")]
                assert str(version) == wanted, f"version {wanted} was to be replaced, and {version} was"
                assert now.version == version + 1, f"version {now.version} came after {version}"
        if new is not None and (old is None or old.value != new.value):
            told = {each.relations["m"].value for each in self.snapshots if "m" in each.relations}
            assert new.value not in told, f"version {new.value} comes back"

    # What is asked.

    async def ask(
        self,
        process: str,
        perform: Perform,
        reasons: Mapping[type[Refusal], Reason],
        version: str = "",
        *,
        detaches: bool = False,
    ) -> bool:
        """One request, sent again under its key until there is a definite answer. Returns whether that was yes."""
        self._asked += 1
        principal = f"c{self._asked}"
        if version:
            self.expected_versions[principal] = version
        if detaches:
            self.detaching.add(principal)
        key, since = uuid7(self.world.runtime.now_ms(), self.world.runtime), len(self.snapshots) - 1
        for tries in range(40):
            session = self.fixture(process).session({}, key=key, path=f"/{principal}", principal=principal)
            try:
                if await self.world.process(process).run(_answer(perform, session)) is not DIED:
                    assert self.done[principal] == 1, f"{principal} was told yes, and done {self.done[principal]} times"
                    return True
                process += "+"
            except (CommitStateUnknown, KeyInProgress, Unavailable, StoreUnavailable):
                pass
            except Refusal as refusal:
                self._check_refusal(principal, refusal, reasons, since)
                return False
            await self.world.runtime.sleep(min(30.0, 2.0**tries) * self.world.runtime.random())
        raise AssertionError(f"{principal} never got a definite answer")

    def _check_refusal(
        self, principal: str, refusal: Refusal, reasons: Mapping[type[Refusal], Reason], since: int
    ) -> None:
        assert not self.done[principal], f"{principal} was told {refusal!r}, and done"
        assert type(refusal) in reasons, f"{principal} was told {refusal!r}"
        so = reasons[type(refusal)]
        assert any(so(seen) for seen in self.snapshots[since:]), f"{principal} was told {refusal!r}, which was not so"

    async def attach(self, process: str, policy: str, on: Securable) -> bool:
        return await self.ask(
            process,
            lambda session: attach_policy(session, NS, policy, on, {}),
            {
                NoSuchPolicy: lambda seen: policy not in seen.policies,
                NoSuchTable: lambda seen: on.name is not None and seen.entity_of(on) is None,
                NoSuchNamespace: lambda seen: on.name is None and seen.entity_of(on) is None,
                ConflictPolicyAttachment: lambda seen: seen.rival(policy, on),
                BadRequest: lambda seen: seen.is_generic(on.name),
            },
        )

    async def detach(self, process: str, policy: str, on: Securable) -> bool:
        return await self.ask(
            process,
            lambda session: detach_policy(session, NS, policy, on),
            {
                NoSuchPolicy: lambda seen: policy not in seen.policies,
                NoSuchTable: lambda seen: on.name is not None and seen.entity_of(on) is None,
                NoSuchNamespace: lambda seen: on.name is None and seen.entity_of(on) is None,
                NoSuchMapping: lambda seen: seen.entity_of(on) is not None and not seen.has(policy, on),
            },
        )

    async def drop_policy(self, process: str, policy: str, *, detach_all: bool = False) -> bool:
        return await self.ask(
            process,
            lambda session: drop_policy(session, NS, policy, detach_all=detach_all),
            {
                NoSuchPolicy: lambda seen: policy not in seen.policies,
                PolicyInUse: lambda seen: not detach_all and seen.in_use(policy),
            },
            detaches=detach_all,
        )

    async def update_policy(self, process: str, policy: str, note: str) -> None:
        """Loads a policy, and updates the version that was loaded."""
        loaded = await self._load(process, lambda session: load_policy(session, NS, policy))
        if loaded is None:
            return
        version = integer(loaded, "version")
        await self.ask(
            process,
            lambda session: update_policy(session, NS, policy, version, PolicyText(note, COMPACTION.content)),
            {
                NoSuchPolicy: lambda seen: policy not in seen.policies,
                PolicyVersionMismatch: lambda seen: (
                    policy in seen.policies and seen.policies[policy].version != version
                ),
            },
            str(version),
        )

    async def create_policy(self, process: str, policy: str) -> bool:
        return await self.ask(
            process,
            lambda session: create_policy(session, NS, policy, "ours", OURS),
            {AlreadyExists: lambda seen: policy in seen.policies},
        )

    async def move(self, process: str, perform: Perform, *names: str) -> bool:
        """Renames, drops, restores or makes something: all of which may find names taken, or nothing there."""
        return await self.ask(
            process,
            perform,
            {
                NoSuchTable: lambda seen: names[0] not in seen.relations or seen.is_generic(names[0]),
                AlreadyExists: lambda seen: names[-1] in seen.relations,
            },
        )

    async def _load(
        self, process: str, load: Callable[[Session], Coroutine[object, object, JsonObject]]
    ) -> JsonObject | None:
        """What is loaded; None if it is not there."""
        while True:
            try:
                loaded = await self.world.process(process).run(load(self.fixture(process).session()))
            except (NoSuchSemanticModel, NoSuchPolicy):
                return None
            except (Unavailable, StoreUnavailable):
                await self.world.runtime.sleep(0.2)
                continue
            if loaded is not DIED:
                return loaded
            process += "+"

    async def replace_model(self, process: str, note: str) -> None:
        """Loads the model, and replaces what was loaded."""
        loaded = await self._load(process, lambda session: load_semantic_model(session, NS, "m"))
        if loaded is None:
            return
        version = text(loaded, "entity-version")
        await self.ask(
            process,
            lambda session: replace_semantic_model(session, NS, "m", version, {**DOCUMENT, "version": note}),
            {
                NoSuchSemanticModel: lambda seen: "m" not in seen.relations,
                SemanticModelVersionMismatch: lambda seen: (
                    "m" in seen.relations and seen.relations["m"].value != version
                ),
            },
            version,
        )


async def policies_on_what_moves(world: World) -> None:
    """What is attached goes along with a rename, waits while its target is dropped, and is nobody else's."""
    clients = Clients(world)
    setup = clients.fixture(world.process("setup", skew_ms=0).name)
    await setup.namespace(*NS)
    await setup.table("t")
    await setup.namespace(*X)
    for name, kind, said in (
        ("p", "ours", OURS),
        ("c", "system.data-compaction", COMPACTION),
        ("d", "system.data-compaction", COMPACTION),
    ):
        await create_policy(setup.session(), NS, name, kind, said)
    new_table: JsonObject = {"name": "t", "schema": schema("x")}

    t, u, x, catalog = Securable(NS, "t", "table-like"), Securable(NS, "u", "table-like"), Securable(X), Securable()

    async def attaches() -> None:
        await clients.attach("p1", "p", t)
        await clients.attach("p1", "c", t)
        await clients.attach("p1", "p", u)
        await clients.attach("p1", "p", catalog)
        await clients.detach("p1", "p", u)
        await clients.update_policy("p1", "c", "one")
        await clients.drop_policy("p1", "p")

    async def attaches_too() -> None:
        await clients.attach("p2", "d", t)
        await clients.attach("p2", "c", x)
        await clients.drop_policy("p2", "p", detach_all=True)
        await clients.create_policy("p2", "p")
        await clients.attach("p2", "p", t)
        await clients.detach("p2", "d", t)
        await clients.detach("p2", "p", catalog)

    async def updates() -> None:
        await clients.update_policy("p3", "c", "two")
        await clients.attach("p3", "d", x)
        await clients.drop_policy("p3", "d")
        gone: Mapping[type[Refusal], Reason] = {NoSuchNamespace: lambda seen: "x" not in seen.namespaces}
        await clients.ask("p3", lambda session: drop_namespace(session, X), gone)
        await clients.update_policy("p3", "c", "three")

    async def moves() -> None:
        await clients.move("p3", lambda session: rename_table(session, (NS, "t"), (NS, "u")), "t", "u")
        await clients.move("p3", lambda session: drop_table(session, NS, "u", purge=False), "u")
        await clients.move("p3", lambda session: undrop(session, NS, "u"), "u")

    async def takes_its_name() -> None:
        await clients.move("p2", lambda session: drop_table(session, NS, "t", purge=False), "t")
        if world.runtime.random() < 0.5:
            generic = GenericTable("t", "delta", None, None, {})
            await clients.move("p2", lambda session: create_generic_table(session, NS, generic), "t")
        else:
            await clients.move("p2", lambda session: create_table(session, NS, new_table), "t")

    async with asyncio.TaskGroup() as group:
        for client in (attaches, attaches_too, updates, moves, takes_its_name):
            group.create_task(client())
    await world.settle()


async def replacements_of_one_model(world: World) -> None:
    """Of all that replace one version one does, and who read the model of before replaces nothing of the one that
    came after."""
    clients = Clients(world)
    setup = clients.fixture(world.process("setup", skew_ms=0).name)
    await setup.namespace(*NS)
    await create_semantic_model(setup.session(), NS, "m", DOCUMENT)

    async def replaces(process: str) -> None:
        for number in range(3):
            await clients.replace_model(process, f"{process}-{number}")

    async def makes_it_anew() -> None:
        dropped: Mapping[type[Refusal], Reason] = {NoSuchSemanticModel: lambda seen: "m" not in seen.relations}
        made: Mapping[type[Refusal], Reason] = {AlreadyExists: lambda seen: "m" in seen.relations}
        await clients.ask("p3", lambda session: drop_semantic_model(session, NS, "m"), dropped)
        await clients.ask("p3", lambda session: create_semantic_model(session, NS, "m", DOCUMENT), made)

    async with asyncio.TaskGroup() as group:
        group.create_task(replaces("p1"))
        group.create_task(replaces("p2"))
        group.create_task(replaces("p1"))
        group.create_task(makes_it_anew())
    await world.settle()
