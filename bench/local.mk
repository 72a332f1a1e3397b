# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench/: measurements, run by hand. What they compute is tested by tests/python/test_bench.py.
EXTRA_DIST += \
    bench/README.md \
    bench/boundary.c \
    bench/boundary.py \
    bench/chaos \
    bench/cluster.py \
    bench/controller.py \
    bench/efficiency \
    bench/figures.py \
    bench/transfers.py \
    bench/fit \
    bench/foresight.py \
    bench/gpu \
    bench/gpu_step.py \
    bench/gpu_worker.py \
    bench/memory \
    bench/overhead \
    bench/page.py \
    bench/peers.py \
    bench/placement \
    bench/pmix \
    bench/pmix_client.c \
    bench/pmix_mpi.c \
    bench/resize \
    bench/resubmit.sh \
    bench/s3 \
    bench/scale \
    bench/roles \
    bench/roles_load.py \
    bench/roles_tasks.py \
    bench/rpc \
    bench/sched \
    bench/serve \
    bench/serve_preempted.py \
    bench/serve_replica.py \
    bench/spot \
    bench/spot_traces.py \
    bench/torchft-node.sh \
    bench/torchrun-node.sh \
    bench/torchrun_keep_alive.py \
    bench/traffic \
    bench/train.py \
    bench/train_sharded.py \
    bench/train_torchft.py \
    bench/trial.py

# Those that are compiled by make: bench/sched and bench/memory take theirs from the build directory.
check_PROGRAMS += bench/frames bench/reconcile bench/shards bench/spot_runs bench/start_jobs bench/submit_jobs
bench_frames_SOURCES = bench/frames.c
bench_frames_CPPFLAGS = $(AM_CPPFLAGS) $(SODIUM_CFLAGS)
bench_frames_LDADD = $(CORE_LIBS) $(SODIUM_LIBS)
bench_reconcile_SOURCES = bench/reconcile.c
bench_reconcile_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
bench_reconcile_LDADD = $(CORE_LIBS)
bench_shards_SOURCES = bench/shards.c
bench_shards_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
bench_shards_LDADD = $(CORE_LIBS) $(JSONC_LIBS) -lm
bench_spot_runs_SOURCES = bench/spot_runs.c tests/unit/cloud.c
bench_spot_runs_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
bench_spot_runs_LDADD = $(CORE_LIBS) $(JSONC_LIBS)
bench_start_jobs_SOURCES = bench/start_jobs.c
bench_start_jobs_LDADD = $(SLURM_LIBS)
bench_submit_jobs_SOURCES = bench/submit_jobs.c
bench_submit_jobs_LDADD = $(SLURM_LIBS)
