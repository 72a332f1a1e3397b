#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Readers of the files that say where a job runs, the job that they read about, and what both
should have seen.

    hosts.py work DIR                       a worker: notes its scale_config in DIR, makes steps
    until it is told to leave hosts.py watch READER STATE_DIR LOG     reads until a file "stop" is
    there; a line in LOG whenever it reads something else hosts.py compare SLOTS FIRST LOG...
    whether what was read are generations of the job, in order, all of them from FIRST on hosts.py
    scaled POLICY FIRST DIR        whether all workers of each generation, from FIRST on, had the
    overrides for their number

compare reads `selastic history --json` on stdin. Both exit with 1 and say what is wrong.

READER is one of
    horovod   runs discover_hosts.sh and takes its output apart as Horovod's elastic driver does
              (once a second; here more often)
    mpirun    has Open MPI's mpirun read each hostfile.openmpi and say what it would start where
    files     reads the files some hundred times a second, and keeps open what it has read: who has
              opened a version may read it later, so versions must never change
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

# ---- the job -------------------------------------------------------------------------------------


def work(directory):
    import slurm_elastic

    slurm_elastic.load_latest()  # what may be started early waits here, and is nothing yet
    note = {key: int(os.environ[key]) for key in ("RANK", "WORLD_SIZE", "ELASTIC_GENERATION")}
    note["scale_config"] = slurm_elastic.scale_config()
    path = Path(directory, "worker-{ELASTIC_GENERATION}-{RANK}".format(**note))
    path.with_suffix(".new").write_text(json.dumps(note))
    path.with_suffix(".new").rename(path)
    while not slurm_elastic.elastic_event_detected():
        time.sleep(0.05)


# ---- readers: generators of (what was read, {host: slots}) ---------------------------------------


class Torn(Exception):
    """Something that is no list of hosts."""


def run(*command):
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise Torn(f"{command} ended with status {done.returncode}: {done.stdout}")
    return done.stdout


def horovod(directory):
    while True:
        hosts = {}
        for line in run(directory / "discover_hosts.sh").strip().split("\n"):
            host, slots = line.split(":")
            hosts[host] = int(slots)
        yield "discover_hosts.sh", hosts
        time.sleep(0.2)


def identity(file):
    stat = file.stat()
    return stat.st_ino, stat.st_mtime_ns


def mpirun(directory):
    file = directory / "hostfile.openmpi"
    read, hosts = None, {}
    while True:
        version = identity(file)
        if version == read:
            yield "mpirun", hosts
            time.sleep(0.02)
            continue
        output = run("mpirun", "--hostfile", file, "--display-map", "--do-not-launch", "true")
        # It reads the file twice, to count the slots and to fill them: with two versions it rightly
        # refuses.
        if version == identity(file):
            found = re.findall(r"Data for node: (\S+)\s+Num slots: (\d+)", output)
            if not found:  # its exit status is 0 nevertheless
                raise Torn(output)
            read, hosts = version, {host: int(slots) for host, slots in found}


def parse_lines(text, separator):
    hosts = re.findall(rf"^(\w+){separator}(\d+)\n", text, re.M)
    if not hosts or text != "".join(f"{host}{separator}{slots}\n" for host, slots in hosts):
        raise Torn(repr(text))
    return {host: int(slots) for host, slots in hosts}


def parse_generation(text):
    return {node["name"]: node["slots"] for node in json.loads(text)["nodes"]}


def files(directory):
    os.nice(19)
    parsers = {
        "hostfile.openmpi": lambda text: parse_lines(text, " slots="),
        "hostfile.mpich": lambda text: parse_lines(text, ":"),
        "generation.json": parse_generation,
    }
    versions = {name: [] for name in parsers}  # all that there were: (open file, its text)
    while True:
        for name, parse in parsers.items():
            file = os.open(directory / name, os.O_RDONLY)
            text = os.pread(file, 65536, 0).decode()
            hosts = parse(text)
            if versions[name] and os.path.sameopenfile(file, versions[name][-1][0]):
                os.close(file)
            else:
                versions[name].append((file, text))
            for old, was in versions[name]:
                now = os.pread(old, 65536, 0).decode()
                if now != was:
                    raise Torn(f"{name}: a file with {was!r} has become one with {now!r}")
            yield name, hosts
        time.sleep(0.01)


def watch(reader, directory, path):
    last = {}
    with open(path, "w", buffering=1) as log:
        try:
            for name, hosts in {"horovod": horovod, "mpirun": mpirun, "files": files}[reader](
                Path(directory)
            ):
                if last.get(name) != hosts:
                    last[name] = hosts
                    log.write(
                        json.dumps({"read": name, "hosts": hosts, "time": time.time()}) + "\n"
                    )
                if os.path.exists("stop"):
                    break
        except (Torn, OSError, ValueError, KeyError) as error:
            log.write(json.dumps({"torn": f"{type(error).__name__}: {error}"}) + "\n")


# ---- what they should have seen ------------------------------------------------------------------


def compare(slots, first, logs):
    history = json.load(sys.stdin)["generations"]
    expected = [dict.fromkeys(entry["nodes"], slots) for entry in history]
    required = [hosts for hosts, entry in zip(expected, history) if entry["generation"] >= first]
    wrong = []
    for log in logs:
        read = {}
        for line in Path(log).read_text().splitlines():
            record = json.loads(line)
            if "torn" in record:
                wrong.append(f"{log}: {record['torn']}")
            else:
                read.setdefault(record["read"], []).append(record["hosts"])
        if not read:
            wrong.append(f"{log}: nothing was read")
        for name, seen in read.items():
            wrong += [f"{name}: {text}" for text in differences(seen, expected, required)]
            print(
                f"{name}: {len(seen)} worlds seen, of {','.join(str(len(hosts)) for hosts in seen)} nodes"
            )
    return wrong


def differences(seen, expected, required):
    place = 0
    for number, hosts in enumerate(seen):
        if hosts not in expected[place:]:
            yield f"{number + 1}. read is {hosts}, which comes after none of the generations read before"
            return
        place += expected[place:].index(hosts) + 1
    if seen[-len(required) :] != required:
        yield f"has not seen each of the {len(required)} last generations"


def scaled(policy, first, directory):
    overrides = json.loads(Path(policy).read_text())["scale_config"]
    wrong, workers = [], {}
    for path in Path(directory).glob("worker-*[0-9]"):
        note = json.loads(path.read_text())
        size = note["WORLD_SIZE"]
        workers.setdefault((note["ELASTIC_GENERATION"], size), []).append(note["RANK"])
        if note["scale_config"] != overrides.get(str(size), {}):
            wrong.append(f"{path}: in a world of {size}: {note['scale_config']}")
    for (generation, size), ranks in sorted(workers.items()):
        print(f"generation {generation}: {len(ranks)} of {size} workers")
        if generation >= first and sorted(ranks) != list(range(size)):
            wrong.append(f"generation {generation}: ranks {sorted(ranks)} of {size}")
    return wrong + [
        f"no worker of {size}"
        for size in overrides
        if int(size) not in {size for _, size in workers}
    ]


def report(wrong):
    for line in wrong:
        print(line)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "work":
        work(*arguments)
    elif command == "watch":
        watch(*arguments)
    elif command == "compare":
        report(compare(int(arguments[0]), int(arguments[1]), arguments[2:]))
    elif command == "scaled":
        report(scaled(arguments[0], int(arguments[1]), arguments[2]))
