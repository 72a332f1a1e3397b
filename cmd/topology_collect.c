/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic topology collect`: which nodes are asked, by which jobs, and what the answers
 * change. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/terminal_text.h"
#include "cmd/node_steps.h"
#include "cmd/topology_site.h"
#include "common/files.h"
#include "lib/json_get.h"

#define STEPS_MAX  64
#define SETTLE_MS  200
#define SETTLE_MAX 10 /* seconds */

/* A node that was to be asked. */
struct asked {
    const struct slurm_node *node;
    const char *reason; /* why the node is not asked; NULL: it is asked */
    bool placed;        /* in a step */
};

struct collection {
    struct topology_site site;
    struct asked *list;
    int count;
    struct node_step steps[STEPS_MAX];
    int step_count;
    struct node_answers answers;
};

/* ---- which nodes ----------------------------------------------------------------------------- */

static bool contains(char *const *names, const char *name)
{
    for (; names != NULL && *names != NULL; names++)
        if (strcmp(*names, name) == 0)
            return true;
    return false;
}

/* Why the node cannot be asked now, NULL: it can. */
static const char *obstacle(const struct slurm_node *node, const char *partition)
{
    if (!node->ready)
        return node->state;
    if (node->reserved && getenv("SLURM_RESERVATION") == NULL)
        return "reserved: set SLURM_RESERVATION to ask it nevertheless";
    if (node->partitions == NULL || node->partitions[0] == NULL)
        return "in no partition that is up";
    if (partition != NULL && !contains(node->partitions, partition))
        return "not in the partition, or that is down";
    return NULL;
}

static void add_asked(struct collection *c, const struct slurm_node *node, const char *partition)
{
    c->list[c->count++] = (struct asked){.node = node, .reason = obstacle(node, partition)};
}

static bool is_asked(const struct collection *c, const struct slurm_node *node)
{
    for (int i = 0; i < c->count; i++)
        if (c->list[i].node == node)
            return true;
    return false;
}

static const struct slurm_node *find_node(const struct topology_site *site, const char *name)
{
    for (int i = 0; i < site->node_count; i++)
        if (strcmp(site->nodes[i].name, name) == 0)
            return &site->nodes[i];
    return NULL;
}

static int choose_named(struct collection *c, const struct arguments *arguments, struct error *err)
{
    char **names = slurm_client_expand(arguments->hostlist);
    int rc = 0;
    for (int i = 0; names != NULL && names[i] != NULL && rc == 0; i++) {
        const struct slurm_node *node = find_node(&c->site, names[i]);
        if (node == NULL)
            rc = error_set(err, "Slurm has no node '%s'", error_value(names[i]).text);
        else if (!is_asked(c, node))
            add_asked(c, node, arguments->partition);
    }
    if (rc == 0 && c->count == 0)
        rc = error_set(err,
                       "--nodes=%s names no nodes; give a list as Slurm writes it (n[1-8],n12)",
                       error_value(arguments->hostlist).text);
    strings_free(names);
    return rc;
}

/* Without --nodes a partition means its nodes. */
static int choose_nodes(struct collection *c, const struct arguments *arguments, struct error *err)
{
    c->list = text_need(calloc((size_t)c->site.node_count + 1, sizeof(*c->list)));
    if (arguments->hostlist != NULL)
        return choose_named(c, arguments, err);
    for (int i = 0; i < c->site.node_count; i++)
        if (arguments->partition == NULL ||
            contains(c->site.nodes[i].partitions, arguments->partition))
            add_asked(c, &c->site.nodes[i], arguments->partition);
    if (c->count > 0)
        return 0;
    return error_set(err, "no nodes to ask: %s",
                     arguments->partition != NULL ? "that partition has none, or is down"
                                                  : "Slurm knows none");
}

/* Jobs that have just ended are about to leave their nodes: wait a little for that. */
static int settle(struct collection *c, const struct arguments *arguments, struct error *err)
{
    int looks = (arguments->timeout < SETTLE_MAX ? arguments->timeout : SETTLE_MAX) * 1000 /
                SETTLE_MS;
    for (; looks > 0; looks--) {
        bool completing = false;
        for (int i = 0; i < c->count; i++)
            completing = completing || c->list[i].node->completing;
        if (!completing)
            return 0;
        usleep(SETTLE_MS * 1000);
        free(c->list);
        c->list = NULL;
        c->count = 0;
        if (topology_site_reload(&c->site, err) < 0 || choose_nodes(c, arguments, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- which jobs ------------------------------------------------------------------------------ */

static int count_in(const struct collection *c, const char *partition)
{
    int count = 0;
    for (int i = 0; i < c->count; i++)
        count += !c->list[i].placed && c->list[i].reason == NULL &&
                 contains(c->list[i].node->partitions, partition);
    return count;
}

/* The partition with most of the nodes that have no partition yet; NULL: all nodes have one. */
static const char *best_partition(const struct collection *c)
{
    const char *best = NULL;
    int most = 0;
    /* Nodes of the same partitions have the same candidates: one node of each set of partitions is
     * looked at. */
    char **last = NULL;
    for (int i = 0; i < c->count; i++) {
        char **names = c->list[i].node->partitions;
        bool same = last != NULL;
        if (c->list[i].placed || c->list[i].reason != NULL)
            continue;
        for (int k = 0; same && (last[k] != NULL || names[k] != NULL); k++)
            same = last[k] != NULL && names[k] != NULL && strcmp(last[k], names[k]) == 0;
        for (int k = 0; !same && names[k] != NULL; k++) {
            int count = count_in(c, names[k]);
            if (count > most) {
                most = count;
                best = names[k];
            }
        }
        last = names;
    }
    return best;
}

static void add_step(struct collection *c, const char *partition)
{
    struct node_step *step = &c->steps[c->step_count++];
    step->partition = partition;
    step->nodes = text_need(calloc((size_t)c->count + 1, sizeof(*step->nodes)));
    for (int i = 0; i < c->count; i++) {
        struct asked *asked = &c->list[i];
        if (asked->placed || asked->reason != NULL || !contains(asked->node->partitions, partition))
            continue;
        asked->placed = true;
        step->nodes[step->count++] = text_need(strdup(asked->node->name));
    }
}

/* Choose the partitions, since a job is in one partition: roughly as few as reach all nodes. */
static void choose_steps(struct collection *c, const char *partition)
{
    const char *next = partition != NULL && count_in(c, partition) > 0 ? partition
                                                                       : best_partition(c);
    for (; next != NULL && c->step_count < STEPS_MAX; next = best_partition(c))
        add_step(c, next);
    for (int i = 0; i < c->count; i++)
        if (!c->list[i].placed && c->list[i].reason == NULL)
            c->list[i].reason = "in one partition too many";
}

/* ---- answers --------------------------------------------------------------------------------- */

static int take_machine(void *owner, const char *node, json_object *answer, struct error *err)
{
    struct machine machine;
    if (machine_from_json(answer, &machine, err) < 0)
        return -1;
    topology_map_set(owner, node, &machine);
    return 0;
}

static int ask(struct collection *c, int timeout, struct error *err)
{
    static const char *const words[] = {"topology", "describe", "--pieces", NULL};
    static const struct node_question question = {"elastic-topology", words};
    char **names = text_need(calloc((size_t)c->count + 1, sizeof(*names)));
    int count = 0;
    for (int i = 0; i < c->count; i++)
        if (c->list[i].placed)
            names[count++] = c->list[i].node->name;
    node_answers_begin(&c->answers, names, count, take_machine, &c->site.map);
    free(names);
    return count > 0 ? node_steps_run(&question, c->steps, c->step_count, timeout, &c->answers, err)
                     : 0;
}

/* Nodes that Slurm does not have any more leave the file. */
static void forget_gone(struct collection *c)
{
    struct topology_map kept = {0};
    for (int i = 0; i < c->site.node_count; i++) {
        const struct topology_shape *shape = topology_map_find(&c->site.map, c->site.nodes[i].name);
        if (shape != NULL)
            topology_map_set(&kept, c->site.nodes[i].name, &shape->machine);
    }
    topology_map_clear(&c->site.map);
    c->site.map = kept;
}

static const char *reason_of(const struct collection *c, const struct asked *asked)
{
    struct node_answer *answer = node_answers_find(&c->answers, asked->node->name);
    if (asked->reason != NULL)
        return asked->reason;
    return answer != NULL && answer->answered         ? NULL
           : answer != NULL && answer->reason != NULL ? answer->reason
                                                      : "no answer";
}

/* {"file", "collected", "asked", "shapes", "missing": [{"node", "reason", "shape"}]}: shape is the
 * earlier shape, or null. */
static json_object *summary(const struct collection *c)
{
    json_object *json = text_need(json_object_new_object());
    json_object *missing = text_need(json_object_new_array());
    int collected = 0;
    for (int i = 0; i < c->count; i++) {
        const char *reason = reason_of(c, &c->list[i]), *node = c->list[i].node->name;
        const struct topology_shape *shape = topology_map_find(&c->site.map, node);
        collected += reason == NULL;
        if (reason == NULL)
            continue;
        json_object *entry = text_need(json_object_new_object());
        json_object_object_add(entry, "node", json_object_new_string(node));
        json_object_object_add(entry, "reason", json_object_new_string(reason));
        json_object_object_add(entry, "shape",
                               shape != NULL ? json_object_new_string(shape->name) : NULL);
        json_object_array_add(missing, entry);
    }
    json_object_object_add(json, "file", json_object_new_string(c->site.path));
    json_object_object_add(json, "collected", json_object_new_int(collected));
    json_object_object_add(json, "asked", json_object_new_int(c->count));
    json_object_object_add(json, "shapes", json_object_new_int(c->site.map.shape_count));
    json_object_object_add(json, "missing", missing);
    return json;
}

static void print_summary(json_object *json)
{
    json_object *missing = NULL;
    json_object_object_get_ex(json, "missing", &missing);
    for (size_t i = 0; i < json_object_array_length(missing); i++) {
        json_object *entry = json_object_array_get_idx(missing, i);
        char *reason = text_clean(json_get_string(entry, "reason"), 0);
        printf("%s: %s%s\n", json_get_string(entry, "node"), reason,
               json_get_string(entry, "shape") != NULL ? " (its shape of before is kept)" : "");
        free(reason);
    }
    int64_t collected = 0, asked = 0, shapes = 0;
    json_get_int(json, "collected", 0, INT32_MAX, &collected);
    json_get_int(json, "asked", 0, INT32_MAX, &asked);
    json_get_int(json, "shapes", 0, INT32_MAX, &shapes);
    char *path = text_clean(json_get_string(json, "file"), 0);
    printf("%lld of %lld nodes have answered; %lld shape%s in %s\n", (long long)collected,
           (long long)asked, (long long)shapes, shapes == 1 ? "" : "s", path);
    free(path);
}

static enum exit_status finish(struct collection *c, bool as_json)
{
    struct error err;
    forget_gone(c);
    json_object *json = summary(c);
    int64_t collected = 0;
    json_get_int(json, "collected", 0, INT32_MAX, &collected);
    if (collected > 0) {
        char *text = topology_map_format(&c->site.map, slurm_client_compress);
        int rc = file_replace(c->site.path, text, strlen(text), 0644, &err);
        free(text);
        if (rc < 0) {
            json_object_put(json);
            return failed(&err);
        }
    }
    if (as_json) {
        print_json(json, false);
    } else {
        print_summary(json);
        json_object_put(json);
    }
    if (collected > 0)
        return STATUS_OK;
    fflush(stdout);
    error_set(&err, "no node has answered: %s is as it was", error_path(c->site.path).text);
    return failed(&err);
}

static void clear(struct collection *c)
{
    for (int i = 0; i < c->step_count; i++)
        strings_free(c->steps[i].nodes);
    node_answers_clear(&c->answers);
    topology_site_clear(&c->site);
    free(c->list);
}

enum exit_status topology_collect(const struct arguments *arguments)
{
    struct collection c = {.count = 0};
    struct error err;
    enum exit_status status;
    deadline_start();
    if (topology_site_load(&c.site, arguments->file, true, &err) < 0)
        return failed(&err);
    if (choose_nodes(&c, arguments, &err) < 0 || settle(&c, arguments, &err) < 0) {
        status = failed(&err);
    } else {
        choose_steps(&c, arguments->partition);
        status = ask(&c, arguments->timeout, &err) < 0 ? failed(&err) : finish(&c, arguments->json);
    }
    clear(&c);
    return status;
}
