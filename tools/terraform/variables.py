"""Makes the variables that the Terraform modules of several clouds share: those of settings, and a few of what is
deployed."""

from collections.abc import Iterator

from arco_catalog.authentication.jwks import ALGORITHMS
from arco_catalog.config.variables import (
    ALLOW_LOCATION_OVERLAP,
    ALLOWED_LOCATIONS,
    AUTH,
    EVENTS,
    GATEWAY_PRINCIPAL_CLAIM,
    GATEWAY_ROLES_CLAIM,
    IDEMPOTENCY_CLEANUP_ENABLED,
    IDEMPOTENCY_DIALECT,
    IDEMPOTENCY_ENABLED,
    IDEMPOTENCY_LIFETIME,
    LOG_LEVEL,
    METRICS_NAMESPACE,
    OIDC_ALGORITHMS,
    OIDC_AUDIENCES,
    OIDC_ISSUERS,
    OIDC_PRINCIPAL_CLAIM,
    OIDC_ROLES_CLAIM,
    PURGE_MODE,
    PURGE_TRUST_LOCATIONS,
    PURGE_UNDROP_WINDOW,
    REALM,
    SOURCE_PRINCIPALS,
    TOKEN_AUDIENCE,
    TOKEN_KEY_SECRET,
    TOKEN_LIFETIME,
    WAREHOUSE,
)
from tools.terraform.clouds import AWS, AZURE, GOOGLE, Cloud
from tools.terraform.hcl import Check, TerraformVariable, quoted
from tools.terraform.settings import list_of, of_setting, of_settings, words_of

TASK_PROPERTIES = TerraformVariable(
    "task_properties",
    'How tasks are leased and retried, such as { "delegation.retry.TABLE_PURGE.max-attempts" = "20" } '
    "(docs/configuration.md).",
    "map(string)",
    "{}",
    (
        Check(
            'alltrue([for name, value in var.task_properties : startswith(name, "delegation.") && '
            '!strcontains("${name}${value}", ",")])',
            "task_properties must be properties delegation.task... or delegation.retry..., without commas.",
        ),
    ),
)


def variables_of(cloud: Cloud) -> Iterator[TerraformVariable]:
    """The shared variables of a cloud's module."""
    yield from _deployment(cloud)
    yield from _catalog(cloud)
    yield from _realm(cloud)
    yield from _token_key(cloud)
    yield from _issuers(cloud)
    yield _vending(cloud)


def _deployment(cloud: Cloud) -> Iterator[TerraformVariable]:
    longest = cloud.longest_name
    yield TerraformVariable(
        "name",
        "Prefix of the names of everything that is made. One deployment in an account or project has it.",
        checks=(
            Check(
                f'can(regex("^[a-z][a-z0-9-]{{1,{longest - 2}}}[a-z0-9]$", var.name))',
                f"name must be 3 to {longest} lower-case letters, digits and hyphens: it becomes part of "
                f"{cloud.name_is_used_in}.",
            ),
        ),
    )
    yield TerraformVariable(
        "prefix",
        "Folder of the store in its bucket or container, without slashes at its ends. Empty: the whole of it.",
        default='""',
        checks=(
            Check(
                'can(regex("^([A-Za-z0-9_=.-]+(/[A-Za-z0-9_=.-]+)*)?$", var.prefix))',
                "prefix must be folder names joined by slashes, of letters, digits and _ = . -",
            ),
            Check(
                'alltrue([for folder in split("/", var.prefix) : !contains([".", ".."], folder)])',
                "prefix must not hold . or .. as a folder: the catalog does not start with one.",
            ),
        ),
    )
    yield TerraformVariable(
        cloud.environment,
        "More environment variables. They do not replace the module's own.",
        "map(string)",
        "{}",
        tuple(_environment_checks(cloud)),
    )
    yield TerraformVariable(
        "max_state_objects",
        "Objects of the catalog's state above which an alarm reports that collection does not keep up: a commit adds "
        "about four, for 90 days.",
        "number",
        "5000000",
    )
    yield TerraformVariable(
        "allow_unauthenticated", 'Confirms that authorization = "none" is intended.', "bool", "false"
    )
    if cloud is not AZURE:
        yield TerraformVariable(
            "noncurrent_days",
            "Days for which replaced and deleted versions of objects remain: how far back the store can be restored.",
            "number",
            "30",
            (Check("var.noncurrent_days >= 1", "noncurrent_days must be at least 1."),),
        )
        yield TerraformVariable(
            "force_destroy",
            "Let `terraform destroy` delete a bucket that was made although there is data in it.",
            "bool",
            "false",
        )
    labels = "labels" if cloud is GOOGLE else "tags"
    yield TerraformVariable(labels, f"{labels.title()} of everything that takes them.", "map(string)", "{}")


