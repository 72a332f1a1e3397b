/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A policy as text, for the targets that compare policies. */
#ifndef ELASTIC_FUZZ_WRITE_POLICY_H
#define ELASTIC_FUZZ_WRITE_POLICY_H

#include "lib/policy.h"
#include "tests/fuzz/fuzz.h"

/* Caller frees. */
static inline char *write_policy(const struct policy *policy)
{
    json_object *json = policy_to_json(policy);
    char *text;

    MUST(json != NULL);
    text = strdup(json_object_to_json_string_ext(json, JSON_C_TO_STRING_PLAIN));
    MUST(text != NULL);
    json_object_put(json);
    return text;
}

#endif
