# SPDX-License-Identifier: GPL-2.0-or-later
"""The training of fit.bats: fit_program.py [stage].

The data is a file with lines of words. "staged FILE" is not staged before there is this file.
"until FILE" goes on until there is this file. "fail" ends with status 3. "empty" writes nothing.
A format that is not "words" cannot be staged.
"broken" makes a model that no server loads. "slow FILE" makes one whose servers start when there
is FILE.all, or remove FILE for that: each needs one of its own. "large" adds 10 MB. The model is a
file "model": what it was trained from, and its data.
"""

import json
import os
import sys
import time
from pathlib import Path

call = json.loads(Path(os.environ["ELASTIC_FIT"]).read_text())
assert call["modelDir"] == os.environ["ELASTIC_MODEL_DIR"], call
assert call["previousModelDir"] == os.environ.get("ELASTIC_PREVIOUS_MODEL_DIR"), call
assert call["trainData"] == os.environ["ELASTIC_TRAIN_DATA"], call
assert call["targetsData"] == os.environ.get("ELASTIC_TARGETS_DATA"), call
config = os.environ.get("ELASTIC_FIT_CONFIG")
assert call["config"] == (json.loads(Path(config).read_text()) if config else None), config
data, targets = call["trainData"], call["targetsData"]


def wait_for(word, words):
    if word in words:
        while not Path(words[words.index(word) + 1]).exists():
            time.sleep(0.1)


if sys.argv[1:] == ["stage"]:
    if call["datasetInfo"]["format"] not in (None, "words"):
        sys.exit(1)
    text = Path(data.removeprefix("test://")).read_text()
    wait_for("staged", text.split())
    Path(os.environ["ELASTIC_STAGED"], "data").write_text(text)
    print("staged")
    sys.exit(0)

words = Path(os.environ["ELASTIC_STAGED"], "data").read_text().split()
before = call["previousModelDir"]
towards = []
if targets:
    files = [path for path in [Path(targets), *sorted(Path(targets).rglob("*"))] if path.is_file()]
    towards = ["to", *(path.read_text().strip() for path in files)]
print("trains", call["config"], "from", before, *towards, flush=True)
wait_for("until", words)
if "fail" in words:
    sys.exit(3)
model = Path(call["modelDir"])
if "empty" not in words:
    start = (Path(before) / "model").read_text() + " " if before else ""
    (model / "model").write_text(start + words[0])
if "slow" in words:
    (model / "slow").write_text(words[words.index("slow") + 1])
if "large" in words:
    (model / "large").write_bytes(os.urandom(10_000_000))
if "broken" in words:
    (model / "broken").write_text("")
