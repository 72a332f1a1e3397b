/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Scenarios: files with a line for each thing that happens, or is expected. "_" stands for a space
 * within a word.
 *
 *   preempt last, crash n1, …   something happens (faults.c)
 *   cancel JOB, limit JOB 50 …  JOB: first or last (extension), job (the base), or a number; its
 *                               time ends 50 s from now
 *   reserve 720 300             in 720 s a rigid job has all idle nodes, for 300 s
 *   slow srun 20                a setting: extensions are slow at prolog, srun, agent or
 *                               network (nobody answers them)
 *   drag n3 180                 its workers need 180 % of the time for a step; 100: as usual
 *   boot 90                     a setting: the nodes of extensions power up, for so long
 *   asleep 2                    a setting: the last two nodes are powered down (doze n5, wake n5)
 *   placed 1                    a setting: Slurm has select/elastic_cons_tres
 *   pool spot 3 price=1 …       a setting: a pool with three nodes of its own, and keys of
 *                               elastic.conf; site KEY=VALUE is a key before all pools. "nodes" are
 *                               those of the base's partition
 *   boot spot 90                … whose nodes are powered down, and power up in 90 s. Also later,
 *                               as:
 *   capacity spot 1 30          its cloud has one node ("all": any), and takes the others in 30 s;
 *                               what it lacks ("lacks spot fast") fails at once, else after
 *                               ResumeTimeout
 *   refuse spot WHY, block spot WHY   sbatch does; Slurm lets its extensions wait. "refuse spot":
 *                               no longer
 *   price spot 3                in the file of the site ("site prices=/prices")
 *   billing spot 3              a setting: what Slurm bills of a node, where the site has no prices
 *   works yes                   a setting: the program reports its work, a step of N nodes takes
 *                               an Nth of its time
 *   expect has spot 2           the job has two of its nodes; "asks spot 1": one request waits
 *   expect costs 95 105         "ask show" tells 95 to 105 % of what its extensions have cost;
 *                               cost 1 2: which is 1 to 2
 *   expect before 2000          it is not 2000 s since the start
 *   watch, expect least 4       no world has been smaller since
 *   admission 1                 a setting: job_submit/elastic holds MAX
 *   expect woken 0              extensions have made Slurm power up no node
 *   wait WHAT within 60         until it holds, as in holds(): size 4, step 20, state first RUNNING
 *   expect WHAT                 it holds now
 *   ask show                    of the leader, as selastic does; "wait shown TEXT" is why the job
 *                               does not grow
 *   expect asked 6 60           slurmctld was asked 6 times at most in the last 60 s; listed: for
 *                               lists of nodes, partitions or all of a user's jobs
 *   expect once TEXT            the log has it once, and "said TEXT" once or more
 *   unsent TYPE FROM TO         no such message has been sent since the last wait began
 *   second …                    about a second job, like the first one but for its own settings
 *   may                         anything may follow
 *   end 143                     the job ends, with that exit status */
#include <errno.h>

#include "lib/json_get.h"
#include "tests/sim/sim.h"

#define WITHIN   (120 * SECOND)
#define LIMIT    (3600 * SECOND)
#define SENT_MAX 4096

struct sent {
    char type[16], from[8], to[8];
};

static struct {
    struct setup setup;
    bool started, ended;
    struct sent sent[SENT_MAX]; /* since the last wait began */
    int sent_count;
    double cost; /* that the leader has told */
    char history[65536], said[262144], shown[512], state[65536];
    struct training *subject; /* of the line */
} it;

/* ---- what is seen ---------------------------------------------------------------------------- */

static void note_state(json_object *msg)
{
    json_object *cost = NULL;

    snprintf(it.shown, sizeof(it.shown), "%s", json_get_string(msg, "why_not_more"));
    snprintf(it.state, sizeof(it.state), "%s",
             json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN));
    it.cost = 0;
    trace("job %u: its extensions have cost %g", it.subject->base->id, it.subject->cost);
    if (json_object_object_get_ex(msg, "cost", &cost) &&
        json_object_object_get_ex(cost, "so_far", &cost))
        it.cost = json_object_get_double(cost);
}

