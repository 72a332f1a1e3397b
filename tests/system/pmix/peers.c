/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes of a world that deal with each other by plain PMIx: events, signals, and what is
 * told of processes.
 *
 * peers DIRECTORY: logs to DIRECTORY/log-RANK, and does what it finds in DIRECTORY/orders-RANK,
 * a line for each order:
 *   notify RANGE LABEL COUNT   events, RANGE a number of PMIx's or "to:RANK"
 *   count LABEL                log how many with that label have come
 *   control ACTION TARGETS     ACTION: terminate, kill, pause, resume, both, a signal's number;
 *                              TARGETS: ranks with commas, "all" or "none"
 *   table KEY                  what a query tells of processes
 *   exit STATUS */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <pmix.h>

#include "tests/system/pmix/notes.h"
#include "tests/system/pmix/words.h"

#define CODE       (PMIX_EXTERNAL_ERR_BASE - 7)
#define LABELS_MAX 16
#define RANKS_MAX  64

static pmix_proc_t self;
static volatile sig_atomic_t signalled;
static struct {
    char name[32];
    int count;
} labels[LABELS_MAX]; /* written by the library's thread only */

static void on_signal(int number)
{
    signalled = number;
}

/* The first with a label is logged, the others are counted. */
static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source, pmix_info_t info[],
                     size_t count, pmix_info_t results[], size_t result_count,
                     pmix_event_notification_cbfunc_fn_t done, void *cookie)
{
    const char *label = "?";
    int at = 0;

    (void)id;
    (void)code;
    (void)results;
    (void)result_count;
    for (size_t i = 0; i < count; i++)
        if (strcmp(info[i].key, "label") == 0 && info[i].value.type == PMIX_STRING)
            label = info[i].value.data.string;
    while (at < LABELS_MAX - 1 && labels[at].name[0] != '\0' && strcmp(labels[at].name, label) != 0)
        at++;
    if (labels[at].count++ == 0) {
        snprintf(labels[at].name, sizeof(labels[at].name), "%s", label);
        say("event %s of %u", label, source->rank);
    }
    done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, cookie);
}

static void notify(const char *range, const char *label, int count)
{
    pmix_data_range_t value = (pmix_data_range_t)atoi(range);
    pmix_status_t status = PMIX_SUCCESS;
    pmix_proc_t to;
    pmix_info_t *info;
    size_t given = 0;

    PMIX_INFO_CREATE(info, 2);
    PMIX_INFO_LOAD(&info[given++], "label", label, PMIX_STRING);
    if (strncmp(range, "to:", 3) == 0) {
        PMIX_LOAD_PROCID(&to, self.nspace, (pmix_rank_t)atoi(range + 3));
        PMIX_INFO_LOAD(&info[given++], PMIX_EVENT_CUSTOM_RANGE, &to, PMIX_PROC);
        value = PMIX_RANGE_CUSTOM;
    }
    for (int i = 0; i < count && status == PMIX_SUCCESS; i++) {
        status = PMIx_Notify_event(CODE, &self, value, info, given, NULL, NULL);
        if (status == PMIX_OPERATION_SUCCEEDED)
            status = PMIX_SUCCESS;
    }
    say("notify %s: %s", label, status_word(status));
    PMIX_INFO_FREE(info, 2);
}

static void say_count(const char *label)
{
    for (int i = 0; i < LABELS_MAX; i++)
        if (strcmp(labels[i].name, label) == 0)
            say("count %s %d", label, labels[i].count);
}

static size_t read_targets(pmix_proc_t *targets, const char *text)
{
    size_t count = 0;

    if (strcmp(text, "none") == 0)
        return 0;
    PMIX_LOAD_PROCID(&targets[0], self.nspace, PMIX_RANK_WILDCARD);
    if (strcmp(text, "all") == 0)
        return 1;
    if (strcmp(text, "strangers") == 0) {
        PMIX_LOAD_PROCID(&targets[0], "strangers", 0);
        return 1;
    }
    for (int rank, used; sscanf(text, "%d%n", &rank, &used) == 1 && count < RANKS_MAX; count++) {
        PMIX_LOAD_PROCID(&targets[count], self.nspace, (pmix_rank_t)rank);
        text += used + (text[used] == ',');
    }
    return count;
}

