"""A program of yours, killed at every point of its runs: what ``dapr-runners chaos`` does.

python -m chaos.kill -- python app.py
"""

import sys

from dapr_runners.cli import main

if __name__ == "__main__":
    sys.argv[1:1] = ["chaos"]
    main()
