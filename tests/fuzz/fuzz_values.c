/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: the value of each policy option, NAME=VALUE a line (grace=10), as command line,
 * environment and elastic.conf give them. A value that is refused changes nothing. */
#include "tests/fuzz/fuzz.h"

#include "tests/fuzz/write_policy.h"

#define LINES_MAX 32

/* What is written of a value means that value. */
static void check_text(const struct policy *policy, const struct policy_option *option)
{
    char *text = policy_option_text(policy, option), *again;
    struct policy read;

    policy_init(&read);
    MUST(policy_option_set(&read, option, text, NULL) == 0);
    again = policy_option_text(&read, option);
    MUST(strcmp(text, again) == 0);
    free(text);
    free(again);
    policy_clear(&read);
}

static void set(struct policy *policy, const char *name, const char *value)
{
    char *before = write_policy(policy), *after;
    struct error err = {""};

    if (policy_set(policy, name, value, &err) == 0) {
        MUST(policy_option_is_set(policy, policy_find(name)));
        check_text(policy, policy_find(name));
    } else {
        fuzz_check_refusal(&err);
        after = write_policy(policy);
        MUST(strcmp(before, after) == 0);
        free(after);
    }
    free(before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size), *lines[LINES_MAX + 1];
    int count = fuzz_lines(text, lines, LINES_MAX);
    struct policy policy;

    policy_init(&policy);
    policy.now = 1796108400; /* for now+60hours */
    for (int i = 0; i < count; i++) {
        char *value = strchr(lines[i], '=');

        if (value == NULL)
            continue;
        *value++ = '\0';
        set(&policy, lines[i], value);
    }
    policy_clear(&policy);
    free(text);
    return 0;
}