static void on_message(const struct host *from, const struct host *to, const char *type,
                       json_object *msg)
{
    struct sent *sent = &it.sent[it.sent_count % SENT_MAX];

    invariants_message(from, to, type, msg);
    if (strcmp(type, "beat") == 0)
        return;
    if (strcmp(type, "state") == 0)
        note_state(msg);
    trace("%-5s -> %-5s %s", host_name(from), host_name(to),
          json_object_to_json_string_ext(msg, JSON_C_TO_STRING_PLAIN));
    snprintf(sent->type, sizeof(sent->type), "%s", type);
    snprintf(sent->from, sizeof(sent->from), "%s", host_name(from));
    snprintf(sent->to, sizeof(sent->to), "%s", host_name(to));
    it.sent_count++;
}

static void on_history(struct job *job, const char *line)
{
    size_t used = strlen(it.history);

    (void)job;
    snprintf(it.history + used, sizeof(it.history) - used, "%s\n", line);
}

static void on_said(const char *line)
{
    size_t used = strlen(it.said);

    snprintf(it.said + used, sizeof(it.said) - used, "%s\n", line);
}

/* A word of a scenario has no space: "_" stands for one. */
static int count_in(const char *text, const char *word)
{
    char copy[128];
    int count = 0;

    snprintf(copy, sizeof(copy), "%s", word);
    for (char *at = copy; (at = strchr(at, '_')) != NULL;)
        *at = ' ';
    for (; (text = strstr(text, copy)) != NULL; text++)
        count++;
    return count;
}

static bool contains(const char *text, const char *word)
{
    return count_in(text, word) > 0;
}

static bool was_sent(char **words)
{
    for (int i = 0; i < it.sent_count && i < SENT_MAX; i++) {
        const struct sent *sent = &it.sent[i];

        if (strcmp(sent->type, words[0]) == 0 &&
            (words[1] == NULL || strcmp(words[1], "*") == 0 || strcmp(sent->from, words[1]) == 0) &&
            (words[2] == NULL || strcmp(sent->to, words[2]) == 0))
            return true;
    }
    return false;
}

static int count_sent(const char *type)
{
    int count = 0;

    for (int i = 0; i < it.sent_count && i < SENT_MAX; i++)
        count += strcmp(it.sent[i].type, type) == 0;
    return count;
}

static int count_pending(void)
{
    int count = 0;

    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next)
        count += !job->base && job->training == it.subject && job->state == SLURM_PENDING;
    return count;
}

/* Nodes of that pool that the job has, or extensions that wait for some. */
static int count_in_pool(const char *pool, bool waits)
{
    int count = 0;

    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next)
        if (!job->base && job->training == it.subject && strcmp(job->partition, pool) == 0)
            count += waits ? job->state == SLURM_PENDING
                           : (job->state == SLURM_RUNNING) * job->count;
    return count;
}

static int count_extensions(void)
{
    int count = 0;

    for (const struct job *job = slurm_jobs(); job != NULL; job = job->next)
        count += !job->base && job->training == it.subject;
    return count;
}

/* JOB STATE, and JOB LEAST MOST of its time limit in minutes. */
static bool is_job(char **words)
{
    const struct job *job = fault_job(words[1]);
    uint64_t minutes = job != NULL ? job->limit / (60 * SECOND) : 0;

    if (job == NULL || words[2] == NULL)
        return false;
    if (strcmp(words[0], "state") == 0)
        return strcmp(job->state_name, words[2]) == 0;
    return words[3] != NULL && minutes >= (uint64_t)atoi(words[2]) &&
           minutes <= (uint64_t)atoi(words[3]);
}

static uint64_t seconds(const char *word)
{
    return (uint64_t)(atof(word) * (double)SECOND);
}

