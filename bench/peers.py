# SPDX-License-Identifier: GPL-2.0-or-later
"""The ways to change the size of a training that are compared here.

A peer is started where MAX nodes are free. Nobody tells it to shrink: it is preempted. Before a
growth prepare_growth() gives it the chance to queue what is to start when nodes become free;
commands_to_grow() are run at the very moment that the nodes are freed.
"""

import shlex
import subprocess
import sys
from pathlib import Path

from cluster import free_port

MIN, MAX = 2, 4


class Peer:
    """One of them in one directory of a cluster, with options of train.py. `name` is what --only
    takes.
    """

    name = ""
    title = ""
    on_demand = False  # only if --only names it
    notice = "signal"
    survives = False  # what a node that is lost knew, is elsewhere: it needs no checkpoints
    python = sys.executable  # of the workers
    script = "train.py"
    sharded = False  # what it trains, and so whom it is compared with
    megabytes_usual = (1, 100)  # sizes of the model that it is measured with unless it is asked for
    # What is to be expected of an idle machine: start and end, and a shrink and a growth with their
    # windows.
    start_seconds = 9
    kind_seconds = 27

    def __init__(self, cluster, directory, *options):
        self.cluster, self.directory, self._options = cluster, directory, options
        self.log = directory / "steps"
        self.step_file = directory / "kind"

    def training(self):
        """The command of one worker."""
        return [
            *(self.directory / self.script, "--notice", self.notice, "--step-log", self.log),
            *("--checkpoint", self.directory / "checkpoint", "--step-file", self.step_file),
            *self._options,
        ]

    def start(self):
        raise NotImplementedError

    def prepare_growth(self, nodes=MAX - MIN):
        """So many are to become free."""

    def commands_to_grow(self):
        return []

    def stop(self):
        """Keep it from starting anything more; the jobs are cancelled after it."""


def words(command):
    return shlex.join(str(word) for word in command)


class Elastic(Peer):
    name = "elastic"
    title = "slurm-elastic, restart mode, script with a gate"
    notice = "elastic"
    options = ["--mode=restart"]

    def start(self):
        command = words(["srun", "elasticrun", *self.options, self.python, *self.training()])
        options = [
            f"--elastic={MIN}:{MAX}",
            "--elastic-grow-delay=1",
            "--partition=batch",
            "--time=20",
        ]
        self.cluster.submit(self.directory, *options, "--job-name=train", f"--wrap={command}")


class ElasticLive(Elastic):
    name = "live"
    title = "slurm-elastic, live mode"
    notice = "live"
    survives = True
    options = []
    kind_seconds = 26


