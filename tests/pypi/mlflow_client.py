#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What MLflow's own client finds of a job, and a metric that it logs as a training script would.

Usage: mlflow_client.py EXPERIMENT, with MLFLOW_RUN_ID and MLFLOW_TRACKING_URI as workers have them.
"""

import os
import sys

import mlflow

client = mlflow.MlflowClient()
before = client.get_run(os.environ["MLFLOW_RUN_ID"]).info.status
# A worker goes on with the run without naming it. end_run() is for the script's own end.
with mlflow.start_run() as run:
    mlflow.log_metric("own", 0.5)
run_id = run.info.run_id
experiment = client.get_experiment_by_name(sys.argv[1])
runs = client.search_runs([experiment.experiment_id])
data = client.get_run(run_id).data
events = [key for key in data.tags if key.startswith("elastic.event.")]


def history(key):
    return [metric.value for metric in client.get_metric_history(run_id, key)]


print(f"runs={len(runs)}")
print(f"status={before}")
print(f"name={run.info.run_name}")
print(f"user={data.tags['mlflow.user']}")
print(f"job={data.tags['elastic.job']}")
print(f"own={data.metrics['own']}")
print(f"grace={data.params['elastic.grace']}")
print(f"most={max(history('elastic/nodes')):.0f}")
print("incarnations=" + ",".join(sorted({key.split(".")[3] for key in events})))
print("pauses=" + ("yes" if all(0 < v < 60 for v in history("elastic/pause_seconds")) else "no"))
print("goodput=" + ("yes" if 0 < max(history("elastic/goodput")) <= 1 else "no"))
print("steps=" + ("yes" if max(history("elastic/steps_per_second")) > 1 else "no"))
