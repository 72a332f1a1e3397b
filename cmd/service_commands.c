/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic services`, `shard`, and what services are told: `apply`, `flush`, `repack`, `move`,
 * `place`, `withdraw`, `serve`, `handover`. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/job_file.h"
#include "cmd/order.h"
#include "cmd/service_job.h"
#include "cmd/services.h"
#include "cmd/terminal_text.h"
#include "cmd/view.h"
#include "common/roles_file.h"
#include "common/service_dir.h"
#include "lib/json_get.h"
#include "lib/text.h"

/* The job that runs a service, in place of its name. */
static int find_job(struct arguments *arguments, struct error *err)
{
    return arguments->service != NULL ? service_job(arguments->service, &arguments->job_id, err)
                                      : 0;
}

/* ---- look ------------------------------------------------------------------------------------ */

static json_object *shape_of_shards(json_object *answer, const struct arguments *arguments,
                                    struct error *err)
{
    (void)arguments;
    (void)err;
    return shape_shards(answer);
}

static enum exit_status run_shard(const struct arguments *given)
{
    static const struct view view = {"shards", "shards", shape_of_shards, render_shards};
    struct arguments arguments = *given;
    struct error err;

    return find_job(&arguments, &err) == 0 ? view_run(&view, &arguments) : failed(&err);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, sorted; NULL after the last. NULL: out of memory. */
static char **names_in(DIR *list)
{
    size_t count = 0, room = 16;
    char **names = calloc(room, sizeof(*names));
    struct dirent *entry;

    while (names != NULL && (entry = readdir(list)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        if (count + 1 == room) {
            names = text_need(realloc(names, 2 * room * sizeof(*names)));
            room *= 2;
        }
        names[count++] = text_need(strdup(entry->d_name));
        names[count] = NULL;
    }
    if (names != NULL)
        qsort(names, count, sizeof(*names), by_name);
    return names;
}

static int list_services(json_object *list, struct error *err)
{
    char dir[PATH_MAX];
    char **names;
    DIR *open;

    if (service_dir_all(dir, sizeof(dir), err) != 0)
        return -1;
    open = opendir(dir);
    if (open == NULL)
        return errno == ENOENT ? 0
                               : error_set(err, "%s: %s", error_path(dir).text, strerror(errno));
    names = text_need(names_in(open));
    closedir(open);
    for (char **name = names; *name != NULL; name++) {
        char path[PATH_MAX + 260];
        json_object *leader;

        snprintf(path, sizeof(path), "%s/%s", dir, *name);
        leader = service_leader(path);
        json_object_array_add(list, shape_service(*name, leader));
        json_object_put(leader);
    }
    strings_free(names);
    return 0;
}

static enum exit_status run_services(const struct arguments *arguments)
{
    struct render_options options = {.width = terminal_width(), .now = time(NULL)};
    json_object *all = text_need(json_object_new_object());
    json_object *list = text_need(json_object_new_array());
    struct error err;

    json_object_object_add(all, "services", list);
    if (list_services(list, &err) != 0) {
        json_object_put(all);
        return failed(&err);
    }
    if (arguments->json) {
        print_json(all, false);
        return STATUS_OK;
    }
    print_text(render_services(all, &options));
    json_object_put(all);
    return STATUS_OK;
}

/* ---- order ----------------------------------------------------------------------------------- */

/* request is taken over. */
static enum exit_status ask(const struct arguments *given, json_object *request)
{
    struct arguments arguments = *given;
    struct error err;

    if (find_job(&arguments, &err) != 0) {
        json_object_put(request);
        return failed(&err);
    }
    deadline_start();
    return order(&arguments, request, &err) == 0 ? STATUS_OK : failed(&err);
}

/* The text of a job file, as it travels; NULL with err. */
static char *text_of(const char *file, struct error *err)
{
    struct roles *roles = job_file_load(file, err);
    char *text = roles != NULL ? roles_text(roles, err) : NULL;

    roles_destroy(roles);
    return text;
}

static enum exit_status run_apply(const struct arguments *arguments)
{
    json_object *request;
    struct error err;
    char *text;

    if (arguments->file == NULL)
        return ask(arguments, request_new("apply"));
    text = text_of(arguments->file, &err);
    if (text == NULL)
        return failed(&err);
    request = request_new("apply");
    json_object_object_add(request, "roles", json_from_string(text));
    free(text);
    return ask(arguments, request);
}

static enum exit_status run_flush(const struct arguments *arguments)
{
    return ask(arguments, request_new("flush"));
}

static enum exit_status run_repack(const struct arguments *arguments)
{
    return ask(arguments, request_new("repack"));
}

static enum exit_status run_move(const struct arguments *arguments)
{
    json_object *request = request_new("move");

    json_object_object_add(request, "model", json_from_string(arguments->model));
    json_object_object_add(request, "shard", json_object_new_int(arguments->shard));
    return ask(arguments, request);
}

static enum exit_status run_place(const struct arguments *arguments)
{
    json_object *request = request_new("place");

    json_object_object_add(request, "shard", json_object_new_int(arguments->shard));
    json_object_object_add(request, arguments->keys ? "keys" : "models",
                           text_need(json_from_strings(arguments->models)));
    return ask(arguments, request);
}

static enum exit_status ask_of_model(const struct arguments *arguments, const char *what)
{
    json_object *request = request_new(what);

    json_object_object_add(request, "model", json_from_string(arguments->model));
    return ask(arguments, request);
}

static enum exit_status run_withdraw(const struct arguments *arguments)
{
    return ask_of_model(arguments, "withdraw");
}

static enum exit_status run_serve(const struct arguments *arguments)
{
    return ask_of_model(arguments, "serve");
}

static enum exit_status run_handover(const struct arguments *arguments)
{
    return ask(arguments, request_new("hand-over"));
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command services_command = {
    .name = "services",
    .summary = "list your services, and which jobs run them",
    .help = "Usage: selastic services [--json]\n"
            "\n"
            "List your services: their names, the job that runs each of them, how many jobs have\n"
            "run it so far (TERM), and when that job has been heard. A service that is 'silent'\n"
            "has a job that does not write its file any more.\n"
            "\n"
            "      --json       print JSON\n"
            "  -h, --help       print this text\n",
    .run = run_services,
};

const struct command shard_command = {
    .name = "shard",
    .summary = "show the shards of a service, and its models",
    .help = "Usage: selastic shard JOB|SERVICE [--watch[=S]] [--json]\n"
            "\n"
            "Show the shards of a service: how many replicas are ready, and what an update waits\n"
            "for. Then its models: the version that there should be, the one that its shard has,\n"
            "and the shard that requests with its key go to. A model that is not as it should be\n"
            "has a reason.\n"
            "\n"
            "      --watch[=S]  repeat every S seconds (default 2) until the job has ended\n"
            "      --json       print JSON; with --watch, one line each time\n"
            "  -h, --help       print this text\n",
    .run = run_shard,
};

const struct command apply_command = {
    .name = "apply",
    .summary = "have a service look at its repository now, or run another program",
    .help = "Usage: selastic apply JOB|SERVICE [--file FILE] [--json]\n"
            "\n"
            "Have a service look at its repository of models now, and not only in a while. What\n"
            "has changed still waits for the window of the service; 'selastic flush' does not.\n"
            "\n"
            "With --file have its job run another program: 'run' of the role of kind shards in\n"
            "this job file. All else in the file has to be as it is. The replicas of each shard\n"
            "are replaced as 'update' of the role says, so no request fails. If new ones do not\n"
            "get ready, the shard goes back to the program that it had. 'selastic shard' says how\n"
            "far it is.\n"
            "\n"
            "      --file FILE  the job file with that program\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_apply,
};

const struct command flush_command = {
    .name = "flush",
    .summary = "have a service do at once what waits",
    .help = "Usage: selastic flush JOB|SERVICE [--json]\n"
            "\n"
            "Have a service look at its repository, and do at once what waits for others. What\n"
            "has failed is tried again.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_flush,
};

const struct command repack_command = {
    .name = "repack",
    .summary = "have a service move models so that it needs fewer shards",
    .help = "Usage: selastic repack JOB|SERVICE [--json]\n"
            "\n"
            "Have a service move models, so that it needs fewer shards. It moves none by itself\n"
            "that has room where it is.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_repack,
};

const struct command move_command = {
    .name = "move",
    .summary = "move a model of a service to another shard",
    .help = "Usage: selastic move JOB|SERVICE MODEL SHARD [--json]\n"
            "\n"
            "Move a model of a service to another shard that there is, and its route with it. No\n"
            "request is lost: first the model is added there, then its requests go there, then it\n"
            "leaves the shard where it was. SHARD is a number, or shard_1.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_move,
};

const struct command place_command = {
    .name = "place",
    .summary = "say which models a shard of a service has",
    .help =
        "Usage: selastic place JOB|SERVICE SHARD MODEL... [--keys] [--json]\n"
        "\n"
        "Say which models a shard has: these, and no others. Those that are in another shard\n"
        "move there, with their routes, as by 'selastic move'. Those that it has, and that are\n"
        "not named, are withdrawn, as by 'selastic withdraw'. The same once more changes\n"
        "nothing. SHARD is a number, or shard_1.\n"
        "\n"
        "      --keys       the keys of the models are given, in place of their names\n"
        "      --json       print the answer as JSON\n"
        "  -h, --help       print this text\n",
    .run = run_place,
};

const struct command withdraw_command = {
    .name = "withdraw",
    .summary = "have a service not serve a model any more",
    .help = "Usage: selastic withdraw JOB|SERVICE MODEL [--json]\n"
            "\n"
            "Have a service not serve a model any more, though its repository has it: first its\n"
            "route goes, then the model leaves its shard. It stays so for later jobs of the\n"
            "service, until 'selastic serve', or until the repository has it no more.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_withdraw,
};

const struct command serve_command = {
    .name = "serve",
    .summary = "have a service serve a model again",
    .help = "Usage: selastic serve JOB|SERVICE MODEL [--json]\n"
            "\n"
            "Have a service serve a model again that was withdrawn from it.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_serve,
};

const struct command handover_command = {
    .name = "handover",
    .summary = "have the next job of a service take over now",
    .help = "Usage: selastic handover JOB|SERVICE [--json]\n"
            "\n"
            "Have the job of a service submit its batch script once more. The next job reads the\n"
            "job file anew. When its replicas are ready it takes the requests, and the first job\n"
            "ends. So a service gets another program without a failed request. Both jobs run for\n"
            "a while: they need nodes for two. 'selastic shard' says how far it is.\n"
            "\n"
            "      --json       print the answer as JSON\n"
            "  -h, --help       print this text\n",
    .run = run_handover,
};
