"""The headers of every answer of the console."""

from collections.abc import Mapping, Sequence


def console_headers(origins: Sequence[str] = ()) -> Mapping[str, str]:
    """Returns the headers of every answer of the console. By the Content-Security-Policy its pages use files and APIs
    of this server alone, send requests besides to these `origins`, have no inline code, and are in no frame."""
    policy = (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        " ".join(("connect-src 'self'", *origins)),
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
    return {
        "Content-Security-Policy": "; ".join(policy),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
