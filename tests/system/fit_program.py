# SPDX-License-Identifier: GPL-2.0-or-later
"""The training of fit.bats: fit_program.py [stage].

The data is a file with lines of words. "staged FILE" is not staged before there is this file.
"until FILE" goes on until there is this file. "fail" ends with status 3. "empty" writes nothing.
A format that is not "words" cannot be staged.
"broken" makes a model that no server loads. "slow FILE" makes one whose servers start when there
is FILE.all, or remove FILE for that: each needs one of its own. "large" adds 10 MB. The model is a
file "model": what it was trained from, and its data.
"""

import os
import sys
import time

import light

call = light.load_json(os.environ["ELASTIC_FIT"])
assert call["modelDir"] == os.environ["ELASTIC_MODEL_DIR"], call
assert call["previousModelDir"] == os.environ.get("ELASTIC_PREVIOUS_MODEL_DIR"), call
assert call["trainData"] == os.environ["ELASTIC_TRAIN_DATA"], call
assert call["targetsData"] == os.environ.get("ELASTIC_TARGETS_DATA"), call
config = os.environ.get("ELASTIC_FIT_CONFIG")
assert call["config"] == (light.load_json(config) if config else None), config
data, targets = call["trainData"], call["targetsData"]
staged_data = os.environ["ELASTIC_STAGED"] + "/data"


def wait_for(word, words):
    if word in words:
        while not os.path.exists(words[words.index(word) + 1]):
            time.sleep(0.1)


if sys.argv[1:] == ["stage"]:
    if call["datasetInfo"]["format"] not in (None, "words"):
        sys.exit(1)
    text = light.read(data.removeprefix("test://"))
    wait_for("staged", text.split())
    light.write(staged_data, text)
    print("staged")
    sys.exit(0)

words = light.read(staged_data).split()
before = call["previousModelDir"]
towards = []
if targets:
    files = [f"{top}/{name}" for top, _, names in os.walk(targets) for name in sorted(names)]
    if os.path.isfile(targets):
        files = [targets]
    towards = ["to", *(light.read(path).strip() for path in files)]
print("trains", call["config"], "from", before, *towards, flush=True)
wait_for("until", words)
if "fail" in words:
    sys.exit(3)
model = call["modelDir"]
if "empty" not in words:
    start = light.read(before + "/model") + " " if before else ""
    light.write(model + "/model", start + words[0])
if "slow" in words:
    light.write(model + "/slow", words[words.index("slow") + 1])
if "large" in words:
    with open(model + "/large", "wb") as file:
        file.write(os.urandom(10_000_000))
if "broken" in words:
    light.write(model + "/broken", "")
