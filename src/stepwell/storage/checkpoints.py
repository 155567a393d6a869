"""A place with checkpoints: data files that they share, the rows of each one's catalog, and a manifest each.

    data/<relation>/rows/…       as in a warehouse
    checkpoints/<epoch>.json     the manifest, written last
    checkpoints/<epoch>-….jsonl  the catalog's rows, a line each

Files are written under another name first, so whatever has its name is whole.
"""

from __future__ import annotations

import json
import uuid
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence

from stepwell.model.checkpoints import CHECKPOINT_FORMAT, CatalogRows, Manifest
from stepwell.model.epochs import Epoch
from stepwell.model.errors import CheckpointError
from stepwell.model.files import DataFile
from stepwell.model.limits import Limits
from stepwell.storage.checksums import all_damages, crc, damaged, missing
from stepwell.storage.warehouse import Warehouse, write_failed


class CheckpointFolder:
    """A folder or URL in which checkpoints of one database are."""

    def __init__(self, url: str) -> None:
        self.place = Warehouse(url)
        self._manifests = f"{self.place.root}/checkpoints"

    def create(self) -> None:
        """Make sure that checkpoints can be written there, and remove what a copy that was killed has left."""
        self.place.create()
        for path in self.place.list(self.place.root):
            if path.endswith(PART):
                self.place.delete(path)

    def require_of(self, identity: str) -> None:
        """Fail if checkpoints of another database are there, or something that is no checkpoint."""
        for manifest in self.manifests():
            if manifest.identity != identity:
                raise CheckpointError(
                    f'"{self.place.url}" holds checkpoints of another database',
                    hint="Choose a folder of its own for each database.",
                )
        if self.place.has(f"{self.place.root}/catalog.db"):
            raise CheckpointError(
                f'"{self.place.url}" is a warehouse', hint="Choose a folder that holds checkpoints, or nothing."
            )

    def manifests(self) -> list[Manifest]:
        """The checkpoints that are there, the oldest epoch first."""
        paths = [path for path in self.place.list(self._manifests) if path.endswith(".json")]
        return [self._manifest(path) for path in sorted(paths)]

    def choose(self, epoch: int | None) -> Manifest:
        """The checkpoint of an epoch, or of the newest."""
        paths = sorted(path for path in self.place.list(self._manifests) if path.endswith(".json"))
        if not paths:
            raise CheckpointError(f'there is no checkpoint at "{self.place.url}"', hint="CHECKPOINT TO makes one.")
        if epoch is None:
            return self._manifest(paths[-1])
        if (wanted := self._path_of(epoch)) not in paths:
            kept = ", ".join(str(int(path.rsplit("/", 1)[-1].removesuffix(".json"))) for path in paths)
            raise CheckpointError(
                f'there is no checkpoint of epoch {epoch} at "{self.place.url}"',
                detail=f"There are those of the epochs {kept}.",
                sqlstate="22023",
            )
        return self._manifest(wanted)

    def absent(self, files: Sequence[DataFile]) -> list[DataFile]:
        """Those of some files that are not there yet."""
        states = self.place.states([self._data(file) for file in files])
        return [file for file, state in zip(files, states, strict=True) if state.size != file.statistics.bytes]

    def checksum(self, file: DataFile) -> int:
        """The checksum of a file that is there."""
        with self.place.open_input(self._data(file)) as source:
            return crc(source)

    def write_rows(self, epoch: Epoch, rows: CatalogRows) -> tuple[str, int, int]:
        """Write the rows of a catalog; the name of the file, its size and its checksum."""
        lines = [json.dumps({"table": table, "row": row}) for table, each in rows.items() for row in each]
        text = "".join(f"{line}\n" for line in lines).encode()
        name = f"{epoch:020}-{uuid.uuid4().hex[:12]}.jsonl"
        write_whole(self.place, f"{self._manifests}/{name}", [text])
        return name, len(text), zlib.crc32(text)

    def publish(self, manifest: Manifest) -> None:
        """Let a checkpoint be there; one of the same epoch no longer is."""
        path = self._path_of(manifest.epoch)
        write_whole(self.place, path, [manifest.as_text().encode()])
        for other in self.place.list(self._manifests):
            name = other.rsplit("/", 1)[-1]
            if name.startswith(f"{manifest.epoch:020}-") and name != manifest.catalog:
                self.place.delete(other)

    def read_rows(self, manifest: Manifest) -> CatalogRows:
        """The rows of a checkpoint's catalog, if they are as they were written."""
        path = f"{self._manifests}/{manifest.catalog}"
        text = self._read(path)
        if (len(text), zlib.crc32(text)) != (manifest.catalog_bytes, manifest.catalog_checksum):
            raise refused(path, "Its bytes are not those that were written.")
        rows: CatalogRows = {}
        for line in text.splitlines():
            found = json.loads(line)
            rows.setdefault(found["table"], []).append(found["row"])
        return rows

    def require_whole(self, files: Iterable[DataFile]) -> None:
        """Fail if a file of a checkpoint is not there as it was written; every byte is read."""
        for error in all_damages(self.place, files, deep=True):
            raise refused(error.path or "", error.detail or "")

    def _manifest(self, path: str) -> Manifest:
        try:
            found = Manifest.from_text(self._read(path).decode())
        except (ValueError, TypeError) as error:
            raise refused(path, f"{str(error).rstrip('.')}.") from error
        if found.format > CHECKPOINT_FORMAT:
            raise CheckpointError(
                f'the checkpoint "{path}" belongs to a newer stepwell',
                detail=f"It was written by version {found.program}.",
                hint="Upgrade stepwell, or restore an older checkpoint.",
            )
        return found

    def _read(self, path: str) -> bytes:
        try:
            with self.place.open_input(path) as source:
                return bytes(source.read())
        except FileNotFoundError as error:
            raise refused(path, "It is missing.") from error
        except OSError as error:
            raise refused(path, error.strerror or str(error)) from error

    def _path_of(self, epoch: int) -> str:
        return f"{self._manifests}/{epoch:020}.json"

    def _data(self, file: DataFile) -> str:
        return self.place.path(file.relation, file.store, file.path)


