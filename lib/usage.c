/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic jobs have used (usage.h). */
#include "lib/usage.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/admission.h"

#define POOL_WORD  " pool="
#define NUMBER_MAX (1ULL << 40)
#define NODES_MAX  1000000

enum field {
    JOB,
    USER,
    ACCOUNT,
    PARTITION,
    STATE,
    START,
    ELAPSED,
    NODES,
    TRES,
    ADMIN_COMMENT,
    COMMENT,
    NAME,
};

_Static_assert(NAME + 1 == USAGE_FIELD_COUNT, "fields of a record");

/* A piece of the text. */
struct piece {
    const char *at;
    size_t length;
};

struct record {
    struct piece fields[USAGE_FIELD_COUNT];
    uint32_t job, base; /* base: of an extension; 0: it is none */
    bool vouched;       /* by a plugin of ours, and not by the user */
    size_t order;       /* in the text: that of sacct, by time */
    double start, seconds, nodes, cpus, gpus;
};

struct marks {
    const struct usage_mark *list;
    size_t count;
};

struct records {
    struct record *list;
    size_t count, room;
};

/* ---- one record ------------------------------------------------------------------------------ */

static bool piece_begins(struct piece piece, const char *word)
{
    return piece.length >= strlen(word) && memcmp(piece.at, word, strlen(word)) == 0;
}

static bool piece_same(struct piece a, struct piece b)
{
    return a.length == b.length && memcmp(a.at, b.at, a.length) == 0;
}

static void piece_copy(struct piece piece, char *text, size_t size)
{
    snprintf(text, size, "%.*s", (int)(piece.length < size ? piece.length : size - 1), piece.at);
}

/* The number at its beginning; *end: behind it. False: there is none, or it is too large. */
static bool piece_number(struct piece piece, uint64_t *value, size_t *end)
{
    uint64_t sum = 0;
    size_t i = 0;

    for (; i < piece.length && piece.at[i] >= '0' && piece.at[i] <= '9'; i++) {
        sum = sum * 10 + (uint64_t)(piece.at[i] - '0');
        if (sum > NUMBER_MAX)
            return false;
    }
    *value = sum;
    *end = i;
    return i > 0;
}

static double whole(struct piece piece)
{
    uint64_t value;
    size_t end;

    return piece_number(piece, &value, &end) && end == piece.length ? (double)value : 0;
}

/* "billing=4,cpu=4,gres/gpu=2,mem=8G,node=2"; NAME has its "=". */
static double tres(struct piece list, const char *name)
{
    size_t at = 0;

    while (at < list.length) {
        struct piece one = {list.at + at, 0};
        const char *comma = memchr(one.at, ',', list.length - at);

        one.length = comma != NULL ? (size_t)(comma - one.at) : list.length - at;
        if (piece_begins(one, name))
            return whole((struct piece){one.at + strlen(name), one.length - strlen(name)});
        at += one.length + 1;
    }
    return 0;
}

/* The base that "elastic-extension-of=12.0" names, which may go on after a blank; 0: none. */
static uint32_t base_of(struct piece comment)
{
    uint64_t base, restarts;
    size_t end;

    if (!piece_begins(comment, ADMISSION_MARKER))
        return 0;
    comment.at += strlen(ADMISSION_MARKER);
    comment.length -= strlen(ADMISSION_MARKER);
    if (!piece_number(comment, &base, &end) || base > UINT32_MAX || end >= comment.length ||
        comment.at[end] != '.')
        return 0;
    comment.at += end + 1;
    comment.length -= end + 1;
    if (!piece_number(comment, &restarts, &end) || (end < comment.length && comment.at[end] != ' '))
        return 0;
    return (uint32_t)base;
}

/* An ended job has all its comments: they came with the end. */
static bool is_alive(struct piece state)
{
    static const char *const words[] = {"RUNNING", "PENDING", "SUSPENDED"};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (piece_same(state, (struct piece){words[i], strlen(words[i])}))
            return true;
    return false;
}

static int by_marked_job(const void *key, const void *entry)
{
    uint32_t job = *(const uint32_t *)key, other = ((const struct usage_mark *)entry)->job;

    return job < other ? -1 : job > other;
}

static void take_comment(struct piece *field, const char *text)
{
    if (field->length == 0 && text != NULL)
        *field = (struct piece){text, strlen(text)};
}

