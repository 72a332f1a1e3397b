/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: strict JSON, and reading members of what was accepted. */
#include "tests/fuzz/fuzz.h"

#include "lib/json_get.h"
#include "lib/json_text.h"

static void check_members(json_object *root)
{
    json_object_object_foreach (root, key, value) {
        char **strings = json_get_strings(root, key, 100);
        int64_t number = -1;

        (void)value;
        MUST(!json_get_int(root, key, 0, 100, &number) || (number >= 0 && number <= 100));
        json_get_double(root, key, 0);
        json_get_bool(root, key, false);
        if (json_get_string(root, key) != NULL)
            MUST(strings == NULL);
        if (strings != NULL)
            json_object_put(json_from_strings(strings));
        strings_free(strings);
    }
}

/* What we write of it is as strict as what we have read. */
static void check_again(json_object *root)
{
    const char *text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN);
    struct error err = {""};
    json_object *again = json_text_parse(text, strlen(text), &err);

    if (again == NULL)
        fprintf(stderr, "%s: %s\n", text, err.text);
    MUST(again != NULL && json_object_equal(root, again));
    json_object_put(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct error err = {""};
    json_object *root = json_text_parse(text, size, &err);

    if (root != NULL) {
        MUST(json_object_is_type(root, json_type_object));
        check_members(root);
        check_again(root);
    } else {
        fuzz_check_refusal(&err);
    }
    json_object_put(root);
    free(text);
    return 0;
}
