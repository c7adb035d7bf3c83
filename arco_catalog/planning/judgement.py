"""Checks whether a caller has the privileges that a request needs. The checks are computed from one registry's index,
and change nothing (docs/design/access.md#judgement).

They use the HEAD from which a request is answered, or on which it commits. So a revocation applies to every request
that begins after it.
"""

from collections.abc import Collection, Iterable, Sequence

from arco_catalog.iceberg.errors import BadRequest, Forbidden, NoSuchWarehouse, Refusal
from arco_catalog.planning.access import Identity, Requirement, Securable, Standing, denied
from arco_catalog.planning.held_grants import HeldGrants, names_of
from arco_catalog.planning.privileges import Privilege, allowed
from arco_catalog.planning.reserved_namespace import is_reserved
from arco_catalog.planning.securables import LISTS, absent, chain_of, find_chain, kind_of
from arco_catalog.state.index import Index
from arco_catalog.state.needs import Needs, Scan, Steps
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
from arco_catalog.state.roles import ROOT, grant_key, privileges_held
from arco_catalog.state.watermarks import NAMESPACE


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
    still do so, and does not have to rotate its own credentials first."""
    given_for = identity.secret is None or identity.secret in {secret.fingerprint for secret in actor.secrets}
    return given_for and (identity.actor is None or (actor.acts_for_others and not actor.must_rotate))


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
    """Whether `judge` returns without an error for one requirement, as it does for one with `if_there` on what does not
    exist, unless the caller has no privilege in the catalog."""
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
    first. Without requirements every caller is let through, also before the rotation."""
    for requirement in requirements:
        own = itself == standing.name and requirement.privilege is Privilege.PRINCIPAL_ROTATE_CREDENTIALS
        if not own:
            _check_rotated(standing)
            if requirement.privilege not in standing.service:
                refusal = Forbidden(
                    f"Principal {standing.name} lacks the privilege {requirement.privilege} on the realm"
                )
                raise denied(refusal, requirement.privilege.value, "realm")


def check_source(standing: Standing) -> None:
    """Raises `BadRequest` unless the caller may name the source of its change."""
    if not standing.names_sources:
        raise BadRequest(
            f"Principal {standing.name} may not name the source of its changes, also not in a request that only reads: "
            "leave out X-Arco-Servo-Run-Id, X-Arco-Servo-Task-Id and X-Arco-Admin-User, or set its property "
            f"{NAME_SOURCES} to true"
        )


def reserved(standing: Standing) -> Forbidden:
    """Returns the error for a principal that would write to the namespace that only the pipeline may write to."""
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
