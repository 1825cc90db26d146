# SPDX-License-Identifier: GPL-2.0-only
"""A headless Chromium over its debugging pipe: loads a page from disk, evaluates, takes pictures."""

import base64
import json
import os
import pathlib
import shutil
import subprocess
import tempfile


class Browser:
    """Chromium with one page. `problems` collects what a console of it would show in red."""

    def __init__(self):
        program = shutil.which("chromium")
        if program is None:
            raise FileNotFoundError("chromium is not installed (scripts/setup installs it)")
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self.to = os.pipe()  # Chromium reads its descriptor 3 and writes 4
        self.answers, to_write = os.pipe()

        def wire():
            os.dup2(to_read, 100)
            os.dup2(to_write, 101)
            os.dup2(100, 3)
            os.dup2(101, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}"],
            preexec_fn=wire, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self.buffer = b""
        self.last_id = 0
        self.problems = []
        self.requests = []
        target = self.call("Target.createTarget", {"url": "about:blank"}, None)["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": target, "flatten": True},
                                 None)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.profile.cleanup()

    def message(self):
        while b"\0" not in self.buffer:
            part = os.read(self.answers, 1 << 20)
            if not part:
                raise RuntimeError("Chromium ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(str([value.get("value") for value in params["args"]]))
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(params["entry"]["text"])
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def call(self, method, parameters=None, session="own"):
        self.last_id += 1
        asked = {"id": self.last_id, "method": method, "params": parameters or {}}
        if session == "own":
            asked["sessionId"] = self.session
        os.write(self.to, json.dumps(asked).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == asked["id"]:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']['message']}")
                return message["result"]
            self.note(message)

    def evaluate(self, expression):
        """The value of a JavaScript expression, awaited if it is a promise."""
        answer = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True,
                                                "awaitPromise": True})
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description"))
        return answer["result"].get("value")

    def open(self, path, width=1280, height=900, theme="light"):
        """Opens a report and waits until all its charts are drawn. Returns the seconds it took."""
        self.call("Emulation.setDeviceMetricsOverride",
                  {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.call("Emulation.setEmulatedMedia",
                  {"features": [{"name": "prefers-color-scheme", "value": theme}]})
        self.call("Page.navigate", {"url": pathlib.Path(path).resolve().as_uri()})
        return self.evaluate(
            "new Promise((resolve, reject) => { const from = Date.now(); const look = () => {"
            " if (document.documentElement?.dataset.ready === 'yes') resolve(performance.now() / 1000);"
            " else if (Date.now() - from > 60000) reject(new Error('the page is not ready'));"
            " else setTimeout(look, 20); }; look(); })")

    def picture(self, path, whole=True):
        """Writes a PNG of the page."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        options = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"],
                               "scale": 1}
        data = self.call("Page.captureScreenshot", options)["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
