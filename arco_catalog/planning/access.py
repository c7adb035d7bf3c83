"""Checks whether a caller has the privileges that a request needs. The checks are computed from one registry's index,
and change nothing (docs/design/access.md#judgement).

They use the HEAD from which a request is answered, or on which it commits. So a revocation applies to every request
that begins after it.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Literal

from arco_catalog.iceberg.errors import BadRequest, Forbidden, NoSuchNamespace, NoSuchWarehouse, Refusal
from arco_catalog.planning.held_grants import HeldGrants, names_of
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
from arco_catalog.state.roles import CATALOG, ROOT, grant_key, privileges_held
from arco_catalog.state.watermarks import NAMESPACE
from storage_backends.lazy_dataclass import dataclass

SecurableKind = Kind | Literal["table-like", "policy"]
"""The kinds of securable that have a name in a namespace; `table-like` means a table, a view or a generic table."""


@dataclass(frozen=True, slots=True)
class Securable:
    """The object on which a privilege is needed: the catalog, a namespace, or an object in a namespace. An object is
    given by its `name`, by its id (`entity`) and the name that it has now, or by the id alone if it was dropped and has
    no name any more."""

    namespace: Namespace = ()
    name: str | None = None
    kind: SecurableKind = "table"
    entity: str | None = None

    @property
    def is_dropped(self) -> bool:
        """Whether this is a dropped table or view."""
        return self.name is None and self.entity is not None

    def __str__(self) -> str:
        if self.is_dropped:
            return f"a dropped {called(self.kind)} of namespace {dotted(self.namespace)}"
        if self.name is not None:
            return f"{called(self.kind)} {dotted(self.namespace, self.name)}"
        return f"namespace {dotted(self.namespace)}" if self.namespace else "the catalog"


@dataclass(frozen=True, slots=True)
class Requirement:
    """A privilege that a request needs on a securable; with `if_there` only if that exists. If a `table-like` securable
    is a view, `on_view` is needed instead. `writes_to` is the namespace that the request creates or writes to, if that
    is not the one of `on`."""

    privilege: Privilege
    on: Securable = Securable()
    if_there: bool = False
    on_view: Privilege | None = None
    writes_to: Namespace = ()

    @property
    def reserved(self) -> bool:
        """Whether the request would write to the namespace that only the pipeline may write to."""
        return is_reserved(self.privilege, self.writes_to or self.on.namespace)


@dataclass(frozen=True, slots=True)
class Identity:
    """The authenticated identity of a request's caller. `principal` is the id in the realm or, if `issued`, its subject
    at an external issuer (`PrincipalEntry.subject`). `activated` are the names of the principal roles that it
    activates, None for all that it has. If the catalog issued its token, `secret` is the fingerprint of the secret for
    which it did, and `actor` the id of the principal that requested the token on its behalf."""

    principal: str
    activated: frozenset[str] | None = None
    issued: bool = False
    secret: str | None = None
    actor: str | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """The rights of an identity on one HEAD of the realm: the id and name of the principal, the ids of its active
    principal roles, and their privileges on the realm itself (`service`). `must_rotate`: it may only rotate its
    credentials. `names_sources`: it may name the source of its changes. `runs_pipeline`: it may use the privileges in
    the pipeline's own namespace."""

    id: str
    name: str
    roles: tuple[str, ...]
    service: frozenset[Privilege]
    must_rotate: bool = False
    names_sources: bool = False
    runs_pipeline: bool = False
    role_names: tuple[str, ...] = field(default=(), compare=False)
    """The names of the roles, in order, for policies, which have no ids of roles."""


def standing_of(index: Index, identity: Identity) -> Steps[Standing | None]:
    """Returns the rights of an identity from the realm's registry. None if the principal, or the actor that requested
    the token on its behalf, does not exist; if the token is no longer valid, because the secret for which it was issued
    was replaced or the actor may no longer act for others; and if an actor requested it for a principal that manages
    the access to the realm."""
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
    names = tuple(sorted(has[role] for role in roles))
    return Standing(principal.entity, principal.name, roles, service, *flags, role_names=names)


def principal_under(index: Index, key: str) -> Steps[PrincipalEntry | None]:
    """Returns the principal to which a key of the realm's registry leads, the key of an id, a client id or a subject;
    None if there is none."""
    yield Needs(keys=[key])
    name = name_under(index, key)
    if name is None:
        return None
    yield Needs(keys=[principal_key(name)])
    return find_principal(index, name)


def _is_live(identity: Identity, actor: PrincipalEntry) -> bool:
    """Whether the token of an identity is still valid: the `actor`, which requested it, still has the secret for which
    the catalog issued it, if the identity names that; and if it was requested for another principal, the `actor` may
    still do so."""
    given_for = identity.secret is None or identity.secret in {secret.fingerprint for secret in actor.secrets}
    return given_for and (identity.actor is None or actor.acts_for_others)


