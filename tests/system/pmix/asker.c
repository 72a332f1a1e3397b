/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program that asks for what it is told to ask for, through all its restarts.
 *
 * asker ORDERS LOG: rank 0 carries out the lines of ORDERS as they come, each once over all
 * worlds (LOG.at keeps how far it is), and writes what happens to LOG, one line each:
 *   extend N LABEL | release N LABEL | release NODE LABEL | cancel LABEL | exit STATUS
 * It saves nothing, and says so at once when it is asked to. */
#include <signal.h>
#include <unistd.h>

#include "tests/system/pmix/program.h"
#include "tests/system/pmix/words.h"

static pmix_proc_t self;

static void on_end(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                   size_t count, pmix_info_t results[], size_t result_count,
                   pmix_event_notification_cbfunc_fn_t done, void *cookie)
{
    (void)id;
    (void)source;
    (void)results;
    (void)result_count;
    say("%s %s: %s", code == PMIX_DVM_IS_READY ? "ready" : "failed",
        text_of(info, count, PMIX_ALLOC_REQ_ID), text_of(info, count, PMIX_QUERY_ALLOC_STATUS));
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cookie);
}

static void on_save(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                    size_t count, pmix_info_t results[], size_t result_count,
                    pmix_event_notification_cbfunc_fn_t done, void *cookie)
{
    (void)id;
    (void)code;
    (void)source;
    (void)info;
    (void)count;
    (void)results;
    (void)result_count;
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cookie);
    tell_saved(&self);
}

static void declare(void)
{
    pmix_status_t ends[] = {PMIX_DVM_IS_READY, PMIX_ERR_DVM_MOD}, saves[] = {PMIX_JCTRL_CHECKPOINT};

    PMIx_Register_event_handler(saves, 1, NULL, 0, on_save, NULL, NULL);
    if (self.rank == 0)
        PMIx_Register_event_handler(ends, 2, NULL, 0, on_end, NULL, NULL);
    declare_preemptible();
}

static void ask(const char *order, pmix_alloc_directive_t directive, const char *what,
                const char *label)
{
    pmix_info_t *info, *results = NULL;
    size_t count = 0, given = 0;
    uint64_t nodes = strtoull(what, NULL, 10);

    PMIX_INFO_CREATE(info, 2);
    PMIX_INFO_LOAD(&info[given++], PMIX_ALLOC_REQ_ID, label, PMIX_STRING);
    if (nodes > 0)
        PMIX_INFO_LOAD(&info[given++], PMIX_ALLOC_NUM_NODES, &nodes, PMIX_UINT64);
    else if (what[0] != '\0')
        PMIX_INFO_LOAD(&info[given++], PMIX_ALLOC_NODE_LIST, what, PMIX_STRING);
    say("%s %s: %s", order, label,
        status_word(PMIx_Allocation_request(directive, info, given, &results, &count)));
    PMIX_INFO_FREE(info, 2);
}

static void carry_out(const char *line)
{
    char order[32] = "", what[128] = "", label[128] = "";

    sscanf(line, "%31s %127s %127s", order, what, label);
    if (strcmp(order, "extend") == 0)
        ask(order, PMIX_ALLOC_EXTEND, what, label);
    else if (strcmp(order, "release") == 0)
        ask(order, PMIX_ALLOC_RELEASE, what, label);
    else if (strcmp(order, "cancel") == 0)
        ask(order, PMIX_ALLOC_REQ_CANCEL, "", what);
    else if (strcmp(order, "exit") == 0)
        _exit(atoi(what));
}

int main(int argc, char **argv)
{
    char place[4096], line[512];
    FILE *orders;
    long at;

    signal(SIGTERM, SIG_IGN);
    if (argc < 3 || PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
        return 1;
    if (self.rank == 0)
        log_file = fopen(argv[2], "a");
    say("begins %s nodes", getenv("ELASTIC_NODES"));
    declare();
    snprintf(place, sizeof(place), "%s.at", argv[2]);
    at = number_load(place);
    for (;; usleep(50000)) {
        if (self.rank != 0 || (orders = fopen(argv[1], "r")) == NULL)
            continue;
        fseek(orders, at, SEEK_SET);
        while (fgets(line, sizeof(line), orders) != NULL && strchr(line, '\n') != NULL) {
            at = ftell(orders);
            number_save(place, at); /* before: the order may be what ends this process */
            carry_out(line);
        }
        fclose(orders);
    }
}
