"""The program ``fairrate``: the command line, which comes with the package."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from fairrate import _native


def entry() -> int:
    """Runs ``fairrate`` with the arguments of the process. Returns its exit code."""
    # Until a command handles it, an interrupt ends the process, as in the program that is not Python's.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Programs such as `fairrate-tune` lie beside this script, which need not be in PATH.
    beside = str(Path(sys.argv[0]).absolute().parent)
    os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])
    return _native.main(["fairrate", *sys.argv[1:]])
