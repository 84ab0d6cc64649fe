"""What one process wrote, another reads: one that just started, or one of an older release."""

import json
import os
import pathlib
import subprocess
import sys
import textwrap

import codec_types as ct
import numpy as np
import pytest
from same import assert_same
from test_codec_exceptions import PLAIN as EXCEPTIONS
from test_codec_values import CLASSES, CODEC, LANGCHAIN, PLAIN, STANDARD, expected

from dapr_runners.state import AllowList, Codec

HERE = pathlib.Path(__file__).parent
RECORDED = HERE / "recorded" / "version_1.json"
VALUES = {
    f"{group}: {name}": value
    for group, values in (
        ("plain", PLAIN),
        ("standard", STANDARD),
        ("class", CLASSES),
        ("langchain", LANGCHAIN),
        ("exception", {name: error.with_traceback(None) for name, error in EXCEPTIONS.items()}),
        ("numpy", {"array": np.arange(6.0).reshape(2, 3), "scalar": np.float32(0.1)}),
    )
    for name, value in values.items()
    if not name.startswith("UUID")  # another one each time
}


def run(source: str, data: str, **environment: str) -> str:
    path = os.pathsep.join([str(HERE), str(HERE.parents[2] / "runners")])
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(source)],
        input=data,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ) | {"PYTHONPATH": path} | environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_another_process_reads_it_and_writes_the_same_bytes() -> None:
    written = {name: CODEC.encode(value).hex() for name, value in VALUES.items()}
    source = """
        import json, sys
        from test_codec_values import CODEC  # a program's own modules, imported as it starts
        for name, data in json.load(sys.stdin).items():
            print(name, CODEC.encode(CODEC.decode(bytes.fromhex(data))).hex(), sep="\\t")
    """

    output = run(source, json.dumps(written), PYTHONHASHSEED="7")

    assert dict(line.split("\t") for line in output.splitlines()) == written


def test_a_process_that_imported_nothing_else_reads_what_needs_no_class() -> None:
    codec = Codec(AllowList.of(modules=["codec_types"]))
    values = [
        1,
        (2,),
        {3: {"a"}},
        np.float32(1),
        np.arange(2),
        ValueError("a"),
        ct.Needy(code=1, message="m"),
    ]
    source = """
        import sys
        from dapr_runners.state import AllowList, Codec
        before = set(sys.modules)
        print(Codec(AllowList()).decode(bytes.fromhex(sys.stdin.read())))
        print("codec_types" in sys.modules, "numpy" in before, "numpy" in sys.modules)
    """

    output = run(source, codec.encode(values).hex())

    assert output.splitlines() == [
        "[1, (2,), {3: {'a'}}, np.float32(1.0), array([0, 1]), ValueError('a'),"
        " RemoteError(type_name='codec_types.Needy', detail='m')]",
        "False False True",
    ]


def test_no_framework_is_imported_with_the_codec() -> None:
    source = """
        import sys
        import dapr_runners.state
        heavy = {"langgraph", "langchain_core", "crewai", "pydantic", "numpy", "pandas"}
        print(sorted(heavy & sys.modules.keys()))
    """
    assert run(source, "").strip() == "[]"


@pytest.mark.parametrize("name", [name for name in VALUES if not name.startswith("langchain")])
def test_what_version_1_wrote_is_still_read(name: str) -> None:
    """The file was written when the format was fixed, and only ever gets more entries:

    ``python tests/unit/state/test_codec_processes.py`` adds those that are missing.
    """
    recorded = json.loads(RECORDED.read_text())[name]

    assert_same(expected(VALUES[name]), CODEC.decode(bytes.fromhex(recorded)))


if __name__ == "__main__":
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    added = {name: CODEC.encode(value).hex() for name, value in VALUES.items()}
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text(json.dumps(added | kept, indent=0) + "\n")
