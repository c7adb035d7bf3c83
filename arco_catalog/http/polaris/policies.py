"""HTTP handlers that list, create, load, change and drop policies, attach and detach them, and list the policies that
apply to an object."""

from arco_catalog.http.paging import paging
from arco_catalog.http.polaris.requires import applicable_to, policy_name, read_target
from arco_catalog.http.request_context import RequestContext
from arco_catalog.http.responses import Response, answer_response, json_response
from arco_catalog.iceberg.shapes import INT, STRING, STRINGS
from arco_catalog.operations.listing import list_policies
from arco_catalog.operations.policies import attachments, policies
from arco_catalog.operations.policies.applicable import applicable_policies
from arco_catalog.operations.policies.policies import PolicyText
from arco_catalog.planning.policy_types import canonical_type


async def list_(context: RequestContext) -> Response:
    """Returns a page of the policies of a namespace; if the query has a `policyType`, only policies of this type.
    Without `pageToken` all are in one page. What the caller may not see is left out, so a page may be empty before the
    last. Raises `NoSuchNamespace`, and `BadRequest` for an invalid query."""
    listed = await list_policies(context.sessions.open(), context.namespace, _type(context), paging(context))
    return json_response({"identifiers": listed.items, "next-page-token": listed.next_page_token})


async def create(context: RequestContext) -> Response:
    """Creates the policy that the body describes, and returns it. Raises `BadRequest` for an invalid body, and the
    errors of `create_policy`."""
    name, policy_type = context.fields.required("name", STRING), context.fields.required("type", STRING)
    text, namespace = _policy_text(context), context.namespace
    return answer_response(await policies.create_policy(context.sessions.open(), namespace, name, policy_type, text))


async def load(context: RequestContext) -> Response:
    """Returns the policy in the path. Raises `NoSuchPolicy`."""
    shown = await policies.load_policy(context.sessions.open(), context.namespace, policy_name(context))
    return json_response({"policy": shown})


async def update(context: RequestContext) -> Response:
    """Replaces the description and content of a policy by those in the body, and returns the policy. Raises
    `NoSuchPolicy`, `BadRequest` for an invalid body or one without a version, and `PolicyVersionMismatch` if the body
    expects another version."""
    expected, text = context.fields.optional("current-policy-version", INT), _policy_text(context)
    return answer_response(
        await policies.update_policy(context.sessions.open(), context.namespace, policy_name(context), expected, text)
    )


async def drop(context: RequestContext) -> Response:
    """Drops a policy. With `detach-all` it may be attached to something; these attachments are then removed, too.
    Raises `NoSuchPolicy`, and without `detach-all` `PolicyInUse` for a policy that is attached to something that
    exists."""
    detach_all = context.query.flag("detach-all")
    name = policy_name(context)
    return answer_response(
        await policies.drop_policy(context.sessions.open(), context.namespace, name, detach_all=detach_all)
    )


async def attach(context: RequestContext) -> Response:
    """Attaches a policy to the target in the body. Raises `BadRequest` for an invalid body or target, and the errors of
    `attach_policy`."""
    target, parameters = read_target(context), context.fields.optional("parameters", STRINGS) or {}
    name = policy_name(context)
    return answer_response(
        await attachments.attach_policy(context.sessions.open(), context.namespace, name, target, parameters)
    )


async def detach(context: RequestContext) -> Response:
    """Detaches a policy from the target in the body. Raises `BadRequest` for an invalid target, and the errors of
    `detach_policy`."""
    target, name = read_target(context), policy_name(context)
    return answer_response(await attachments.detach_policy(context.sessions.open(), context.namespace, name, target))


async def applicable(context: RequestContext) -> Response:
    """Returns a page of the policies that apply to the target in the query; with `policyType` only policies of this
    type. Without `pageToken` all are in one page. Raises `BadRequest` for a type that `canonical_type` does not accept
    and for an invalid target or page, and the errors of `applicable_policies`."""
    target = applicable_to(context)
    listed = await applicable_policies(context.sessions.open(), target, _type(context), paging(context))
    return json_response({"applicable-policies": listed.items, "next-page-token": listed.next_page_token})


def _policy_text(context: RequestContext) -> PolicyText:
    """Returns the description and the content of a policy from the body, None for a missing one. Null counts
    as missing, and any other value but a string raises `BadRequest`."""
    return PolicyText(context.fields.optional("description", STRING), context.fields.optional("content", STRING))


def _type(context: RequestContext) -> str | None:
    """Returns the canonical name of the query's `policyType`; None if it is missing or empty. Raises `BadRequest` for a
    type that is too long or not printable, for an unknown one that begins with `system.`, and for a parameter that
    occurs twice."""
    name = context.query.one("policyType")
    return canonical_type(name) if name else None