static void control(const char *action, const char *text)
{
    static const struct {
        const char *name, *key;
    } keys[] = {{"terminate", PMIX_JOB_CTRL_TERMINATE},
                {"kill", PMIX_JOB_CTRL_KILL},
                {"pause", PMIX_JOB_CTRL_PAUSE},
                {"resume", PMIX_JOB_CTRL_RESUME},
                {"both", PMIX_JOB_CTRL_KILL}};
    pmix_proc_t targets[RANKS_MAX];
    size_t target_count = read_targets(targets, text), given = 0, count = 0;
    pmix_info_t *info, *results = NULL;
    int number = strcmp(action, "both") == 0 ? SIGUSR1 : atoi(action);

    PMIX_INFO_CREATE(info, 2);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(action, keys[i].name) == 0)
            PMIX_INFO_LOAD(&info[given++], keys[i].key, NULL, PMIX_BOOL);
    if (number != 0)
        PMIX_INFO_LOAD(&info[given++], PMIX_JOB_CTRL_SIGNAL, &number, PMIX_INT);
    say("control %s %s: %s", action, text,
        status_word(PMIx_Job_control(target_count > 0 ? targets : NULL, target_count, info, given,
                                     &results, &count)));
    PMIX_INFO_FREE(info, 2);
}

static void table(const char *key)
{
    pmix_query_t *query;
    pmix_info_t *found = NULL;
    size_t count = 0;
    pmix_status_t status;

    PMIX_QUERY_CREATE(query, 1);
    PMIX_ARGV_APPEND(status, query->keys, key);
    status = PMIx_Query_info(query, 1, &found, &count);
    for (size_t i = 0; i < count && found[i].value.type == PMIX_DATA_ARRAY; i++) {
        const pmix_data_array_t *array = found[i].value.data.darray;
        const pmix_proc_info_t *info = array->array;

        for (size_t k = 0; k < array->size; k++)
            say("process %u on %s pid %d of %s", info[k].proc.rank, info[k].hostname,
                (int)info[k].pid, info[k].executable_name != NULL ? info[k].executable_name : "-");
    }
    say("table: %s", status_word(status));
    PMIX_QUERY_FREE(query, 1);
}

static void carry_out(const char *line)
{
    char order[32] = "", a[64] = "", b[64] = "";
    int number = 1;

    sscanf(line, "%31s %63s %63s %d", order, a, b, &number);
    if (strcmp(order, "notify") == 0)
        notify(a, b, number);
    else if (strcmp(order, "count") == 0)
        say_count(a);
    else if (strcmp(order, "control") == 0)
        control(a, b);
    else if (strcmp(order, "table") == 0)
        table(a);
    else if (strcmp(order, "exit") == 0)
        _exit(atoi(a));
}

int main(int argc, char **argv)
{
    char orders_path[4096], place[4096], line[512];
    pmix_status_t codes[] = {CODE};
    FILE *orders;
    long at;

    if (argc < 2 || PMIx_Init(&self, NULL, 0) != PMIX_SUCCESS)
        return 1;
    snprintf(line, sizeof(line), "%s/log-%u", argv[1], self.rank);
    log_file = fopen(line, "a");
    signal(SIGUSR1, on_signal);
    PMIx_Register_event_handler(codes, 1, NULL, 0, on_event, NULL, NULL);
    PMIx_Fence(NULL, 0, NULL, 0);
    say("begins %s pid %d", getenv("ELASTIC_GENERATION"), (int)getpid());
    snprintf(orders_path, sizeof(orders_path), "%s/orders-%u", argv[1], self.rank);
    snprintf(place, sizeof(place), "%s/place-%u", argv[1], self.rank);
    at = number_load(place);
    for (;; usleep(50000)) {
        if (signalled != 0)
            say("signal %d", signalled);
        signalled = 0;
        if ((orders = fopen(orders_path, "r")) == NULL)
            continue;
        fseek(orders, at, SEEK_SET);
        while (fgets(line, sizeof(line), orders) != NULL && strchr(line, '\n') != NULL) {
            at = ftell(orders);
            number_save(place, at); /* before: an order may be what ends this process */
            carry_out(line);
        }
        fclose(orders);
    }
}