def judge(
    index: Index,
    catalog: str,
    standing: Standing,
    requirements: Sequence[Requirement],
    *,
    hides: bool = True,
    grants: HeldGrants | None = None,
) -> Steps[None]:
    """Returns if the caller has all required privileges in a catalog, by the index of its registry and the privileges
    on the realm (`Standing.service`). A requirement with `if_there` on a securable that does not exist is skipped.
    `grants` are those of the caller by this index, where several judgements share them.

    Raises `Forbidden` for a missing privilege, for a caller who must rotate credentials first, and for a write that
    only the pipeline may make. With `hides`, it raises the error for a missing object instead of the one for a missing
    privilege, if the caller may not know that the object exists. For an object that does not exist, the privileges on
    the namespace around it count, so that a caller without rights gets one error in both cases. Raises
    `NoSuchWarehouse` for a caller without any privilege in the catalog.
    """
    _check_rotated(standing)
    grants = grants or HeldGrants(index, standing.roles)
    unknown = NoSuchWarehouse(f"Warehouse does not exist: {catalog}")
    allowed_any = False
    for requirement in requirements:
        chain, exists = yield from find_chain(index, requirement.on)
        if not exists and requirement.if_there:
            continue
        found = yield from grants.on(chain)
        held = allowed_by(names_of(found))
        kind = kind_of(index, requirement.on)
        privilege = requirement.privilege
        if kind == "view" and requirement.on_view is not None:
            privilege = requirement.on_view
        if privilege in held or privilege in standing.service:
            if requirement.reserved and not standing.runs_pipeline:
                raise denied(reserved(standing), privilege.value, kind)
            allowed_any = True
            continue
        if not (allowed_any or (yield from _holds_any(standing, grants))):
            raise denied(unknown, privilege.value, "catalog")
        own = exists and bool(found[-1])
        lists = exists and LISTS[kind] in held
        may_know = not hides or (exists and (own or lists or not requirement.on.namespace))
        refusal = lacking(standing, privilege, requirement.on) if may_know else absent(requirement.on)
        raise denied(refusal, privilege.value, kind if kind == "catalog" or not exists else f"{kind} {chain[-1]}")
    if not (allowed_any or (yield from _holds_any(standing, grants))):
        raise denied(unknown, "any", "catalog")


def _holds_any(standing: Standing, grants: HeldGrants) -> Steps[bool]:
    """Whether the caller has any privilege in the catalog; any privilege on the realm counts, too."""
    return bool(standing.service) or (yield from grants.has_any())


def holds(
    index: Index, catalog: str, standing: Standing, requirement: Requirement, grants: HeldGrants | None = None
) -> Steps[bool]:
    """Whether `judge` returns for one requirement."""
    return (yield from refusal_of(index, catalog, standing, requirement, grants)) is None


def refusal_of(
    index: Index, catalog: str, standing: Standing, requirement: Requirement, grants: HeldGrants | None = None
) -> Steps[Refusal | None]:
    """Returns the error that `judge` raises for one requirement; None if it returns."""
    try:
        yield from judge(index, catalog, standing, [requirement], grants=grants)
    except Refusal as refusal:
        return refusal
    return None


def held_among(
    index: Index,
    standing: Standing,
    privileges: Collection[Privilege],
    on: Securable,
    grants: HeldGrants | None = None,
) -> Steps[frozenset[Privilege]]:
    """Returns those of the `privileges` that the caller has on a securable, by the index of a catalog's registry,
    without those that only the pipeline may use there. Empty if the securable does not exist, and if the caller must
    rotate the credentials first. `grants` are those of the caller by this index, where others use them, too."""
    if standing.must_rotate:
        return frozenset()
    chain = yield from chain_of(index, on)
    if chain is None:
        return frozenset()
    grants = grants or HeldGrants(index, standing.roles)
    held = allowed_by(names_of((yield from grants.on(chain))))
    allowed_here = frozenset(privileges) & (held | standing.service)
    if standing.runs_pipeline:
        return allowed_here
    return frozenset(each for each in allowed_here if not is_reserved(each, on.namespace))


def judge_service(standing: Standing, requirements: Sequence[Requirement], itself: str | None = None) -> None:
    """Returns if the caller has all required privileges on the realm itself. `itself` is the name of the principal that
    the request changes, if it changes one: a principal may rotate its own credentials without a privilege, and even if
    it must rotate them first. Raises `Forbidden` for a missing privilege, and for a caller who must rotate credentials
    first."""
    for requirement in requirements:
        own = itself == standing.name and requirement.privilege is Privilege.PRINCIPAL_ROTATE_CREDENTIALS
        if not own:
            _check_rotated(standing)
            if requirement.privilege not in standing.service:
                refusal = Forbidden(
                    f"Principal {standing.name} lacks the privilege {requirement.privilege} on the realm"
                )
                raise denied(refusal, requirement.privilege.value, "realm")


