"""Reads the body of S3's request DeleteObjects, before it is signed, so that no other reader could see other keys in
it.

Source: Amazon S3 API reference, `DeleteObjects`.
"""

import re
from xml.etree import ElementTree

from arco_catalog.iceberg.errors import Forbidden

MAX_OBJECTS = 1_000
MAX_BYTES = 2 << 20
_NAMESPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"
_DECLARATION = re.compile(
    r"""<\?xml version=["']1\.0["']( encoding=["']utf-8["'])?( standalone=["']\w+["'])? ?\?>""", re.I
)


def keys_to_delete(body: str) -> list[str]:
    """Returns the keys in the body of a DeleteObjects request, as written but for the escapes of XML. Raises
    `Forbidden` for a body that is too long, malformed, without keys or with more than `MAX_OBJECTS`, for versions and
    anything else than keys and the flag `Quiet`, and for everything in XML besides elements and text: entities of a
    DTD, comments, CDATA, instructions.
    """
    try:
        raw = body.encode()
    except UnicodeEncodeError as error:
        raise Forbidden("Not signed: the body of DeleteObjects is not UTF-8") from error
    if len(raw) > MAX_BYTES:
        raise Forbidden(f"Not signed: the body of DeleteObjects is longer than {MAX_BYTES:,} bytes")
    declaration = _DECLARATION.match(body)
    rest = body[declaration.end() :] if declaration else body
    if "<!" in rest or "<?" in rest:
        raise Forbidden(
            "Not signed: the XML in the body of DeleteObjects must have no comment, CDATA section, DOCTYPE or "
            "processing instruction, and no declaration but that of XML 1.0 in UTF-8"
        )
    try:
        root = ElementTree.fromstring(raw)
    except (ElementTree.ParseError, ValueError) as error:
        raise Forbidden("Not signed: the body of DeleteObjects is not XML") from error
    if _name(root) != "Delete" or root.attrib:
        raise Forbidden(
            "Not signed: the root of the body of DeleteObjects must be the element Delete, without attributes"
        )
    keys = [_key(child) for child in root if _name(child) == "Object"]
    if (
        any(_name(child) not in ("Object", "Quiet") or child.attrib for child in root)
        or not 0 < len(keys) <= MAX_OBJECTS
    ):
        raise Forbidden(
            f"Not signed: the body of DeleteObjects must have 1 to {MAX_OBJECTS:,} elements Object, and no other than "
            "these and Quiet, all without attributes"
        )
    return keys


def _key(element: ElementTree.Element) -> str:
    """Returns the key in an element of a deletion. Raises `Forbidden` for any other content."""
    children = list(element)
    if len(children) != 1 or _name(children[0]) != "Key" or children[0].attrib or len(children[0]):
        raise Forbidden("Not signed: each Object in the body of DeleteObjects must have a Key and nothing else")
    return children[0].text or ""


def _name(element: ElementTree.Element) -> str:
    """Returns the name of an element without the namespace of S3; any other namespace stays in it."""
    return element.tag.removeprefix(_NAMESPACE)
