"""What a run went through: for every rule, epochs with a change and with a retraction, and how many views were wholes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

WHOLE = "recompute and diff"
RULES = (
    "apply to the delta",
    "join the delta",
    "recompute the touched rows",
    "fold into the touched groups",
    "recompute the touched groups",
    "recompute the touched partitions",
    WHOLE,
)
"""The rules of views, as `stepwell.refreshes` calls them."""


@dataclass
class Counts:
    """Added up over all cases of a run."""

    changes: Counter[str] = field(default_factory=Counter)
    retractions: Counter[str] = field(default_factory=Counter)
    views: int = 0
    wholes: Counter[str] = field(default_factory=Counter)
    """Views that can only be recomputed, by what stepwell says about it."""
    compared: int = 0
    verified: int = 0
    epochs: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    discarded: int = 0

    @property
    def share_of_wholes(self) -> float:
        return self.wholes.total() / self.views if self.views else 0.0

    def add(self, other: Counts) -> None:
        self.changes += other.changes
        self.retractions += other.retractions
        self.refused += other.refused
        self.wholes += other.wholes
        for name in ("views", "compared", "verified", "epochs", "discarded"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def lines(self) -> list[str]:
        """What a person wants to know of it."""
        lines = [
            f"{self.views} views, {self.epochs} epochs, {self.compared} comparisons, {self.verified} VERIFY",
            f"{self.discarded} queries that Spark refuses, {sum(self.refused.values())} that stepwell documents to refuse",
            f"{self.wholes.total()} wholes ({self.share_of_wholes:.0%})",
        ]
        for rule in sorted({*RULES, *self.changes}):
            lines.append(
                f"{rule}: {self.changes[rule]} epochs with a change, {self.retractions[rule]} with a retraction"
            )
        lines += [f"whole {count} times: {reason}" for reason, count in self.wholes.most_common()]
        lines += [f"refused {count} times: {reason}" for reason, count in sorted(self.refused.items())]
        return lines
