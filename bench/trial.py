# SPDX-License-Identifier: GPL-2.0-or-later
"""What programs that measure a training have in common: their options, one job of a peer, the end
of it all.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import figures
import page
from cluster import BenchError, Cluster, wait_for
from peers import MAX, MIN, PEERS, newer_python

BASE = 2.0  # seconds of undisturbed steps before anything happens
LIMIT = 180  # seconds for what should come about
EXTRA = 25  # seconds for start and end of a peer whose training lasts some minutes
STEPS = ("sleep", "cpu")


def say(text):
    print(text, file=sys.stderr, flush=True)


# ---- options -------------------------------------------------------------------------------------


def at_least(low):
    def number(text):
        if not text.isdigit() or int(text) < low:
            raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number from {low}")
        return int(text)

    return number


def peer_list(text):
    names = text.split(",")
    for name in names:
        if name not in PEERS:
            raise argparse.ArgumentTypeError(f"{name!r}: must be among {', '.join(PEERS)}")
    return names


def add_options(parser, peers=()):
    """Those that all have; --only, where peers are compared."""
    if peers:
        usual = f"default {','.join(peers)}; all there are: {', '.join(PEERS)}"
        parser.add_argument("--only", type=peer_list, default=peers, metavar="PEER,...", help=usual)
    parser.add_argument(
        "--prefix",
        metavar="DIR",
        help="where slurm-elastic is installed; default as scripts/testbed",
    )
    parser.add_argument("--json", metavar="FILE", help="write every figure of every round")
    parser.add_argument(
        "--markdown",
        metavar="FILE",
        help="replace the table in this page, such as doc/internals/benchmarks.md",
    )
    parser.add_argument("--keep", metavar="DIR", help="copy logs of steps and jobs there")


# ---- one job -------------------------------------------------------------------------------------


class Trial:
    """One job of a peer, which begins with steps of a kind. `with` ends it, and everything else on
    the cluster.
    """

    def __init__(self, cluster, peer, kind):
        self.cluster, self.peer = cluster, peer
        self._rivals = 0
        peer.step_file.write_text(kind)

    def __enter__(self):
        self.peer.start()
        return self

    def __exit__(self, *exception):
        self.peer.stop()
        self.cluster.cancel_all()

    def log(self):
        """Steps and checkpoints up to now."""
        try:
            with open(self.peer.log) as file:
                return figures.read_log(file)
        except FileNotFoundError:
            return [], []

    def settle(self, kind):
        """Wait for undisturbed steps of that kind on MAX nodes."""
        self.peer.step_file.write_text(kind)
        wait_for(f"steps on {MAX} nodes", lambda: self._settled(kind), LIMIT)

    def _settled(self, kind):
        """Whether the present world has MAX nodes and has made steps of this kind for long
        enough.
        """
        steps, _ = self.log()
        if not steps:
            return False
        world = [step for step in steps if step.world == steps[-1].world and step.kind == kind]
        return (
            bool(world)
            and world[-1].size == MAX
            and world[-1].end - world[0].begin > figures.SETTLED + BASE
        )

    def preempt(self, nodes=MAX - MIN):
        """Submit a job of higher priority that takes nodes away: (id, file in which it writes when
        it started).
        """
        self._rivals += 1
        note = self.peer.directory / f"rival-{self._rivals}"
        script = f"date +%s.%N >{note}; exec sleep 3600"
        options = [f"--nodes={nodes}", "--partition=batch", "--job-name=rival", "--time=60"]
        return self.cluster.submit(self.peer.directory, *options, f"--wrap={script}"), note

    def give_back(self, rival):
        """End that job, and tell the peer."""
        self.cluster.run_at_once(["scancel", rival], *self.peer.commands_to_grow())


def follow(begin, actions):
    """Call each of (seconds after begin, function) at its time; a list of when that was."""
    times = []
    for after, action in actions:
        time.sleep(max(0.0, begin + after - time.time()))
        times.append(time.time())
        action()
    return times


def keep(directory, target):
    """Copy files of a job's directory."""
    target.mkdir(parents=True, exist_ok=True)
    for path in directory.iterdir():
        if path.is_file():
            shutil.copy(path, target)


def measure_each(args, where, measures, run, said):
    """One training of args.minutes of each peer, on a cluster of their own.

    run   called with (cluster, name, directory); the record
    said  called with a record; one line of it
    """
    say(f"about {len(args.only) * (args.minutes * 60 + EXTRA) / 60:.0f} minutes")
    with Cluster(MAX, args.prefix) as cluster:
        where["nodes"] = MAX
        where["slurm"] = cluster.run("sinfo", "--version").strip()
        for name in args.only:
            directory = cluster.directory(name)
            try:
                found = run(cluster, name, directory)
            except BenchError as error:
                found = {"error": str(error)}
            measures.append({"peer": name, **found})
            say(f"{name:20} " + (found.get("error") or said(found)))
            if args.keep:
                keep(directory, Path(args.keep) / directory.name)


# ---- all of it -----------------------------------------------------------------------------------


def torch_of(python):
    """The version of PyTorch that this Python has."""
    asked = [python, "-c", "import torch; print(torch.__version__)"]
    answer = subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if answer.returncode != 0:
        raise BenchError(f"{python} has no PyTorch (Debian: python3-torch)")
    return answer.stdout.strip()


def measured(name, args, measure_all):
    """What a benchmark measures, and on which machine: (machine, measures, whether it came to its
    end).

    measure_all   called with (args, machine, measures); appends every record to `measures`, so that
                  those who lose patience still have some
    """
    measures, stopped, where = [], None, page.machine()
    try:
        newer = getattr(args, "sharded", False) or getattr(args, "newer", False)
        where["torch"] = torch_of(newer_python() if newer else sys.executable)
        page.check(args, name)
        if where["load"] > 0.5:
            say(
                f"bench/{name}: load average {where['load']:.1f}: the figures will be those of a busy machine"
            )
        measure_all(args, where, measures)
    except (BenchError, OSError, ValueError) as error:
        stopped = str(error)
    except KeyboardInterrupt:
        stopped = "interrupted"
    if stopped:
        say(f"bench/{name}: {stopped}")
    return where, measures, not stopped and all("error" not in measure for measure in measures)


def publish(name, args, where, complete, text, **content):
    """Print a text, with what the machine was, and write it to the page if it is complete, and what
    belongs to it to the file.
    """
    heading = f"{page.heading(where)}, PyTorch {where['torch']}, Python {where['python']}; {where['nodes']} nodes"
    if where.get("own_cpus"):
        heading += ", each on its part of the processors"
    text = f"{heading}\n\n{text}"
    if args.json:
        page.write(args.json, json.dumps({"machine": where, **content}, indent=1) + "\n")
    if args.markdown and complete:
        page.place(args.markdown, name, text)
    print(text)