static bool holds(char **words)
{
    const struct training *t = it.subject;
    int64_t number = words[1] != NULL ? atoll(words[1]) : 0;

    if (strcmp(words[0], "size") == 0)
        return t->size == number;
    if (strcmp(words[0], "step") == 0)
        return t->committed >= number;
    if (strcmp(words[0], "generation") == 0)
        return t->newest >= number;
    if (strcmp(words[0], "sent") == 0 && words[1] != NULL)
        return was_sent(words + 1);
    if (strcmp(words[0], "history") == 0 && words[1] != NULL)
        return contains(it.history, words[1]);
    if (strcmp(words[0], "said") == 0 && words[1] != NULL)
        return contains(it.said, words[1]);
    if (strcmp(words[0], "once") == 0 && words[1] != NULL)
        return count_in(it.said, words[1]) == 1;
    if (strcmp(words[0], "shown") == 0 && words[1] != NULL) /* why the job does not grow */
        return contains(it.shown, words[1]);
    if (strcmp(words[0], "stated") == 0 && words[1] != NULL) /* all that it shows */
        return contains(it.state, words[1]);
    if (strcmp(words[0], "costs") == 0 && words[1] != NULL && words[2] != NULL) /* percent */
        return 100 * it.cost >= number * t->cost && 100 * it.cost <= atof(words[2]) * t->cost;
    if (strcmp(words[0], "cost") == 0 && words[1] != NULL && words[2] != NULL)
        return t->cost >= atof(words[1]) && t->cost <= atof(words[2]);
    if (strcmp(words[0], "has") == 0 && words[1] != NULL && words[2] != NULL)
        return count_in_pool(words[1], false) == atoi(words[2]);
    if (strcmp(words[0], "asks") == 0 && words[1] != NULL && words[2] != NULL)
        return count_in_pool(words[1], true) == atoi(words[2]);
    if (strcmp(words[0], "before") == 0) /* so many seconds after the start */
        return clock_now() < (1000 + (uint64_t)number) * SECOND;
    if (strcmp(words[0], "least") == 0)
        return t->least >= number;
    if (strcmp(words[0], "worlds") == 0 && words[1] != NULL)
        return strcmp(t->worlds, words[1]) == 0;
    if (strcmp(words[0], "saved") == 0)
        return t->checkpoint == t->committed;
    if (strcmp(words[0], "pending") == 0)
        return count_pending() == number;
    if (strcmp(words[0], "incarnation") == 0)
        return t->base->restarts == number;
    if ((strcmp(words[0], "state") == 0 || strcmp(words[0], "limit") == 0) && words[1] != NULL)
        return is_job(words);
    if (strcmp(words[0], "times") == 0 && words[1] != NULL && words[2] != NULL)
        return count_sent(words[1]) == atoi(words[2]);
    if (strcmp(words[0], "extensions") == 0) /* ever: at most */
        return count_extensions() <= number;
    if (strcmp(words[0], "woken") == 0)
        return slurm_woken() == number;
    if (strcmp(words[0], "started") == 0)
        return t->started == number;
    if (strcmp(words[0], "repeated") == 0)
        return t->repeated <= number;
    if (strcmp(words[0], "asked") == 0 && words[1] != NULL && words[2] != NULL)
        return slurm_questions(clock_now() - seconds(words[2]), false) <= number;
    if (strcmp(words[0], "listed") == 0 && words[1] != NULL && words[2] != NULL)
        return slurm_questions(clock_now() - seconds(words[2]), true) <= number;
    if (strcmp(words[0], "idle") == 0 && node_named(words[1]) != NULL)
        return node_named(words[1])->hosts == NULL;
    if (strcmp(words[0], "ended") == 0)
        return t->base->state == SLURM_ENDED;
    return false;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int fail(char *why, size_t size, const char *line)
{
    if (violation_text()[0] != '\0')
        snprintf(why, size, "%s", violation_text());
    else
        snprintf(why, size, "at %.3f s: does not hold: %s",
                 (double)(clock_now() - 1000 * SECOND) / (double)SECOND, line);
    trace("FAILS %s", why);
    return -1;
}

static int await(char **words, uint64_t limit, char *why, size_t size, const char *line)
{
    uint64_t until = clock_now() + limit;

    it.sent_count = 0;
    while (!holds(words))
        if (violation_text()[0] != '\0' || !clock_step(until))
            return fail(why, size, line);
    return 0;
}

static void pass(uint64_t time)
{
    uint64_t until = clock_now() + time;

    while (violation_text()[0] == '\0' && clock_step(until))
        ;
    clock_reach(until);
}

/* "… within S", which is cut off. */
static uint64_t within(char **words)
{
    uint64_t limit = WITHIN;

    for (int i = 1; words[i] != NULL && words[i + 1] != NULL; i++)
        if (strcmp(words[i], "within") == 0) {
            limit = seconds(words[i + 1]);
            words[i] = words[i + 1] = NULL;
            break;
        }
    return limit;
}

/* What each extension is slow at, and for how long. */
static bool set_slow(char **words)
{
    static const char *const names[] = {"nothing", "prolog", "srun", "agent", "network"};

    it.setup.slurm.slow_time = seconds(words[2]);
    for (int i = 0; i < 5; i++)
        if (strcmp(words[1], names[i]) == 0) {
            it.setup.slurm.slow = (enum slurm_slow)i;
            return true;
        }
    return false;
}

/* "key=value". */
static bool add_key(char *keys, size_t size, const char *word)
{
    snprintf(keys + strlen(keys), size - strlen(keys), "%s\n", word);
    return strchr(word, '=') != NULL;
}

static bool add_pool(char **words)
{
    struct setup *s = &it.setup;
    struct setup_pool *pool = &s->pools[s->pool_count++];

    MUST(s->pool_count <= CLOUD_MAX);
    *pool = (struct setup_pool){
        .nodes = atoi(words[2]), .capacity = -1, .price = -1, .billing = -1};
    snprintf(pool->name, sizeof(pool->name), "%s", words[1]);
    for (int i = 3; words[i] != NULL; i++)
        if (!add_key(pool->keys, sizeof(pool->keys), words[i]))
            return false;
    return true;
}

/* Before the start. False: not a line about that. */
static bool set_up(char **words, struct setup_job *j)
{
    struct setup *s = &it.setup;
    const struct {
        const char *name;
        int *number;
        uint64_t *time;
    } table[] = {
        {"nodes", &s->nodes, NULL},
        {"base", &j->base, NULL},
        {"slots", &j->slots, NULL},
        {"heartbeat", &s->heartbeat, NULL},
        {"every", &j->training.every, NULL},
        {"grace", &s->slurm.grace, NULL},
        {"max-pending", &s->max_pending, NULL},
        {"drain-look", &s->drain_look, NULL},
        {"notices", &s->notices, NULL},
        {"admission", &s->admission, NULL},
        {"newcomer-timeout", &s->newcomer_timeout, NULL},
        {"step", NULL, &j->training.step},
        {"exec", NULL, &j->training.exec},
        {"load", NULL, &j->training.load},
        {"init", NULL, &j->training.init},
        {"save", NULL, &j->training.save},
        {"leave", NULL, &j->training.leave},
        {"limit", NULL, &j->limit},
        {"boot", NULL, &s->slurm.boot_time},
        {"asleep", &s->slurm.asleep, NULL},
        {"placed", &s->slurm.placed, NULL},
        {"submitted", NULL, &j->submitted},
        {"priority", &j->priority, NULL},
        {"down-after", &s->slurm.down_after, NULL},
    };

    if (words[1] == NULL)
        return false;
    if (strcmp(words[0], "pool") == 0 && words[2] != NULL)
        return add_pool(words);
    if (cloud_do(s->pools, s->pool_count, words))
        return true;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(words[0], table[i].name) != 0)
            continue;
        if (table[i].number != NULL)
            *table[i].number = atoi(words[1]);
        else
            *table[i].time = seconds(words[1]);
        return true;
    }
    if (strcmp(words[0], "sizes") == 0)
        snprintf(j->sizes, sizeof(j->sizes), "%s", words[1]);
    else if (strcmp(words[0], "mode") == 0)
        snprintf(j->mode, sizeof(j->mode), "%s", words[1]);
    else if (strcmp(words[0], "steps") == 0)
        j->training.total = atoll(words[1]);
    else if (strcmp(words[0], "option") == 0)
        snprintf(j->options[j->option_count++], 64, "%s", words[1]);
    else if (strcmp(words[0], "site") == 0)
        return add_key(s->site, sizeof(s->site), words[1]);
    else if (strcmp(words[0], "works") == 0)
        j->training.works = strcmp(words[1], "no") != 0;
    else if (strcmp(words[0], "early-start") == 0)
        j->training.early_start = strcmp(words[1], "no") != 0;
    else if (strcmp(words[0], "slow") == 0 && words[2] != NULL)
        return set_slow(words);
    else if (strcmp(words[0], "script") == 0 && strcmp(words[1], "unaware") == 0)
        j->training.aware = j->training.gate = false;
    else if (strcmp(words[0], "script") == 0 && strcmp(words[1], "gateless") == 0)
        j->training.gate = false;
    else
        return false;
    return true;
}

