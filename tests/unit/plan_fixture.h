/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Situations for the tests of lib/plan. */
#ifndef ELASTIC_TESTS_PLAN_FIXTURE_H
#define ELASTIC_TESTS_PLAN_FIXTURE_H

#include "lib/plan.h"

#define SCENE_NODES_MAX      64
#define SCENE_EXTENSIONS_MAX 32

/* A situation under construction. */
struct scene {
    struct sizes sizes;
    struct plan_member members[SCENE_NODES_MAX];
    struct plan_extension extensions[SCENE_EXTENSIONS_MAX];
    struct plan_pool pool; /* "elastic", with room for any number of nodes */
    struct plan_input in;
    int next_id;
};

void scene_init(struct scene *s, const char *sizes);
void scene_add_members(struct scene *s, uint32_t job, int count, bool in_world);
struct plan_extension *scene_add_extension(struct scene *s, uint32_t job, int nodes,
                                           enum plan_extension_state state, double age);
struct plan_output scene_decide(struct scene *s);
/* Each request of nodes is made and stays pending, until none follows: they are of these numbers of
 * nodes, and then 0. Else the test has failed. */
void scene_request_all(struct scene *s, const char *what, const int *expected);
void scene_remove_member(struct scene *s, int i);
void scene_remove_extension(struct scene *s, int i);
void scene_drop_extension(struct scene *s, uint32_t job);
/* The next world begins. shares: in the end all in it have the state. Returns how many have
 * brought it. */
int scene_enter_world(struct scene *s, const struct plan_output *out, bool shares);
/* Adds the members of one job as a word says. H: in the world, with the state; F: in it, which
 * is just being formed, without; n: newcomer; u: cannot be used now; g: as H, but going. Returns
 * how many of the base count as lost. */
int scene_add_word(struct scene *s, uint32_t job, const char *word);

#endif
