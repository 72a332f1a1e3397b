/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic topology`: the shapes of the nodes, and the tree of switches.
 *
 * This file chooses the action, and has the short actions. */
#include <stdlib.h>
#include <string.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/machine_find.h"
#include "cmd/terminal_text.h"
#include "cmd/node_answers.h"
#include "cmd/topology_check.h"
#include "cmd/topology_render.h"
#include "cmd/topology_site.h"

/* ---- describe -------------------------------------------------------------------------------- */

static void print_machine(const char *node, const struct machine *machine)
{
    char name[MACHINE_NAME_MAX];
    json_object *json = text_need(json_object_new_object());
    machine_name(machine, name, sizeof(name));
    json_object_object_add(json, "node", json_object_new_string(node));
    json_object_object_add(json, "shape", json_object_new_string(name));
    json_object_object_add(json, "description", machine_to_json(machine));
    print_json(json, false);
}

static enum exit_status describe(const struct arguments *arguments)
{
    struct machine machine;
    struct error err;
    char *node = node_answer_own_name();
    enum exit_status status = STATUS_OK;
    if (machine_find(NULL, &machine, &err) < 0) {
        if (arguments->pieces)
            node_answer_print_error(stdout, node, err.text);
        status = failed(&err);
    } else if (arguments->pieces) {
        json_object *json = machine_to_json(&machine);
        node_answer_print(stdout, node, json);
        json_object_put(json);
    } else {
        print_machine(node, &machine);
    }
    free(node);
    return status;
}

/* ---- show and check -------------------------------------------------------------------------- */

static enum exit_status show(const struct arguments *arguments)
{
    struct topology_site site;
    struct error err;
    deadline_start();
    if (topology_site_load(&site, arguments->file, false, &err) < 0)
        return failed(&err);
    const char **leaves = topology_site_leaves(&site);
    json_object *shown = topology_shown(&site, leaves);
    free(leaves);
    if (arguments->json) {
        print_json(shown, false);
    } else {
        print_text(topology_shown_text(shown, terminal_width()));
        json_object_put(shown);
    }
    topology_site_clear(&site);
    return STATUS_OK;
}

/* Slurm adds to GRES where a node has found its devices: "gpu:8(S:0-1)", and this may be the
 * difference. */
static char *without_parentheses(const char *text)
{
    char *copy = text_need(strdup(text != NULL ? text : ""));
    size_t kept = 0;
    int depth = 0;
    for (const char *s = copy; *s; s++) {
        depth += *s == '(';
        if (depth == 0)
            copy[kept++] = *s;
        depth -= *s == ')' && depth > 0;
    }
    copy[kept] = '\0';
    return copy;
}

static char *kind_of(const struct slurm_node *node)
{
    char *gres = without_parentheses(node->gres), *kind = NULL;
    if (asprintf(&kind, "%d CPUs %d:%d:%d, %llu MB, %s, %s", node->cpus, node->sockets, node->cores,
                 node->threads, (unsigned long long)node->memory,
                 node->features != NULL ? node->features : "", gres) < 0)
        kind = NULL;
    free(gres);
    return text_need(kind);
}

static char *join(char *const *names)
{
    char *text = NULL;
    size_t size;
    FILE *out = text_need(open_memstream(&text, &size));
    for (int i = 0; names != NULL && names[i] != NULL; i++)
        fprintf(out, "%s%s", i > 0 ? "," : "", names[i]);
    fclose(out);
    return text_need(text);
}

static json_object *check(const struct topology_site *site)
{
    struct topology_peer *peers = text_need(calloc((size_t)site->node_count + 1, sizeof(*peers)));
    const char **leaves = topology_site_leaves(site);
    for (int i = 0; i < site->node_count; i++)
        peers[i] = (struct topology_peer){
            .node = site->nodes[i].name,
            .kind = kind_of(&site->nodes[i]),
            .partitions = join(site->nodes[i].partitions),
            .leaf = leaves[i],
        };
    json_object *found = topology_check(&site->map, peers, site->node_count, slurm_client_compress);
    for (int i = 0; i < site->node_count; i++) {
        free((char *)peers[i].kind);
        free((char *)peers[i].partitions);
    }
    free(peers);
    free(leaves);
    return found;
}

static enum exit_status check_nodes(const struct arguments *arguments)
{
    struct topology_site site;
    struct error err;
    deadline_start();
    if (topology_site_load(&site, arguments->file, false, &err) < 0)
        return failed(&err);
    json_object *found = check(&site);
    bool odd = topology_check_odd(found);
    if (arguments->json) {
        print_json(found, false);
    } else {
        print_text(topology_check_text(found));
        json_object_put(found);
    }
    topology_site_clear(&site);
    return odd ? STATUS_FAILED : STATUS_OK;
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum exit_status run(const struct arguments *arguments)
{
    switch (arguments->action) {
    case TOPOLOGY_COLLECT:
        return topology_collect(arguments);
    case TOPOLOGY_SHOW:
        return show(arguments);
    case TOPOLOGY_CHECK:
        return check_nodes(arguments);
    case TOPOLOGY_DESCRIBE:
        return describe(arguments);
    }
    return STATUS_USAGE;
}

const struct command topology_command = {
    .name = "topology",
    .summary = "collect the hardware of the nodes, show it, and find odd nodes",
    .help = "Usage: selastic topology collect [--nodes=LIST] [--partition=NAME] [--timeout=S]\n"
            "                                 [--output=FILE] [--json]\n"
            "       selastic topology show [--file=FILE] [--json]\n"
            "       selastic topology check [--file=FILE] [--json]\n"
            "       selastic topology describe [--pieces] [--json]\n"
            "\n"
            "collect   find out the hardware of the nodes by a short job, and write it to a file;\n"
            "          Slurm's select plugin and the other topology commands read this file\n"
            "show      print the shapes, the nodes of each shape, and the tree of switches\n"
            "check     find nodes that differ from nodes that they should equal; the exit status\n"
            "          is 1 if there are any\n"
            "describe  print the hardware of this node\n"
            "\n"
            "      --nodes=LIST      ask only these nodes; the entries of other nodes stay\n"
            "      --partition=NAME  run the job in this partition, and ask only its nodes\n"
            "      --timeout=S       wait S seconds for answers (default 60)\n"
            "      --output=FILE     write this file (default: shapes of elastic.conf)\n"
            "      --file=FILE       read this file (default: shapes of elastic.conf)\n"
            "      --pieces          print short lines, in the form that collect reads\n"
            "      --json            print JSON; describe does so in any case\n"
            "  -h, --help            print this text\n",
    .run = run,
};
