"""Whether a caller may do what a request asks: pure, over one registry's index (docs/design/access.md#judgement).

Grants are judged on the very HEAD that a request is answered from or commits on, so that a revocation holds for every
request that begins after it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from arco_catalog.iceberg.errors import BadRequest, Forbidden, NoSuchNamespace, NoSuchWarehouse, Refusal
from arco_catalog.planning.names import called, dotted, no_such
from arco_catalog.planning.privileges import Privilege, allowed
from arco_catalog.planning.reserved_namespace import is_reserved
from arco_catalog.state.entries import Kind, find_namespace, find_relation
from arco_catalog.state.index import Index, Namespace, namespace_key, relation_key
from arco_catalog.state.needs import Needs, Scan, Steps
from arco_catalog.state.policies import find_policy, policy_key
from arco_catalog.state.realm import (
    NAME_SOURCES,
    RUN_PIPELINE,
    PrincipalEntry,
    find_principal,
    name_under,
    names_under,
    principal_id_key,
    principal_key,
    roles_of,
    subject_key,
)
from arco_catalog.state.roles import CATALOG, ROOT, grant_key, granted_to, ids_under, privileges_held, used_by
from arco_catalog.state.watermarks import NAMESPACE

SecurableKind = Kind | Literal["table-like", "policy"]
"""What something with a name can be, to whom privileges are granted; what is `table-like` may be a table, a view or a
generic table."""


@dataclass(frozen=True, slots=True)
class Securable:
    """What a privilege is needed on: a catalog, a namespace of it, or what has a name there; with `entity`, what was
    dropped and has no name any more."""

    namespace: Namespace = ()
    name: str | None = None
    kind: SecurableKind = "table"
    entity: str | None = None

    def __str__(self) -> str:
        if self.entity is not None:
            return f"a dropped {called(self.kind)} of namespace {dotted(self.namespace)}"
        if self.name is not None:
            return f"{called(self.kind)} {dotted(self.namespace, self.name)}"
        return f"namespace {dotted(self.namespace)}" if self.namespace else "the catalog"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A privilege that a request needs, and on what; with `if_there` only if that exists. `on_view` is needed instead
    if what is table-like turns out to be a view. `writes_to` is the namespace that is made, or written to, if `on` does
    not lie in it."""

    privilege: Privilege
    on: Securable = Securable()
    if_there: bool = False
    on_view: Privilege | None = None
    writes_to: Namespace = ()

    @property
    def reserved(self) -> bool:
        """Whether it is needed to write to what only the pipeline writes to."""
        return is_reserved(self.privilege, self.writes_to or self.on.namespace)


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a request says that it is, verified: the principal's id in its realm; or, with `issued`, who it is to
    somebody else who vouches for it, as principals are registered by (`PrincipalEntry.subject`). `activated` are the
    principal roles that it activates by their names, None for all that it has. `secret` is the fingerprint of the
    secret that a token of ours was given for, and `actor` the id of the principal who asked for it on its behalf."""

    principal: str
    activated: frozenset[str] | None = None
    issued: bool = False
    secret: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """What an identity amounts to on one HEAD of its realm: the principal by name, its active principal roles by their
    ids, and what these allow on the realm itself. `must_rotate`: it may do nothing before it has new credentials;
    `names_sources`: it may say on whose behalf it makes its changes; `runs_pipeline`: it may use its privileges in
    the pipeline's own namespace."""

    id: str
    name: str
    roles: tuple[str, ...]
    service: frozenset[Privilege]
    must_rotate: bool = False
    names_sources: bool = False
    runs_pipeline: bool = False


def standing_of(index: Index, identity: Identity) -> Steps[Standing | None]:
    """What an identity amounts to by the realm's registry; None if the principal, or what its token was given for,
    is gone."""
    key = (subject_key if identity.issued else principal_id_key)(identity.principal)
    principal = yield from principal_under(index, key)
    actor = principal
    if identity.actor is not None:
        actor = yield from principal_under(index, principal_id_key(identity.actor))
    if principal is None or actor is None or not _is_live(identity, actor):
        return None
    yield Needs(scans=[Scan(roles_of(principal.entity))])
    has = names_under(index, roles_of(principal.entity))
    active = (role for role, name in has.items() if identity.activated is None or name in identity.activated)
    roles = tuple(sorted(active))
    yield Needs(keys=[grant_key(ROOT, role) for role in roles])
    service = allowed_by(privileges_held(index, ROOT, roles))
    if identity.actor is not None and Privilege.SERVICE_MANAGE_ACCESS in service:
        return None
    flags = principal.must_rotate, principal.names_sources, principal.runs_pipeline
    return Standing(principal.entity, principal.name, roles, service, *flags)


