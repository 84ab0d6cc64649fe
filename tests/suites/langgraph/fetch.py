"""Bring LangGraph's own tests: the source distribution of the locked version, by its hash.

    python tests/suites/langgraph/fetch.py     prints the directory the tests are in

The package's source beside the tests is taken away, so that the installed one is tested.
"""

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
LOCK = ROOT / "requirements" / "suite-langgraph.lock"
CACHE = ROOT / ".cache" / "suites"


def locked() -> tuple[str, str]:
    """The version of LangGraph in the lock file, and its line there with the hashes."""
    entry = re.search(r"^langgraph==(\S+)(?: \\\n    --hash=\S+)+", LOCK.read_text(), re.MULTILINE)
    if entry is None:
        raise SystemExit(f"{LOCK} does not pin langgraph with hashes: run `make lock`.")
    return entry[1], entry[0]


def fetch() -> Path:
    """The directory of the tests, downloaded unless it is there."""
    version, requirement = locked()
    place = CACHE / f"langgraph-{version}"
    if not (place / "tests").is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
            unpacked = _unpack(_download(requirement, Path(scratch)), Path(scratch))
            (unpacked / "langgraph").rename(unpacked / "langgraph.not-tested")
            shutil.rmtree(place, ignore_errors=True)
            unpacked.rename(place)
    return place


def _download(requirement: str, into: Path) -> Path:
    wanted = into / "requirements.txt"
    wanted.write_text(requirement + "\n")
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    pip += ["--no-binary", "langgraph", "--dest", str(into), "--requirement", str(wanted)]
    subprocess.run(pip, check=True)
    (archive,) = into.glob("langgraph-*.tar.gz")
    return archive


def _unpack(archive: Path, into: Path) -> Path:
    with tarfile.open(archive) as tar:
        tar.extractall(into, filter="data")
    return into / archive.name.removesuffix(".tar.gz")


if __name__ == "__main__":
    sys.stdout.write(f"{fetch()}\n")
