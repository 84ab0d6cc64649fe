"""A worker process for tests that kill or freeze it: ``sidecar_worker.py GRPC_PORT``.

Says ``up`` on stdout when it takes work, and ends with its stdin.
"""

import os
import sys

from sidecar_workflows import make_runtime

make_runtime("127.0.0.1", int(sys.argv[1])).start()
sys.stdout.write("up\n")
sys.stdout.flush()
sys.stdin.read()
os._exit(0)
