"""A headless Chromium over its debugging pipe: no driver, no port, no package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_chromium():
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next((path for path in map(shutil.which, names) if path), None)


class Browser:
    """One running browser; ``open`` gives a fresh page."""

    def __init__(self, executable):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        commands_in, self._commands = os.pipe()
        self._answers, answers_out = os.pipe()
        # Chromium reads commands from descriptor 3 and answers on 4; the shell puts the pipes there
        shell = f'exec "$@" 3<&{commands_in} 4>&{answers_out}'
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                shell,
                "bash",
                executable,
                *FLAGS,
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            pass_fds=(commands_in, answers_out),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands_in)
        os.close(answers_out)
        self._number, self._buffer, self.events = 0, b"", []

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.command("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._commands)
        os.close(self._answers)
        self._profile.cleanup()

    def command(self, method, session=None, **params):
        """Send one command and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + 60
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _read(self, deadline):
        while b"\0" not in self._buffer:
            if not select.select([self._answers], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("Chromium did not answer")
            chunk = os.read(self._answers, 1 << 20)
            if not chunk:
                raise RuntimeError("Chromium ended")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def open(self, path, **settings):
        return Page(self, path, **settings)


class Page:
    """One page at one width and colour scheme, with everything it asked for and complained about."""

    def __init__(self, browser, path, *, width=1280, height=900, dark=False, scripts=True):
        self._browser = browser
        target = browser.command("Target.createTarget", url="about:blank")["targetId"]
        self._target = target
        self._session = browser.command("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")
        self.do("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])
        self.url = str(path) if str(path).startswith("http") else Path(path).resolve().as_uri()
        self._scripts = scripts
        self.load("Page.navigate", url=self.url)

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self._browser.command("Target.closeTarget", targetId=self._target)

    def load(self, method="Page.reload", **params):
        """Go to a page, or load it again, and wait until it is there."""
        before = self._loaded()
        self.do(method, **params)
        while self._loaded() == before:
            self.do("Runtime.evaluate", expression="1") if self._scripts else self.do("Page.getLayoutMetrics")
            time.sleep(0.02)

    def _loaded(self):
        return sum(event["method"] == "Page.loadEventFired" for event in self._events())

    def do(self, method, **params):
        return self._browser.command(method, self._session, **params)

    def run(self, expression):
        """The value of a JavaScript expression."""
        answer = self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, expression, seconds=20):
        """Wait until a JavaScript expression is true."""
        deadline = time.monotonic() + seconds
        while not self.run(expression):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.01)

    def press(self, letter, **more):
        """One letter, as it is typed."""
        self.key(letter, f"Key{letter.upper()}", ord(letter.upper()), **more)

    def key(self, key, code, number, **more):
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.do(
                "Input.dispatchKeyEvent", type=kind, key=key, code=code, windowsVirtualKeyCode=number,
                **(text if kind == "keyDown" else {}), **more,
            )  # fmt: skip

    def type(self, selector, text):
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.do("Input.insertText", text=text)

    def mouse(self, kind, x, y, **more):
        self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def complaints(self):
        """Console messages, uncaught errors and log entries such as violations of the content policy."""
        loud = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [event["params"] for event in self._events() if event["method"] in loud]

    def requests(self):
        """What the page asked for beside itself and pictures that are inside it."""
        asked = [
            event["params"]["request"]["url"]
            for event in self._events()
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if url != self.url and not url.startswith("data:")]

    def dialogs(self):
        return [event for event in self._events() if event["method"] == "Page.javascriptDialogOpening"]

    def _events(self):
        return [event for event in self._browser.events if event.get("sessionId") == self._session]

    def screenshot(self, path, *, first, height):
        """A picture of the page's whole width, from just above the element ``first``."""
        top = self.run(f"Math.max(0, document.querySelector({json.dumps(first)}).getBoundingClientRect().y - 60)")
        clip = {"x": 0, "y": top, "width": self.run("innerWidth"), "height": height, "scale": 1}
        answer = self.do("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(answer["data"]))

    def pdf(self):
        return base64.b64decode(self.do("Page.printToPDF", printBackground=False)["data"])
