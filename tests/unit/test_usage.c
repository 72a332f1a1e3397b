/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lib/usage: records of sacct become elastic jobs. */
#include "lib/usage.h"

#include "tests/unit/support.h"

#define SEPARATOR "<0123456789abcdef>"

struct fields {
    const char *job, *user, *partition, *state, *elapsed, *nodes, *tres, *admin, *comment, *name;
};

static void put(FILE *out, const struct fields *f)
{
    const char *texts[] = {f->job,     f->user,  "lab",   f->partition, f->state,   "1700000000",
                           f->elapsed, f->nodes, f->tres, f->admin,     f->comment, f->name};

    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++)
        fprintf(out, "%s%s", i > 0 ? SEPARATOR : "", texts[i] != NULL ? texts[i] : "");
    fputc('\n', out);
}

static char *text_of(const struct fields *list, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; i < count; i++)
        put(out, &list[i]);
    fclose(out);
    return text;
}

static void read_list(const struct fields *list, size_t count, struct usage *usage)
{
    struct error err = {""};
    char *text = text_of(list, count);

    if (usage_read(text, SEPARATOR, NULL, 0, usage, &err) != 0)
        fail_msg("%s", err.text);
    free(text);
}

#define READ(list, usage) read_list(list, sizeof(list) / sizeof((list)[0]), usage)

static const struct usage_part *part(const struct usage_job *job, const char *pool)
{
    for (int i = 0; i < job->part_count; i++)
        if (strcmp(job->parts[i].pool, pool) == 0)
            return &job->parts[i];
    fail_msg("no pool %s", pool);
    return NULL;
}

static void test_whole(void **state)
{
    static const struct fields list[] = {
        {"12", "ada", "batch", "REQUEUED", "100", "2", "billing=8,cpu=8,gres/gpu=2,mem=4G,node=2",
         "elastic=2:8", "", "train"},
        {"9", "ada", "batch", "COMPLETED", "50", "1", "cpu=4", "", "", "rigid"},
        {"14", "ada", "spot", "PREEMPTED", "30", "1", "cpu=4,gres/gpu=1",
         "elastic-extension-of=12.0 pool=cheap admitted=7", "elastic-extension-of=12.0", "train+"},
        {"12", "ada", "batch", "CANCELLED by 1000", "200", "2", "cpu=8", "elastic=2:8", "",
         "train"},
        {"15", "ada", "spot", "COMPLETED", "10", "3", "cpu=12", "", "elastic-extension-of=12.1",
         "train+"},
        /* It is pending. */
        {"16", "ada", "spot", "PENDING", "0", "3", "", "elastic-extension-of=12.1 pool=cheap", "",
         "train+"},
    };
    struct usage usage;
    const struct usage_job *job;
    struct usage_part sum;
    int least, most;

    (void)state;
    READ(list, &usage);
    assert_int_equal(usage.count, 1);
    job = usage_find(&usage, 12);
    assert_non_null(job);
    assert_string_equal(job->name, "train");
    assert_string_equal(job->user, "ada");
    assert_string_equal(job->account, "lab");
    assert_string_equal(job->partition, "batch");
    assert_string_equal(job->state, "CANCELLED");
    assert_near(job->start, 1700000000, 1e-9);
    assert_int_equal(job->span_count, 4);
    assert_near(job->spans[1].end - job->spans[1].begin, 200, 1e-9);
    assert_int_equal(job->spans[2].nodes, 1);
    assert_string_equal(job->parts[job->spans[2].part].pool, "cheap");
    assert_int_equal(job->runs, 2);
    assert_int_equal(job->extensions, 3);
    assert_near(job->base_s, 300, 1e-9);
    assert_int_equal(job->part_count, 3);
    assert_string_equal(job->parts[0].pool, "base");
    assert_near(part(job, "base")->node_s, 600, 1e-9);
    assert_near(part(job, "base")->cpu_s, 2400, 1e-9);
    assert_near(part(job, "base")->gpu_s, 200, 1e-9);
    assert_near(part(job, "cheap")->node_s, 30, 1e-9);
    assert_int_equal(part(job, "cheap")->jobs, 2);
    assert_near(part(job, "spot")->cpu_s, 120, 1e-9);
    sum = usage_sum(job);
    assert_int_equal(sum.jobs, 5);
    assert_near(sum.node_s, 660, 1e-9);
    /* All records begin at the same time: 2 nodes and 2, 1, 3. In the end: of the second run. */
    usage_sizes(job, &least, &most);
    assert_int_equal(least, 2);
    assert_int_equal(most, 8);
    assert_null(usage_find(&usage, 9));
    assert_null(usage_find(&usage, 14));
    usage_clear(&usage);
}