def _environment_checks(cloud: Cloud) -> Iterator[Check]:
    name = cloud.environment
    gateway, and_gateway = ("|GATEWAY_.*", " or ARCO_GATEWAY_...") if cloud.verifies_callers else ("", "")
    reserved = "ARCO_AUTH, ARCO_REALM, ARCO_TOKEN_... " + ("or ARCO_OIDC_..." if not gateway else "ARCO_OIDC_...")
    yield Check(
        f"alltrue([for name in keys(var.{name}) : "
        f'!can(regex("^ARCO_(AUTH|AUTHORIZATION|REALM|TOKEN_.*|OIDC_.*{gateway})$", name))])',
        f"{name} must not hold {reserved}{and_gateway}: the variables of those names grant the {cloud.program} the "
        "rights that go with them, and a key in the environment would lie in Terraform's state.",
    )
    if cloud.reserved_environment:
        yield Check(
            f"alltrue([for variable in keys(var.{name}) : !contains({list_of(cloud.reserved_environment)}, variable)])",
            f"{name} must not hold PORT or K_...: {cloud.gateway} sets them.",
        )


def _catalog(cloud: Cloud) -> Iterator[TerraformVariable]:
    yield of_setting(
        WAREHOUSE,
        *_warehouse_checks(cloud),
        description="Name of the catalog, which engines give as `warehouse`: a folder below the prefix.",
        default=quoted("main"),
    )
    if cloud is not AZURE:
        yield _allowed_locations(cloud)
    yield of_setting(ALLOW_LOCATION_OVERLAP)
    yield of_setting(IDEMPOTENCY_DIALECT)
    yield of_setting(IDEMPOTENCY_ENABLED)
    yield of_setting(IDEMPOTENCY_LIFETIME)
    yield of_setting(IDEMPOTENCY_CLEANUP_ENABLED)
    yield of_settings(
        "purge",
        "What a drop with purge does: mode async, sync or off; how long it can be undone; whether files of other "
        "tables are taken to lie in their own locations.",
        {"mode": PURGE_MODE, "undrop_window": PURGE_UNDROP_WINDOW, "trust_locations": PURGE_TRUST_LOCATIONS},
    )
    yield TASK_PROPERTIES
    yield from _events(cloud)
    yield of_setting(LOG_LEVEL, default=quoted(cloud.log_level))
    if cloud.verifies_callers:
        yield _source_principals(cloud)
    if cloud is AWS:
        yield _metrics_namespace()


def _warehouse_checks(cloud: Cloud) -> Iterator[Check]:
    yield Check(
        'can(regex("^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$", var.warehouse))',
        "warehouse must be 1 to 64 letters, digits, hyphens and underscores, and not begin with a hyphen.",
    )
    if cloud is not AWS:
        yield Check(
            'var.warehouse != "catalogs"',
            "warehouse must not be catalogs: tables of a realm's other catalogs lie in that folder.",
        )
    yield Check(
        'var.warehouse != "_probe"',
        "warehouse must not be _probe: that folder expires after a day.",
    )


