"""Writes the dashboard for Grafana, deploy/grafana/arco.json: `python -m tools.dashboard`. With `--check`, it only
compares."""

import json
import sys
from collections.abc import Mapping, Sequence
from string import ascii_uppercase
from typing import NamedTuple

from grafana_foundation_sdk.builders import common, dashboard, prometheus, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import LegendDisplayMode, LegendPlacement, SortOrder, TooltipDisplayMode
from grafana_foundation_sdk.models.dashboard import DashboardCursorSync, DataSourceRef

from tools.support.environment import PROJECT
from tools.support.generated_files import write_or_check

FILE = PROJECT / "deploy" / "grafana" / "arco.json"
SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
SERVER = 'job=~"$job"'
WIDTH, HEIGHT = 8, 7
"""Three graphs in each line of the 24 columns of Grafana."""


class Graph(NamedTuple):
    """A graph: its title, the unit of its axis, and the expression of each line by its legend."""

    title: str
    unit: str
    lines: Mapping[str, str]


def rate(series: str, by: str = "", where: str = "") -> str:
    """The sum of the rates of a counter, by labels, over the servers that are chosen."""
    chosen = f"{SERVER},{where}" if where else SERVER
    return f"sum{f' by ({by})' if by else ''} (rate({series}{{{chosen}}}[$__rate_interval]))"


def quantile(share: float, histogram: str, by: str = "") -> str:
    """A quantile of a histogram, by a label, over the servers that are chosen."""
    return f"histogram_quantile({share}, {rate(f'{histogram}_bucket', f'le, {by}' if by else 'le')})"


def mean(histogram: str) -> str:
    """The mean of the values of a histogram."""
    return f"{rate(f'{histogram}_sum')} / {rate(f'{histogram}_count')}"


def largest(gauge: str) -> str:
    """The largest value of a gauge over the servers that are chosen."""
    return f"max({gauge}{{{SERVER}}})"


def by_store(gauge: str) -> str:
    """The largest value of a job's gauge for each store; jobs are scraped elsewhere than the chosen servers."""
    return f"max by (store) ({gauge})"


def since(time: str) -> str:
    """The seconds since the last end of a job, for each store."""
    return f"time() - {by_store(time)}"


def total(gauge: str, by: str = "") -> str:
    """The sum of a gauge over the servers that are chosen, by a label."""
    return f"sum{f' by ({by})' if by else ''} ({gauge}{{{SERVER}}})"