static void add_mark(struct record *record, const struct marks *marks)
{
    const struct usage_mark *mark = NULL;

    if (marks->count > 0 && is_alive(record->fields[STATE]))
        mark = bsearch(&record->job, marks->list, marks->count, sizeof(*mark), by_marked_job);
    if (mark == NULL)
        return;
    take_comment(&record->fields[ADMIN_COMMENT], mark->admin_comment);
    take_comment(&record->fields[COMMENT], mark->comment);
}

static int finish_record(struct record *record, const struct marks *marks, struct error *err)
{
    const struct piece *fields = record->fields;
    char text[64];
    uint64_t job;
    size_t end;

    piece_copy(fields[JOB], text, sizeof(text));
    if (!piece_number(fields[JOB], &job, &end) || job == 0 || job > UINT32_MAX)
        return error_set(err, "sacct says '%s' where the number of a job should be",
                         error_value(text).text);
    record->job = (uint32_t)job;
    add_mark(record, marks);
    record->base = base_of(fields[ADMIN_COMMENT]);
    record->vouched = record->base != 0;
    if (record->base == 0)
        record->base = base_of(fields[COMMENT]);
    record->start = whole(fields[START]);
    record->seconds = whole(fields[ELAPSED]);
    record->nodes = whole(fields[NODES]);
    record->cpus = tres(fields[TRES], "cpu=");
    record->gpus = tres(fields[TRES], "gres/gpu=");
    return 0;
}

/* ---- the text -------------------------------------------------------------------------------- */

static struct record *add_record(struct records *records)
{
    struct record *record;

    if (records->count == records->room) {
        size_t room = records->room * 2 + 64;
        struct record *longer = realloc(records->list, room * sizeof(*longer));

        if (longer == NULL)
            return NULL;
        records->list = longer;
        records->room = room;
    }
    record = &records->list[records->count];
    *record = (struct record){.order = records->count};
    records->count++;
    return record;
}

/* Behind the last field of a record there is a line end and no separator. So that field, which may
 * have line ends itself, ends at the last one before the next record. */
static struct piece last_field(const char *at, const char *next_separator, const char **next)
{
    const char *end = next_separator;

    if (end == NULL) {
        size_t length = strlen(at);

        *next = at + length;
        return (struct piece){at, length > 0 && at[length - 1] == '\n' ? length - 1 : length};
    }
    while (end > at && end[-1] != '\n')
        end--;
    *next = end;
    return (struct piece){at, end > at ? (size_t)(end - at) - 1 : 0};
}

static int read_records(const char *text, const char *separator, const struct marks *marks,
                        struct records *records, struct error *err)
{
    size_t width = strlen(separator);

