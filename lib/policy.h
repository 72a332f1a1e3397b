/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The options of an elastic job: what can be said, how it is read, and how layers are merged.
 *
 * The table of options is lib/policy_options.h. The option on the command line, the environment
 * variable, the key of the policy file, the key of elastic.conf, the help texts and the defaults
 * all come from it. */
#ifndef ELASTIC_POLICY_H
#define ELASTIC_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include <json-c/json.h>

#include "lib/error.h"
#include "lib/recovery.h"
#include "lib/sizes.h"

/* An entry of scale_config travels as one environment variable, and exec allows 128 KiB for it. */
#define POLICY_SCALE_TEXT_MAX 65536 /* bytes */

#define POLICY_UNSET (-1)
/* Of fallback, beside seconds: the word at index i is -2 - i. */
#define POLICY_FALLBACK_NEVER    (-2)
#define POLICY_FALLBACK_DEADLINE (-3)
#define POLICY_POOLS_MAX         16
#define POLICY_POOL_NAME_MAX     63
#define POLICY_FILE_MAX          (1024 * 1024) /* bytes of a policy file */
#define POLICY_TEXT_MAX          250           /* bytes of a text */
#define POLICY_ID_MAX            64            /* … of an id */
#define POLICY_SECONDS_MAX       31536000      /* a year: largest time that an option takes */
#define POLICY_SCALE_MAX         10000000      /* largest world size in scale_config */
#define POLICY_OPTIONS_MAX       32            /* rows of the table, with the one that ends it */
#define POLICY_WORDS_MAX         8             /* words of one option */

enum policy_grow {
    /* To MAX, whenever there are nodes. */
    POLICY_GROW_AUTO,
    /* When a program or a user asks for it. */
    POLICY_GROW_ASK,
};

/* When Slurm puts the base job back into its queue. The job then continues from its checkpoint. */
enum policy_requeue {
    /* Before the time limit ends the job. */
    POLICY_REQUEUE_LIMIT = 1,
    /* When failures would end the job, or when too few nodes are left. */
    POLICY_REQUEUE_FAULT = 2,
};

/* May an extension power nodes up? */
enum policy_wake {
    POLICY_WAKE_NO,
    /* Where the pool allows it. */
    POLICY_WAKE_YES,
};

/* What follows when a worker is slower than the others. */
enum policy_straggler {
    POLICY_STRAGGLER_OFF,
    /* It is told. */
    POLICY_STRAGGLER_REPORT,
    /* … and its node is given back for another one. */
    POLICY_STRAGGLER_REPLACE,
};

/* What follows when a node is taken away. */
enum policy_reclaim {
    /* Its successor is asked for at once. */
    POLICY_RECLAIM_REPLACE,
    /* The job waits for grow_delay, as after any other loss. */
    POLICY_RECLAIM_SHRINK,
};

/* How the value of an option is read and kept. */
enum policy_kind {
    POLICY_KIND_SIZES,    /* struct sizes: MIN:MAX[:STEP] or N,N,N */
    POLICY_KIND_NUMBER,   /* int: a whole number from min to max */
    POLICY_KIND_RESTARTS, /* struct budget: N or N/SECONDS */
    POLICY_KIND_SIGNAL,   /* int: a signal by its name or number, or "none" */
    POLICY_KIND_WORD,     /* int: the index of one of words */
    POLICY_KIND_WORDS,    /* int: bit 1 << i for words[i]; text with commas, or "none" */
    POLICY_KIND_POOLS,    /* names with commas; in JSON also a list */
    /* int: a whole number from min to max, or -2 - i for words[i] */
    POLICY_KIND_NUMBER_OR_WORD,
    POLICY_KIND_AMOUNT,       /* double: an amount of money */
    POLICY_KIND_TIME,         /* double: a moment, in seconds since the epoch (lib/when.h) */
    POLICY_KIND_TEXT,         /* char[POLICY_TEXT_MAX + 1]: a text of that form */
    POLICY_KIND_SCALE_CONFIG, /* JSON object: world size in decimal → object */
};

/* What a text may be. */
enum policy_form {
    POLICY_FORM_LINE, /* anything in one line */
    POLICY_FORM_URL,  /* http:// or https://, without user and password; "none" */
    POLICY_FORM_ID,   /* letters, digits, "-" and "_" */
};

