"""Completion: what may come next at a word of a statement, from the catalog's names and our keywords."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stepwell.database import SYSTEM_NAMESPACE, SYSTEM_TABLES
from stepwell.model.relations import Relation
from stepwell.model.types import quote

KEYWORDS = re.findall(
    r"\w+",
    """
    ALTER AND AS BEGIN BETWEEN BY CANCEL CASCADE CASE CHECKPOINT CHECKPOINTS COMMIT COPY COUNT CREATE DEFERRED DELETE
    DEPENDENCIES DESC DESCRIBE DISTINCT DROP ELSE END EPOCH EXISTS EXPLAIN FALSE FLUSH FOR FORCE FORMAT FROM FULL GROUP
    HAVING IF IN INNER INSERT INTERVAL INTO IS JOB JOBS JOIN KEY LEFT LIKE LIMIT LINEAGE MATCHED MATERIALIZED MERGE NOT
    NULL ON ON_ERROR OPTIMIZE OR ORDER OVER PARTITION PAUSE PRIMARY PUBLISH REFRESH RENAME REPAIR REPLACE RESTORE
    RESUME RIGHT ROLLBACK SELECT SET SHOW STALENESS SUM TABLE TABLES THEN TO TRANSACTION TRUE TRUNCATE UNION UPDATE
    USING VACUUM VALUES VERIFY VERSION VIEW VIEWS WAIT WATERMARK WATERMARKS WHEN WHERE WITH
    """,
)

COMMANDS = ["\\d", "\\dt", "\\dv", "\\e", "\\i", "\\q", "\\timing", "\\watch", "\\x", "\\?"]

_BEFORE_RELATION = re.compile(
    r"\b(FROM|JOIN|INTO|UPDATE|TABLE|VIEW|FOR|VERIFY|DESCRIBE|OPTIMIZE|COPY)\s+$", re.IGNORECASE
)


def candidates(relations: Sequence[Relation], before: str) -> tuple[str, list[str]]:
    """The word that stands before the cursor, and what it may become, the likeliest first."""
    if before.lstrip().startswith("\\") and " " not in before.lstrip():
        word = before.lstrip()
        return word, [each for each in COMMANDS if each.startswith(word)]
    owner, word = re.findall(r"([\w`]+\.)?([\w`]*)$", before)[0]
    owner = owner.rstrip(".").strip("`").lower()
    known = {relation.name: [column.name for column in relation.columns] for relation in relations}
    if owner == SYSTEM_NAMESPACE:
        names = sorted(SYSTEM_TABLES)
    elif owner:
        names = [column for name, columns in known.items() if name.lower() == owner for column in columns]
    elif before.lstrip().startswith("\\") or _BEFORE_RELATION.search(before[: len(before) - len(word)]):
        names = [*known, f"{SYSTEM_NAMESPACE}."]
    else:
        columns = sorted({column for each in known.values() for column in each})
        keywords = [each.lower() if word and word == word.lower() else each for each in KEYWORDS]
        names = [*columns, *known, *keywords, f"{SYSTEM_NAMESPACE}."]
    fitting = [name for name in names if name.lower().startswith(word.strip("`").lower())]
    return word, [name if re.fullmatch(r"[\w.]+", name) else quote(name) for name in dict.fromkeys(fitting)]
