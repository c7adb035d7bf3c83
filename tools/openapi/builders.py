"""Functions that build the parts of the OpenAPI document that no specification has."""

from collections.abc import Sequence

from tools.openapi.specifications import Json

TAG = "Arco API"
TEXT: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}


def reference(kind: str, name: str) -> Json:
    """A reference to a component, such as one of the `schemas`."""
    return {"$ref": f"#/components/{kind}/{name}"}


def nullable(schema: Json) -> Json:
    """The schema, which has a `type`, of a value that may also be null."""
    return {**schema, "type": [schema["type"], "null"]}


def object_of(**properties: Json) -> Json:
    """The schema of an object that has all of these properties; their names have hyphens for underscores."""
    named = {name.replace("_", "-"): schema for name, schema in properties.items()}
    return {"type": "object", "required": [*named], "properties": named}


def list_of(items: Json) -> Json:
    """The schema of an array."""
    return {"type": "array", "items": items}


def json_content(schema: Json) -> Json:
    """A request body or a response in JSON."""
    return {"content": {"application/json": {"schema": schema}}}


def parameter_references(*names: str) -> list[Json]:
    """References to parameters among the components."""
    return [reference("parameters", name) for name in names]


def query(name: str, schema: Json, description: str | None = None, *, required: bool = False) -> Json:
    """A query parameter."""
    described = {} if description is None else {"description": description}
    return {"name": name, "in": "query", "required": required, **described, "schema": schema}


def read_operation(name: str, answer: str, parameters: Sequence[Json], path: Sequence[str] = ("prefix",)) -> Json:
    """An operation that reads: `answer` is the schema of its response, `path` has the parameters of its path."""
    return {
        "tags": [TAG],
        "operationId": name,
        "parameters": [*parameter_references(*path), *parameters],
        "responses": {"200": json_content(reference("schemas", answer))},
    }
