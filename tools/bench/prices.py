"""The list prices of clouds in US dollars, as of `DATED`, in us-east-1 of Amazon, us-central1 of Google and East US of
Microsoft. Taxes, free tiers, reservations and transfer to the internet are left out.

docs/cost.md has the source of each, and the day of which it tells.
"""

from dataclasses import dataclass
from math import ceil

DATED = "2026-11-22"
HOURS = 730
"""In a month."""


@dataclass(frozen=True, slots=True)
class StorePrices:
    """The prices of an object store: requests by the thousand, bytes by the GB (of 2^30), storage by the GB and month.

    `swap_ms` is how long a compare-and-swap of one object takes there, on which the bill of whoever waits for it
    depends, as measured by others (C. Douglas, "Conditional Operations in Object Stores", 2026): the slow end of the
    range. `step_ms` is how long any other call takes: on S3 the same, elsewhere the fast end, or S3's where that is
    no figure for it.
    """

    name: str
    put: float
    get: float
    uploaded: float
    downloaded: float
    stored: float
    step_ms: float
    swap_ms: float


S3 = StorePrices("S3", put=0.005, get=0.0004, uploaded=0, downloaded=0, stored=0.023, step_ms=68, swap_ms=68)
S3_EXPRESS = StorePrices(
    "S3 Express One Zone",
    put=0.00113,
    get=0.00003,
    uploaded=0.0032,
    downloaded=0.0006,
    stored=0.11,
    step_ms=26,
    swap_ms=26,
)
GCS = StorePrices(
    "Google Cloud Storage", put=0.005, get=0.0004, uploaded=0, downloaded=0, stored=0.020, step_ms=68, swap_ms=700
)
AZURE = StorePrices(
    "Azure Blob Storage", put=0.0065, get=0.0005, uploaded=0, downloaded=0, stored=0.0184, step_ms=100, swap_ms=600
)

LAMBDA_MB_OF_A_CPU = 1769
LAMBDA_MB = 1024
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Compute:
    """The prices of what answers requests, one at a time in an instance: dollars for a request, for the gateway in
    front of it, for a second of an instance, and for a GB (of 2^30) of logs.

    An instance has `cpus`, which stretch the time of CPU where they are less than one. Time is billed in steps of
    `step_ms`, at least `least_ms`. `schedule` is the price of a scheduled start, `schedule_month` that of its plan.
    """

    name: str
    request: float
    gateway: float
    second: float
    cpus: float
    step_ms: float
    least_ms: float
    log_gb: float
    schedule: float = 0
    schedule_month: float = 0

    def billed_ms(self, waiting_ms: float, cpu_ms: float) -> float:
        """What is billed for a request that waits for so long, and takes so much of a whole CPU."""
        took = waiting_ms + cpu_ms / min(1.0, self.cpus)
        return max(self.least_ms, self.step_ms * ceil(took / self.step_ms))


LAMBDA = Compute(
    "Lambda (1 GB, arm64) behind an HTTP API",
    request=0.20 / MILLION,
    gateway=1.00 / MILLION,
    second=0.0000133334 * LAMBDA_MB / 1_024,
    cpus=LAMBDA_MB / LAMBDA_MB_OF_A_CPU,
    step_ms=1,
    least_ms=1,
    log_gb=0.50,
    schedule=1.00 / MILLION,
)
CLOUD_RUN = Compute(
    "Cloud Run (1 vCPU, 1 GB)",
    request=0.40 / MILLION,
    gateway=0,
    second=0.000024 + 0.0000025,
    cpus=1,
    step_ms=100,
    least_ms=100,
    log_gb=0.50,
    schedule_month=0.10,
)
FUNCTIONS = Compute(
    "Functions, Flex Consumption (2 GB)",
    request=0.40 / MILLION,
    gateway=0,
    second=2 * 0.000026,
    cpus=1,
    step_ms=100,
    least_ms=1_000,
    log_gb=2.30,
)
CONTAINER_APPS = Compute(
    "Container Apps (0.5 vCPU, 1 GB)",
    request=0.40 / MILLION,
    gateway=0,
    second=0.5 * 0.000024 + 0.000003,
    cpus=0.5,
    step_ms=1_000,
    least_ms=1_000,
    log_gb=2.30,
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment of a catalog for which costs are computed: where its state is, and what answers requests."""

    store: StorePrices
    compute: Compute

    @property
    def name(self) -> str:
        """Of both."""
        return f"{self.store.name}, {self.compute.name}"


ON_S3 = Deployment(S3, LAMBDA)
ON_S3_EXPRESS = Deployment(S3_EXPRESS, LAMBDA)
ON_GCS = Deployment(GCS, CLOUD_RUN)
ON_AZURE_FUNCTIONS = Deployment(AZURE, FUNCTIONS)
ON_AZURE_CONTAINERS = Deployment(AZURE, CONTAINER_APPS)
DEPLOYMENTS = (ON_S3, ON_S3_EXPRESS, ON_GCS, ON_AZURE_FUNCTIONS, ON_AZURE_CONTAINERS)

# What watches the deployment on Amazon (`infra/alarms.tf`, `dashboard.tf`), and its queue.
QUEUE_REQUEST = 0.40 / 1_000_000
ALARM_MONTH = 0.10
METRIC_MONTH = 0.30
DASHBOARD_MONTH = 3.00  # an account's first three are free


@dataclass(frozen=True, slots=True)
class Rented:
    """The price of something that is paid by the hour whether it is used or not."""

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