DURATION = "arco_request_duration_seconds"
STORE = "arco_store_call_duration_seconds"
ROWS: Mapping[str, Sequence[Graph]] = {
    "Requests": (
        Graph("Requests by status", "reqps", {"{{status}}": rate("arco_requests_total", "status")}),
        Graph("Requests by operation", "reqps", {"{{operation}}": rate("arco_requests_total", "operation")}),
        Graph("Requests by engine", "reqps", {"{{engine}}": rate("arco_requests_total", "engine")}),
        Graph("Duration", "s", {f"p{round(100 * share)}": quantile(share, DURATION) for share in (0.5, 0.95, 0.99)}),
        Graph("Duration by operation, p99", "s", {"{{operation}}": quantile(0.99, DURATION, "operation")}),
        Graph(
            "Errors",
            "ops",
            {
                "of the server": rate("arco_server_errors_total"),
                "stale keys": rate("arco_stale_keys_total"),
                "denied {{privilege}}": rate("arco_denials_total", "privilege"),
            },
        ),
    ),
    "Changes": (
        Graph("Outcomes", "ops", {"{{outcome}}": rate("arco_outcomes_total", "outcome")}),
        Graph("Unknown outcomes", "ops", {"{{reason}}": rate("arco_unknown_outcomes_total", "reason")}),
        Graph(
            "Conflicts and dropped writes",
            "ops",
            {
                "conflicts of {{operation}}": rate("arco_conflicts_total", "operation"),
                "dropped writes": rate("arco_dropped_writes_total"),
            },
        ),
    ),
    "Store": (
        Graph(
            "Calls a request",
            "none",
            {"calls": mean("arco_request_store_calls")},
        ),
        Graph("Duration of calls, p99", "s", {"{{call}}": quantile(0.99, STORE, "call")}),
        Graph("Reads that a cache was valid for", "ops", {"cache hits": rate("arco_cache_hits_total")}),
        Graph(
            "Bytes",
            "Bps",
            {"read": rate("arco_store_read_bytes_total"), "written": rate("arco_store_written_bytes_total")},
        ),
        Graph("Vended credentials", "ops", {"{{result}}": rate("arco_vended_credentials_total", "result")}),
        Graph(
            "Planned scans",
            "ops",
            {
                "files": rate("arco_scan_files_total"),
                "manifests": rate("arco_scan_manifests_total"),
                "manifests left out": rate("arco_scan_manifests_pruned_total"),
            },
        ),
        Graph(
            "Lookups of planned scans",
            "ops",
            {
                "{{cache}}: found": rate("arco_scan_cache_hits_total", "cache"),
                "{{cache}}: not found": rate("arco_scan_cache_misses_total", "cache"),
            },
        ),
    ),
    "Tasks": (
        Graph("Tasks", "none", {"{{state}}": f"max by (state) (arco_tasks{{{SERVER}}})"}),
        Graph("Oldest task that is due", "s", {"due for": largest("arco_tasks_due_age_seconds")}),
        Graph(
            "Since the last look",
            "s",
            {"since": f"time() - {largest('arco_tasks_observed_timestamp_seconds')}"},
        ),
        Graph(
            "Executions",
            "ops",
            {
                "executed": rate("arco_tasks_executed_total"),
                "completed": rate("arco_tasks_completed_total"),
                "failed": rate("arco_tasks_failed_total"),
                "retried": rate("arco_tasks_retried_total"),
                "given back": rate("arco_tasks_given_back_total"),
                "leases lost": rate("arco_leases_lost_total"),
                "looks failed": rate("arco_task_looks_failed_total"),
            },
        ),
        Graph(
            "Expiry of snapshots",
            "ops",
            {
                "snapshots removed": rate("arco_expired_snapshots_total"),
                "snapshots cleaned": rate("arco_cleaned_snapshots_total"),
                "files deleted": rate("arco_expired_files_total"),
                "held back": rate("arco_expiries_held_back_total"),
                "failed": rate("arco_expiries_failed_total"),
            },
        ),
        Graph(
            "Event feed",
            "ops",
            {
                "events numbered": rate("arco_events_numbered_total"),
                "gaps": rate("arco_event_gaps_total"),
                "failed": rate("arco_events_failed_total"),
            },
        ),
        Graph("Lag of the event feed", "s", {"oldest change": "max(arco_events_lag_seconds)"}),
    ),
    "Jobs": (
        Graph(
            "Since the last walk of the reconciler",
            "s",
            {"{{store}}": since("arco_reconcile_completed_timestamp_seconds")},
        ),
        Graph(
            "The last walk",
            "none",
            {
                "receipts written: {{store}}": by_store("arco_reconcile_receipts_written"),
                "pointers walked: {{store}}": by_store("arco_reconcile_pointers_walked"),
                "pointers unreadable: {{store}}": by_store("arco_reconcile_pointers_unreadable"),
            },
        ),
        Graph("Since the last collection", "s", {"{{store}}": since("arco_collection_completed_timestamp_seconds")}),
        Graph(
            "The last collection",
            "none",
            {
                "collected: {{store}}": by_store("arco_collection_objects"),
                "left: {{store}}": by_store("arco_state_objects"),
            },
        ),
    ),
    "Delegation service": (
        Graph("Purges under way", "none", {"{{instance}}": total("arco_delegation_tasks_running", "instance")}),
        Graph("Ends of purges", "ops", {"{{result}}": rate("arco_delegation_tasks_total", "result")}),
        Graph(
            "Duration of purges",
            "s",
            {
                "99 %": quantile(0.99, "arco_delegation_task_duration_seconds"),
                "median": quantile(0.5, "arco_delegation_task_duration_seconds"),
            },
        ),
    ),
    "Servers": (
        Graph(
            "Connections",
            "none",
            {"open": total("arco_connections"), "limit": total("arco_connections_limit")},
        ),
        Graph(
            "Requests refused at the connection", "ops", {"{{reason}}": rate("arco_refused_requests_total", "reason")}
        ),
        Graph("Processes", "none", {"{{instance}}": total("arco_workers", "instance")}),
        Graph("Workers that died", "ops", {"deaths": rate("arco_worker_deaths_total")}),
        Graph("Versions", "none", {"{{version}}": total("arco_build_info", "version")}),
    ),
}


def made() -> str:
    """The dashboard as JSON."""
    builder = (
        dashboard.Dashboard("Arco catalog")
        .uid("arco-catalog")
        .tags(["iceberg", "arco"])
        .time("now-3h", "now")
        .refresh("30s")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(dashboard.DatasourceVariable("datasource").label("Data source").type("prometheus"))
        .with_variable(
            dashboard.QueryVariable("job")
            .label("Job")
            .query("label_values(arco_build_info, job)")
            .datasource(SOURCE)
            .multi(True)
            .include_all(True)
        )
    )
    for title, graphs in ROWS.items():
        builder = builder.with_row(dashboard.Row(title))
        for graph in graphs:
            builder = builder.with_panel(_panel(graph))
    return json.dumps(builder.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def _panel(graph: Graph) -> timeseries.Panel:
    panel = timeseries.Panel().title(graph.title).unit(graph.unit).datasource(SOURCE).span(WIDTH).height(HEIGHT).min(0)
    panel = panel.legend(
        common.VizLegendOptions()
        .show_legend(True)
        .display_mode(LegendDisplayMode.LIST)
        .placement(LegendPlacement.BOTTOM)
    )
    panel = panel.tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI).sort(SortOrder.DESCENDING))
    for letter, (legend, expression) in zip(ascii_uppercase, graph.lines.items(), strict=False):
        panel = panel.with_target(prometheus.Dataquery().ref_id(letter).expr(expression).legend_format(legend))
    return panel


def main(arguments: Sequence[str] | None = None) -> int:
    """Writes or checks the file."""
    return write_or_check({FILE: made()}, "tools.dashboard", arguments)


if __name__ == "__main__":
    sys.exit(main())
