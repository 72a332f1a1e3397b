/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which of Slurm's jobs are elastic, and what `selastic list` says of each. Pure. */
#include "cmd/jobs.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "lib/admission.h"
#include "lib/json_get.h"
#include "lib/sizes.h"

#define ROLES_WORD "roles" /* in place of sizes, and in the mark of a job with roles */
#define GROUP_WORD " group="

bool jobs_extension_of(const char *comment, uint32_t *base_id, uint32_t *restarts)
{
    int end = 0;
    if (comment == NULL || strncmp(comment, ADMISSION_MARKER, strlen(ADMISSION_MARKER)) != 0)
        return false;
    comment += strlen(ADMISSION_MARKER);
    if (!isdigit((unsigned char)*comment))
        return false;
    return sscanf(comment, "%9u.%9u%n", base_id, restarts, &end) == 2 && comment[end] == '\0';
}

static bool marked(const struct job_info *info)
{
    return info->admin_comment != NULL &&
           strncmp(info->admin_comment, ADMISSION_BASE_MARK, strlen(ADMISSION_BASE_MARK)) == 0;
}

static bool alive(const struct job_info *info)
{
    return info->state == JOB_KIND_PENDING || info->state == JOB_KIND_BOOTING ||
           info->state == JOB_KIND_STARTING || info->state == JOB_KIND_RUNNING ||
           info->state == JOB_KIND_SUSPENDED;
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = ((const struct base_job *)a)->info->id, y = ((const struct base_job *)b)->info->id;
    return x < y ? -1 : x > y;
}

/* Sure bases in the order of their ids, then the others, newest first. */
static int by_rank(const void *a, const void *b)
{
    bool x = ((const struct base_job *)a)->sure, y = ((const struct base_job *)b)->sure;
    if (x != y)
        return x ? -1 : 1;
    return x ? by_id(a, b) : by_id(b, a);
}

static struct base_job *find(struct base_job *bases, int count, uint32_t id, uint32_t restarts)
{
    struct job_info wanted = {.id = id};
    struct base_job key = {.info = &wanted};
    struct base_job *base = count ? bsearch(&key, bases, (size_t)count, sizeof(*bases), by_id)
                                  : NULL;
    return base != NULL && base->info->restarts == restarts ? base : NULL;
}

static void count_extension(struct base_job *base, const struct job_info *extension)
{
    base->sure = true;
    if (extension->state == JOB_KIND_PENDING)
        base->pending++;
    else {
        base->running++;
        base->extension_nodes += extension->num_nodes;
    }
}

struct base_job *jobs_find_bases(const struct job_info *list, int count, int *found)
{
    struct base_job *bases = text_need(calloc((size_t)count + 1, sizeof(*bases)));
    uint32_t id, restarts;
    int used = 0;
    for (int i = 0; i < count; i++)
        if (alive(&list[i]) && !jobs_extension_of(list[i].comment, &id, &restarts))
            bases[used++] = (struct base_job){.info = &list[i], .sure = marked(&list[i])};
    qsort(bases, (size_t)used, sizeof(*bases), by_id);
    for (int i = 0; i < count; i++) {
        struct base_job *base = NULL;
        if (alive(&list[i]) && jobs_extension_of(list[i].comment, &id, &restarts))
            base = find(bases, used, id, restarts);
        /* Anybody can write such a comment: only the user's own extensions count. */
        if (base != NULL && base->info->uid == list[i].uid)
            count_extension(base, &list[i]);
    }
    *found = 0;
    for (int i = 0; i < used; i++)
        if (bases[i].sure || bases[i].info->state == JOB_KIND_RUNNING)
            bases[(*found)++] = bases[i];
    qsort(bases, (size_t)*found, sizeof(*bases), by_rank);
    return bases;
}

/* Add the sizes that admission has noted. */
static bool noted_sizes(const struct job_info *info, struct sizes *sizes)
{
    if (!marked(info))
        return false;
    const char *value = info->admin_comment + strlen(ADMISSION_BASE_MARK);
    char *text = text_need(strndup(value, strcspn(value, " ;\n")));
    bool valid = sizes_parse(text, sizes, NULL) == 0;
    free(text);
    return valid;
}

