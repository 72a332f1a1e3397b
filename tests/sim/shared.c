/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What nobody looks at, or has nothing to say: output, programs of the leader, lists of nodes. The
 * simulator and the fuzz target of the leader both have it. */
#include "agent/output.h"
#include "common/link.h"
#include "common/slurm_client.h"
#include "tests/sim/sim.h"

/* ---- output ---------------------------------------------------------------------------------- */

struct output *output_create(uv_loop_t *loop, bool label, void (*drained)(void *arg), void *arg)
{
    static int output;

    (void)loop;
    (void)label;
    (void)drained;
    (void)arg;
    return (struct output *)&output;
}

bool output_write(struct output *output, int rank, int fd, const char *data, size_t len,
                  void (*written)(size_t, void *), void *arg)
{
    (void)output;
    MUST(rank >= 0 && (fd == 1 || fd == 2) && data != NULL);
    if (written != NULL)
        written(len, arg);
    return true;
}

void output_redirect(struct output *output)
{
    (void)output;
}

void output_end_rank(struct output *output, int rank)
{
    (void)output;
    (void)rank;
}

void output_destroy(struct output *output, int timeout_ms, void (*done)(void *arg), void *arg)
{
    (void)output;
    (void)timeout_ms;
    clock_goodbye(done, arg);
}

/* ---- programs that the leader starts --------------------------------------------------------- */

struct link *link_adopt(uv_loop_t *loop, int fd, bool first, const struct link_handlers *handlers,
                        void *arg, struct error *err)
{
    (void)loop;
    (void)fd;
    (void)first;
    (void)handlers;
    (void)arg;
    (void)err;
    return NULL;
}

/* ---- lists of nodes, with commas ------------------------------------------------------------- */

bool slurm_client_srun_fails_with_node(void)
{
    return false;
}

char **slurm_client_expand(const char *text)
{
    char *copy = strdup(text), *rest = copy, *name;
    char **list = calloc(strlen(text) + 2, sizeof(char *));
    int count = 0;

    MUST(copy != NULL && list != NULL);
    while ((name = strsep(&rest, ",")) != NULL)
        list[count++] = strdup(name);
    free(copy);
    return list;
}

char *slurm_client_compress(char *const *names, int count)
{
    size_t len = 1;
    char *text, *end;

    for (int i = 0; i < count; i++)
        len += strlen(names[i]) + 1;
    MUST((text = calloc(1, len)) != NULL);
    end = text;
    for (int i = 0; i < count; i++)
        end += sprintf(end, "%s%s", i > 0 ? "," : "", names[i]);
    return text;
}

char *slurm_client_node_address(const char *node)
{
    return strdup(node);
}

int slurm_client_stdout(uint32_t id, char **path, struct error *err)
{
    *path = NULL;
    return error_set(err, "job %u has no output file", id);
}
