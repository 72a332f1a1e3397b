# SPDX-License-Identifier: GPL-2.0-or-later
"""A worker for bench/overhead: microseconds for a call of State.commit(), and of elastic_event_test
by ctypes.
"""

import json
import sys
import time

import torch
from slurm_elastic import _events, live


def cost(function, calls):
    begin = time.perf_counter()
    for _ in range(calls):
        function()
    return (time.perf_counter() - begin) * 1e6 / calls


def measure(state):
    calls = int(sys.argv[1])
    library, event = _events.library(), _events._event_pointer
    print(
        json.dumps(
            {
                "commit": cost(state.commit, calls),
                "ctypes": cost(lambda: library.elastic_event_test(event), calls),
            }
        )
    )


live.run(measure, live.State(torch.nn.Linear(1, 1)))