def principal_under(index: Index, key: str) -> Steps[PrincipalEntry | None]:
    """The principal whose name a key of a realm's registry leads to: by its id, its client id or its subject."""
    yield Needs(keys=[key])
    name = name_under(index, key)
    if name is None:
        return None
    yield Needs(keys=[principal_key(name)])
    return find_principal(index, name)


def _is_live(identity: Identity, actor: PrincipalEntry) -> bool:
    """Whether a token would be given to its `actor` again: a secret that was reset takes the tokens with it that were
    given for it."""
    given_for = identity.secret is None or identity.secret in {secret.fingerprint for secret in actor.secrets}
    return given_for and (identity.actor is None or actor.acts_for_others)


def judge(
    index: Index, catalog: str, standing: Standing, requirements: Sequence[Requirement], *, hides: bool = True
) -> Steps[None]:
    """Returns if the caller has all that is required, by a catalog's registry. Raises `Forbidden`; and with `hides`
    what is raised for something that does not exist, if the caller may not know that it does. What does not exist takes
    the privileges of what it would lie in: whoever may not know of it is told the same as if it were there. Raises
    `NoSuchWarehouse` for a caller without any privilege in the catalog."""
    _check_rotated(standing)
    roles = yield from catalog_roles_of(index, standing)
    unknown = NoSuchWarehouse(f"Warehouse does not exist: {catalog}")
    allowed_any = False
    for requirement in requirements:
        chain, exists = yield from _found(index, requirement.on)
        if not exists and requirement.if_there:
            continue
        held = yield from _held_on(index, chain, roles)
        kind = _type(index, requirement.on)
        privilege = requirement.privilege
        if kind == "view" and requirement.on_view is not None:
            privilege = requirement.on_view
        if privilege in held or privilege in standing.service:
            if requirement.reserved and not standing.runs_pipeline:
                raise denied(reserved(standing), privilege.value, kind)
            allowed_any = True
            continue
        if not (allowed_any or (yield from _holds_any(index, standing, roles))):
            raise denied(unknown, privilege.value, "catalog")
        own = exists and any(True for _ in privileges_held(index, chain[-1], roles))
        lists = exists and _LISTS[kind] in held
        may_know = not hides or (exists and (own or lists or not requirement.on.namespace))
        refusal = lacking(standing, privilege, requirement.on) if may_know else absent(requirement.on)
        raise denied(refusal, privilege.value, kind if kind == "catalog" or not exists else f"{kind} {chain[-1]}")
    if not (allowed_any or (yield from _holds_any(index, standing, roles))):
        raise denied(unknown, "any", "catalog")


def _holds_any(index: Index, standing: Standing, roles: Sequence[str]) -> Steps[bool]:
    """Whether the caller has any privilege in the catalog. One role is looked at after the other: mostly the first one
    tells."""
    for role in () if standing.service else roles:
        yield Needs(scans=[Scan(granted_to(role), until=lambda entry: True)])
        if index.any_in(granted_to(role)):
            return True
    return bool(standing.service)


def held_among(
    index: Index, standing: Standing, privileges: Collection[Privilege], on: Securable
) -> Steps[frozenset[Privilege]]:
    """Which of these privileges the caller has on a securable, by a catalog's registry; none on what does not exist,
    and none before it has rotated its credentials."""
    if standing.must_rotate:
        return frozenset()
    chain = yield from chain_of(index, on)
    if chain is None:
        return frozenset()
    roles = yield from catalog_roles_of(index, standing)
    held = yield from _held_on(index, chain, roles)
    allowed_here = frozenset(privileges) & (held | standing.service)
    if standing.runs_pipeline:
        return allowed_here
    return frozenset(each for each in allowed_here if not is_reserved(each, on.namespace))


def catalog_roles_of(index: Index, standing: Standing) -> Steps[Sequence[str]]:
    """The catalog roles that the caller's principal roles have, by their ids."""
    yield Needs(scans=[Scan(used_by(role)) for role in standing.roles])
    return sorted({role for principal_role in standing.roles for role in ids_under(index, used_by(principal_role))})


def _held_on(index: Index, chain: Sequence[str], roles: Sequence[str]) -> Steps[frozenset[Privilege]]:
    """What these roles may do with the last of a chain."""
    yield Needs(keys=[grant_key(securable, role) for securable in chain for role in roles])
    return allowed_by(name for securable in chain for name in privileges_held(index, securable, roles))


def judge_service(standing: Standing, requirements: Sequence[Requirement], itself: str | None = None) -> None:
    """The same of what is done to a realm itself, by what its registry says. `itself` is the principal that is acted on
    if there is one: to rotate its own credentials it needs no privilege. Raises `Forbidden`."""
    for requirement in requirements:
        own = itself == standing.name and requirement.privilege is Privilege.PRINCIPAL_ROTATE_CREDENTIALS
        if not own:
            _check_rotated(standing)
            if requirement.privilege not in standing.service:
                refusal = Forbidden(f"Principal {standing.name} lacks the privilege {requirement.privilege}")
                raise denied(refusal, requirement.privilege.value, "realm")


