# SPDX-License-Identifier: GPL-2.0-or-later
"""torchrun that sends a keep-alive each second instead of each five.

Newer releases have a setting for it (--rdzv-conf=keep_alive_interval=1), 1.13 has the number in its
code.
"""

import datetime
import sys

import torch.distributed.elastic.rendezvous.dynamic_rendezvous as dynamic_rendezvous
from torch.distributed.run import main

_settings = dynamic_rendezvous.RendezvousSettings


def _quicker(*args, **settings):
    return _settings(*args, **{**settings, "keep_alive_interval": datetime.timedelta(seconds=1)})


dynamic_rendezvous.RendezvousSettings = _quicker

if __name__ == "__main__":
    sys.exit(main())
