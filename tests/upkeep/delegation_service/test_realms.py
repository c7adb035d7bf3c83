"""Of which realms the delegation service executes tasks."""

from dataclasses import replace

import pytest

from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.operations.delegation_service_state import service_state
from arco_catalog.upkeep.delegation_service.service import DelegationService
from tests.upkeep.delegation_service.conftest import Services


@pytest.fixture
def service(services: Services) -> DelegationService:
    """A service of the realms `a` and `b`, whose operator also allows tasks of `theirs`."""
    access = replace(services.access(), realms=frozenset("ab"), other_realms=frozenset(["theirs"]))
    return DelegationService(service_state(services.ours.another().catalog), access)


@pytest.mark.parametrize(("realm", "of_caller"), [("a", "a"), ("a", None), ("theirs", "a"), ("theirs", None)])
def test_tasks_of_its_realms_are_executed(realm: str, of_caller: str | None, service: DelegationService) -> None:
    service.check_realm(realm, of_caller)


def test_a_task_of_a_realm_that_is_not_served_is_refused(service: DelegationService) -> None:
    with pytest.raises(Forbidden, match="no tasks of the realm 'c'"):
        service.check_realm("c", "a")


def test_a_principal_of_one_realm_submits_no_task_of_another(service: DelegationService) -> None:
    with pytest.raises(Forbidden, match="A principal of the realm 'a' may not submit tasks of the realm 'b'"):
        service.check_realm("b", "a")