static int finish(char **words, char *why, size_t size, const char *line)
{
    it.subject->may_fail |= words[1] != NULL && strcmp(words[1], "0") != 0;
    setup_finish(LIMIT);
    it.ended = true;
    if (violation_text()[0] != '\0' ||
        (words[1] != NULL && it.subject->base->code != atoi(words[1])))
        return fail(why, size, line);
    return 0;
}

/* "second …" is about another job, like the first one but for that. */
static struct setup_job *job_of(char ***words)
{
    struct setup *s = &it.setup;

    if (strcmp((*words)[0], "second") != 0 || (*words)[1] == NULL)
        return &s->jobs[0];
    ++*words;
    if (s->job_count == 1)
        s->jobs[s->job_count++] = s->jobs[0];
    return &s->jobs[1];
}

static int carry_out(char **words, uint64_t seed, const char *line, char *why, size_t size)
{
    const char *rest = line;

    if (!it.started && strcmp(words[0], "start") == 0) {
        setup_start(&it.setup, seed);
        it.started = true;
        return 0;
    }
    if (!it.started) {
        struct setup_job *job = job_of(&words);

        return set_up(words, job) ? 0 : fail(why, size, line);
    }
    it.subject = fault_subject(&rest);
    words += rest != line && words[1] != NULL;
    if (strcmp(words[0], "wait") == 0 && words[1] != NULL)
        return await(words + 1, within(words), why, size, line);
    if (strcmp(words[0], "watch") == 0)
        it.subject->least = it.subject->size;
    else if (strcmp(words[0], "sleep") == 0 && words[1] != NULL)
        pass(seconds(words[1]));
    else if (strcmp(words[0], "expect") == 0 && words[1] != NULL)
        return holds(words + 1) ? 0 : fail(why, size, line);
    else if (strcmp(words[0], "unsent") == 0 && words[1] != NULL)
        return was_sent(words + 1) ? fail(why, size, line) : 0;
    else if (strcmp(words[0], "end") == 0)
        return finish(words, why, size, line);
    else if (strcmp(words[0], "may") == 0)
        it.subject->may_fail = it.subject->may_wait = true;
    else if (strcmp(words[0], "reserve") == 0 && words[1] != NULL && words[2] != NULL)
        slurm_reserve(clock_now() + seconds(words[1]), seconds(words[2]));
    else if (!fault_do(line, why, size))
        return -1;
    return violation_text()[0] == '\0' ? 0 : fail(why, size, line);
}

int scenario_run(const char *path, uint64_t seed, char *why, size_t size)
{
    FILE *file = fopen(path, "r");
    char line[256];
    int rc = 0;

    if (file == NULL) {
        snprintf(why, size, "%s: %s", path, strerror(errno));
        return -1;
    }
    memset(&it, 0, sizeof(it));
    setup_defaults(&it.setup);
    network_watch = on_message;
    kernel_history = on_history;
    kernel_said = on_said;
    it.subject = trainings;
    while (rc == 0 && fgets(line, sizeof(line), file) != NULL) {
        char copy[256], *words[16] = {NULL}, *rest = copy;
        int count = 0;

        line[strcspn(line, "#\n")] = '\0';
        snprintf(copy, sizeof(copy), "%s", line);
        for (char *word; count < 15 && (word = strsep(&rest, " \t")) != NULL;)
            if (word[0] != '\0')
                words[count++] = word;
        if (count > 0) {
            if (it.started)
                trace("===== %s", line);
            rc = carry_out(words, seed, line, why, size);
        }
    }
    fclose(file);
    if (rc == 0 && !it.ended)
        rc = finish((char *[]){NULL, NULL}, why, size, "end");
    return rc;
}