/* A comment is written by its user; AdminComment is not. */
static void test_strangers(void **state)
{
    static const struct fields list[] = {
        {"20", "ada", "batch", "RUNNING", "100", "2", "cpu=8", "elastic=2:8", "", "mine"},
        {"21", "eve", "batch", "RUNNING", "1000", "9", "cpu=8", "", "elastic-extension-of=20.0",
         "x"},
        {"22", "ada", "batch", "RUNNING", "10", "1", "cpu=8", "", "", "rigid"},
        {"23", "eve", "batch", "RUNNING", "1000", "9", "cpu=8", "", "elastic-extension-of=22.0",
         "x"},
        /* The base was submitted before the time that was asked for. */
        {"31", "bob", "spot", "RUNNING", "5", "1", "cpu=8", "elastic-extension-of=30.2", "", "y+"},
        {"40", "eve", "batch", "RUNNING", "7", "1", "cpu=8", "",
         "elastic-extension-of=99999999999.0", "z"},
        {"41", "eve", "batch", "RUNNING", "7", "1", "cpu=8", "", "elastic-extension-of=40", "z"},
    };
    struct usage usage;

    (void)state;
    READ(list, &usage);
    assert_int_equal(usage.count, 2);
    assert_near(usage_sum(usage_find(&usage, 20)).node_s, 200, 1e-9);
    assert_string_equal(usage_find(&usage, 30)->user, "bob");
    assert_string_equal(usage_find(&usage, 30)->state, "");
    assert_int_equal(usage_find(&usage, 30)->runs, 0);
    usage_clear(&usage);
}

/* A name or comment looks like a record, as far as its user can know how records look. */
static void test_forged(void **state)
{
    static const struct fields list[] = {
        {"50", "eve", "batch", "RUNNING", "10", "1", "cpu=1", "elastic=1:2", "two\nlines\n",
         "a\n51|ada|lab|batch|RUNNING|x|99999|99|cpu=1|elastic=1:2||b\n"},
        {"52", "ada", "batch", "RUNNING", "20", "1", "cpu=1", "elastic=1:2", "", ""},
    };
    struct usage usage;

    (void)state;
    READ(list, &usage);
    assert_int_equal(usage.count, 2);
    assert_non_null(usage_find(&usage, 50));
    assert_near(usage_sum(usage_find(&usage, 52)).node_s, 20, 1e-9);
    assert_string_equal(usage_find(&usage, 52)->name, "");
    usage_clear(&usage);
}

/* The records of the base are older than what sacct was asked for. */
static void test_without_base(void **state)
{
    static const struct fields list[] = {
        {"20", "eve", "spot", "COMPLETED", "1000", "9", "cpu=36", "", "elastic-extension-of=12.0",
         "x"},
        {"21", "ada", "spot", "COMPLETED", "10", "1", "cpu=4",
         "elastic-extension-of=12.0 pool=cheap", "elastic-extension-of=12.0", "train+"},
        {"30", "eve", "spot", "COMPLETED", "10", "1", "cpu=4", "", "elastic-extension-of=29.0",
         "x"},
        {"31", "ada", "spot", "COMPLETED", "10", "1", "cpu=4", "", "elastic-extension-of=29.0",
         "x"},
    };
    const struct usage_job *job;
    struct usage usage;

    (void)state;
    READ(list, &usage);
    assert_int_equal(usage.count, 2);
    job = usage_find(&usage, 12);
    assert_string_equal(job->user, "ada");
    assert_int_equal(job->extensions, 1);
    assert_near(usage_sum(job).node_s, 10, 1e-9);
    job = usage_find(&usage, 29);
    assert_string_equal(job->user, "eve");
    assert_int_equal(job->extensions, 1);
    usage_clear(&usage);
}

static void test_wrong(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"sacct: a warning\n", "a record of sacct has 1 fields in place of 12"},
        {"7" SEPARATOR "ada\n", "a record of sacct has 2 fields in place of 12"},
    };
    struct usage usage;
    struct error err;
    char *text, *cut;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(usage_read(cases[i].text, SEPARATOR, NULL, 0, &usage, &err), -1);
        assert_string_equal(err.text, cases[i].message);
        assert_int_equal(usage.count, 0);
    }
    assert_int_equal(usage_read("", SEPARATOR, NULL, 0, &usage, &err), 0);
    assert_int_equal(usage.count, 0);
    assert_null(usage_find(&usage, 1));
    usage_clear(&usage);
    /* Cut anywhere, it is read or refused. */
    text = text_of(&(const struct fields){"12", "ada", "b", "R", "100", "2", "cpu=8,gres/gpu=1",
                                          "elastic=2:8", "c", "n"},
                   1);
    for (size_t length = 0; length <= strlen(text); length++) {
        cut = strndup(text, length);
        if (usage_read(cut, SEPARATOR, NULL, 0, &usage, &err) == 0)
            usage_clear(&usage);
        free(cut);
    }
    free(text);
}

