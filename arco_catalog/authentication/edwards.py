"""Checks public keys on Edwards curves (Ed25519, Ed448): for a point of a small order anyone can make signatures, and
the library that verifies them accepts these. Source: RFC 8032, sections 5.1.3 and 5.2.3."""

from collections.abc import Mapping
from typing import NamedTuple


class _Curve(NamedTuple):
    """A curve over the integers modulo `prime`: the bytes of an encoded point, the y coordinate with the sign of x in
    the highest bit; and the y coordinates of all points whose order is a divisor of the cofactor."""

    prime: int
    size: int
    small: frozenset[int]


_P25519, _P448 = 2**255 - 19, 2**448 - 2**224 - 1
_EIGHTH = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
"""The y coordinate of two points of order 8 on Ed25519."""
_CURVES: Mapping[str, _Curve] = {
    "Ed25519": _Curve(_P25519, 32, frozenset({0, 1, _P25519 - 1, _EIGHTH, _P25519 - _EIGHTH})),
    "Ed448": _Curve(_P448, 57, frozenset({0, 1, _P448 - 1})),
}


def is_sound_point(curve: object, point: bytes) -> bool:
    """Whether an encoded point may be a public key on a curve: it has the right length and no small order, and is
    encoded as RFC 8032 requires. The name of the curve may be any value that a key set has; false for an unknown one. A
    true result does not show that it is a point of the curve."""
    found = _CURVES.get(curve) if isinstance(curve, str) else None
    if found is None or len(point) != found.size:
        return False
    y = int.from_bytes(point, "little") & ~(1 << (8 * found.size - 1))
    return y < found.prime and y not in found.small
