# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/python/: unittest files that print TAP, run by `make check`. One name in PYTHON_TESTS each.
PYTHON_TESTS = \
    tests/python/test_batches.py \
    tests/python/test_bench.py \
    tests/python/test_boundary.py \
    tests/python/test_buddy.py \
    tests/python/test_certificates.py \
    tests/python/test_checkpoint.py \
    tests/python/test_dask.py \
    tests/python/test_dcp.py \
    tests/python/test_ddp.py \
    tests/python/test_digits.py \
    tests/python/test_events.py \
    tests/python/test_flush.py \
    tests/python/test_framework_mistakes.py \
    tests/python/test_grafana.py \
    tests/python/test_left_behind.py \
    tests/python/test_live.py \
    tests/python/test_live_transfer.py \
    tests/python/test_mistakes.py \
    tests/python/test_picture.py \
    tests/python/test_nccl.py \
    tests/python/test_ray.py \
    tests/python/test_rendezvous.py \
    tests/python/test_reshard.py \
    tests/python/test_rl.py \
    tests/python/test_roles.py \
    tests/python/test_s3.py \
    tests/python/test_sampler.py \
    tests/python/test_serve.py \
    tests/python/test_sharded_kinds.py \
    tests/python/test_sharded_snapshot.py \
    tests/python/test_sharding.py \
    tests/python/test_snapshot.py \
    tests/python/test_step_time.py \
    tests/python/test_store.py \
    tests/python/test_suitable.py \
    tests/python/test_torch_compat.py \
    tests/python/test_touched.py \
    tests/python/test_tensor_parallel.py \
    tests/python/test_units.py

EXTRA_DIST += \
    $(PYTHON_TESTS) \
    tests/python/fake_agent.py \
    tests/python/first/sitecustomize.py \
    tests/python/fuse.py \
    tests/python/preloaded.py \
    tests/python/processes.py \
    tests/python/roles_api.py \
    tests/python/stranger.py \
    tests/python/tap.py
# A sanitized library cannot be loaded into an interpreter that is not.
if !SANITIZERS
TESTS += $(PYTHON_TESTS)
endif