def _allowed_locations(cloud: Cloud) -> TerraformVariable:
    reserved = (
        "alltrue([for location in var.allowed_locations : "
        'length(setintersection(split("/", location), local.reserved_folders)) == 0'
    )
    folders = "lie in a folder named _catalog, _probe, _realm or .arco-store: no table may be there."
    if cloud is AWS:
        return of_setting(
            ALLOWED_LOCATIONS,
            Check(
                "alltrue([for location in var.allowed_locations : "
                'can(regex("^s3://[a-z0-9.-]+(/[^*?%,/]+)+$", location))])',
                "allowed_locations must be of the form s3://bucket/folder, without * ? % , and without a slash at the "
                "end.",
            ),
            Check(f"{reserved}])", f"allowed_locations must not {folders}"),
            description="Folders outside the warehouse where tables may live, as s3://bucket/folder. The API does not "
            "read those that `arco register` and `arco import` record in the catalog: list them here, too.",
        )
    return of_setting(
        ALLOWED_LOCATIONS,
        Check(
            "alltrue([for location in var.allowed_locations : "
            r'can(regex("^gs://[a-z0-9._-]+(/[^*?#\\[\\]\"\\\\%,/\\s]+)+$", location))])',
            "allowed_locations must be of the form gs://bucket/folder, without * ? # [ ] % , quotes, backslashes and "
            "spaces, and without a slash at the end.",
        ),
        Check("length(var.allowed_locations) <= 16", "allowed_locations must be sixteen at most."),
        Check(
            'alltrue([for location in var.allowed_locations : !startswith("${local.state}/", "${location}/") && '
            '!startswith("${location}/", "${local.state}/")])',
            "allowed_locations must not hold the catalog's state or lie in it: engines may delete objects there.",
        ),
        Check(
            f'{reserved} && !startswith("${{local.realm}}/", "${{location}}/")])',
            f"allowed_locations must not hold the realm's state, nor {folders}",
        ),
        description="Folders outside the warehouse where tables may live, as gs://bucket/folder. Sixteen at most: a "
        "bucket takes twenty conditions for one account and role.",
    )


def _events(cloud: Cloud) -> Iterator[TerraformVariable]:
    """Whether there is an event feed, and the queues and topics that the worker may send to."""
    yield of_setting(
        EVENTS,
        description="Fill the event feed of each catalog, and send its events to subscriptions, which `arco events "
        "subscribe` makes (docs/events.md).",
    )
    if cloud is AWS:
        pattern = "^arn:aws[a-z-]*:(sqs|sns):[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}([.]fifo)?$"
        form = "ARNs of queues of SQS and topics of SNS"
    elif cloud is GOOGLE:
        pattern = "^projects/[a-z][a-z0-9.:-]{4,62}/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$"
        form = "topics of Pub/Sub, as projects/P/topics/T"
    else:
        pattern = (
            "^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/"
            "(Microsoft[.]Storage/storageAccounts/[^/]+/queueServices/default/queues|"
            "Microsoft[.]EventGrid/topics|Microsoft[.]EventGrid/namespaces/[^/]+/topics)/[A-Za-z0-9-]+$"
        )
        form = "resource ids of queues of Azure Storage, and of topics of Event Grid"
    yield TerraformVariable(
        "event_receivers",
        f"What the worker may send events to: {form}. Webhooks need no right.",
        "list(string)",
        "[]",
        (
            Check(
                f"alltrue([for receiver in var.event_receivers : can(regex({quoted(pattern)}, receiver))])",
                f"event_receivers must be {form}.",
            ),
            Check("length(var.event_receivers) == 0 || var.events", "event_receivers needs events = true."),
        ),
    )


def _source_principals(cloud: Cloud) -> TerraformVariable:
    names = (
        "role ARNs as receipts name them (arn:aws:sts::ACCOUNT:assumed-role/NAME), ARNs of users, or subjects of tokens"
        if cloud is AWS
        else "object ids, as receipts name callers"
    )
    return of_setting(
        SOURCE_PRINCIPALS,
        Check(
            'alltrue([for principal in var.source_principals : principal != "" && !strcontains(principal, ",")])',
            "source_principals must be names of principals, without commas.",
        ),
        description="Who may name the principal on whose behalf a request comes (X-Arco-Admin-User, "
        f"X-Arco-Servo-...): {names}; * matches any text. These headers of other callers are ignored.",
    )


