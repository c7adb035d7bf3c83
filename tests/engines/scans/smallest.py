"""The smallest pair of a table and a scan that shows a fault of a drawn one."""

from dataclasses import dataclass, replace

from arco_catalog.iceberg.json import JsonObject, JsonValue
from tests.engines.scans.comparison import Comparison, judged
from tests.engines.scans.drawn_scans import DrawnScan
from tests.engines.scans.oracle import Case, MadeTable, Oracle
from tests.engines.scans.served_planner import ServedPlanner
from tests.engines.scans.shrinking import shrunk

TRIES = 300
"""How many smaller pairs are tried."""


async def smallest(oracle: Oracle, served: ServedPlanner, found: Comparison) -> tuple[JsonObject, JsonValue]:
    """The table, by its description, and the filter that the first faulty pair of a comparison leads to."""
    case, scan = found.faulty[0]
    return await shrunk(case.table.description, scan.java["filter"], _Tries(oracle, served, case, scan).fails)


@dataclass
class _Tries:
    oracle: Oracle
    served: ServedPlanner
    case: Case
    scan: DrawnScan
    made: int = 0

    async def fails(self, description: JsonObject, drawn: JsonValue) -> bool:
        self.made += 1
        if self.made > TRIES:
            return False
        java, request = {**self.scan.java, "filter": drawn}, {**self.scan.request, "filter": drawn}
        scan = replace(self.scan, java=java, request=request)
        if description is self.case.table.description:
            return await self._has_fault(self.case.name, self.case.table, scan)
        if not scan.of_present_state:  # a table that is made anew has other snapshots
            return False
        name = f"{self.case.name}_{self.made}"
        try:
            table = self.oracle.make(description, self.served.tables / name)
        except ValueError:
            return False
        await self.served.register(name, table.metadata_location)
        return await self._has_fault(name, table, replace(scan, schema_id=table.metadata["current-schema-id"]))

    async def _has_fault(self, name: str, table: MadeTable, scan: DrawnScan) -> bool:
        theirs, ours = self.oracle.plan(table, scan), await self.served.plan(name, scan.request)
        _, faults = judged(self.oracle, table, scan, theirs, ours)
        return bool(faults)
