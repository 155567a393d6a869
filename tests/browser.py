"""A headless Chromium for tests, spoken to over a pair of pipes: nothing but the browser itself is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "chromium")
PATIENCE = 60.0  # seconds that an answer may take on a machine that is busy with Spark

_installed: str | None = None  # why Chromium could not be installed, once that has been tried


def find_chromium() -> str:
    """The browser's program, installed if need be and possible; skips the test, with the reason, where it is not."""
    global _installed
    if (found := _on_path()) is not None:
        return found
    if _installed is None:
        _installed = _install()
    if (found := _on_path()) is not None:
        return found
    pytest.skip(f"there is no Chromium: {_installed}")


def _on_path() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def _install() -> str:
    if os.geteuid() != 0:
        return "only root can install packages"
    if shutil.which(INSTALL[0]) is None:
        return f"there is no {INSTALL[0]} to install it with"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            INSTALL, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=180
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(INSTALL)} took more than three minutes"
    return (done.stderr.strip() or "it was installed, but is not on the PATH").splitlines()[-1]


# Chromium expects its pipes as descriptors 3 and 4.
_SHIM = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One browser with one page; `events` are all that it has reported. Leaving it ends all its processes."""

    def __init__(self, program: str, profile: Path) -> None:
        self.events: list[dict[str, Any]] = []
        self._number = 0
        self._received = b""
        self._answers: dict[int, dict[str, Any]] = {}
        their_input, self._out = _pipe()
        self._in, their_output = _pipe()
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
            "--disable-breakpad", "--disable-background-networking", "--no-first-run", "--lang=en",
            f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank",
        ]  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SHIM, str(their_input), str(their_output), *command],
            pass_fds=(their_input, their_output), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(their_input)
        os.close(their_output)
        self._session: str | None = None

    def __enter__(self) -> Browser:
        try:
            pages = [each for each in self.call("Target.getTargets")["targetInfos"] if each["type"] == "page"]
            target = {"targetId": pages[0]["targetId"], "flatten": True}
            self._session = self.call("Target.attachToTarget", **target)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                self.call(f"{domain}.enable")
            self.call("Emulation.setFocusEmulationEnabled", enabled=True)  # the page is the window that one types in
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Closed pipes tell the browser to go; whatever it has started and is still there after that is ended."""
        family = [psutil.Process(self._process.pid)]
        family += family[0].children(recursive=True)
        os.close(self._out)
        os.close(self._in)
        _, left = psutil.wait_procs(family, timeout=10)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=10)
        self._process.wait()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """What the browser answers; what it reports meanwhile is kept in `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        self._write(json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while self._number not in self._answers:
            self._receive(deadline)
        answer = self._answers.pop(self._number)
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        result: dict[str, Any] = answer["result"]
        return result

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._out, data) :]

    def _receive(self, deadline: float) -> None:
        ready, _, _ = select.select([self._in], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            raise AssertionError(f"the browser has not answered for {PATIENCE} seconds")
        data = os.read(self._in, 1 << 16)
        if not data:
            raise AssertionError(f"the browser has ended with {self._process.poll()}")
        *messages, self._received = (self._received + data).split(b"\0")
        for message in map(json.loads, messages):
            if "id" in message:
                self._answers[message["id"]] = message
            else:
                self.events.append(message)

    def open(self, address: str) -> None:
        """Go to a page, and wait until it and all that it needs is there."""
        self.events.clear()
        self.call("Page.navigate", url=address)
        deadline = time.monotonic() + PATIENCE
        while not self.reported("Page.loadEventFired"):
            self._receive(deadline)

    def reported(self, method: str) -> list[dict[str, Any]]:
        return [event["params"] for event in self.events if event["method"] == method]

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript, in the page as it is."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def settle(self) -> None:
        """Two frames: what the page has been told to do is on the screen."""
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.settle()

    def prefer(self, scheme: str) -> None:
        """Be a system whose colours are light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.settle()

    def press(self, key: str, code: int, text: str = "") -> None:
        """A key as a user presses it, wherever the focus is."""
        for kind in ("keyDown", "keyUp"):
            typed = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **typed)
        self.settle()

    def screenshot(self, path: Path) -> None:
        """The whole page, from top to bottom."""
        picture = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture))

    def complaints(self) -> list[str]:
        """Everything that went to the console, was thrown, or was logged by the browser itself."""
        return [
            *(json.dumps(each["args"]) for each in self.reported("Runtime.consoleAPICalled")),
            *(json.dumps(each["exceptionDetails"]) for each in self.reported("Runtime.exceptionThrown")),
            *(each["entry"]["text"] for each in self.reported("Log.entryAdded")),
        ]

    def requests(self) -> list[str]:
        """The addresses that the page has asked for, itself included."""
        return [each["request"]["url"] for each in self.reported("Network.requestWillBeSent")]


def _pipe() -> tuple[int, int]:
    """A pipe whose ends are clear of the numbers that Chromium wants."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return ends[0], ends[1]
