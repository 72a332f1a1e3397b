/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic proxy JOB`: the HTTP interface of a job on this machine.
 *
 * This process finds the job, opens a port for this user only, and becomes elasticrun-http, which
 * serves the port as it does on the nodes of the job. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cmd/ask.h"
#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

#define FIXED_ARGUMENTS 12
#define NUMBER_SIZE     32

/* Beside this program, so that an installation can be moved. */
static const char *find_program(void)
{
    static char path[PATH_MAX], found[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (slash != NULL)
        *slash = '\0';
    snprintf(found, sizeof(found), "%.4000s/../libexec/slurm-elastic/elasticrun-http", path);
    return access(found, X_OK) == 0 ? found : PKGLIBEXECDIR "/elasticrun-http";
}

/* The address of a socket that listens, or -1 with err. *port 0: any. The next program gets it. */
static int listen_at(int *port, struct error *err)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)*port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, SOMAXCONN) == 0 &&
        getsockname(fd, (struct sockaddr *)&address, &size) == 0) {
        *port = ntohs(address.sin_port);
        return fd;
    }
    error_set(err, "cannot listen on port %d of 127.0.0.1: %s", *port, strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static char *number_option(const char *name, uint32_t number)
{
    char text[NUMBER_SIZE];
    snprintf(text, sizeof(text), "%s=%u", name, number);
    return text_need(strdup(text));
}

/* Returns only if it cannot. */
static int become(const struct job_info *info, char *const *addresses, char *state_dir, int fd,
                  struct error *err)
{
    char *argv[FIXED_ARGUMENTS + 2 * ASK_NODES_MAX];
    const char *program = find_program();
    int count = 0;
    argv[count++] = text_need(strdup("elasticrun-http"));
    argv[count++] = number_option("--job", info->id);
    argv[count++] = number_option("--restarts", info->restarts);
    argv[count++] = number_option("--uid", info->uid);
    argv[count++] = number_option("--door", (uint32_t)fd);
    if (state_dir != NULL) {
        argv[count++] = text_need(strdup("--state-dir"));
        argv[count++] = text_need(strdup(state_dir));
    }
    for (int i = 0; i < ASK_NODES_MAX && addresses[i] != NULL; i++) {
        argv[count++] = text_need(strdup("--leader"));
        argv[count++] = text_need(strdup(addresses[i]));
    }
    argv[count] = NULL;
    execv(program, argv);
    error_set(err, "%s: %s; slurm-elastic has it if it is built with libmicrohttpd", program,
              strerror(errno));
    while (count > 0)
        free(argv[--count]);
    return -1;
}

/* The job has roles, and this user may ask for them: else every client would hear why not. */
static int check(const struct query *query, struct error *err)
{
    const char *type = json_get_string(query->answer, "t");
    const char *message = json_get_string(query->answer, "message");
    if (type != NULL && strcmp(type, "roles") == 0)
        return 0;
    return error_set(err, "%s", message != NULL ? message : "the leader does not know roles");
}

static int serve(struct site *site, const struct query *query, int port, struct error *err)
{
    char **addresses = node_addresses(site, query->info->nodes, ASK_NODES_MAX);
    char *state_dir = query_state_dir(site, query->info);
    int fd = listen_at(&port, err);
    if (fd >= 0) {
        printf("http://127.0.0.1:%d\n", port);
        fflush(stdout);
        become(query->info, addresses, state_dir, fd, err);
        close(fd);
    }
    strings_free(addresses);
    free(state_dir);
    return -1;
}

static enum exit_status run(const struct arguments *arguments)
{
    struct error err;
    struct query query = {0};
    deadline_start();
    struct site *site = site_create(&err);
    if (site == NULL)
        return failed(&err);
    if (query_leader(site, arguments->job_id, request_new("roles"), &query, &err) ==
            QUERY_ANSWERED &&
        check(&query, &err) == 0)
        serve(site, &query, arguments->port, &err);
    query_clear(&query);
    site_destroy(site);
    return failed(&err);
}

const struct command proxy_command = {
    .name = "proxy",
    .summary = "serve the HTTP interface of a job on this machine",
    .help = "Usage: selastic proxy JOB [--port=N]\n"
            "\n"
            "Serve the HTTP interface of a running elastic job with roles at a port of\n"
            "127.0.0.1, until it is interrupted. The first line of the output is its URL. Only\n"
            "programs of this user on this machine are answered.\n"
            "\n"
            "      --port=N  this port, 1024 to 65535; default: a free one\n"
            "  -h, --help    print this text\n",
    .run = run,
};
