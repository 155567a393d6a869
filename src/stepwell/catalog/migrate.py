"""Migrations: numbered steps that bring a catalog to the schema of this version.

An older catalog is migrated when it is opened; a newer one is refused by the number it has. The number is in the
control row too, which every transaction reads: a process that an upgrade has overtaken notices before it writes.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from stepwell.model.errors import CatalogVersionError
from stepwell.version import __version__

_HERE = Path(__file__).parent / "migrations"
_LOCK = 7_385_201
"""Any number: processes that open one PostgreSQL catalog at once migrate it one after the other."""


@cache
def newest_revision() -> str:
    """The revision this version of stepwell writes: the largest number among the migrations."""
    return max(path.name[:4] for path in _HERE.glob("versions/[0-9]*.py"))


def migrate(engine: sa.Engine, url: str) -> None:
    """Bring the catalog to `newest_revision`."""
    with engine.connect() as connection, connection.begin():
        current = MigrationContext.configure(connection).get_current_revision()
    newest = newest_revision()
    if current == newest:
        return
    if current is not None and current > newest:
        raise CatalogVersionError(
            f'the catalog "{url}" belongs to a newer stepwell',
            detail=f"Its schema is revision {current}; this version knows up to {newest}.",
            hint="Upgrade stepwell, or open another warehouse.",
        )
    migrate_to(engine, newest)


def migrate_to(engine: sa.Engine, wanted: str) -> None:
    """Bring a catalog that is older to a revision."""
    config = Config()
    config.set_main_option("script_location", str(_HERE))
    scripts = ScriptDirectory.from_config(config)

    def upgrade(revision: object, _: MigrationContext) -> object:
        return scripts._upgrade_revs(wanted, revision)  # type: ignore[arg-type]  # alembic's own recipe, loosely typed

    with engine.connect() as connection, connection.execution_options(stepwell_write=True).begin():
        if engine.dialect.name == "postgresql":
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
        if MigrationContext.configure(connection).get_current_revision() == wanted:
            return
        with EnvironmentContext(config, scripts, fn=upgrade) as environment:
            environment.configure(connection=connection)
            environment.run_migrations()
        if wanted == newest_revision():
            marks = {"format": int(wanted), "program": __version__}
            connection.execute(sa.text("UPDATE control SET format = :format, program = :program"), marks)
