/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The memory that an agent and one of its workers share.
 *
 * The protocol is in doc/internals/protocol.md, "A worker's event page". */
#ifndef ELASTIC_EVENT_PAGE_H
#define ELASTIC_EVENT_PAGE_H

#include <stdatomic.h>
#include <stdint.h>

#define EVENT_PAGE_BYTES 4096
#define EVENT_PAGE_MAGIC UINT64_C(0x3143495453414c45) /* "ELASTIC1" */
/* Fields that are only added behind the last field do not change the version. */
#define EVENT_PAGE_VERSION 1
#define EVENT_UNIT_BYTES   24

#define EVENT_HOLD            (UINT64_C(1) << 63)
#define EVENT_VALID           (UINT64_C(1) << 63)
#define EVENT_STEP_BITS       40
#define EVENT_STEP_MASK       ((UINT64_C(1) << EVENT_STEP_BITS) - 1)
#define EVENT_GENERATION_MASK ((UINT64_C(1) << 23) - 1)
#define EVENT_WORD(generation, step)                                                               \
    ((((uint64_t)(generation)&EVENT_GENERATION_MASK) << EVENT_STEP_BITS) |                         \
     ((uint64_t)(step)&EVENT_STEP_MASK))
#define EVENT_STEP(word)       ((word)&EVENT_STEP_MASK)
#define EVENT_GENERATION(word) (((word) >> EVENT_STEP_BITS) & EVENT_GENERATION_MASK)

enum event_page_state { EVENT_STATE_NONE = 0, EVENT_STATE_ATTACHED = 1, EVENT_STATE_TRAINING = 2 };
enum event_kind {
    EVENT_NONE = 0,
    EVENT_GROW = 1,
    EVENT_SHRINK = 2,
    EVENT_FAULT = 3,
    EVENT_STOP = 4
};

/* A worker of the next world that is started early waits at the gate until its world begins. */
enum event_gate { EVENT_GATE_OPEN = 0, EVENT_GATE_CLOSED = 1 };
enum event_gate_place {
    EVENT_BEFORE_GATE = 0,
    EVENT_AT_GATE = 1,     /* waits */
    EVENT_PASSED_LOAD = 2, /* with the first look at its checkpoints */
    EVENT_PASSED_INIT = 3  /* with elastic_init(): nothing of the GPU had been used */
};

/* What comes after the world of this page, for a worker that can go on. */
enum event_next {
    EVENT_NEXT_UNKNOWN = 0,
    EVENT_NEXT_WORLD = 1, /* next_file is the page of the worker's next world */
    EVENT_NEXT_NONE = 2,  /* the worker is to leave */
    EVENT_NEXT_SAVE = 3   /* the worker is to save a checkpoint for all, and to leave */
};
#define EVENT_FILE_BYTES 64

struct event_page {
    uint64_t magic;
    uint32_t version;
    uint32_t bytes;          /* EVENT_PAGE_BYTES */
    _Atomic uint64_t word;   /* written by worker (step) and agent (HOLD) */
    _Atomic uint64_t run_to; /* written by the agent */
    _Atomic uint32_t state;  /* enum event_page_state, written by the worker */
    _Atomic uint32_t told;   /* 1 once the worker has been given the event */
    _Atomic uint32_t kind;   /* enum event_kind, written by the agent before HOLD; a futex */
    uint32_t agent_pid;
    int64_t deadline_ms; /* CLOCK_REALTIME, milliseconds; 0: none */
    uint32_t next_nodes; /* nodes of the next generation; 0: unknown */
    /* The slurmstepd of the agent's step: its SIGTERM is for the agent (term_guard.c). */
    uint32_t stepd_pid;
    char reason[192];
    _Atomic uint32_t gate;  /* enum event_gate, written by the agent; a futex */
    _Atomic uint32_t place; /* enum event_gate_place, written by the worker */
    _Atomic uint32_t waits; /* 1 once the worker has waited for an event: it is at work */
    /* What the worker reports. The number is odd while the worker writes. A reader that finds
     * another number after reading has read nothing. */
    _Atomic uint32_t progress;
    _Atomic int64_t done;
    _Atomic int64_t total;                       /* 0: unknown */
    _Atomic uint64_t unit[EVENT_UNIT_BYTES / 8]; /* text, NUL-terminated */
    /* The world, written by the agent before the worker passes its gate. */
    int32_t rank;
    int32_t size;
    int32_t local_rank;
    int32_t local_size;
    int32_t nodes;
    int32_t attempt;
    /* 1: the worker can go on in the next world without ending; written by the worker. */
    _Atomic uint32_t live;
    _Atomic uint32_t next;            /* enum event_next, written by the agent; a futex */
    char next_file[EVENT_FILE_BYTES]; /* in the directory of this page, NUL-terminated */
    /* Signature of the model that the worker trains, 0: not said. A worker can take over the state
     * only of a worker with the same signature. Written by the worker. */
    _Atomic uint64_t signature;
    /* 1: a part of this world is lost, and no worker goes on in it. Written by the agent; a
     * futex. */
    _Atomic uint32_t torn;
    _Atomic uint32_t slowest; /* milliseconds of the longest step so far, written by the worker */
    /* Milliseconds after which agents would have noticed the loss of a node or worker. Written by
     * the agent. */
    uint32_t patience_ms;
    /* The signal that makes this process show its stacks; 0: there is none. Written by the
     * worker. */
    _Atomic uint32_t stacks_signal;
    _Atomic uint32_t stacks_pid;
    /* 1 while the worker waits to hear that its world is torn, since an exchange with other workers
     * has failed. Written by the worker. */
    _Atomic uint32_t asks;
    /* Microseconds that the worker itself has needed for steps of this world, without what it has
     * waited for other workers, and the number of these steps, written after them. Written by the
     * worker. */
    _Atomic uint64_t own_us;
    _Atomic uint64_t own_steps;
    /* Bytes of its state that this worker has given to others, or got from them. As long as they
     * increase, it is not done with a world that it leaves. Written by the worker. */
    _Atomic uint64_t moved;
};

#endif
