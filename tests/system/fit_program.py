# SPDX-License-Identifier: GPL-2.0-or-later
"""The training of fit.bats: fit_program.py [stage].

The data is a file with lines of words. "sleep S" takes so long. "fail" ends with status 3. "empty"
writes nothing. "broken" makes a model that no server loads. "slow S" makes one whose servers take S
seconds to start. The model is a file "model": what it was trained from, and its data.
"""

import json
import os
import sys
import time
from pathlib import Path

call = json.loads(Path(os.environ["ELASTIC_FIT"]).read_text())
assert call["modelDir"] == os.environ["ELASTIC_MODEL_DIR"], call
assert call["previousModelDir"] == os.environ.get("ELASTIC_PREVIOUS_MODEL_DIR"), call
data = call["trainData"]
if sys.argv[1:] == ["stage"]:
    Path(os.environ["ELASTIC_STAGED"], "data").write_text(
        Path(data.removeprefix("test://")).read_text()
    )
    print("staged")
    sys.exit(0)

words = Path(os.environ["ELASTIC_STAGED"], "data").read_text().split()
before = call["previousModelDir"]
print("trains", call["config"], "from", before, flush=True)
if "sleep" in words:
    time.sleep(float(words[words.index("sleep") + 1]))
if "fail" in words:
    sys.exit(3)
model = Path(call["modelDir"])
if "empty" not in words:
    start = (Path(before) / "model").read_text() + " " if before else ""
    (model / "model").write_text(start + words[0])
if "slow" in words:
    (model / "slow").write_text(words[words.index("slow") + 1])
if "broken" in words:
    (model / "broken").write_text("")