def denied(refusal: Refusal, privilege: str, securable: str) -> Refusal:
    """Returns the error itself, after it has got the missing privilege and the securable, for logs; the client's
    message does not change."""
    refusal.denied = (privilege, securable)
    return refusal


def check_source(standing: Standing) -> None:
    """Raises `BadRequest` unless the caller may name the source of its change."""
    if not standing.names_sources:
        raise BadRequest(
            f"Principal {standing.name} may not name the source of its changes: leave out X-Arco-Servo-Run-Id, "
            f"X-Arco-Servo-Task-Id and X-Arco-Admin-User, or set its property {NAME_SOURCES} to true"
        )


def reserved(standing: Standing) -> Forbidden:
    """Returns the error of a write to the namespace that only the pipeline may write to."""
    return Forbidden(
        f"Only the pipeline writes to the namespace {NAMESPACE}: principal {standing.name} is not registered by the "
        f"property {RUN_PIPELINE} with the value true"
    )


def lacking(standing: Standing, privilege: Privilege, on: Securable) -> Forbidden:
    """Returns the error for a missing privilege on a securable of which the caller may know."""
    return Forbidden(describe_lack(standing.name, privilege, on))


def describe_lack(principal: str, privilege: Privilege, on: Securable) -> str:
    """Returns the message about a privilege on a securable that a principal lacks."""
    return f"Principal {principal} lacks the privilege {privilege} on {on}"


def rotation_required(standing: Standing) -> Forbidden:
    """Returns the error for a principal that must rotate its credentials before it does anything else."""
    return Forbidden(
        f"Principal {standing.name} must rotate credentials first, by its management route `rotate`, before it may do "
        "anything else"
    )


def _check_rotated(standing: Standing) -> None:
    """Raises `Forbidden` if the principal must rotate its credentials first."""
    if standing.must_rotate:
        raise rotation_required(standing)


def allowed_by(names: Iterable[str]) -> frozenset[Privilege]:
    """Returns the privileges with these names and all that they imply. Unknown names, which a later version stored, are
    ignored."""
    return allowed(Privilege(name) for name in set(names) if name in Privilege.__members__)


def absent(securable: Securable) -> Refusal:
    """Returns the error with which a request for a securable is refused that does not exist, or of which the caller may
    not know: both get one message."""
    if securable.name is not None:
        return no_such(securable.kind, securable.namespace, securable.name)
    return NoSuchNamespace(f"Namespace does not exist: {dotted(securable.namespace)}")


LISTS: Mapping[str, Privilege] = {
    "catalog": Privilege.CATALOG_LIST,
    "namespace": Privilege.NAMESPACE_LIST,
    "table": Privilege.TABLE_LIST,
    "generic-table": Privilege.TABLE_LIST,
    "semantic-model": Privilege.TABLE_LIST,
    "view": Privilege.VIEW_LIST,
    "policy": Privilege.POLICY_LIST,
}
"""The privilege to know that a securable exists, by its kind."""


def kind_of(index: Index, securable: Securable) -> str:
    """Returns the kind of a securable. A `table-like` one has the kind of the entry, or `table` if it does not
    exist; the key of its name must be loaded."""
    if securable.name is None:
        return "namespace" if securable.namespace else "catalog"
    if securable.kind != "table-like":
        return securable.kind
    found = find_relation(index, securable.namespace, securable.name)
    return "table" if found is None else found.kind


def chain_of(index: Index, securable: Securable) -> Steps[Sequence[str] | None]:
    """Returns the ids of a securable and of all that contain it, outermost first; None if one of them does not exist. A
    dropped table or view, given by an id, counts as existing."""
    chain, exists = yield from find_chain(index, securable)
    return chain if exists else None


def find_securable(index: Index, securable: Securable) -> str | None:
    """Returns the id of the entity with the securable's name, None if there is none of its kind. An entity that a
    transaction creates counts before the transaction has committed. The kind `table` includes generic tables and
    semantic models, to which privileges on tables apply. The key of the name must be loaded."""
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


def find_chain(index: Index, securable: Securable) -> Steps[tuple[Sequence[str], bool]]:
    """Returns two things: the ids of a securable and of all that contain it, outermost first and up to the first that
    does not exist, and whether all exist. A table or view that is given by its id counts as existing."""
    namespaces = [securable.namespace[:depth] for depth in range(1, len(securable.namespace) + 1)]
    keys = [namespace_key(namespace) for namespace in namespaces]
    if securable.name is not None and securable.entity is None:
        key = policy_key if securable.kind == "policy" else relation_key
        keys.append(key(securable.namespace, securable.name))
    yield Needs(keys=keys)
    chain = [CATALOG]
    for namespace in namespaces:
        entry = find_namespace(index, namespace)
        if entry is None:
            return chain, False
        chain.append(entry.entity)
    if securable.entity is not None:
        chain.append(securable.entity)
    elif securable.name is not None:
        entity = find_securable(index, securable)
        if entity is None:
            return chain, False
        chain.append(entity)
    return chain, True
