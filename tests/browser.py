"""A headless Chromium that tests can drive: pages opened, elements clicked, keys pressed.

It is spoken to over a pair of pipes in Chrome's DevTools protocol, so no driver is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "chrome-headless-shell")
PATIENCE = 60.0
"""Seconds to wait for an answer."""


def find_browser() -> str | None:
    """The first Chromium on this machine."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page in a browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._rest, self._count, self._session = b"", 0, ""
        self.complaints: list[str] = []
        """Errors and warnings of the console and the policy, and requests of the page."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        result = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = result["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def _ask(self, method: str, **params: Any) -> Any:
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select([self._read], [], [], PATIENCE)
            part = os.read(self._read, 1 << 20) if ready else b""
            assert part, "the browser does not answer"
            self._rest += part
        text, _, self._rest = self._rest.partition(b"\0")
        event: dict[str, Any] = json.loads(text)
        self._note(event)
        return event

    def _note(self, event: dict[str, Any]) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif method == "Network.requestWillBeSent" and params["type"] != "Document":
            self.complaints.append(params["request"]["url"])

    def open(self, path: Path, width: int = 1366, height: int = 768, dark: bool = False) -> None:
        """Show a file in a window of a size, and wait until it is there."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self._ask("Emulation.setEmulatedMedia", features=[scheme])
        self._ask("Page.navigate", url=path.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def run(self, expression: str) -> Any:
        """Return the value of a JavaScript expression in the page."""
        result = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def click(self, selector: str) -> None:
        """Press the mouse in the middle of the first element of a selector."""
        at = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', inline: 'center'});"
            "const r = e.getBoundingClientRect();"
            "return {x: r.x + r.width / 2, y: r.y + r.height / 2}; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def press(self, key: str) -> None:
        """Press and let go of a key: "Tab", "Enter", a letter."""
        code = {"Tab": 9, "Enter": 13}.get(key, ord(key[0]))
        text = {"Enter": "\r", "Tab": ""}.get(key, key)
        event = {"key": key, "windowsVirtualKeyCode": code}
        self._ask("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        self._ask("Input.dispatchKeyEvent", type="keyUp", **event)

    def picture(self, path: Path) -> None:
        """Write what is seen as PNG."""
        import base64

        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot")["data"]))


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Browser]:
    """A browser with an empty profile; it is ended afterwards."""
    to_read, to_write = os.pipe()
    from_read, from_write = os.pipe()
    command = [
        "bash",
        "-c",
        f'exec "$@" 3<&{to_read} 4>&{from_write}',
        "browser",
        program,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
    ]
    process = subprocess.Popen(
        command,
        pass_fds=(to_read, from_write),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(from_write)
    try:
        yield Browser(to_write, from_read)
    finally:
        process.terminate()
        process.wait(20)
        os.close(to_write)
        os.close(from_read)
