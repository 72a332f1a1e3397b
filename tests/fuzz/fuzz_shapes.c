/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the shapes file. What is accepted has a name for each shape, and knows no node
 * without one. */
#include "tests/fuzz/fuzz.h"

#include "lib/shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct error err = {""};
    struct shapes *shapes = shapes_parse(text, size, &err);

    if (shapes != NULL) {
        MUST(shapes_count(shapes) <= SHAPES_MAX && shapes_nodes(shapes) >= 0);
        for (int i = 0; i < shapes_count(shapes); i++)
            MUST(shapes_name(shapes, i) != NULL);
        MUST(shapes_of(shapes, "") == -1 && shapes_of(shapes, text) < shapes_count(shapes));
        MUST(shapes_of(shapes, "n1") == -1 || shapes_nodes(shapes) > 0);
    } else {
        fuzz_check_refusal(&err);
    }
    shapes_destroy(shapes);
    free(text);
    return 0;
}