def _metrics_namespace() -> TerraformVariable:
    value = 'coalesce(var.metrics_namespace, "-")'
    return of_setting(
        METRICS_NAMESPACE,
        Check(
            f'can(regex("^[A-Za-z0-9_./#-][A-Za-z0-9_./#: -]{{0,254}}$", {value})) && !startswith({value}, "AWS/")',
            "metrics_namespace must be a namespace that CloudWatch accepts, and must not begin with AWS/.",
        ),
        description="CloudWatch namespace of the catalog's own metrics. Null: ArcoCatalog/NAME. Empty: none, and no "
        "alarm that needs them.",
    )


def _realm(cloud: Cloud) -> Iterator[TerraformVariable]:
    kinds = ("gateway", "internal", "oidc") if cloud.verifies_callers else ("internal", "oidc")
    gateway = f"gateway (callers that {cloud.gateway} verified), " if cloud.verifies_callers else ""
    no_choice = "" if cloud.verifies_callers else f" {cloud.gateway} does not name its callers: gateway is no choice."
    listed = f"auth must list {words_of(kinds)}, each once."
    yield of_setting(
        AUTH,
        Check(
            f"alltrue([for kind in var.auth : contains({list_of(kinds)}, kind)]) && "
            "length(distinct(var.auth)) == length(var.auth)",
            listed + no_choice,
        ),
        *_key_checks(cloud),
        description=f"How callers of a realm are authenticated: {gateway}internal (clients with an id and a secret), "
        f"oidc (tokens of other issuers). Empty: no realm, and all callers that {cloud.gateway} lets in may do "
        "everything. `arco bootstrap` makes the realm.",
    )
    if cloud is not AWS:
        return
    yield of_setting(
        REALM,
        Check(
            'alltrue([for name in var.realm : can(regex("^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$", name))]) && '
            "length(distinct(var.realm)) == length(var.realm)",
            "realm must list names of 1 to 128 letters, digits, dots, hyphens and underscores that begin with a letter "
            "or a digit, each once.",
        ),
        Check(
            "length(var.realm) == 0 || local.has_realm", "realm is set, and no caller would be let in: set auth too."
        ),
        description="Folders of the store with the realms, where it has several; the first is that of requests that "
        "name none. Empty: the store has one realm, at its root.",
    )
    yield of_setting(
        GATEWAY_PRINCIPAL_CLAIM,
        description='Claim with the principal, of tokens that the endpoint verified (authorization = "jwt").',
    )
    yield of_setting(
        GATEWAY_ROLES_CLAIM,
        description="Claim of these that names the principal roles to activate. Null: all are activated.",
    )


def _key_checks(cloud: Cloud) -> Iterator[Check]:
    """Checks that there is a key to sign tokens with; the module for AWS can make one, and checks it there."""
    if cloud is GOOGLE:
        yield Check(
            'contains(var.auth, "internal") == (var.token_key_secret != null)',
            "auth with internal needs token_key_secret, the key to sign tokens with, and it needs auth with internal.",
        )
    if cloud is AZURE:
        yield Check(
            'contains(var.auth, "internal") == (var.token_key_secret != null && var.token_key_vault_id != null)',
            "auth with internal needs token_key_secret and token_key_vault_id, the key to sign tokens with, and they "
            "need auth with internal.",
        )


