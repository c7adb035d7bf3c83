"""Parses the XML of a store's responses. The parser is imported with the first response that is parsed, to keep cold
starts fast: few requests list or delete many objects."""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

ERROR_BYTES = 64 << 10
"""Bytes of an error response in which elements are searched."""


def parse_xml(body: bytes, what: str, root: str) -> "Element":
    """Returns the root element of an XML document. Raises ValueError, whose message names the document by `what`, for a
    body that is not XML, or whose root element is not named `root`."""
    from xml.etree import ElementTree

    try:
        element = ElementTree.fromstring(body)
    except ElementTree.ParseError as error:
        raise ValueError(f"{what} is not XML: {error}") from error
    if local_name(element) != root:
        raise ValueError(f"the root element of {what} is {element.tag}, expected {root}")
    return element


def element_text(body: bytes, name: str) -> str:
    """Returns the text, with escapes left in it, of the first XML element `name` in the first 64 KiB of an error
    response; empty if there is none. The body is too plain to load an XML parser for it."""
    found = re.search(rb"<%s>([^<]*)</%s>" % (name.encode(), name.encode()), body[:ERROR_BYTES])
    return found[1].decode(errors="replace") if found else ""


def local_name(element: "Element") -> str:
    """Returns the name of an XML element without its namespace."""
    return element.tag[element.tag.rfind("}") + 1 :]