    while (*text != '\0') {
        struct record *record = add_record(records);

        if (record == NULL)
            return error_set(err, "out of memory");
        for (int i = 0; i < USAGE_FIELD_COUNT; i++) {
            const char *end = strstr(text, separator);

            if (i == NAME) {
                record->fields[i] = last_field(text, end, &text);
                break;
            }
            if (end == NULL)
                return error_set(err, "a record of sacct has %d fields in place of %d", i + 1,
                                 USAGE_FIELD_COUNT);
            record->fields[i] = (struct piece){text, (size_t)(end - text)};
            text = end + width;
        }
        if (finish_record(record, marks, err) != 0)
            return -1;
    }
    return 0;
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static uint32_t key_of(const struct record *record)
{
    return record->base != 0 ? record->base : record->job;
}

/* The runs of a base before its extensions. */
static int by_key(const void *a, const void *b)
{
    const struct record *x = a, *y = b;

    if (key_of(x) != key_of(y))
        return key_of(x) < key_of(y) ? -1 : 1;
    if ((x->base == 0) != (y->base == 0))
        return x->base == 0 ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Of the records of one job, its runs first: one of its user. Without a run it is the first for
 * which a plugin vouches; else nobody knows better. */
static const struct record *owned(const struct record *records, size_t count)
{
    for (size_t i = 0; records->base != 0 && i < count; i++)
        if (records[i].vouched)
            return &records[i];
    return records;
}

/* A user may write any comment: it counts only for a job of his own. */
static bool counts(const struct record *record, const struct record *of_user)
{
    return record->base == 0 || record->vouched ||
           piece_same(record->fields[USER], of_user->fields[USER]);
}

static bool is_elastic(const struct record *records, size_t count)
{
    const struct record *of_user = owned(records, count);

    for (size_t i = 0; i < count; i++)
        if (piece_begins(records[i].fields[ADMIN_COMMENT], ADMISSION_BASE_MARK) ||
            (records[i].base != 0 && counts(&records[i], of_user)))
            return true;
    return false;
}

static struct usage_part *part_of(struct usage_job *job, struct piece pool)
{
    struct usage_part *longer;
    char name[USAGE_NAME_MAX + 1];

    piece_copy(pool, name, sizeof(name));
    for (int i = 0; i < job->part_count; i++)
        if (strcmp(job->parts[i].pool, name) == 0)
            return &job->parts[i];
    longer = realloc(job->parts, (size_t)(job->part_count + 1) * sizeof(*longer));
    if (longer == NULL)
        return NULL;
    job->parts = longer;
    longer += job->part_count++;
    *longer = (struct usage_part){.jobs = 0};
    memcpy(longer->pool, name, sizeof(name));
    return longer;
}

/* There is room for it. */
static void add_span(struct usage_job *job, const struct record *record,
                     const struct usage_part *part)
{
    if (!(record->start > 0 && record->seconds > 0 && record->nodes > 0))
        return;
    if (job->span_count == 0 || record->start < job->start)
        job->start = record->start;
    job->spans[job->span_count++] = (struct usage_span){
        .begin = record->start,
        .end = record->start + record->seconds,
        .nodes = record->nodes < NODES_MAX ? (int)record->nodes : NODES_MAX,
        .part = (int)(part - job->parts),
    };
}

static struct piece pool_of(const struct record *record)
{
    struct piece comment = record->fields[ADMIN_COMMENT], pool;

    if (record->base == 0)
        return (struct piece){USAGE_BASE, strlen(USAGE_BASE)};
    for (size_t i = 0; record->vouched && i < comment.length; i++) {
        pool = (struct piece){comment.at + i, comment.length - i};
        if (piece_begins(pool, POOL_WORD)) {
            pool.at += strlen(POOL_WORD);
            pool.length -= strlen(POOL_WORD);
            for (size_t k = 0; k < pool.length; k++)
                if (pool.at[k] == ' ')
                    pool.length = k;
            return pool;
        }
    }
    return record->fields[PARTITION];
}

static void describe(struct usage_job *job, const struct record *record)
{
    const struct piece *fields = record->fields;
    struct piece state = fields[STATE];

    piece_copy(fields[USER], job->user, sizeof(job->user));
    piece_copy(fields[ACCOUNT], job->account, sizeof(job->account));
    if (record->base != 0)
        return;
    piece_copy(fields[PARTITION], job->partition, sizeof(job->partition));
    piece_copy(fields[NAME], job->name, sizeof(job->name));
    /* "CANCELLED by 1000" */
    for (size_t i = 0; i < state.length; i++)
        if (state.at[i] == ' ')
            state.length = i;
    piece_copy(state, job->state, sizeof(job->state));
}

static int count_record(struct usage_job *job, const struct record *record)
{
    struct usage_part *part = part_of(job, pool_of(record));

    if (part == NULL)
        return -1;
    if (record->base == 0) {
        job->runs++;
        job->base_s += record->seconds;
    } else {
        job->extensions++;
    }
    add_span(job, record, part);
    part->jobs++;
    part->node_s += record->nodes * record->seconds;
    part->cpu_s += record->cpus * record->seconds;
    part->gpu_s += record->gpus * record->seconds;
    return 0;
}

/* Records of one base, its runs first. */
static int add_job(struct usage *usage, const struct record *records, size_t count)
{
    struct usage_job *job = &usage->jobs[usage->count];
    const struct record *of_user = owned(records, count);

    if (!is_elastic(records, count))
        return 0;
    *job = (struct usage_job){.job = key_of(records)};
    usage->count++;
    job->spans = calloc(count, sizeof(*job->spans));
    if (job->spans == NULL)
        return -1;
    for (size_t i = 0; i < count; i++) {
        const struct record *record = &records[i];

        if (!counts(record, of_user))
            continue;
        if (record->base == 0 || job->runs == 0)
            describe(job, record);
        if (count_record(job, record) != 0)
            return -1;
    }
    return 0;
}

bool usage_needs_marks(const char *text, const char *separator)
{
    const struct marks none = {NULL, 0};
    struct records records = {.count = 0};
    bool needs = false;

    if (read_records(text, separator, &none, &records, NULL) == 0)
        for (size_t i = 0; i < records.count; i++)
            needs = needs || is_alive(records.list[i].fields[STATE]);
    free(records.list);
    return needs;
}

int usage_read(const char *text, const char *separator, const struct usage_mark *marks,
               size_t mark_count, struct usage *usage, struct error *err)
{
    const struct marks marked = {marks, mark_count};
    struct records records = {.count = 0};
    int rc = read_records(text, separator, &marked, &records, err);

    *usage = (struct usage){.count = 0};
    if (rc == 0 && records.count > 0) {
        qsort(records.list, records.count, sizeof(*records.list), by_key);
        usage->jobs = calloc(records.count, sizeof(*usage->jobs));
        if (usage->jobs == NULL)
            rc = error_set(err, "out of memory");
    }
    for (size_t i = 0, end; rc == 0 && i < records.count; i = end) {
        for (end = i + 1;
             end < records.count && key_of(&records.list[end]) == key_of(&records.list[i]);)
            end++;
        if (add_job(usage, &records.list[i], end - i) != 0)
            rc = error_set(err, "out of memory");
    }
    free(records.list);
    if (rc != 0)
        usage_clear(usage);
    return rc;
}

void usage_clear(struct usage *usage)
{
    for (int i = 0; i < usage->count; i++) {
        free(usage->jobs[i].parts);
        free(usage->jobs[i].spans);
    }
    free(usage->jobs);
    *usage = (struct usage){.count = 0};
}

static int by_job(const void *key, const void *entry)
{
    uint32_t job = *(const uint32_t *)key, other = ((const struct usage_job *)entry)->job;

    return job < other ? -1 : job > other;
}

const struct usage_job *usage_find(const struct usage *usage, uint32_t job)
{
    return usage->count > 0
               ? bsearch(&job, usage->jobs, (size_t)usage->count, sizeof(*usage->jobs), by_job)
               : NULL;
}

struct usage_part usage_sum(const struct usage_job *job)
{
    struct usage_part sum = {.jobs = 0};

    for (int i = 0; i < job->part_count; i++) {
        sum.jobs += job->parts[i].jobs;
        sum.node_s += job->parts[i].node_s;
        sum.cpu_s += job->parts[i].cpu_s;
        sum.gpu_s += job->parts[i].gpu_s;
    }
    return sum;
}

/* From then on there are so many more nodes, and runs of the base. */
struct moment {
    double at;
    int nodes, bases;
};

static int by_time(const void *a, const void *b)
{
    const struct moment *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

static struct moment *moments_of(const struct usage_job *job)
{
    struct moment *moments = calloc(2 * (size_t)job->span_count + 1, sizeof(*moments));

    for (int i = 0; i < job->span_count && moments != NULL; i++) {
        const struct usage_span *span = &job->spans[i];
        int base = strcmp(job->parts[span->part].pool, USAGE_BASE) == 0;

        moments[2 * i] = (struct moment){span->begin, span->nodes, base};
        moments[2 * i + 1] = (struct moment){span->end, -span->nodes, -base};
    }
    if (moments != NULL)
        qsort(moments, 2 * (size_t)job->span_count, sizeof(*moments), by_time);
    return moments;
}

/* Only while a run of the base was there. A user may have made very many spans. */
void usage_sizes(const struct usage_job *job, int *least, int *most)
{
    struct moment *moments = moments_of(job);
    int64_t nodes = 0, bases = 0;
    int count = moments != NULL ? 2 * job->span_count : 0;

    *least = *most = 0;
    for (int i = 0; i < count; i++) {
        int now;

        nodes += moments[i].nodes;
        bases += moments[i].bases;
        if ((i + 1 < count && moments[i + 1].at <= moments[i].at) || bases <= 0 || nodes <= 0)
            continue;
        now = nodes < INT_MAX ? (int)nodes : INT_MAX;
        if (*least == 0 || now < *least)
            *least = now;
        if (now > *most)
            *most = now;
    }
    free(moments);
}
