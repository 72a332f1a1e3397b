# SPDX-License-Identifier: GPL-2.0-or-later
#
# bench/: measurements, run by hand. What they compute is tested by tests/python/test_bench.py.
EXTRA_DIST += \
    bench/boundary.c \
    bench/boundary.py \
    bench/chaos \
    bench/cluster.py \
    bench/efficiency \
    bench/figures.py \
    bench/overhead \
    bench/page.py \
    bench/peers.py \
    bench/placement \
    bench/pmix \
    bench/pmix_client.c \
    bench/pmix_mpi.c \
    bench/resize \
    bench/resubmit.sh \
    bench/torchrun-node.sh \
    bench/torchrun_keep_alive.py \
    bench/traffic \
    bench/train.py \
    bench/trial.py