PART = ".part"


def refused(path: str, detail: str) -> CheckpointError:
    """The error for a checkpoint of which a file is not as it was written."""
    return CheckpointError(
        f'the checkpoint cannot be used: "{path}" is damaged or missing',
        detail=detail,
        hint="SHOW CHECKPOINTS tells the others that are there.",
    )


def copy_file(source: Warehouse, target: Warehouse, file: DataFile, between: Callable[[], None]) -> int:
    """Copy a data file to the same place of another warehouse; its checksum. `between` pieces somebody may stop it.

    What is read is compared with what was once written: nothing that is damaged is ever there under its name.
    """
    origin, path = (each.path(file.relation, file.store, file.path) for each in (source, target))
    pieces, found = Pieces(source, origin, between), 0
    checksum = file.statistics.checksum

    def checked() -> Iterator[bytes]:
        nonlocal found
        for piece in pieces:
            found = zlib.crc32(piece, found)
            yield piece
        if pieces.size != file.statistics.bytes or (checksum is not None and found != checksum.whole):
            raise damaged(origin, "Its bytes are not those that were written.")

    write_whole(target, path, checked())
    return found


class Pieces:
    """The bytes of a file, one piece after the other."""

    def __init__(self, place: Warehouse, path: str, between: Callable[[], None]) -> None:
        self._place = place
        self._path = path
        self._between = between
        self.size = 0

    def __iter__(self) -> Iterator[bytes]:
        most = Limits().copied_bytes
        try:
            with self._place.open_input(self._path) as stream:
                while piece := stream.read(most):
                    self._between()
                    self.size += len(piece)
                    yield piece
        except FileNotFoundError as error:
            raise missing(self._path) from error
        except OSError as error:
            raise damaged(self._path, error.strerror or str(error)) from error


def write_whole(place: Warehouse, path: str, pieces: Iterable[bytes]) -> None:
    """Write a file so that whoever finds it under its name finds all of it, also after a power cut."""
    part = path + PART if place.is_local else path  # what an object store is sent is there when all of it is
    try:
        place.make_folder(path.rsplit("/", 1)[0])
        stream = place.open_output(part)
    except OSError as error:
        raise write_failed(path, error) from error
    try:
        for piece in pieces:
            try:
                stream.write(piece)
            except OSError as error:
                raise write_failed(path, error) from error
        stream.close()
        if part != path:
            place.sync([part])
            place.move(part, path)
    except BaseException:
        if place.is_local:  # an object store forgets what was not closed
            stream.close()
            place.delete(part)
        raise
