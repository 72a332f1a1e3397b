/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A program of libelastic that asks for what it is told to ask for, through all its restarts.
 *
 * library once: calls everything once, and prints what is answered. library DIRECTORY: makes
 * steps; rank 0 carries out the lines of DIRECTORY/orders as they come, each once over all
 * worlds, and writes what happens to DIRECTORY/log:
 *   extend N [SECONDS] | release N | named NODES | cancel ID | reinit
 * When it is told to stop it saves the number of steps and ends; if there is DIRECTORY/linger,
 * it says that it has saved, and stays. With DIRECTORY/wait, ranks but the first make no steps
 * and wait. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <elastic.h>

#include "tests/system/pmix/notes.h"

static const char *directory;

static const char *path_of(const char *name)
{
    static char path[4096];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static int call_all(void)
{
    struct elastic_event event;
    struct elastic_result result;
    char id[ELASTIC_ID_BYTES];

    log_file = stdout;
    say("init %d", elastic_init());
    say("test %d", elastic_event_test(&event));
    say("wait %d", elastic_event_wait(&event, 10));
    say("progress %d", elastic_report_progress(1, 2, "steps"));
    say("request %d", elastic_request_nodes(1, 0, id));
    say("release %d", elastic_release_nodes(1, id));
    say("named %d", elastic_release_named("n1", id));
    say("cancel %d", elastic_cancel_request("1.0.1"));
    say("result %d", elastic_request_result(NULL, &result, -1));
    say("done %d", elastic_checkpoint_done());
    say("error %s", elastic_error());
    say("generation %d rank %d size %d nodes %d", elastic_generation(), elastic_rank(),
        elastic_size(), elastic_nodes());
    elastic_finalize();
    return 0;
}

static void carry_out(const char *line)
{
    char order[32] = "", what[128] = "", id[ELASTIC_ID_BYTES] = "";
    int rc = 0, within = 0;

    sscanf(line, "%31s %127s %d", order, what, &within);
    if (strcmp(order, "extend") == 0)
        rc = elastic_request_nodes(atoi(what), within, id);
    else if (strcmp(order, "release") == 0)
        rc = elastic_release_nodes(atoi(what), id);
    else if (strcmp(order, "named") == 0)
        rc = elastic_release_named(what, id);
    else if (strcmp(order, "cancel") == 0)
        rc = elastic_cancel_request(what);
    else if (strcmp(order, "reinit") == 0)
        elastic_finalize(), rc = elastic_init();
    say("%s %s: %d %s", order, what, rc, rc == 0 ? id : elastic_error());
}

/* Before the order is carried out: it may be what ends this process. */
static void look_for_orders(long *at)
{
    FILE *orders = fopen(path_of("orders"), "r");
    char line[512];

    if (orders == NULL)
        return;
    fseek(orders, *at, SEEK_SET);
    while (fgets(line, sizeof(line), orders) != NULL && strchr(line, '\n') != NULL) {
        *at = ftell(orders);
        number_save(path_of("at"), *at);
        carry_out(line);
    }
    fclose(orders);
}

static void look_for_results(void)
{
    static bool failed;
    struct elastic_result result;
    int rc = elastic_request_result(NULL, &result, 0);

    if (rc == 0)
        say("%s %s: %d nodes: %s", result.outcome == ELASTIC_DONE ? "ready" : "failed", result.id,
            result.nodes, result.reason);
    else if (rc < 0 && !failed)
        say("result: %d %s", rc, elastic_error());
    failed = rc < 0;
}

static void leave(const struct elastic_event *event, long steps)
{
    if (elastic_rank() == 0)
        number_save(path_of("saved"), steps);
    say("stops %d at %" PRId64 " with %ld", event->kind, event->step, steps);
    if (access(path_of("linger"), F_OK) == 0) {
        say("saved %d", elastic_checkpoint_done());
        pause();
    }
    exit(0);
}

int main(int argc, char **argv)
{
    struct elastic_event event;
    long steps, at;
    int rc;

    if (argc == 2 && strcmp(argv[1], "once") == 0)
        return call_all();
    if (argc != 2 || elastic_init() != 0)
        return 1;
    directory = argv[1];
    if (elastic_rank() == 0)
        log_file = fopen(path_of("log"), "a");
    steps = number_load(path_of("saved"));
    at = number_load(path_of("at"));
    say("begins %d nodes, step %ld", elastic_nodes(), steps);
    for (;;) {
        if (elastic_rank() != 0 && access(path_of("wait"), F_OK) == 0) {
            rc = elastic_event_wait(&event, -1);
        } else {
            usleep(20000);
            rc = elastic_event_test(&event);
        }
        if (rc == 1)
            leave(&event, steps);
        if (rc < 0)
            return 1;
        steps++;
        elastic_report_progress(steps, 1000000, "steps");
        if (elastic_rank() != 0)
            continue;
        look_for_orders(&at);
        if (at > 0)
            look_for_results();
    }
}
