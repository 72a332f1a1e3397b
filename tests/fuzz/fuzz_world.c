/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the lists of nodes and workers in a message about a world, a line each. What is
 * accepted is within the bounds; folded and unfolded again it is the same. */
#include "tests/fuzz/fuzz.h"

#include "lib/sizes.h"
#include "lib/world.h"

static void check_again(const struct world *world, bool suffixes)
{
    char *names = world_fold_names(world, suffixes), *slots = world_fold_slots(world);
    struct world *again;
    struct error err = {""};

    MUST(names != NULL && slots != NULL);
    again = world_unfold(1, names, slots, &err);
    MUST(again != NULL && again->node_count == world->node_count);
    for (int i = 0; i < world->node_count; i++)
        MUST(strcmp(world->nodes[i].name, again->nodes[i].name) == 0 &&
             world->nodes[i].slots == again->nodes[i].slots);
    world_destroy(again);
    free(names);
    free(slots);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *lines[3];
    struct error err = {""};
    struct world *world;

    if (fuzz_lines(text, lines, 2) == 2) {
        world = world_unfold(1, lines[0], lines[1], &err);
        if (world == NULL) {
            fuzz_check_refusal(&err);
        } else {
            MUST(world->node_count >= 1 && world->node_count <= SIZES_NODES_MAX);
            for (int i = 0; i < world->node_count; i++)
                MUST(world_name_ok(world->nodes[i].name) && world->nodes[i].slots >= 1 &&
                     world->nodes[i].slots <= WORLD_SLOTS_MAX);
            check_again(world, true);
            check_again(world, false);
        }
        world_destroy(world);
    }
    free(text);
    return 0;
}
