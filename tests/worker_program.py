"""A worker process of a test: ``worker_program.py <module>:<function> [argument...]``.

The function makes the runners. They are started, ``ready`` is printed, and the process works until
its standard input is closed.
"""

import importlib
import os
import sys


def main(target: str, *arguments: str) -> None:
    module, _, function = target.partition(":")
    runners = list(getattr(importlib.import_module(module), function)(*arguments))
    for runner in runners:
        runner.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    # What still runs (a step that was given up, say) is not waited for.
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