/* Was it submitted with --elastic-roles? */
static bool has_roles(const struct job_info *info)
{
    size_t len = strlen(ADMISSION_BASE_MARK ROLES_WORD);
    return marked(info) && strncmp(info->admin_comment, ADMISSION_BASE_MARK ROLES_WORD, len) == 0 &&
           strchr(" ;\n", info->admin_comment[len]) != NULL;
}

/* The group that its job file names: as its leader says, else as admission has noted. */
static void add_group(json_object *entry, const struct job_info *info, json_object *state)
{
    const char *said = state != NULL ? json_get_string(state, "group") : NULL;
    const char *noted = has_roles(info) ? strstr(info->admin_comment, GROUP_WORD) : NULL;
    char *text = NULL;

    if (said == NULL && noted != NULL) {
        noted += strlen(GROUP_WORD);
        said = text = text_need(strndup(noted, strcspn(noted, " ;\n")));
    }
    json_object_object_add(entry, "group", json_from_string(said));
    free(text);
}

static void add_number(json_object *entry, const char *key, int64_t number)
{
    json_object_object_add(entry, key, number < 0 ? NULL : json_object_new_int64(number));
}

/* Add the values that only the leader knows. */
static void add_state(json_object *entry, json_object *state)
{
    const char *why = json_get_string(state, "why_not_more");
    json_object_object_add(entry, "state", json_from_string(json_get_string(state, "phase")));
    add_number(entry, "size", field_int(state, "size", -1));
    json_object_object_add(entry, "sizes", json_from_string(json_get_string(state, "sizes")));
    add_number(entry, "min", field_int(state, "min", -1));
    add_number(entry, "max", field_int(state, "max", -1));
    add_number(entry, "generation", field_int(state, "generation", -1));
    add_number(entry, "steps", field_int(state, "steps", -1));
    double cost = field_double(json_object_object_get(state, "cost"), "so_far");
    json_object_object_add(entry, "cost", isnan(cost) ? NULL : shape_double(cost));
    json_object_object_add(
        entry, "why",
        json_from_string(why != NULL && *why ? why : json_get_string(state, "why_size")));
}

/* Add the values that Slurm knows. */
static void add_info(json_object *entry, const struct base_job *job, const char *why)
{
    const struct job_info *info = job->info;
    struct sizes sizes = {0};
    char text[SIZES_TEXT_MAX];
    bool noted = noted_sizes(info, &sizes);
    bool waits = info->state == JOB_KIND_PENDING;
    json_object_object_add(entry, "state", json_from_string(info->state_name));
    add_number(entry, "size", waits ? 0 : info->num_nodes + job->extension_nodes);
    json_object_object_add(
        entry, "sizes", json_from_string(noted ? sizes_format(&sizes, text, sizeof(text)) : NULL));
    add_number(entry, "min", noted ? sizes.min : -1);
    add_number(entry, "max", noted ? sizes.max : -1);
    add_number(entry, "generation", -1);
    add_number(entry, "steps", -1);
    json_object_object_add(entry, "cost", NULL);
    json_object_object_add(entry, "why",
                           json_from_string(why != NULL              ? why
                                            : waits && *info->reason ? info->reason
                                                                     : NULL));
}

json_object *jobs_entry(const struct base_job *job, const char *user, json_object *state,
                        const char *why)
{
    json_object *entry = text_need(json_object_new_object());
    add_number(entry, "job", job->info->id);
    json_object_object_add(entry, "name", json_from_string(job->info->name));
    json_object_object_add(entry, "user", json_from_string(user));
    if (state != NULL)
        add_state(entry, state);
    else
        add_info(entry, job, why);
    if (has_roles(job->info)) {
        json_object_object_add(entry, "sizes", json_from_string(ROLES_WORD));
        json_object_object_add(entry, "min", NULL);
        json_object_object_add(entry, "max", NULL);
    }
    add_group(entry, job->info, state);
    add_number(entry, "pending", job->pending);
    add_number(entry, "running", job->running);
    return entry;
}
