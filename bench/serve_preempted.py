# SPDX-License-Identifier: GPL-2.0-or-later
"""Three servers behind one address. A job of a higher tier preempts one while requests come.
They are an array job with nginx, as domyn-swarm has it, or a service of models with its router.
"""

import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager

from cluster import TOP, BenchError, Cluster, wait_for

CPUS = 4
GRACE = 5  # seconds that Slurm leaves what it preempts
SECONDS = 40  # that requests come
BEFORE = 4  # … until the other job is submitted
PROGRAM = ("/usr/bin/python3", "serve_replica.py")
KINDS = {"nginx": "array job, nginx", "ours": "service, `selastic router`"}
ENDS = {"dies": "dies at SIGTERM", "ends": "ends its requests at SIGTERM"}
# What domyn-swarm's load balancer says of its upstreams, in words of our own.
NGINX = """\
pid PLACE/nginx.pid;
error_log PLACE/nginx.log;
events { worker_connections 1000; }
http {
  access_log off;
  client_body_temp_path PLACE/body;
  proxy_temp_path PLACE/proxy;
  fastcgi_temp_path PLACE/fastcgi;
  uwsgi_temp_path PLACE/uwsgi;
  scgi_temp_path PLACE/scgi;
  upstream servers { least_conn; SERVERS }
  server {
    listen 127.0.0.1:PORT;
    location / {
      proxy_pass http://servers;
      proxy_set_header Connection "";
      proxy_next_upstream error timeout http_502 http_504;
      proxy_next_upstream_tries 3;
    }
  }
}
"""
JOB = """\
service: NAME
models: {repository: WORK/models, every: 1s}
roles:
  server:
    kind: shards
    shards: 1
    replicas: 3
    run: [/usr/bin/python3, WORK/serve_replica.py, "{port}", END]
    cpus: CPUS
    ports: [http]
    pool: elastic
    ready: {http: /, within: 30s, every: 200ms}
    drain: {within: 8s}
    capacity: 10M
    window: 0
"""


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def answers(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 1) as link:
            link.sendall(b"GET /model HTTP/1.0\r\n\r\n")
            return b" 200 " in link.recv(1000)
    except OSError:
        return False


@contextmanager
def running(process):
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


# ---- an array job, with nginx --------------------------------------------------------------------


def need_nginx():
    if shutil.which("nginx", path="/usr/sbin:/usr/bin") is None:
        raise BenchError("there is no nginx: install the package nginx-light")
    os.environ["PATH"] += ":/usr/sbin"


@contextmanager
def nginx(work, ports):
    """The port of an nginx in front of them."""
    place, port = work / "nginx", free_port()
    place.mkdir(mode=0o777)
    text = NGINX.replace("PLACE", str(place)).replace("PORT", str(port))
    servers = " ".join(f"server 127.0.0.1:{p} max_fails=2 fail_timeout=10s;" for p in ports)
    (place / "nginx.conf").write_text(text.replace("SERVERS", servers))
    words = ("nginx", "-e", place / "nginx.log", "-p", place, "-c", place / "nginx.conf")
    with running(subprocess.Popen([*map(str, words), "-g", "daemon off;"])):
        wait_for("nginx", lambda: answers(port), 20)
        yield port


@contextmanager
def array_with_nginx(cluster, work, end):
    """The port of nginx, and a node that can be taken. How many servers there are."""
    ports = [free_port() for _ in range(3)]
    for number, port in enumerate(ports):
        (work / f"port-{number}").write_text(str(port))
    command = f"exec {' '.join(PROGRAM)} $(cat port-$SLURM_ARRAY_TASK_ID) {end}"
    array = ("sbatch", "--parsable", "--array=0-2", "--nodes=1", "--exclusive")
    job = cluster.run(
        *(*array, "--partition=elastic", "--output=/dev/null", f"--wrap={command}"), cwd=work
    ).strip()
    for port in ports:
        wait_for("a server of the array", lambda port=port: answers(port), 60)
    with nginx(work, ports) as port:
        node = cluster.run("squeue", "-h", "-j", f"{job}_1", "-o", "%N").strip()
        yield port, node, lambda: sum(map(answers, ports))


# ---- a service, with a router --------------------------------------------------------------------


def make_model(work):
    version = work / "models" / "model" / "000001"
    version.mkdir(parents=True)
    (version / "data").write_text("data\n")
    (version / "complete.json").write_text('{"format": 1, "files": {"data": 5}}')


