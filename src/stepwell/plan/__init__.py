"""Planning: from what is known to what to do about it.

Which files make up a relation at an epoch, which of them to merge, fold, publish or remove, whether a value may be
assigned to a column. And views: `decomposition` takes a query apart into blocks; `epoch_plan` says what an epoch does
to each view, by the `choices` between its rules; `cuts` what has to be read for it, `programs` what is then run.
Nothing here reads a clock, a catalog, a disk or a DataFrame.
"""

from stepwell.plan.assignment import check_assignment
from stepwell.plan.compaction import FileMerge, Fold, choose_fold, choose_merge
from stepwell.plan.content import Content, changes_between, content_at, needs_consolidation
from stepwell.plan.publication import (
    Backlog,
    Publication,
    PublicationPlan,
    PublicationTiming,
    plan_publication,
    time_publication,
)
from stepwell.plan.retention import oldest_kept, removable

__all__ = [
    "Backlog",
    "Content",
    "FileMerge",
    "Fold",
    "Publication",
    "PublicationPlan",
    "PublicationTiming",
    "changes_between",
    "check_assignment",
    "choose_fold",
    "choose_merge",
    "content_at",
    "needs_consolidation",
    "oldest_kept",
    "plan_publication",
    "removable",
    "time_publication",
]