def newer_python():
    """The Python that has the PyTorch of scripts/setup --python-env."""
    command = [Path(__file__).resolve().parents[1] / "scripts" / "setup", "--print-python"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


class Newer:
    """With a newer PyTorch."""

    on_demand = True

    @property
    def python(self):
        return newer_python()


class ElasticLiveNewer(Newer, ElasticLive):
    name = "live-newer"
    title = "slurm-elastic, live mode, newer PyTorch"


class Plain(Peer):
    """A training that nobody can resize, beside which the others are seen."""

    name = "plain"
    title = "srun alone"
    notice = "none"

    def start(self):
        environment = "RANK=$SLURM_PROCID WORLD_SIZE=$SLURM_NTASKS MASTER_ADDR=127.0.0.1"
        script = (
            f"{environment} MASTER_PORT={free_port()} exec {words([self.python, *self.training()])}"
        )
        command = words(["srun", "bash", "-c", script])
        self.cluster.submit(
            self.directory,
            f"--nodes={MIN}",
            "--partition=batch",
            "--time=20",
            "--job-name=train",
            f"--wrap={command}",
        )


class ElasticCold(Elastic):
    """What a script gets that waits nowhere before it touches what the old world still uses."""

    name = "elastic-cold"
    title = "slurm-elastic, restart mode, script without a gate"
    options = [*Elastic.options, "--early-start=no"]
    kind_seconds = 30
    on_demand = True


class ElasticLoad(Elastic):
    """As examples/digits does it, and as is possible without GPUs only."""

    name = "elastic-load"
    title = "slurm-elastic, restart mode, load_latest() after the rendezvous as gate"
    notice = "elastic-load"
    on_demand = True


class Torchrun(Peer):
    """The base job is not preemptible; others bring the nodes above MIN, one each, and are
    submitted anew after they have been preempted or have lost their node.
    """

    name = "torchrun"
    title = "torchrun, default settings"
    launcher = ["-m", "torch.distributed.run"]
    settings = ""
    kind_seconds = 75

    def start(self):
        self._port = free_port()
        self._submit("base", "batch", MIN)
        self.prepare_growth()

    def prepare_growth(self, nodes=MAX - MIN):
        for _ in range(nodes):
            self._submit("added", "elastic", 1)

    def _step(self, role):
        """The command of a job, as srun takes it."""
        return [
            *("./torchrun-node.sh", role, f"{MIN}:{MAX}", f"127.0.0.1:{self._port}"),
            *(self.settings, self.python, *self.launcher, "--", *self.training()),
        ]

    def _submit(self, role, partition, nodes):
        command = ["srun", *self._step(role)]
        options = [f"--nodes={nodes}", f"--partition={partition}", "--time=20"]
        self.cluster.submit(
            self.directory, *options, "--job-name=train", f"--wrap={words(command)}"
        )


class TorchrunTuned(Torchrun):
    name = "torchrun-tuned"
    title = "torchrun, monitor 0.1 s, last call 1 s"
    launcher = [*Torchrun.launcher, "--monitor_interval=0.1"]
    megabytes_usual = (1,)
    settings = "last_call_timeout=1"
    kind_seconds = 47


class TorchrunKeepAlive(TorchrunTuned):
    name = "torchrun-keepalive"
    title = "torchrun, the same and keep-alive 3 × 1 s"
    launcher = ["torchrun_keep_alive.py", "--monitor_interval=0.1"]
    on_demand = True
    kind_seconds = 36


class Torchft(Newer, Torchrun):
    """Each node is a replica group, and has a torchrun of its own. Jobs are those of torchrun."""

    name = "torchft"
    title = "torchft, settings of its documentation"
    notice = "none"
    survives = True
    script = "train_torchft.py"
    settings = "--min_replicas 1 --quorum_tick_ms 100 --join_timeout_ms 10000"

    def _step(self, role):
        lighthouse = f"{self._port} {self.settings}"
        return ["./torchft-node.sh", role, lighthouse, self.python, *self.training()]


class TorchftTuned(Torchft):
    name = "torchft-tuned"
    title = "torchft, the same and a lost group after 1 s"
    settings = f"{Torchft.settings} --heartbeat_timeout_ms 1000"


class Resubmit(Peer):
    """The whole job is preemptible."""

    name = "resubmit"
    title = "cancel and resubmit"
    kind_seconds = 30

    def start(self):
        command = [self.directory / "resubmit.sh", MIN, MAX, self.python, *self.training()]
        options = [f"--nodes={MAX}", "--partition=elastic", "--time=20", "--job-name=train"]
        self.cluster.submit(self.directory, *options, *command)

    def commands_to_grow(self):
        return [["scancel", "--signal=USR1", "--name=train"]]

    def stop(self):
        (self.directory / "stop").touch()


class Sharded(Newer):
    """A model that fully_shard() shards."""

    script = "train_sharded.py"
    sharded = True
    megabytes_usual = (100,)


class ShardedLive(Sharded, ElasticLive):
    name = "sharded-live"
    title = "slurm-elastic, live mode"


class ShardedPlain(Sharded, Plain):
    name = "sharded-plain"


class ShardedTorchrun(Sharded, Torchrun):
    name = "sharded-torchrun"
    title = "torchrun with DCP, default settings"


class ShardedTorchrunTuned(Sharded, TorchrunTuned):
    name = "sharded-torchrun-tuned"
    title = "torchrun with DCP, monitor 0.1 s, last call 1 s"


class ShardedResubmit(Sharded, Resubmit):
    name = "sharded-resubmit"
    title = "cancel and resubmit with DCP"


PEERS = {
    peer.name: peer
    for peer in (
        ElasticLive,
        ElasticLiveNewer,
        Elastic,
        ElasticLoad,
        ElasticCold,
        Torchrun,
        TorchrunTuned,
        TorchrunKeepAlive,
        Torchft,
        TorchftTuned,
        Resubmit,
        ShardedLive,
        ShardedTorchrun,
        ShardedTorchrunTuned,
        ShardedResubmit,
    )
}
SHARDED = [name for name, peer in PEERS.items() if peer.sharded]
USUAL = [name for name, peer in PEERS.items() if not peer.on_demand]
