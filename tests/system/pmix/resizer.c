/* SPDX-License-Identifier: GPL-2.0-or-later */
/* An MPI program that changes the size of its own job, by PMIx alone: from 2 nodes it asks for
 * two more, goes on from its checkpoint when it is started again on 4, and gives one of the new
 * nodes back by name.
 *
 * resizer CHECKPOINT LOG NODE: CHECKPOINT holds the number of steps made; LOG gets a line per
 * thing that happens (rank 0); NODE is given back. Ends well after 200 steps on 3 nodes. */
#include <mpi.h>
#include <signal.h>
#include <unistd.h>

#include "tests/system/pmix/program.h"
#include "tests/system/pmix/words.h"

static volatile sig_atomic_t told;
static int rank, size;

static void on_term(int number)
{
    (void)number;
    told = 1;
}

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t count, pmix_info_t results[], size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void *cookie)
{
    (void)id;
    (void)source;
    (void)results;
    (void)result_count;
    say("event %s of %s (%s)", code == PMIX_DVM_IS_READY ? "ready" : "failed",
        text_of(info, count, PMIX_ALLOC_ID), text_of(info, count, PMIX_ALLOC_REQ_ID));
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cookie);
}

static void listen_for_events(void)
{
    pmix_status_t codes[] = {PMIX_DVM_IS_READY, PMIX_ERR_DVM_MOD};

    PMIx_Register_event_handler(codes, 2, NULL, 0, on_event, NULL, NULL);
}

static void ask(pmix_alloc_directive_t directive, const char *key, const void *value,
                pmix_data_type_t type, const char *label)
{
    pmix_info_t *info, *results = NULL;
    size_t count = 0;
    pmix_status_t status;

    PMIX_INFO_CREATE(info, 2);
    PMIX_INFO_LOAD(&info[0], key, value, type);
    PMIX_INFO_LOAD(&info[1], PMIX_ALLOC_REQ_ID, label, PMIX_STRING);
    status = PMIx_Allocation_request(directive, info, 2, &results, &count);
    say("%s: %s, %s", label, status_word(status),
        status == PMIX_SUCCESS ? text_of(results, count, PMIX_ALLOC_ID)
                               : text_of(results, count, PMIX_QUERY_ALLOC_STATUS));
    PMIX_INFO_FREE(info, 2);
}

/* Each step tells all whether any has been told to stop: so they stop after the same one. */
static int step(void)
{
    int mine = told, any = 0;

    usleep(20000);
    MPI_Allreduce(&mine, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return any;
}

static void ask_for_too_much(void)
{
    uint64_t many = 100;
    char text[] = "two";

    ask(PMIX_ALLOC_EXTEND, PMIX_ALLOC_NUM_NODES, &many, PMIX_UINT64, "many");
    ask(PMIX_ALLOC_EXTEND, PMIX_ALLOC_NUM_NODES, text, PMIX_STRING, "text");
    ask(PMIX_ALLOC_NEW, PMIX_ALLOC_NUM_NODES, &many, PMIX_UINT64, "new");
    ask(PMIX_ALLOC_RELEASE, PMIX_ALLOC_NODE_LIST, "n1", PMIX_STRING, "base");
    ask(PMIX_ALLOC_RELEASE, PMIX_ALLOC_NODE_LIST, "elsewhere", PMIX_STRING, "foreign");
}

int main(int argc, char **argv)
{
    uint64_t two = 2;
    pmix_proc_t self;
    char mark[4096];
    bool given; /* in an earlier world */
    int here = 0;
    long steps;

    (void)argc;
    signal(SIGTERM, on_term);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank == 0)
        log_file = fopen(argv[2], "a");
    steps = number_load(argv[1]);
    snprintf(mark, sizeof(mark), "%s.less", argv[1]);
    given = access(mark, F_OK) == 0;
    PMIx_Init(&self, NULL, 0);
    say("%d nodes, step %ld", size, steps);
    if (rank == 0)
        listen_for_events();
    for (; !(size == 3 && given && here > 100); here++) {
        if (rank == 0 && size == 2 && here == 20) {
            ask_for_too_much();
            ask(PMIX_ALLOC_EXTEND, PMIX_ALLOC_NUM_NODES, &two, PMIX_UINT64, "more");
        }
        if (rank == 0 && size == 4 && here == 40) {
            fclose(fopen(mark, "w"));
            ask(PMIX_ALLOC_RELEASE, PMIX_ALLOC_NODE_LIST, argv[3], PMIX_STRING, "less");
        }
        steps++;
        if (step())
            break;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        number_save(argv[1], steps);
    say("saved step %ld", steps);
    PMIx_Finalize(NULL, 0);
    MPI_Finalize();
    return 0;
}
