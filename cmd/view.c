/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands that look at a job, once or again and again (view.h). */
#include "cmd/view.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cmd/deadline.h"
#include "cmd/query.h"
#include "common/release_own.h"

#define CLEAR_SCREEN "\033[H\033[2J"

static int look(const struct view *view, const struct arguments *arguments, struct error *err)
{
    deadline_start();
    json_object *answer = query_answer(arguments->job_id, request_new(view->question), view->answer,
                                       err);
    if (answer == NULL)
        return -1;
    json_object *object = view->shape(answer, arguments, err);
    json_object_put(answer);
    if (object == NULL)
        return -1;
    if (arguments->watch > 0 && isatty(STDOUT_FILENO))
        fputs(CLEAR_SCREEN, stdout);
    if (arguments->json) {
        print_json(object, arguments->watch > 0);
        return 0;
    }
    struct render_options options = {
        .width = terminal_width(), .now = time(NULL), .release = release_own()->name};
    print_text(view->render(object, &options));
    json_object_put(object);
    return 0;
}

static void wait_for(double seconds)
{
    struct timespec pause = {.tv_sec = (time_t)seconds};
    pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
    nanosleep(&pause, NULL);
}

enum exit_status view_run(const struct view *view, const struct arguments *arguments)
{
    struct error err;
    if (look(view, arguments, &err) < 0)
        return failed(&err);
    while (arguments->watch > 0) {
        if (fflush(stdout) != 0)
            return STATUS_FAILED;
        wait_for(arguments->watch);
        if (!arguments->json && !isatty(STDOUT_FILENO))
            putchar('\n');
        /* Ends with the job: the message says so. */
        if (look(view, arguments, &err) < 0)
            return failed(&err);
    }
    return STATUS_OK;
}
