"""The catalog: the transactional truth, on SQLite, on PostgreSQL or in memory.

A `Catalog` gives transactions; the modules of this package are functions on one: `relations`, `files`, `writes`
(acknowledge), `barriers` (close, commit, finish an epoch), `leases`, `lives`, `loads`, `pins`, `settings`, `views`,
`watermarks`; `exports` makes data of all of it. What must happen together is done in one transaction, and a crash
leaves all of it or nothing.
"""

from stepwell.catalog import (
    barriers,
    control,
    exports,
    files,
    leases,
    lives,
    loads,
    pins,
    relations,
    settings,
    views,
    watermarks,
    writes,
)
from stepwell.catalog.connection import Catalog, Transaction, open_catalog, sqlite_url

__all__ = [
    "Catalog",
    "Transaction",
    "barriers",
    "control",
    "exports",
    "files",
    "leases",
    "lives",
    "loads",
    "open_catalog",
    "pins",
    "relations",
    "settings",
    "sqlite_url",
    "views",
    "watermarks",
    "writes",
]
