/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the value of --elastic. What is accepted has the order that it promises, and can
 * be written and read again. */
#include "tests/fuzz/fuzz.h"

#include "lib/sizes.h"

static void check_order(const struct sizes *sizes)
{
    int size = sizes->min;

    MUST(sizes->min >= 1 && sizes->min <= sizes->max && sizes->max <= SIZES_NODES_MAX);
    MUST(sizes_allowed(sizes, sizes->min) && sizes_allowed(sizes, sizes->max));
    MUST(sizes_floor(sizes, sizes->min - 1) == 0 && sizes_next(sizes, sizes->max) == 0);
    MUST(sizes_floor(sizes, SIZES_NODES_MAX) == sizes->max);
    for (int i = 0; i < 100 && size < sizes->max; i++) {
        int next = sizes_next(sizes, size);

        MUST(next > size && next <= sizes->max && sizes_allowed(sizes, next));
        MUST(sizes_floor(sizes, next) == next && sizes_floor(sizes, next - 1) == size);
        size = next;
    }
}

static void check_text(const struct sizes *sizes)
{
    char text[SIZES_TEXT_MAX], again[SIZES_TEXT_MAX];
    struct sizes read = {0};

    sizes_format(sizes, text, sizeof(text));
    MUST(sizes_parse(text, &read, NULL) == 0);
    MUST(strcmp(text, sizes_format(&read, again, sizeof(again))) == 0);
    MUST(read.min == sizes->min && read.max == sizes->max && read.count == sizes->count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct sizes sizes = {0};
    struct error err = {""};

    if (sizes_parse(text, &sizes, &err) == 0) {
        check_order(&sizes);
        check_text(&sizes);
    } else {
        fuzz_check_refusal(&err);
        MUST(sizes.min == 0 && sizes.max == 0);
    }
    free(text);
    return 0;
}