/* Of a job that runs, slurmdbd has no comment yet; slurmctld has. */
static void test_running(void **state)
{
    static const struct fields list[] = {
        {"60", "ada", "batch", "RUNNING", "100", "2", "cpu=8", "", "", "mine"},
        {"61", "ada", "spot", "RUNNING", "10", "3", "cpu=8", "", "", "mine+"},
        {"62", "eve", "spot", "RUNNING", "10", "9", "cpu=8", "", "", "x"},
        {"63", "ada", "batch", "RUNNING", "10", "1", "cpu=8", "", "", "rigid"},
        /* It has ended: the same number, of a job long ago. */
        {"64", "ada", "batch", "COMPLETED", "10", "1", "cpu=8", "", "", "rigid"},
        {"65", "ada", "batch", "SUSPENDED", "10", "1", "cpu=8", "", "", "level 0"},
        {"66", "ada", "spot", "RUNNING", "10", "1", "cpu=8", "", "", "level 0+"},
    };
    static const struct usage_mark marks[] = {
        {60, "elastic=2:8", NULL},
        {61, "elastic-extension-of=60.0 pool=cheap", "elastic-extension-of=60.0"},
        {62, NULL, "elastic-extension-of=60.0"},
        {63, "", ""},
        {64, "elastic=1:2", NULL},
        {66, NULL, "elastic-extension-of=65.0"},
    };
    char *text = text_of(list, sizeof(list) / sizeof(list[0]));
    struct usage usage;
    struct error err = {""};

    (void)state;
    assert_true(usage_needs_marks(text, SEPARATOR));
    assert_int_equal(usage_read(text, SEPARATOR, NULL, 0, &usage, &err), 0);
    assert_int_equal(usage.count, 0);
    usage_clear(&usage);
    assert_int_equal(
        usage_read(text, SEPARATOR, marks, sizeof(marks) / sizeof(marks[0]), &usage, &err), 0);
    assert_int_equal(usage.count, 2);
    assert_near(usage_sum(usage_find(&usage, 60)).node_s, 230, 1e-9);
    assert_near(part(usage_find(&usage, 60), "cheap")->node_s, 30, 1e-9);
    assert_near(usage_sum(usage_find(&usage, 65)).node_s, 20, 1e-9);
    usage_clear(&usage);
    free(text);
    text = text_of(&list[4], 1);
    assert_false(usage_needs_marks(text, SEPARATOR));
    assert_false(usage_needs_marks("sacct: a warning\n", SEPARATOR));
    free(text);
}

/* ---- sizes over time ------------------------------------------------------------------------- */

static struct usage_part parts[] = {{.pool = USAGE_BASE}, {.pool = "elastic"}};

static int nodes_at(const struct usage_job *job, double time)
{
    int nodes = 0, bases = 0;

    for (int i = 0; i < job->span_count; i++)
        if (time >= job->spans[i].begin && time < job->spans[i].end) {
            nodes += job->spans[i].nodes;
            bases += job->spans[i].part == 0;
        }
    return bases > 0 ? nodes : 0;
}

static void test_sizes(void **state)
{
    struct usage_span spans[12];
    struct usage_job job = {.parts = parts, .part_count = 2, .spans = spans};
    uint64_t random = 1;

    (void)state;
    for (int round = 0; round < RANDOM_ROUNDS(2000); round++) {
        int least = 0, most = 0, found_least, found_most;

        job.span_count = (int)random_below(&random, 13);
        for (int i = 0; i < job.span_count; i++) {
            spans[i].begin = random_below(&random, 20);
            spans[i].end = spans[i].begin + 1 + random_below(&random, 10);
            spans[i].nodes = 1 + (int)random_below(&random, 5);
            spans[i].part = random_below(&random, 3) > 0;
        }
        for (int time = 0; time < 40; time++) {
            int nodes = nodes_at(&job, time);

            least = nodes > 0 && (least == 0 || nodes < least) ? nodes : least;
            most = nodes > most ? nodes : most;
        }
        usage_sizes(&job, &found_least, &found_most);
        assert_int_equal(found_least, least);
        assert_int_equal(found_most, most);
    }
}

#define MANY 400000

/* The square of this number would take minutes. */
static void test_very_many_extensions(void **state)
{
    struct usage_job job = {.parts = parts, .part_count = 2, .span_count = MANY};
    int least, most;

    (void)state;
    job.spans = calloc(MANY, sizeof(*job.spans));
    assert_non_null(job.spans);
    job.spans[0] = (struct usage_span){0, 10.0 * MANY, 2, 0};
    for (int i = 1; i < MANY; i++)
        job.spans[i] = (struct usage_span){10.0 * i, 10.0 * i + 15, 3, 1};
    usage_sizes(&job, &least, &most);
    assert_int_equal(least, 2);
    assert_int_equal(most, 8);
    free(job.spans);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_forged),       cmocka_unit_test(test_running),
        cmocka_unit_test(test_without_base), cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_sizes),        cmocka_unit_test(test_very_many_extensions),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("usage", tests, NULL, NULL);
}