def _token_key(cloud: Cloud) -> Iterator[TerraformVariable]:
    if cloud is AWS:
        pattern = (
            "^arn:aws[a-z-]*:(secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:[A-Za-z0-9/_+=.@-]+-[A-Za-z0-9]{6}|"
            "ssm:[a-z0-9-]+:[0-9]{12}:parameter/[A-Za-z0-9/_.-]+)$"
        )
        valid = "arn:aws:ssm:r:000000000000:parameter/none"
        form = "the whole ARN of a secret (with the six characters that Secrets Manager adds) or of a parameter"
        secret = (
            "ARN, whole as AWS shows it, of a secret of Secrets Manager or a parameter of the Parameter Store with the "
            "keys that sign tokens, for auth with internal. Null: see generate_token_key."
        )
    else:
        by_user = "with the keys that sign tokens, for auth with internal. It is made by you: no key is in Terraform's"
        if cloud is GOOGLE:
            pattern, valid = "^projects/[a-z0-9:.-]+/secrets/[A-Za-z0-9_-]+$", "projects/p/secrets/s"
            form, place = "of the form projects/P/secrets/S", "Secret of Secret Manager, as projects/P/secrets/S,"
        else:
            pattern = "^https://[a-zA-Z0-9-]+[.]vault[.]azure[.]net/secrets/[A-Za-z0-9-]+$"
            valid = "https://v.vault.azure.net/secrets/s"
            form = "of the form https://V.vault.azure.net/secrets/S"
            place = "Secret of a Key Vault, as https://V.vault.azure.net/secrets/S,"
        secret = f"{place} {by_user} state."
    given = f"coalesce(var.token_key_secret, {quoted(valid)})"
    yield of_setting(
        TOKEN_KEY_SECRET,
        Check(f"can(regex({quoted(pattern)}, {given}))", f"token_key_secret must be {form}."),
        description=secret,
    )
    yield of_setting(TOKEN_AUDIENCE)
    yield of_setting(TOKEN_LIFETIME)


def _issuers(cloud: Cloud) -> Iterator[TerraformVariable]:
    realm, of_realms = (
        (
            "([A-Za-z0-9][A-Za-z0-9._-]*=)?",
            (", or REALM=URL for a realm other than the first", " (or REALM=URL)"),
        )
        if cloud is AWS
        else ("", ("", ""))
    )
    yield of_setting(
        OIDC_ISSUERS,
        Check(
            f"alltrue([for issuer in var.oidc_issuers : "
            rf'can(regex("^{realm}https://[^\\s,=?#]+$", issuer))])',
            f"oidc_issuers must be URLs that begin with https://, without commas, = ? and #{of_realms[1]}.",
        ),
        Check(
            'contains(var.auth, "oidc") == (length(var.oidc_issuers) > 0)',
            "auth with oidc needs oidc_issuers, and they need auth with oidc.",
        ),
        description=f"Issuers whose tokens are accepted, as https URLs{of_realms[0]}.",
    )
    yield of_setting(
        OIDC_AUDIENCES,
        Check(
            r'alltrue([for audience in var.oidc_audiences : can(regex("^[^\\s,]+$", audience))])',
            "oidc_audiences must be without commas and spaces.",
        ),
        Check(
            'contains(var.auth, "oidc") == (length(var.oidc_audiences) > 0)',
            "auth with oidc needs oidc_audiences: a token for another service must not open this one.",
        ),
    )
    yield of_setting(
        OIDC_ALGORITHMS,
        Check(
            "length(var.oidc_algorithms) > 0 && "
            f"alltrue([for name in var.oidc_algorithms : contains({list_of(ALGORITHMS)}, name)])",
            f"oidc_algorithms must be {words_of(ALGORITHMS)}.",
        ),
    )
    yield of_setting(OIDC_PRINCIPAL_CLAIM)
    yield of_setting(
        OIDC_ROLES_CLAIM,
        description="Claim that names the principal roles to activate, such as roles. Null: all are activated.",
    )


def _vending(cloud: Cloud) -> TerraformVariable:
    checks = [
        Check(
            "var.vending != true || local.has_realm",
            "vending = true needs a realm: without grants there is nothing to give credentials by. Set auth too.",
        )
    ]
    if cloud is AZURE:
        checks.append(
            Check(
                "var.vending != true || var.hierarchical_namespace",
                "vending = true needs hierarchical_namespace: Azure signs for no folder in a flat account.",
            )
        )
    where = "there is a realm" + (", and a hierarchical namespace" if cloud is AZURE else "")
    return TerraformVariable(
        "vending",
        "Give engines credentials for the tables that they were granted, and for nothing else: then no other principal "
        f"has a right on tables' files. Null: where {where}.",
        "bool",
        "null",
        tuple(checks),
    )
