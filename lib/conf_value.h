/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The value of a key of elastic.conf, from its text into the field of its key. Internal to
 * lib/conf.c. */
#ifndef ELASTIC_CONF_VALUE_H
#define ELASTIC_CONF_VALUE_H

#include <stddef.h>

#include "lib/conf.h"
#include "lib/error.h"
#include "lib/policy.h"

#define CONF_BLANKS " \t"

enum conf_kind {
    CONF_KIND_NUMBER,  /* int, min..max */
    CONF_KIND_SECONDS, /* the same, and messages say "of seconds" */
    CONF_KIND_MINUTES,
    CONF_KIND_POLICY,     /* a default of a job option, in struct policy */
    CONF_KIND_PORTS,      /* port_first and the int behind it */
    CONF_KIND_PATH,       /* char *, absolute */
    CONF_KIND_PATTERN,    /* char *, absolute after expansion */
    CONF_KIND_WORD,       /* char *, one name */
    CONF_KIND_EXPRESSION, /* char *, no blanks */
    CONF_KIND_URL,        /* char *, http or https */
    CONF_KIND_TEXT,       /* char * */
    CONF_KIND_YES_NO,     /* bool */
    CONF_KIND_CHOICE,     /* an enum: the index of one of words */
    CONF_KIND_AMOUNT,     /* double */
    CONF_KIND_SPAN,       /* int and the int behind it, seconds: FIRST-MOST */
    CONF_KIND_RECLAIM,    /* struct conf_reclaim: a cloud, a program or an address */
};

struct conf_key {
    const char *name;
    enum conf_kind kind;
    /* Of the field in struct conf or struct pool. */
    size_t offset;
    int min, max;
    /* What holds without the key, as it would be written. NULL: nothing. */
    const char *builtin;
    /* Of CONF_KIND_POLICY: the row of the table of job options. */
    const struct policy_option *option;
    /* Of CONF_KIND_CHOICE: NULL is behind the last one. */
    const char *const *words;
};

/* Set field, which is of the kind of the key, from value. The message says what is wrong with the
 * value and what is allowed; the caller adds the name of the key. Returns -1 with field unchanged.
 */
int conf_value_set(const struct conf_key *key, void *field, const char *value, struct error *err);

/* *text = a copy of value; what was there is freed. */
int conf_value_set_text(char **text, const char *value, struct error *err);

#endif
