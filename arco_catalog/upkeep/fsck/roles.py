"""Examines roles, grants, principals, and attachments of policies in a registry's index. A grant, assignment,
membership or attachment has two entries, one under either side, written by one commit (docs/design/access.md#records,
docs/design/polaris.md#rule-6)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field

from arco_catalog.iceberg.json import JsonObject
from arco_catalog.state.fields import text, texts
from arco_catalog.state.realm import PrincipalEntry
from arco_catalog.state.roles import RoleEntry

OTHER_SIDE = {"grant": "granted", "usage": "assignee", "has-role": "member", "policy-attached": "policy-target"}
"""Kinds of entries of relations, each with the kind of the entry from the other side."""
LEADS = ("principal-id", "client", "subject")
"""Kinds of entries that refer to a principal."""


@dataclass
class Roles:
    """Collects the entries of roles, grants, principals and attachments of policies, and finds inconsistencies between
    them."""

    _sides: dict[str, dict[tuple[str, str], JsonObject]] = field(default_factory=lambda: defaultdict(dict))
    _roles: set[str] = field(default_factory=set)
    _principals: dict[str, PrincipalEntry] = field(default_factory=dict)
    _leads: dict[tuple[str, str], str] = field(default_factory=dict)

    def note(self, kind: str, parent: str, name: str, entry: JsonObject) -> None:
        """Adds an entry of the index to the examination if it is of a role, a grant, a principal or an attachment of a
        policy; ignores entries of other kinds. Raises `InternalError` for a role, a principal or a reference to a
        principal that lacks a field; the fields of grants and attachments are not read."""
        if kind in OTHER_SIDE or kind in OTHER_SIDE.values():
            self._sides[kind][parent, name] = entry
        elif kind in ("catalog-role", "principal-role"):
            self._roles.add(RoleEntry(entry).entity)
        elif kind == "principal":
            principal = PrincipalEntry(entry)
            _ = principal.entity, principal.client_id, principal.subject  # it must have these
            self._principals[name] = principal
        elif kind in LEADS:
            self._leads[kind, name] = text(entry, "name")

    def misfits(self) -> Iterator[str]:
        """Yields a sentence for each inconsistency between the added entries: an entry on one side only, sides with
        different privileges, a grant to a role that does not exist, and the ones in the records of principals."""
        for kind, other in OTHER_SIDE.items():
            one, another = self._sides[kind], self._sides[other]
            for left, right in sorted({*one, *((right, left) for left, right in another)}):
                if (left, right) not in one or (right, left) not in another:
                    yield f"{kind} of {left} and {right} has an entry on one side only"
        for (securable, role), entry in sorted(self._sides["grant"].items()):
            opposite = self._sides["granted"].get((role, securable))
            if opposite is not None and texts(entry, "privileges") != texts(opposite, "privileges"):
                yield f"the two sides of the grant on {securable} to {role} have different privileges"
            if role not in self._roles:
                yield f"a grant on {securable} is of role {role}, which does not exist"
        yield from self._misfits_of_principals()

    def _misfits_of_principals(self) -> Iterator[str]:
        """Yields a sentence for each inconsistency in the records of principals: a role or principal that does not
        exist, or an id, client or subject that leads to another principal or to none."""
        ids = {principal.entity for principal in self._principals.values()}
        for principal, role in sorted(self._sides["has-role"]):
            if principal not in ids or role not in self._roles:
                yield f"principal {principal} has role {role}, and one of them does not exist"
        expected: dict[tuple[str, str], str] = {}
        for name, each in self._principals.items():
            expected["principal-id", each.entity] = name
            expected["client", each.client_id] = name
            if each.subject is not None:
                expected["subject", each.subject] = name
        for kind, key in sorted({*expected, *self._leads}):
            if expected.get((kind, key)) != self._leads.get((kind, key)):
                yield f"{kind} {key} does not refer to its principal"
