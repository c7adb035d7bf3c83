"""Which Iceberg `maintain` runs with."""

import pytest

from reconciler.maintain.iceberg import UnsupportedIceberg, check_version


@pytest.mark.parametrize("version", ["1.10.0", "1.10.0-amzn-0", "1.11.0", "2.0.0", "unknown"])
def test_an_iceberg_that_knows_the_procedures_arguments_will_do(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["1.9.2", "1.7.1-amzn-2", "0.14.1"])
def test_an_older_one_is_refused_and_both_versions_are_named(version: str) -> None:
    with pytest.raises(UnsupportedIceberg, match=rf"Spark has Iceberg {version}. maintain needs Iceberg 1.10 or newer"):
        check_version(version)


def test_a_spark_without_iceberg_is_refused() -> None:
    with pytest.raises(UnsupportedIceberg, match="Spark has no Iceberg"):
        check_version(None)
