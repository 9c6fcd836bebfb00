"""A review's server as people start it: the command, in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys


class Serving:
    """``openset review RUN``, running."""

    def __init__(self, run, *, port=0):
        command = [sys.executable, "-m", "openset.cli", "review", str(run), "--no-open", "--json"]
        self._process = subprocess.Popen(
            [*command, "--port", str(port)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        said = ""
        while not said.rstrip().endswith("}"):
            line = self._process.stdout.readline()
            assert line, self._process.stderr.read()
            said += line
        self.url = json.loads(said)["url"]
        self.origin = self.url.split("/?")[0]
        self.port = int(self.origin.rsplit(":", 1)[1])
        self.token = self.url.split("token=")[1]

    def __enter__(self):
        return self

    def __exit__(self, *problem):
        self.kill()

    def kill(self):
        """As hard as it gets."""
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()
        self._process.stderr.close()

    def interrupt(self):
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(20)
