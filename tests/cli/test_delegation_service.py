"""The delegation service that the options of `arco delegation-service` make."""

import pytest

from arco_catalog.cli.delegation_service import DelegationOptions, build_service
from arco_catalog.cli.program import build_parser
from arco_catalog.iceberg.errors import Forbidden
from arco_catalog.upkeep.delegation_service.service import DelegationService
from tools.support.catalog_fixture import CatalogFixture


def service(*arguments: str) -> DelegationService:
    parsed = build_parser({}).parse_args(["delegation-service", "--store", "memory:", *arguments])
    return build_service(DelegationOptions.of(parsed), CatalogFixture().catalog, None)


@pytest.mark.parametrize("caller", ["default", None])
@pytest.mark.parametrize("realm", ["default", "POLARIS"])
async def test_the_realm_at_the_root_of_a_store_has_two_names(realm: str, caller: str | None) -> None:
    service().check_realm(realm, caller)


async def test_the_name_polaris_is_that_of_no_other_realm() -> None:
    with pytest.raises(Forbidden, match="no tasks of the realm 'POLARIS'"):
        service("--realm", "acme").check_realm("POLARIS", "acme")
