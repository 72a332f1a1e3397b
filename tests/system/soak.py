#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Random faults and changes of size, of a fixed seed, for some minutes; in the end the model must
be the right one.

    soak.py [--minutes M] [--seed N] [--mode live|restart]

Runs where faults/run.py runs. Does not wait until one thing is over before the next begins, but
for a step of the training that is made after it within a minute. What is random is what happens, to
whom, and when; how long things take is the machine's affair, so that two runs of a seed differ.
"""

import argparse
import collections
import json
import random
import subprocess
import sys
import time

import catalogue
import job
import live_faults
from job import BASE, MOST, Failed, send, slurm, testbed
from live_faults import newest, now
from training import SAVE_EVERY

PATIENCE = 60  # seconds without a new step


class Soak:
    def __init__(self, mode, seed):
        self.chance = random.Random(seed)
        self.begun = now()
        self.training = job.TrainingJob(mode)
        self.undone = {}  # node: (when, what undoes it)
        self.counts = collections.Counter()
        self.hit = set()  # workers
        self.longest = 0  # seconds until the training went on

    def say(self, text):
        generation, step, size = newest(self.training.log)
        print(
            f"# {now() - self.begun:6.1f} s, step {step}, world {generation} of {size}: {text}",
            flush=True,
        )

    def members(self, kind):
        """Without those that are just coming or going."""
        found = []
        for each in live_faults.alive(self.training.log):
            try:
                if kind == "any" or each.of_job(self.training.job) == (kind == "base"):
                    found.append((catalogue.node_of(each), each))
            except (OSError, KeyError):
                pass
        return found

    def staying(self):
        """Nodes that are in the world, and are not to leave it."""
        shown = json.loads(job.as_user("selastic", "show", "--json", self.training.job))
        return {each["node"] for each in shown["members"] if each["state"] == "training"}

    def one(self, kind, lost=True):
        members = [each for each in self.members(kind) if each[0] not in self.undone]
        node, member = self.chance.choice(members) if members else (None, None)
        if member and lost and self.training.mode == "live":
            # One of the world is left alone, and not one that leaves: the training writes no
            # checkpoints, and what all have lost is lost.
            staying = self.staying() - set(self.undone)
            whole = (
                {each.worker for name, each in self.members("any") if name in staying}
                - self.hit
                - {member.worker}
            )
            if not whole:
                return None, None
            self.hit.add(member.worker)
        return node, member

    def later(self, node, seconds, *undo):
        self.undone[node] = (now() + seconds, undo)

    def repair(self, all_of_it=False):
        for node, (when, undo) in list(self.undone.items()):
            if all_of_it or now() > when:
                self.say(f"{' '.join(undo)}")
                try:
                    testbed(*undo) if undo[0] in ("boot", "mend") else slurm(*undo)
                except subprocess.CalledProcessError:
                    continue  # Slurm is not ready to: next time
                del self.undone[node]

    # ---- what may happen: False if there is nobody for it ----

    def kill_worker(self):
        node, member = self.one("any")
        if member:
            self.say(f"the worker on {node} is killed")
            send([member.worker], "KILL")
        return member is not None

    def stop_worker(self):
        node, member = self.one("any")
        if member:
            self.say(f"the worker on {node} is stopped")
            send([member.worker], "STOP")
        return member is not None

    def kill_agent(self):
        node, member = self.one("extension")
        if member:
            self.say(f"the agent on {node} is killed")
            send([member.agent], "KILL")
        return member is not None

    def crash(self):
        node, member = self.one("extension")
        if member:
            self.say(f"{node} crashes")
            testbed("crash", node)
            self.later(node, self.chance.uniform(0, 20), "boot", node)
        return member is not None

    def cut(self):
        node, member = self.one("extension")
        if member:
            self.say(f"{node} is cut off")
            testbed("cut", node)
            self.later(node, self.chance.uniform(0.5, 15), "mend", node)
        return member is not None

    def drain(self):
        node, member = self.one("extension", lost=False)
        if member:
            self.say(f"{node} is drained")
            slurm("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
            self.later(
                node,
                self.chance.uniform(5, 15),
                "scontrol",
                "update",
                f"nodename={node}",
                "state=resume",
            )
        return member is not None

    def resize(self):
        size = self.chance.randint(BASE, MOST)
        self.say(f"to {size} nodes")
        self.training.resize(size)
        return True

    # ---- the run ----

    def run(self, minutes):
        events = (
            [self.kill_worker] * 3
            + [self.stop_worker, self.kill_agent, self.crash, self.cut, self.drain]
            + [self.resize] * 3
        )
        if self.training.mode == "restart":
            events.remove(self.stop_worker)  # a matter of --elastic-hang-wait: too slow for this
        while now() - self.begun < 60 * minutes:
            time.sleep(self.chance.choice([0.1, 0.5, 2, 5]) * self.chance.random())
            newest_step = newest(self.training.log)[1]
            event = self.chance.choice(events)
            self.counts[event.__name__] += event()
            if self.chance.random() < 0.3:
                continue  # and another one at once
            since = now()
            job.wait(
                PATIENCE,
                "a step",
                lambda step=newest_step: self.repair() or newest(self.training.log)[1] > step + 1,
            )
            self.longest = max(self.longest, now() - since)
        self.repair(all_of_it=True)
        while self.undone:
            time.sleep(1)
            self.repair(all_of_it=True)
        self.training.resize(MOST)
        wrong = self.training.end()
        steps, repeated = live_faults.differences(self.training.log, 1e-10)[1:3]
        faults, resizes = sum(self.counts.values()) - self.counts["resize"], self.counts["resize"]
        allowed = (faults + resizes) * (2 if self.training.mode == "live" else 2 * SAVE_EVERY)
        if repeated > allowed:
            wrong.append(f"{repeated} steps repeated, {allowed} are allowed")
        print(f"# {', '.join(f'{name} {count}' for name, count in sorted(self.counts.items()))}")
        print(
            f"# {faults} faults, {resizes} resizes, {newest(self.training.log)[0]} worlds, {steps} steps, {repeated} of them repeated"
        )
        print(f"# at most {self.longest:.0f} s until the training went on")
        return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mode", choices=["live", "restart"], default="live")
    args = parser.parse_args()
    soak = Soak(args.mode, args.seed)
    try:
        wrong = soak.run(args.minutes)
    except (Failed, subprocess.CalledProcessError) as error:
        wrong = [str(error)]
        soak.training.cancel()
    print(
        f"{'not ok' if wrong else 'ok'} 1 - {args.minutes:g} minutes, seed {args.seed}, {args.mode}"
    )
    for line in wrong[:20]:
        print(f"# {line}")
    if wrong:
        print("# " + soak.training.last_words().replace(" | ", "\n# "))
    print("1..1")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
