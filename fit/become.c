/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `elastic-fit become`: a worker of a world that a fit trains (command.h). It becomes the program
 * of the role, which then finds what the training of a fit finds. So its agent sees that program,
 * as in each other world. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/log.h"
#include "common/stop.h"
#include "fit/fit_command.h"
#include "fit/training.h"
#include "lib/world_names.h"

#define LOOK_NS  50000000L
#define PATIENCE 30 /* seconds for a file system that shows the record late */

/* Checkpoints of another fit in the same job are none of this one. */
static int set_place(const char *name, int64_t id, struct error *err)
{
    const char *before = getenv(name);
    char *place;
    int rc;

    if (before == NULL)
        return 0;
    if (asprintf(&place, "%s/fit-%" PRId64, before, id) < 0)
        return error_set(err, "out of memory");
    rc = setenv(name, place, 1);
    free(place);
    return rc == 0 ? 0 : error_set(err, "out of memory");
}

static int set_environment(const struct home *home, int64_t id, const struct spec *spec,
                           const struct home_record *record, struct error *err)
{
    const char *job = getenv("ELASTIC_JOB_ID"); /* also of a worker of an extension */
    struct training_added added = training_environment(home, id, spec, record,
                                                       job != NULL ? job : "", "");

    for (int i = 0; i < added.count; i++) {
        char *equals = strchr(added.list[i], '=');

        *equals = '\0';
        if (setenv(added.list[i], equals + 1, 1) != 0) {
            training_added_clear(&added);
            return error_set(err, "out of memory");
        }
    }
    training_added_clear(&added);
    return set_place("ELASTIC_CHECKPOINT_DIR", id, err) == 0
               ? set_place(WORLD_CHECKPOINT_URL, id, err)
               : -1;
}

int fit_become(const struct fit_arguments *arguments, struct error *err)
{
    struct home_record record;
    struct spec spec = {0};
    struct home home;
    int64_t id = 0;

    if (home_open(&home, arguments->service, err) != 0)
        return -1;
    stop_watch(PATIENCE);
    err->text[0] = '\0';
    while (id == 0 && !stop_asked()) {
        const struct timespec time = {.tv_nsec = LOOK_NS};

        if (training_find(&home, &id, &spec, &record, err) == 0 && id > 0)
            break;
        nanosleep(&time, NULL);
    }
    if (id == 0)
        return err->text[0] != '\0'
                   ? -1
                   : error_set(err, "no fit of %s goes on", error_value(arguments->service).text);
    if (set_environment(&home, id, &spec, &record, err) != 0)
        return -1;
    spec_clear(&spec);
    if (stop_was_asked()) { /* as the program would end */
        signal(SIGTERM, SIG_DFL);
        raise(SIGTERM);
    }
    stop_watch(0);
    signal(SIGPIPE, SIG_DFL);
    execvp(arguments->program[0], arguments->program);
    return error_set(err, "%s: %s", error_value(arguments->program[0]).text, strerror(errno));
}
