"""Writes the table of metrics in docs/observability.md from the code's: `python -m tools.metrics_table`. With
`--check`, it only compares."""

import sys
from collections.abc import Sequence

from arco_catalog.telemetry.metrics import METRICS, Metric
from tools.support.environment import PROJECT
from tools.support.generated_files import write_or_check

PAGE = PROJECT / "docs" / "observability.md"
BEGIN = "<!-- Made by `python -m tools.metrics_table`: do not edit. -->\n"
END = "<!-- The end of the table. -->\n"
HEAD = """
| for Prometheus | type | labels | in lines and CloudWatch | in spans | what it is |
| --- | --- | --- | --- | --- | --- |
"""


def table() -> str:
    """The table, between its marks."""
    return BEGIN + HEAD + "".join(map(_row, METRICS)) + "\n" + END


def _row(metric: Metric) -> str:
    series = metric.series
    cells = (
        "" if series is None else f"`{series.name}`",
        "" if series is None else series.kind,
        "" if series is None else ", ".join(f"`{label}`" for label in series.labels),
        f"`{metric.field}`" if metric.field else "",
        f"`{metric.attribute}`" if metric.attribute else "",
        metric.help,
    )
    return f"| {' | '.join(cells)} |\n"


def page() -> str:
    """The text of the page with the table of today."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    return before + table() + rest.partition(END)[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the page."""
    return write_or_check({PAGE: page()}, "tools.metrics_table", arguments)


if __name__ == "__main__":
    sys.exit(main())
