"""Runs: consecutive CREATEs of a text are registered together, all or none, and built at one barrier.

Each is analyzed over those before it, which are in the catalog by then, under the numbers that they keep, but withheld
from everybody. The transaction that registers the last one releases all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stepwell.catalog import Transaction, control, deferrals, lives, relations, views, watermarks, writes
from stepwell.engine.define.analysis import Analyzed
from stepwell.engine.define.creation import analyze_view, doubts, register_view, replace_view, require_built
from stepwell.engine.definitions import Definitions, load
from stepwell.engine.failures import pointing_at, translated
from stepwell.engine.read.naming import new_name
from stepwell.engine.runtime import Runtime
from stepwell.model.epochs import Epoch
from stepwell.model.errors import ConflictError, DuplicateNameError, StepwellError, warn
from stepwell.model.failpoints import failpoint
from stepwell.model.relations import Definition, Relation
from stepwell.model.views import RelationId
from stepwell.sql.statements import Create, CreateTable, CreateView, Statement


def create_all(runtime: Runtime, run: Sequence[Statement], wait: Callable[[Epoch], None]) -> None:
    """Carry out CREATEs; `wait` returns once an epoch can be read.

    If one of them is refused, none of them is there. A view that is replaced is a run by itself, since what is there
    cannot be withheld. One that cannot be built is taken away again, and the others stay.
    """
    waiting = list(run)
    while waiting:
        together, waiting = _until_one_replaces(load(runtime), waiting)
        if together:
            epoch = _register(runtime, together)
        else:
            together, waiting = waiting[:1], waiting[1:]
            epoch = _replace(runtime, together[0])
        if epoch is not None:
            wait(epoch)
            require_built(runtime, [_body(each).name.last for each in together])


def _body(statement: Statement) -> Create:
    assert isinstance(statement.body, CreateTable | CreateView)
    return statement.body


def _until_one_replaces(known: Definitions, run: list[Statement]) -> tuple[list[Statement], list[Statement]]:
    """The statements before the first that replaces what is there or is made before it, and the rest."""
    names: set[str] = set()
    for index, body in enumerate(map(_body, run)):
        name = body.name.last.lower()
        if isinstance(body, CreateView) and body.or_replace and (name in names or known.called(name)):
            return run[:index], run[index:]
        names.add(name)
    return run, []


def _replace(runtime: Runtime, statement: Statement) -> Epoch:
    body = _body(statement)
    assert isinstance(body, CreateView)
    with pointing_at(statement), translated():
        new_name(body.name)
        return replace_view(runtime, body)


def _register(runtime: Runtime, run: Sequence[Statement]) -> Epoch | None:
    """Register what is not there yet; the epoch that builds it, or None where there is nothing to wait for."""
    for _ in range(runtime.limits.conflict_tries):
        known = load(runtime)
        missing = _missing(known, run)
        if not missing:
            return None
        attempt = _Attempt(runtime, known)
        epoch = attempt.register(missing)
        if epoch is not None:
            for said in attempt.doubts:
                warn(said)
            return epoch
    name = _body(run[0]).name.last
    raise ConflictError(f'definitions keep changing; "{name}" was not created', hint="Try again.")


def _missing(known: Definitions, run: Sequence[Statement]) -> list[Statement]:
    """Those that have something to create; an error if a name is taken."""
    found: dict[str, Statement] = {}
    for statement in run:
        body = _body(statement)
        with pointing_at(statement):
            name = new_name(body.name)
            existing = known.called(name)
            if existing is None and name.lower() not in found:
                found[name.lower()] = statement
            elif not body.if_not_exists:
                taken = f'relation "{name}"'
                if isinstance(body, CreateView) and existing is not None:
                    taken = f'{existing.kind} "{existing.name}"'
                raise DuplicateNameError(f"{taken} exists already", place=body.name.slice.place)
    return list(found.values())


class _Attempt:
    """One way through a run, which ends if somebody else defines something meanwhile."""

    def __init__(self, runtime: Runtime, known: Definitions) -> None:
        self._runtime = runtime
        self._known = known
        self._generation = known.generation
        self._withheld: list[RelationId] = []
        self.doubts: list[str] = []
        """What a user may not have meant."""

    def register(self, run: Sequence[Statement]) -> Epoch | None:
        """Register all of them; the epoch that builds them, or None if the ground has moved."""
        epoch = None
        try:
            for number, statement in enumerate(run, 1):
                with pointing_at(statement), translated():
                    if not self._add(_body(statement), is_last=number == len(run)):
                        return None
            epoch = self._built
            return epoch
        finally:
            if epoch is None and self._withheld:
                self._forget()

    def _add(self, body: Create, *, is_last: bool) -> bool:
        """Register one more over those before it; False if somebody else has defined something."""
        runtime = self._runtime
        analyzed = analyze_view(runtime, self._known, body) if isinstance(body, CreateView) else None
        with runtime.catalog.write() as tx:
            if control.lock(tx).generation != self._generation:
                return False
            before = relations.last_id(tx)
            _put(tx, runtime, body, analyzed)
            made = relations.created_after(tx, before)
            if is_last:
                relations.release(tx, self._withheld)
                self._built = control.look(tx).open_epoch
                writes.request_barrier(tx, self._built, runtime.clock.now())
            else:
                relations.withhold(tx, [each.id for each in made], runtime.clock.now())
            self._generation = control.look(tx).generation
        failpoint("create.registered" if is_last else "create.withheld")
        self._keep(body, analyzed, made)
        return True

    def _keep(self, body: Create, analyzed: Analyzed | None, made: Sequence[Relation]) -> None:
        if analyzed is not None:
            self.doubts += doubts(self._known, body.name.last, analyzed)
        self._withheld += [each.id for each in made]
        self._known = self._known.beside(made)

    def _forget(self) -> None:
        """Take away what was withheld; after a crash the next vacuums do."""
        with self._runtime.catalog.write() as tx:
            control.lock(tx)
            relations.forget(tx, self._withheld)
            lives.forget(tx, self._withheld)
            views.forget(tx, self._withheld)
            watermarks.forget(tx, self._withheld)
            deferrals.forget(tx, self._withheld)


def _put(tx: Transaction, runtime: Runtime, body: Create, analyzed: Analyzed | None) -> None:
    name = new_name(body.name)
    if isinstance(body, CreateView):
        assert analyzed is not None
        register_view(tx, runtime, name, body, analyzed)
        return
    definition = Definition(key=body.key, chunking=body.chunking, watermark=body.watermark)
    try:
        relations.create(tx, name, definition, body.columns)
    except StepwellError as error:
        raise error.at(body.name.slice.place) from None
