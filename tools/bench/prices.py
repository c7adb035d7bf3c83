"""What things cost: list prices of us-east-1 in US dollars, as of `DATED`. Taxes, free tiers, reservations and
transfer to the internet are left out.

Sources: AWS's pricing pages of S3, Lambda, API Gateway, CloudWatch, EventBridge, RDS, Fargate and Elastic Load
Balancing, as repeated by public write-ups of 2026 (docs/cost.md names them).
"""

from dataclasses import dataclass

DATED = "2026-11-21"
HOURS = 730
"""In a month."""


@dataclass(frozen=True, slots=True)
class StorePrices:
    """Requests by the thousand, bytes by the GB (of 2^30), storage by the GB and month.

    `step_ms` is how long one call takes there, on which the bill of whoever waits for it depends: compare-and-swaps as
    measured by others (C. Douglas, "Conditional Operations in Object Stores", 2026), the slow end of the range.
    """

    name: str
    put: float
    get: float
    uploaded: float
    downloaded: float
    stored: float
    step_ms: float


S3 = StorePrices("S3", put=0.005, get=0.0004, uploaded=0, downloaded=0, stored=0.023, step_ms=68)
S3_EXPRESS = StorePrices(
    "S3 Express One Zone", put=0.00113, get=0.00003, uploaded=0.0032, downloaded=0.0006, stored=0.11, step_ms=26
)

LAMBDA_REQUEST = 0.20 / 1_000_000
LAMBDA_GB_SECOND = 0.0000133334  # arm64
LAMBDA_MB_OF_A_CPU = 1769
HTTP_API_REQUEST = 1.00 / 1_000_000
LOG_GB = 0.50
SCHEDULE = 1.00 / 1_000_000
QUEUE_REQUEST = 0.40 / 1_000_000
ALARM_MONTH = 0.10
METRIC_MONTH = 0.30
DASHBOARD_MONTH = 3.00  # an account's first three are free


@dataclass(frozen=True, slots=True)
class Rented:
    """Something that is paid by the hour whether it is used or not."""

    name: str
    hour: float = 0.0
    month: float = 0.0

    @property
    def a_month(self) -> float:
        """Dollars."""
        return self.hour * HOURS + self.month


# PostgreSQL on a db.t4g.micro in one zone with 20 GB of gp3; 0.5 vCPU and 1 GB of arm64; the balancer without traffic.
DATABASE = Rented("RDS", hour=0.016)
DATABASE_DISK = Rented("disk", month=20 * 0.115)
CONTAINER = Rented("Fargate", hour=0.5 * 0.03238 + 0.00356)
BALANCER = Rented("load balancer", hour=0.0225)

SMALL_SERVICE = (DATABASE, DATABASE_DISK, CONTAINER, BALANCER)
AVAILABLE_SERVICE = (DATABASE, DATABASE, DATABASE_DISK, DATABASE_DISK, CONTAINER, CONTAINER, BALANCER)
