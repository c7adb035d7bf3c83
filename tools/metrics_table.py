"""Writes the table of metrics in docs/observability.md from the code's: `python -m tools.metrics_table`. With
`--check`, it only compares."""

import argparse
import sys
from collections.abc import Sequence

from arco_catalog.telemetry.metrics import METRICS, Metric
from tools.support.environment import PROJECT

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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only check the page")
    if parser.parse_args(arguments).check:
        if PAGE.read_text() != page():
            sys.stderr.write(f"{PAGE.name} is not current: run python -m tools.metrics_table\n")
            return 1
        return 0
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
