"""The questions to a policy outside of the catalog about a request: one for each privilege on each securable
(docs/design/access.md#a-policy-outside-of-the-catalog).

A question names its securable, as the request does, so the question is the same whether the securable exists or
not, and its answer does not reveal that. Where the request leaves the type open, the type is that of what has the name,
and a refusal reads as if nothing had it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from arco_catalog.iceberg.json import JsonObject, JsonValue
from arco_catalog.planning.access import Requirement, Securable
from arco_catalog.planning.names import dotted
from arco_catalog.planning.securables import find_chain, kind_of
from arco_catalog.state.index import Index, Namespace
from arco_catalog.state.needs import Steps
from arco_catalog.state.watermarks import NAMESPACE as PIPELINE
from storage_backends.lazy_dataclass import dataclass

SYSTEM_ACCESS = "SYSTEM_ACCESS"
"""The action that everything in the pipeline's namespace needs besides the privilege: its tables have rows about all
others, which no decision about one table covers."""
_TYPES: Mapping[str, str] = {
    "catalog": "CATALOG",
    "namespace": "NAMESPACE",
    "table": "TABLE",
    "generic-table": "GENERIC_TABLE",
    "semantic-model": "SEMANTIC_MODEL",
    "view": "VIEW",
    "policy": "POLICY",
}
"""The types of securables as a policy reads them."""


@dataclass(frozen=True, slots=True)
class Actor:
    """The caller: the name and the id of the principal, and the names of its active principal roles. `realm` is None on
    a server without realms."""

    principal: str
    id: str
    roles: tuple[str, ...] = ()
    realm: str | None = None

    def to_json(self) -> JsonObject:
        """Returns the actor in the form in which a policy reads it."""
        return {"principal": self.principal, "id": self.id, "roles": [*self.roles]}


@dataclass(frozen=True, slots=True)
class Question:
    """Whether an actor may do `action`, the name of a privilege or `SYSTEM_ACCESS`, on a securable of the type `type`:
    the realm (`ROOT`) without a catalog, a catalog, or an object in one. Of a dropped table, which has no name any
    more, `name` is its id, and it `is_dropped`. Where the type is that of the object which has the name, `if_absent` is
    the same question for a name without an object, and a refused caller gets the answer for that one."""

    action: str
    type: str
    catalog: str | None
    namespace: Namespace = ()
    name: str | None = None
    is_dropped: bool = False
    if_absent: "Question | None" = field(default=None, compare=False)

    def __str__(self) -> str:
        if self.catalog is None:
            return f"{self.action} on the realm"
        if self.is_dropped:
            return f"{self.action} on a dropped table of namespace {dotted(self.namespace)}"
        if self.name is not None:
            return f"{self.action} on {self.type.lower().replace('_', ' ')} {dotted(self.namespace, self.name)}"
        return f"{self.action} on {f'namespace {dotted(self.namespace)}' if self.namespace else 'the catalog'}"

    def resource(self) -> JsonObject:
        """Returns the securable in the form in which a policy reads it: one target, and what contains it, outermost
        first."""
        if self.catalog is None:
            return {"targets": [{"type": self.type, "name": "root", "parents": []}]}
        path = [("CATALOG", self.catalog), *(("NAMESPACE", level) for level in self.namespace)]
        if self.name is not None:
            path.append((self.type, self.name))
        parents: list[JsonValue] = [{"type": kind, "name": name} for kind, name in path[:-1]]
        target: JsonObject = {"type": self.type, "name": path[-1][1], "parents": parents}
        if self.is_dropped:
            target["dropped"] = True
        return {"targets": [target]}


def realm_questions(requirements: Iterable[Requirement]) -> Sequence[Question]:
    """Returns one question about the realm itself for every requirement; the caller passes none on a catalog."""
    return [Question(each.privilege.value, "ROOT", None) for each in requirements]


def questions_of(index: Index, catalog: str, requirements: Iterable[Requirement]) -> Steps[Sequence[Question]]:
    """Returns the questions about what a request requires in a catalog, without duplicates, in the order of the
    requirements. A requirement in the pipeline's namespace, or that writes to it, adds `system_question` before its
    own. One with `if_there` on a securable that does not exist has none."""
    found: dict[Question, None] = {}
    for required in requirements:
        on, privilege, if_absent = required.on, required.privilege, None
        kind = _kind(on)
        if required.if_there or on.kind == "table-like":
            _, exists = yield from find_chain(index, on)
            if not exists and required.if_there:
                continue
            kind = kind_of(index, on)
            if kind == "view" and required.on_view is not None:
                privilege = required.on_view
            if on.kind == "table-like" and kind != "table":
                if_absent = Question(required.privilege.value, _TYPES["table"], catalog, on.namespace, on.name)
        if PIPELINE in (*on.namespace[:1], *required.writes_to[:1]):
            found[system_question(catalog)] = None
        name = on.entity if on.is_dropped else on.name
        found[Question(privilege.value, _TYPES[kind], catalog, on.namespace, name, on.is_dropped, if_absent)] = None
    return [*found]


def system_question(catalog: str) -> Question:
    """Returns the question that everything in the pipeline's namespace of a catalog needs besides: `SYSTEM_ACCESS` on
    the catalog."""
    return Question(SYSTEM_ACCESS, "CATALOG", catalog)


def _kind(on: Securable) -> str:
    """Returns the kind of a securable without a search for it: `table-like` remains so."""
    if on.name is None and on.entity is None:
        return "namespace" if on.namespace else "catalog"
    return on.kind