def denied(refusal: Refusal, privilege: str, securable: str) -> Refusal:
    """The refusal of a caller who lacks a privilege, with what logs say of it."""
    refusal.denied = (privilege, securable)
    return refusal


def check_source(standing: Standing) -> None:
    """Raises `BadRequest` for a caller who names a source of its change, and may not."""
    if not standing.names_sources:
        raise BadRequest(
            f"Principal {standing.name} may not say on whose behalf it works: leave out X-Arco-Servo-Run-Id, "
            f"X-Arco-Servo-Task-Id and X-Arco-Admin-User, or register it by the property {NAME_SOURCES}"
        )


def reserved(standing: Standing) -> Forbidden:
    """What a caller is told who may write everywhere but there."""
    return Forbidden(
        f"Only the pipeline writes to the namespace {NAMESPACE}: principal {standing.name} is not registered by the "
        f"property {RUN_PIPELINE}"
    )


def lacking(standing: Standing, privilege: Privilege, on: Securable) -> Forbidden:
    """What a caller is told who may know of the securable."""
    return Forbidden(f"Principal {standing.name} lacks the privilege {privilege} on {on}")


def _check_rotated(standing: Standing) -> None:
    if standing.must_rotate:
        raise Forbidden(f"Principal {standing.name} must rotate credentials first, before it may do anything else")


def allowed_by(names: Iterable[str]) -> frozenset[Privilege]:
    """What privileges allow; names that a later version stored are passed over."""
    return allowed(Privilege(name) for name in set(names) if name in Privilege.__members__)


def absent(securable: Securable) -> Refusal:
    """What is said of a securable that does not exist, or that the caller may not know of."""
    if securable.name is not None:
        return no_such(securable.kind, securable.namespace, securable.name)
    return NoSuchNamespace(f"Namespace does not exist: {dotted(securable.namespace)}")


_LISTS = {
    "catalog": Privilege.CATALOG_LIST,
    "namespace": Privilege.NAMESPACE_LIST,
    "table": Privilege.TABLE_LIST,
    "generic-table": Privilege.TABLE_LIST,
    "semantic-model": Privilege.TABLE_LIST,
    "view": Privilege.VIEW_LIST,
    "policy": Privilege.POLICY_LIST,
}


def _type(index: Index, securable: Securable) -> str:
    """What a securable is, as far as that is known."""
    if securable.name is None:
        return "namespace" if securable.namespace else "catalog"
    if securable.kind != "table-like":
        return securable.kind
    found = find_relation(index, securable.namespace, securable.name)
    return "table" if found is None else found.kind


def chain_of(index: Index, securable: Securable) -> Steps[Sequence[str] | None]:
    """The ids of a securable and of all that contains it, outermost first; None if it does not exist."""
    chain, exists = yield from _found(index, securable)
    return chain if exists else None


def find_securable(index: Index, securable: Securable) -> str | None:
    """The id of what has the securable's name, if privileges on its kind are on that: those on tables are on generic
    tables and semantic models, too. Its key is loaded."""
    assert securable.name is not None
    if securable.kind == "policy":
        policy = find_policy(index, securable.namespace, securable.name)
        return None if policy is None else policy.entity
    relation = find_relation(index, securable.namespace, securable.name)
    kinds = _KINDS.get(securable.kind, (securable.kind,))
    return relation.entity if relation is not None and relation.kind in kinds else None


_KINDS: Mapping[str, Sequence[str]] = {
    "table": ("table", "generic-table", "semantic-model"),
    "table-like": ("table", "view", "generic-table"),
}


def _found(index: Index, securable: Securable) -> Steps[tuple[Sequence[str], bool]]:
    """The ids of a securable and of all that contains it, as far as these exist, and whether they all do."""
    namespaces = [securable.namespace[:depth] for depth in range(1, len(securable.namespace) + 1)]
    keys = [namespace_key(namespace) for namespace in namespaces]
    if securable.name is not None:
        key = policy_key if securable.kind == "policy" else relation_key
        keys.append(key(securable.namespace, securable.name))
    yield Needs(keys=keys)
    chain = [CATALOG]
    for namespace in namespaces:
        entry = find_namespace(index, namespace)
        if entry is None:
            return chain, False
        chain.append(entry.entity)
    if securable.name is not None:
        entity = find_securable(index, securable)
        if entity is None:
            return chain, False
        chain.append(entity)
    elif securable.entity is not None:
        chain.append(securable.entity)
    return chain, True
