/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic proxy JOB`: the HTTP interface of a job on this machine. Without JOB: a web page of the
 * user's jobs, by elastic-page.
 *
 * This process finds the job, opens a port for this user only, and starts elasticrun-http, which
 * serves the port as it does on the nodes of the job. Then it waits for the end of the job. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/ask.h"
#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/libexec.h"
#include "cmd/query.h"
#include "cmd/terminal_text.h"
#include "lib/json_get.h"

#define FIXED_ARGUMENTS 12
#define NUMBER_SIZE     32
#define EXIT_CANNOT_RUN 127
#define LOOK_MS         5000 /* between two questions to Slurm whether the job has ended */

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

/* Does not return. */
static void become(const struct job_info *info, char *const *addresses, char *state_dir, int fd)
{
    char *argv[FIXED_ARGUMENTS + 2 * ASK_NODES_MAX];
    const char *program = libexec_find("elasticrun-http");
    struct error err;
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
    error_set(&err, "%s: %s; slurm-elastic has it if it is built with libmicrohttpd", program,
              strerror(errno));
    failed(&err);
    _exit(EXIT_CANNOT_RUN);
}

/* Slurm that does not answer for a while is no end of the job. A line for the user if it has
 * ended, else NULL. */
static char *end_of_job(const struct job_info *served)
{
    struct job_info *info = NULL;
    struct error err;
    char *line = NULL;
    int printed = 0;
    if (slurm_client_job(served->id, &info, &err) != 0)
        return NULL;
    if (info == NULL)
        printed = asprintf(&line, "job %u has ended", served->id);
    else if (info->restarts != served->restarts)
        printed = asprintf(&line, "job %u has been requeued: this run of it has ended", served->id);
    else if (info->state == JOB_KIND_ENDED)
        printed = asprintf(&line, "job %u has ended (%s)", served->id, info->state_name);
    job_info_free(info);
    return printed >= 0 ? line : NULL;
}

/* The pipe ends with the server. */
static char *await_end(const struct job_info *served, int pipe_end)
{
    struct pollfd watched = {.fd = pipe_end, .events = POLLIN};
    char *line = NULL;
    while (line == NULL && poll(&watched, 1, LOOK_MS) <= 0)
        line = end_of_job(served);
    return line;
}

static int end_server(pid_t server)
{
    int status = 0;
    kill(server, SIGKILL);
    while (waitpid(server, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* The server does not outlive this process, however it ends. */
static pid_t start_server(const struct job_info *info, char *const *addresses, char *state_dir,
                          int fd)
{
    pid_t self = getpid(), server = fork();
    if (server != 0)
        return server;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() == self)
        become(info, addresses, state_dir, fd);
    _exit(EXIT_CANNOT_RUN);
}

/* Until the job ends, or the server. -1 with err, whose text may be empty: it has been said. */
static int serve_at(const struct job_info *info, char *const *addresses, char *state_dir, int fd,
                    struct error *err)
{
    int ends[2], status;
    if (pipe(ends) != 0)
        return error_set(err, "cannot make a pipe: %s", strerror(errno));
    pid_t server = start_server(info, addresses, state_dir, fd);
    close(fd);
    close(ends[1]);
    if (server < 0) {
        close(ends[0]);
        return error_set(err, "cannot start a process: %s", strerror(errno));
    }
    char *line = await_end(info, ends[0]);
    close(ends[0]);
    status = end_server(server);
    if (line != NULL) {
        fprintf(stderr, "selastic: %s\n", line);
        free(line);
        return 0;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_CANNOT_RUN)
        return -1;
    return error_set(err, "elasticrun-http has ended by itself (%s %d)",
                     WIFSIGNALED(status) ? "signal" : "status",
                     WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/* This user may ask: else every client would hear why not. */
static int check(const struct query *query, struct error *err)
{
    const char *type = json_get_string(query->answer, "t");
    const char *message = json_get_string(query->answer, "message");
    if (type != NULL && strcmp(type, "state") == 0)
        return 0;
    return error_set(err, "%s", message != NULL ? message : "the leader does not answer");
}

static int serve(struct site *site, const struct query *query, int port, struct error *err)
{
    char **addresses = node_addresses(site, query->info->nodes, ASK_NODES_MAX);
    char *state_dir = query_state_dir(site, query->info);
    int rc = -1, fd = listen_at(&port, err);
    if (fd >= 0) {
        printf("http://127.0.0.1:%d\n", port);
        fflush(stdout);
        rc = serve_at(query->info, addresses, state_dir, fd, err);
    }
    strings_free(addresses);
    free(state_dir);
    return rc;
}

/* elastic-page takes the place of this process. Only a failure returns. */
static enum exit_status serve_page(int port)
{
    char self[PATH_MAX] = "", door[NUMBER_SIZE];
    char *argv[] = {NULL, self, door, NULL};
    struct error err;
    int fd = listen_at(&port, &err);
    if (fd < 0)
        return failed(&err);
    snprintf(door, sizeof(door), "%d", fd);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
        error_set(&err, "/proc/self/exe: %s", strerror(errno));
        return failed(&err);
    }
    printf("http://127.0.0.1:%d\n", port);
    fflush(stdout);
    libexec_become("elastic-page", "elastic-page", argv, &err);
    return failed(&err);
}

static enum exit_status run(const struct arguments *arguments)
{
    if (arguments->job_id == 0)
        return serve_page(arguments->port);

    struct error err = {""};
    struct query query = {0};
    int rc = -1;
    deadline_start();
    struct site *site = site_create(&err);
    if (site == NULL)
        return failed(&err);
    if (query_leader(site, arguments->job_id, request_new("show"), &query, &err) ==
            QUERY_ANSWERED &&
        check(&query, &err) == 0)
        rc = serve(site, &query, arguments->port, &err);
    query_clear(&query);
    site_destroy(site);
    if (rc == 0)
        return STATUS_OK;
    return err.text[0] != '\0' ? failed(&err) : STATUS_FAILED;
}

const struct command proxy_command = {
    .name = "proxy",
    .summary = "serve a web page of your jobs, or the HTTP interface of a job",
    .help = "Usage: selastic proxy [--port=N]\n"
            "       selastic proxy JOB [--port=N]\n"
            "\n"
            "Without JOB: serve a web page of your elastic jobs at a port of 127.0.0.1, until the\n"
            "command is interrupted. The page only shows: no job can be changed by it.\n"
            "\n"
            "With JOB: serve the HTTP interface of a running elastic job at a port of 127.0.0.1, "
            "until the\n"
            "job ends or the command is interrupted. The first line of the output is its URL.\n"
            "Only programs of this user on this machine are answered. A job without roles has\n"
            "/metrics and /healthz.\n"
            "\n"
            "      --port=N  this port, 1024 to 65535; default: a free one\n"
            "  -h, --help    print this text\n",
    .run = run,
};
