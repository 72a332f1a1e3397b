/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fuzz target: a policy file. What is accepted means the same after it was written and read
 * again. */
#include "tests/fuzz/fuzz.h"

#include "lib/conf.h"
#include "tests/fuzz/write_policy.h"

static void check_again(const struct policy *policy)
{
    char *text = write_policy(policy), *again;
    struct policy read;
    struct error err = {""};

    policy_init(&read);
    if (policy_parse_json(&read, text, strlen(text), &err) != 0)
        fprintf(stderr, "%s: %s\n", text, err.text);
    else
        err.text[0] = '\0';
    MUST(err.text[0] == '\0');
    again = write_policy(&read);
    MUST(strcmp(text, again) == 0);
    free(text);
    free(again);
    policy_clear(&read);
}

static void check_use(const struct policy *policy)
{
    struct conf *conf = conf_create();
    struct policy merged;
    struct error err = {""};

    MUST(conf != NULL);
    policy_init(&merged);
    policy_merge(&merged, policy);
    policy_defaults(&merged);
    MUST(merged.grace >= 0 && merged.grow_delay >= 0 && merged.signal >= 0 && merged.signal <= 64);
    if (conf_check_policy(conf, &merged, &err) != 0)
        fuzz_check_refusal(&err);
    policy_clear(&merged);
    conf_destroy(conf);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    struct policy policy;
    struct error err = {""};

    policy_init(&policy);
    if (policy_parse_json(&policy, text, size, &err) == 0) {
        check_again(&policy);
        check_use(&policy);
    } else {
        fuzz_check_refusal(&err);
        MUST(policy.sizes.min == 0 && policy.grace == POLICY_UNSET && policy.scale_config == NULL);
    }
    policy_clear(&policy);
    free(text);
    return 0;
}