/* A row of the table. */
struct policy_option {
    /* Name on sbatch, salloc, srun and elasticrun, without "--". NULL: only in a policy file. */
    const char *option;
    /* Environment variable, in which the value also travels from sbatch to the job. */
    const char *environment;
    /* Key of the policy file. */
    const char *json;
    /* Key of elastic.conf that sets the default of the site. NULL: the site cannot set one. */
    const char *conf;
    /* What `selastic show` calls the value. NULL: selastic shows it elsewhere. */
    const char *label;
    /* What help texts write for the value: --OPTION=ARGUMENT. */
    const char *argument;
    /* One sentence for help texts. */
    const char *help;
    enum policy_kind kind;
    /* Of a number, for messages: "seconds". NULL: none. */
    const char *unit;
    /* The unit behind a value in `selastic show`: "s". NULL: none. */
    const char *symbol;
    /* What holds when nobody says anything. POLICY_UNSET: it stays open. Sizes, pools, amounts,
     * moments and scale_config have no default. */
    int builtin;
    /* Limits of a number. */
    int min, max;
    /* Words of POLICY_KIND_WORD, _WORDS and _NUMBER_OR_WORD, up to the first NULL. */
    const char *words[POLICY_WORDS_MAX];
    /* Allowed values where min and max do not tell them. Messages put "write " before it. */
    const char *allowed;
    /* Of a text. */
    enum policy_form form;
    /* The field in struct policy. */
    size_t offset;
};

/* The last entry has no json. */
extern const struct policy_option policy_options[];

/* One layer of values, or the merged ones. An int is POLICY_UNSET where the layer says nothing. */
struct policy {
#define POLICY_INT(field, ...) int field;
#define POLICY_OTHER(field, ...)
#include "lib/policy_options.h"
    /* Not set: sizes.min is 0. */
    struct sizes sizes;
    /* Of workers, after failures. Not set: restarts.restarts is POLICY_UNSET. */
    struct budget restarts;
    /* Not set: pool_count is 0. */
    char pools[POLICY_POOLS_MAX][POLICY_POOL_NAME_MAX + 1];
    int pool_count;
    /* Seconds since the epoch; the job should be done then. Not set: 0. */
    double deadline;
    /* Most money for the job, and for one node and hour. Not set: 0. */
    double budget;
    double max_price;
    /* Not set: "". */
    char mlflow_tracking_uri[POLICY_TEXT_MAX + 1];
    char mlflow_experiment_name[POLICY_TEXT_MAX + 1];
    char mlflow_run_name[POLICY_TEXT_MAX + 1];
    char mlflow_run_id[POLICY_TEXT_MAX + 1];
    /* Owned. Not set: NULL. */
    json_object *scale_config;
    /* No option: the moment from which moments such as now+60hours count. 0: not known, and those
     * are refused. */
    double now;
};

void policy_init(struct policy *policy);
void policy_clear(struct policy *policy); /* keeps now */

/* The row of an option, by its name with or without "elastic-" before it ("elastic-grace",
 * "grace"; the sizes are "elastic"). NULL if there is none. */
const struct policy_option *policy_find(const char *name);

/* Set the value of an option from a text. The message says what is wrong with the value and what is
 * allowed; the caller adds where the value came from. Returns -1 with policy unchanged. Not for
 * scale_config. */
int policy_option_set(struct policy *policy, const struct policy_option *option, const char *value,
                      struct error *err);

bool policy_option_is_set(const struct policy *policy, const struct policy_option *option);

/* The value as a user would write it, which policy_option_set reads back; JSON for scale_config.
 * The caller frees it. NULL: not set, or out of memory. */
char *policy_option_text(const struct policy *policy, const struct policy_option *option);

/* The same of the built-in default. NULL: the option has none, or out of memory. */
char *policy_option_default(const struct policy_option *option);

/* The variable in which Slurm passes on an option of spank_elastic.so ("elastic-grace"). Returns
 * buf. */
char *policy_option_variable(const char *option, char *buf, size_t size);

/* As policy_option_set, by the name for policy_find, for a value of the command line: the message
 * begins with --OPTION=VALUE. */
int policy_set(struct policy *policy, const char *name, const char *value, struct error *err);

/* Whether name can be a pool's: 1 to 63 letters, digits and _ - . +, a letter, digit or _ first. */
int policy_check_pool_name(const char *name, struct error *err);

/* Parse the text of a policy file (a JSON object, elasticrun(1)) over policy: what the file says
 * replaces what was set. Unknown keys, wrong types, trailing bytes and keys given twice are errors.
 * The message names key or line, but not the file. Returns -1 with policy unchanged. */
int policy_parse_json(struct policy *policy, const char *text, size_t len, struct error *err);

/* The policy as a new JSON object with the keys of a policy file, without what is not set. The
 * caller frees it with json_object_put. */
json_object *policy_to_json(const struct policy *policy);

/* A job that begins now cannot have a deadline before that. Returns -1 with the message. */
int policy_check_deadline(const struct policy *policy, double now, struct error *err);

/* Fit the sizes to --elastic-replica, if it is more than one node. Once all layers are merged.
 * Returns -1 with the message. */
int policy_keep_together(struct policy *policy, struct error *err);

/* Fill each value that is not set in policy from lower (copying). */
void policy_merge(struct policy *policy, const struct policy *lower);

/* Fill what is still not set from the defaults of the table. */
void policy_defaults(struct policy *policy);

#endif
