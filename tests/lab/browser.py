"""A browser as a person uses it: Chromium, driven over a pipe by its own protocol."""

from __future__ import annotations

import fcntl
import json
import os
import select
import subprocess
import time
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Self

import tools

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

PATIENCE_S = 30
#: Keys by their name, with the numbers that Chromium wants.
KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    "Space": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowRight": 39,
}
#: Characters of keys that have one.
TEXTS = {"Enter": "\r", "Space": " "}


class Browser:
    """One page, with all that it asked for and all that it complained about."""

    def __init__(self, prefix: Sequence[str], folder: Path) -> None:
        tools.need(tools.CHROMIUM)
        self.urls: list[str] = []
        self.complaints: list[str] = []
        self._number, self._rest = 0, b""
        requests, self._ask = os.pipe()
        self._answers, answers = os.pipe()
        # Chromium reads from 3 and writes to 4.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (requests, answers)]
        words = (
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
            *("--disable-component-update", "--disable-sync", "--no-first-run"),
            *("--remote-debugging-pipe", f"--user-data-dir={folder}", "about:blank"),
        )
        start = f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}'
        self._process = subprocess.Popen(
            [*prefix, "bash", "-c", start, "bash", tools.CHROMIUM.program, *words],
            pass_fds=ends,
            stderr=subprocess.DEVNULL,
        )
        for end in (requests, answers, *ends):
            os.close(end)
        self._session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._ask)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._answers)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Return the answer to a command of the protocol."""
        self._number += 1
        request = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            request["sessionId"] = self._session
        os.write(self._ask, json.dumps(request).encode() + b"\0")
        while (told := self._next()).get("id") != self._number:
            self._note(told)
        assert "error" not in told, f"{method}: {told['error']}"
        result: dict[str, Any] = told["result"]
        return result

    def open(self, url: str) -> None:
        """Go to a page, and wait for its files."""
        self.call("Page.navigate", url=url)
        self.until(f"location.href === {json.dumps(url)} && document.readyState === 'complete'")

    def size(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """Make the window so large, on a light or dark ground."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])

    def ask(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        told = self.call("Runtime.evaluate", **asked)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, script: str, patience_s: float = PATIENCE_S) -> Any:
        """Return the value of an expression as soon as it is one."""
        end_s = time.monotonic() + patience_s
        while not (value := self.ask(script)):
            told = self.ask("document.body.innerText")
            assert time.monotonic() < end_s, f"{script}\n{told}\n{self.complaints}"
            time.sleep(0.05)
        return value

    def press(self, *names: str) -> None:
        """Press keys, one after the other."""
        for name in names:
            key: dict[str, Any] = {"code": name, "windowsVirtualKeyCode": KEYS[name]}
            key["key"] = " " if name == "Space" else name
            text = {"text": TEXTS[name]} if name in TEXTS else {}
            self.call("Input.dispatchKeyEvent", type="keyDown", **key, **text)
            self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def write(self, text: str) -> None:
        """Write where the focus is."""
        self.call("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """Write the whole page as a PNG file."""
        told = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(b64decode(told["data"]))

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._answers], [], [], PATIENCE_S)
            more = os.read(self._answers, 1 << 20) if ready else b""
            assert more, "the browser does not answer"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told

    def _note(self, told: dict[str, Any]) -> None:
        match told.get("method"), told.get("params"):
            case "Network.requestWillBeSent", {"request": {"url": url}}:
                self.urls.append(url)
            case "Log.entryAdded", {"entry": entry}:
                self.complaints.append(f"{entry['text']} {entry.get('url', '')}")
            case "Runtime.exceptionThrown", {"exceptionDetails": details}:
                self.complaints.append(json.dumps(details))
            case "Runtime.consoleAPICalled", {"type": kind, "args": said}:
                self.complaints.append(f"{kind}: {said}")