def ready(cluster, name):
    try:
        text = cluster.run("selastic", "shard", name)
    except BenchError:
        return 0
    found = re.search(r"shard_1 +([0-9]+)/", text)
    return int(found[1]) if found else 0


@contextmanager
def service_with_router(cluster, work, end):
    """The same of ours."""
    name, port = f"bench-{os.getpid()}-{work.name}", free_port()
    make_model(work)
    text = JOB.replace("NAME", name).replace("WORK", str(work)).replace("END", end)
    (work / "serve.yaml").write_text(text.replace("CPUS", str(CPUS)))
    command = "srun elasticrun --roles=serve.yaml"
    cluster.submit(work, "--nodes=1", f"--wrap={command}")
    words = ("selastic", "router", name, "--wait", "--no-tokens", "--route-by=path:/")
    try:
        with running(cluster.start(*words, f"--listen=127.0.0.1:{port}", f"--run-dir={work}/run")):
            wait_for("the replicas", lambda: ready(cluster, name) == 3, 90)
            wait_for("the router", lambda: answers(port), 30)
            nodes = cluster.run("squeue", "-h", "-p", "elastic", "-t", "R", "-o", "%N").split()
            yield port, nodes[0], lambda: ready(cluster, name)
    finally:
        cluster.cancel_all()
        cluster.run("sh", "-c", f"rm -rf ~/.slurm-elastic/services/{name}")


# ---- one round -----------------------------------------------------------------------------------


def figures_of(text):
    """Of what hey prints: requests, how many of them failed, the 99th percentile in ms."""
    statuses = dict(re.findall(r"\[([0-9]{3})\]\t([0-9]+) responses", text))
    _, _, errors = text.partition("Error distribution")
    failed = sum(int(count) for count in re.findall(r"^ *\[([0-9]+)\]\t", errors, re.MULTILINE))
    good = int(statuses.pop("200", 0))
    failed += sum(map(int, statuses.values()))
    late = re.search(r"99% in ([0-9.]+) secs", text)
    if not good or not late:
        raise BenchError(f"hey: {text.strip()}")
    return {"requests": good + failed, "failed": failed, "p99": 1e3 * float(late[1])}


def state_of(cluster, job):
    return cluster.run("squeue", "-h", "-j", job, "-o", "%T").strip()


def measure_one(cluster, work, kind, end):
    begin = array_with_nginx if kind == "nginx" else service_with_router
    with begin(cluster, work, end) as (port, node, count):
        words = ["hey", "-z", f"{SECONDS}s", "-m", "POST", "-c", "20", "-q", "5"]
        words.append(f"http://127.0.0.1:{port}/model")
        load = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        time.sleep(BEFORE)
        rival = ("sbatch", "--parsable", "--partition=batch", f"--nodelist={node}", "--exclusive")
        job = cluster.run(*rival, "--output=/dev/null", "--wrap=sleep 600").strip()
        text, _ = load.communicate()
        result = {**figures_of(text), "left": count()}
        wait_for("the job that preempts", lambda: state_of(cluster, job) == "RUNNING", 60)
    cluster.cancel_all()
    return result


def measure(rounds, prefix):
    """({(kind, end): [result]}, Slurm's version)"""
    need_nginx()
    results = {(kind, end): [] for end in ENDS for kind in KINDS}
    options = ("--cpus-per-node", str(CPUS), "--grace", str(GRACE))
    with Cluster(4, prefix, options) as cluster:
        version = cluster.run("sinfo", "--version").strip()
        for number in range(rounds):
            for kind, end in sorted(results, reverse=number % 2 == 1):
                work = cluster.directory(f"{kind}-{end}-{number}")
                shutil.copy(TOP / "bench" / "serve_replica.py", work)
                result = measure_one(cluster, work, kind, end)
                print(f"round {number + 1}  {kind}  {end}  {result}", file=sys.stderr)
                results[kind, end].append(result)
    return results, version


def spread(values, form):
    return f"{statistics.median(values):{form}} [{min(values):{form}}–{max(values):{form}}]"


def table(results):
    lines = [
        "| a server | behind | requests | failed | 99 %, ms | servers left |",
        "|---|---|---|---|---|---|",
    ]
    for (kind, end), found in results.items():
        columns = [
            spread([one["requests"] for one in found], "g"),
            spread([one["failed"] for one in found], "g"),
            spread([one["p99"] for one in found], ".0f"),
            spread([one["left"] for one in found], "g"),
        ]
        lines.append(f"| {ENDS[end]} | {KINDS[kind]} | {' | '.join(columns)} |")
    return "\n".join(lines)
