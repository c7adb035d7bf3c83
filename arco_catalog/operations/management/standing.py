"""Reads which rights a principal has in its realm, independent of the caller's own: for the token endpoint and the
delegation service."""

from dataclasses import replace

from arco_catalog.planning.access import Identity
from arco_catalog.planning.judgement import standing_of
from arco_catalog.planning.privileges import Privilege
from arco_catalog.protocol.catalog import Session
from arco_catalog.protocol.lookup import carry_out
from arco_catalog.state.access import State
from arco_catalog.state.realm import PrincipalEntry


async def manages_access(session: Session, principal: PrincipalEntry) -> bool:
    """Whether any principal role of a principal lets it manage the access to the realm, by the realm's current HEAD;
    False for a principal that no longer exists."""
    head = await session.state.head()
    standing = await carry_out(session.state, head.index, standing_of(head.index, Identity(principal.entity)))
    return standing is not None and Privilege.SERVICE_MANAGE_ACCESS in standing.service


async def has_role(realm: State, identity: Identity, role: str) -> bool:
    """Whether an identity is still valid, and that of a principal which has a principal role of this name, also if the
    token does not activate it, and need not rotate credentials, by the realm's current HEAD."""
    head = await realm.head()
    activated = replace(identity, activated=frozenset({role}))
    standing = await carry_out(realm, head.index, standing_of(head.index, activated))
    return standing is not None and bool(standing.roles) and not standing.must_rotate
