/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Is a site the same on all its nodes? (doctor_nodes.h) */
#include "lib/doctor_nodes.h"

#include <stdio.h>
#include <string.h>

#include "lib/doctor_rules.h"
#include "lib/text.h"

#define SKEW_MOST 5 /* seconds */

struct comparison {
    const struct doctor_node *here;
    double began, ended;
};

typedef bool differs(const struct doctor_node *node, const struct comparison *comparison);

static bool is_silent(const struct doctor_node *node, const struct comparison *comparison)
{
    (void)comparison;
    return !node->answered;
}

static bool other_release(const struct doctor_node *node, const struct comparison *comparison)
{
    return node->answered && strcmp(node->release, comparison->here->release) != 0;
}

static bool no_conf(const struct doctor_node *node, const struct comparison *comparison)
{
    return node->answered && node->conf[0] == '\0' && comparison->here->conf[0] != '\0';
}

static bool other_conf(const struct doctor_node *node, const struct comparison *comparison)
{
    return node->answered && node->conf[0] != '\0' &&
           strcmp(node->conf, comparison->here->conf) != 0;
}

static bool other_time(const struct doctor_node *node, const struct comparison *comparison)
{
    return node->answered && (node->time < comparison->began - SKEW_MOST ||
                              node->time > comparison->ended + SKEW_MOST);
}

static bool sees_no_state(const struct doctor_node *node, const struct comparison *comparison)
{
    (void)comparison;
    return node->answered && !node->sees_state;
}

static const struct rule {
    differs *differs;
    bool about_state;
    const char *id, *what, *why, *remedy;
} rules[] = {
    {is_silent, false, "nodes-silent", "no answer of",
     "elastic jobs cannot run there, or the node is in use",
     "selastic doctor --here on the node, as the same user"},
    {other_release, false, "nodes-release", "another release of slurm-elastic is on",
     "extensions of an older release may not be let in", "install the same release on all hosts"},
    {no_conf, false, "nodes-no-conf", "elastic.conf is missing on",
     "their ports, directories and pools are the built-in ones: members do not find the leader",
     "copy elastic.conf beside slurm.conf, on all hosts"},
    {other_conf, false, "nodes-conf", "elastic.conf differs on",
     "leader and members may look for each other at different ports",
     "copy elastic.conf beside slurm.conf, on all hosts"},
    {other_time, false, "nodes-clock", "the clock differs on",
     "munge refuses credentials of another time", "run chronyd or ntpd on all hosts"},
    {sees_no_state, true, "nodes-state", "the state directory is not shared with",
     "no other node can lead, and checkpoints are not found after a requeue",
     "in elastic.conf: state_dir = DIRECTORY/%c-%j on a shared file system"},
};

static const struct doctor_node *find(const struct doctor_node *nodes, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(nodes[i].name, name) == 0)
            return &nodes[i];
    return NULL;
}

/* A peer that has not listened, or at other ports, is no proof. */
static bool cannot_connect(const struct doctor_node *node, const struct doctor_node *nodes,
                           int count)
{
    const struct doctor_node *peer;

    if (!node->answered || node->peer == NULL || node->unreached == NULL)
        return false;
    peer = find(nodes, count, node->peer);
    return peer != NULL && peer->answered && peer->listens && strcmp(peer->conf, node->conf) == 0;
}

static void compare_ports(const struct doctor_node *nodes, int count, struct doctor *doctor)
{
    char pairs[384] = "";
    struct doctor_finding *f;

    for (int i = 0; i < count; i++)
        if (cannot_connect(&nodes[i], nodes, count))
            text_append(pairs, sizeof(pairs), "%s%s to %s, port %d (%s)",
                        pairs[0] != '\0' ? "; " : "", nodes[i].name, nodes[i].peer, nodes[i].port,
                        nodes[i].unreached);
    if (pairs[0] == '\0')
        return;
    f = doctor_add(doctor, DOCTOR_MISTAKE, "nodes-ports",
                   "members do not find the leader: extensions cannot join");
    doctor_what(f, "nodes cannot connect to each other: %s", pairs);
    doctor_remedy(f, "in the nodes' firewalls: let all nodes connect to the ports of port_range in "
                     "elastic.conf");
}

void doctor_compare(const struct doctor_node *here, const struct doctor_node *nodes, int count,
                    double began, double ended, const char *state_dir, struct doctor *doctor)
{
    const struct comparison comparison = {here, began, ended};
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
        char names[384] = "";
        if (rules[i].about_state && state_dir == NULL)
            continue;
        for (int k = 0; k < count; k++)
            if (rules[i].differs(&nodes[k], &comparison))
                text_append(names, sizeof(names), "%s%s", names[0] != '\0' ? "," : "",
                            nodes[k].name);
        if (names[0] == '\0')
            continue;
        struct doctor_finding *f = doctor_add(doctor, DOCTOR_MISTAKE, rules[i].id, rules[i].why);
        doctor_what(f, "%s %s%s%s%s", rules[i].what, names, rules[i].about_state ? " (" : "",
                    rules[i].about_state ? state_dir : "", rules[i].about_state ? ")" : "");
        doctor_remedy(f, "%s", rules[i].remedy);
    }
    compare_ports(nodes, count, doctor);
}
