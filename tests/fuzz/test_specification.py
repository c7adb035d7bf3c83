"""The server, driven from the specification: never a failure, an undocumented status, or an answer that is not as the
specification describes it. The same requests each time; `make fuzz` sends others."""

import asyncio
from collections.abc import Callable, Mapping
from random import Random

import pytest
from hypothesis import find
from hypothesis import strategies as st

from arco_catalog.iceberg.json import JsonObject, dumps
from arco_catalog.iceberg.requirements import TABLE_REQUIREMENTS
from arco_catalog.iceberg.updates import TABLE_UPDATES
from tests.fuzz.bodies import table_requirements, table_updates
from tests.fuzz.campaign import bounds, in_memory, require_success, run
from tests.fuzz.services import Address, InMemoryService, Request
from tests.fuzz.specification import operations

EXAMPLES = 10
MORE_EXAMPLES = 25
"""Of what seldom succeeds: a share of few means little."""
DRAWS = (None, 1, 2, 3)
"""Seeds of the requests: the others are for an operation of which the first draw has too few that succeed."""
LEAST_SUCCESS = 0.25
"""The share of right answers that an operation must give at least, so that not all requests fail at the lookup of
names. What is drawn depends on the tests that ran before, and is little."""

WITHOUT_SUCCESS = {
    "GET /v1/{prefix}/tasks/{task}",
    "POST /v1/oauth/tokens",
    "GET /v1/{prefix}/namespaces/{namespace}/functions/{function}",
    "GET /v1/{prefix}/namespaces/{namespace}/tables/{table}/credentials",
    "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/sign",
}
"""Operations that this catalog has nothing behind, and that of a task, of which it has none."""
NOTIFY = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/notifications"
POLICY = "/polaris/v1/{prefix}/namespaces/{namespace}/policies/{policy-name}"
COMMIT = "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}"
SELDOM: Mapping[str, float] = {
    **{  # the version to compare must be there
        f"GET /v1/{{prefix}}/namespaces/{{namespace}}/{of}/compare": 0.25 for of in ("tables/{table}", "views/{view}")
    },
    COMMIT: 0.1,
    "POST /v1/{prefix}/namespaces/{namespace}/views/{view}": 0.1,
    "DELETE /v1/{prefix}/namespaces/{namespace}": 0.05,  # only one is empty
    "POST /v1/{prefix}/transactions/commit": 0.1,  # all must be right
    NOTIFY: 0.05,  # later than the last, and of one table
    f"DELETE {POLICY}": 0.1,  # most are attached
    f"PUT {POLICY}": 0.1,
    f"POST {POLICY.removesuffix('/{policy-name}')}": 0.1,  # the content must be the type's
    f"POST {POLICY}/mappings": 0.1,  # it must be attached
    "PUT /polaris/v1/{prefix}/namespaces/{namespace}/semantic-models/{semantic-model-name}": 0.1,  # of one version
}
"""Operations at which few requests can succeed, or a small share of them: more requests are sent."""
CREATIONS = frozenset(
    {
        "POST /v1/{prefix}/namespaces",
        "POST /v1/{prefix}/namespaces/{namespace}/tables",
        "POST /v1/{prefix}/namespaces/{namespace}/register",
        "POST /v1/{prefix}/namespaces/{namespace}/register-view",
        "POST /polaris/v1/{prefix}/namespaces/{namespace}/generic-tables",
        "POST /polaris/v1/{prefix}/namespaces/{namespace}/semantic-models",
    }
)
"""Operations at which fewer than half of the requests succeed, since the name must be new, and its parent there: more
requests are sent of them, too."""


@pytest.fixture(scope="module")
def following() -> Callable[[], InMemoryService]:
    """Catalogs whose tables are another catalog's."""
    return in_memory(external=True)


@pytest.fixture(scope="module")
def fresh() -> Callable[[], InMemoryService]:
    """Catalogs with tables, views and namespaces in them."""
    return in_memory()


@pytest.mark.parametrize("label", [*operations()])
def test_every_answer_is_as_specified(
    label: str, fresh: Callable[[], InMemoryService], following: Callable[[], InMemoryService]
) -> None:
    examples = MORE_EXAMPLES if label in CREATIONS or label in SELDOM else EXAMPLES
    least = SELDOM.get(label, LEAST_SUCCESS)
    seeds = DRAWS[:1] if label in WITHOUT_SUCCESS else DRAWS
    source = following if label == NOTIFY else fresh

    def is_enough(share: float) -> bool:
        return (share >= least) != (label in WITHOUT_SUCCESS)

    require_success(label, lambda number: run(label, source, examples, number=number), seeds, is_enough)


@pytest.mark.parametrize("kind", [*TABLE_UPDATES, *(name for name in TABLE_REQUIREMENTS if name != "assert-create")])
def test_every_kind_of_update_and_requirement_is_tried_where_it_holds(
    kind: str, fresh: Callable[[], InMemoryService]
) -> None:
    address = fresh().address
    commits = one_of_kind(address, kind)
    targets = st.sampled_from(
        [f"{address.namespaces}/db/tables/{name}" for name in ("t", "snapshots", "v3", "registered")]
    )

    def applied(target: str, commit: JsonObject) -> bool:
        answer = asyncio.run(fresh().send(Request(COMMIT, "POST", target, (), dumps(commit))))
        return answer.status == 200

    find(st.tuples(targets, commits), lambda request: applied(*request), settings=bounds(200), random=Random(0))


def one_of_kind(address: Address, kind: str) -> st.SearchStrategy[JsonObject]:
    """Commits with one requirement or update of that kind."""
    if kind in TABLE_UPDATES:
        updates = table_updates(address).filter(lambda update: update["action"] == kind)
        return updates.map(lambda update: {"requirements": [], "updates": [update]})
    requirements = table_requirements.filter(lambda requirement: requirement["type"] == kind)
    return requirements.map(lambda requirement: {"requirements": [requirement], "updates": []})
