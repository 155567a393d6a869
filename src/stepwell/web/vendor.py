"""The vendored chart library: what it is, under which licence, and the checksums it must keep.

The script and the licence are untouched from the npm package. That has no notice in it, so the notice is the text of
the project's repository, in its version of 2023, which is also the year that the licence names. The script has
fancy-canvas 2.1.0 built in, which its own package declares to be under MIT.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Library:
    """A library of others that is part of the page, and the SHA-256 of each of its files by name."""

    name: str
    version: str
    licence: str
    homepage: str
    script: str
    notice: str
    checksums: dict[str, str]


LIGHTWEIGHT_CHARTS = Library(
    name="Lightweight Charts",
    version="5.2.1",
    licence="Apache-2.0",
    homepage="https://www.tradingview.com/",
    script="lightweight-charts.standalone.production.js",
    notice="NOTICE",
    checksums={
        "lightweight-charts.standalone.production.js": (
            "e21cc5caa0226ef30bd8549c50b9ef926615f2a4ee6b4e486353477a55f598cf"
        ),
        "LICENSE": "70c9d5382506dd184465425c08a99ad9bd6d9ac1313c252968ba0b585e5ef823",
        "NOTICE": "a22533bcd651627c500795a6ac45e55ea08b5e58dce76f6a314c91384f07402a",
    },
)


def read_vendored(name: str) -> bytes:
    """A vendored file as it is stored."""
    return (files("stepwell.web") / "vendor" / name).read_bytes()
