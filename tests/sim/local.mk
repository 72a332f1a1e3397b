# SPDX-License-Identifier: GPL-2.0-or-later
#
# tests/sim/: the simulator (README.md).
check_PROGRAMS += tests/sim/simulate
tests_sim_simulate_SOURCES = \
    tests/sim/clock.c \
    tests/sim/clock.h \
    tests/sim/cloud.c \
    tests/sim/faults.c \
    tests/sim/history.c \
    tests/sim/host.c \
    tests/sim/invariants.c \
    tests/sim/kernel.c \
    tests/sim/main.c \
    tests/sim/network.c \
    tests/sim/scale.c \
    tests/sim/scenario.c \
    tests/sim/setup.c \
    tests/sim/shared.c \
    tests/sim/sim.h \
    tests/sim/slurm.c \
    tests/sim/slurm_calls.c \
    tests/sim/trace.c \
    tests/sim/training.c \
    tests/sim/worker_ends.c \
    tests/sim/worker_state.c \
    tests/sim/workers.c
tests_sim_simulate_CPPFLAGS = $(AGENT_CPPFLAGS)
# What the simulator defines instead of the kernel, Slurm and the training comes first.
tests_sim_simulate_LINK = $(LINK) -Wl,--allow-multiple-definition
tests_sim_simulate_LDADD = $(AGENT_LIBS) $(CORE_LIBS) $(LIBUV_LIBS) $(SODIUM_LIBS) \
    $(JSONC_LIBS)
TESTS += tests/sim/check
# A directory is copied as it is.
EXTRA_DIST += tests/sim/README.md tests/sim/check tests/sim/known tests/sim/scenarios
