/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `elastic-fit desk SERVICE`: the answer to a guest, for the leader who has been asked
 * (agent/leader/fit_desk.c). The question is what it reads. And `elastic-fit revoke`. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cmd/command.h"
#include "common/entry.h"
#include "common/untraced.h"
#include "fit/fit_command.h"
#include "fit/grant.h"
#include "fit/guests.h"
#include "lib/json_text.h"

#define QUESTION_MAX ((size_t)1 << 20)

int fit_desk(const struct fit_arguments *arguments, struct error *err)
{
    size_t len = 0;
    char *text = entry_text(STDIN_FILENO, QUESTION_MAX, &len, err);
    json_object *whole = text != NULL ? json_text_parse(text, len, err) : NULL;
    struct home home, guests;
    int rc = whole != NULL ? home_open(&home, arguments->service, err) : -1;

    if (rc == 0)
        rc = guests_home(&home, &guests, err);
    if (rc == 0)
        print_json(guest_answer(&guests, whole), true);
    json_object_put(whole);
    free(text);
    return rc;
}

/* The epilog has it done with the rights of the user, outside the cgroups of jobs. */
int fit_revoke(const struct fit_arguments *arguments, struct error *err)
{
    const struct grant_run run = {.job = arguments->job,
                                  .restarts = (uint32_t)arguments->restarts,
                                  .cluster = arguments->cluster};
    int count, rc;

    untraced_begin();
    rc = grant_revoke_all(arguments->job != 0 ? &run : NULL, (double)time(NULL), &count, err);
    if (count > 0)
        printf("access of trainers to %d fits has been taken back\n", count);
    return rc;
}
