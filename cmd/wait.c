/* SPDX-License-Identifier: GPL-2.0-or-later */
/* `selastic wait JOB`: until the job has a size, a step or a state, or has ended.
 *
 * Slurm is asked where the job is. From then on only its leader is asked. When no leader answers,
 * which is so before the job starts, while it is requeued and after it has ended, Slurm is asked
 * again, less and less often. */
#include <string.h>
#include <time.h>

#include "cmd/command.h"
#include "cmd/deadline.h"
#include "cmd/query.h"
#include "cmd/shape.h"
#include "cmd/terminal_text.h"
#include "cmd/wait_rule.h"
#include "common/log.h"
#include "common/monotonic.h"
#include "lib/json_get.h"

#define LOOK_MS          1000
#define QUESTIONS_UNTOLD 3     /* to Slurm in a row: some seconds */
#define SLURM_MOST_MS    60000 /* that slurmctld may be busy before this program gives up */

struct waiting {
    const struct arguments *arguments;
    struct site *site;
    struct query query;
    enum job_state_kind kind; /* of the job, as Slurm has said last */
    json_object *state;       /* the leader's answer; NULL: it does not answer */
    bool found;               /* Slurm has known the job */
    bool told;                /* that nobody answers */
    int questions;            /* to Slurm in a row, without an answer of a leader between them */
    long long ask_at;         /* when Slurm may be asked again */
    long long end;            /* of the time limit; 0: none */
};

static bool is_over(const struct waiting *w)
{
    return w->end > 0 && monotonic_ms() >= w->end;
}

/* Time for calls of libslurm: what is left, or as much as a busy slurmctld may take. */
static void start_slurm(const struct waiting *w)
{
    long long left = w->end > 0 ? w->end - monotonic_ms() : SLURM_MOST_MS;
    if (left < SLURM_MOST_MS)
        deadline_start_for(left > 0 ? (int)left : 1, STATUS_TIMEOUT);
    else
        deadline_start_for(SLURM_MOST_MS, STATUS_FAILED);
}

static void keep(struct waiting *w, json_object *state)
{
    json_object_put(w->state);
    w->state = state;
}

/* What the leader says. -1: it does not answer. */
static int ask_leader_again(struct waiting *w, struct error *err)
{
    deadline_start();
    if (query_again(w->site, request_new("show"), &w->query, err) != QUERY_ANSWERED)
        return -1;
    const char *type = json_get_string(w->query.answer, "t");
    keep(w, shape_state(w->query.answer));
    if (type == NULL || strcmp(type, "state") != 0)
        return -1;
    w->kind = JOB_KIND_RUNNING;
    w->questions = 0;
    w->ask_at = 0;
    return 0;
}

/* Where the job is now. -1 with err: waiting has no sense. Slurm that does not answer for a while
 * is waited for, if it has answered once: then the leader is where it was. */
static int ask_slurm(struct waiting *w, struct error *err)
{
    struct query now = {0};
    w->ask_at = monotonic_ms() + wait_pause(w->questions++) * 1000LL;
    start_slurm(w);
    enum query_result result = query_find(w->site, w->arguments->job_id, &now, err);
    bool known = result == QUERY_ANSWERED || result == QUERY_NOT_THERE;
    if (!known && (!w->found || result == QUERY_REFUSED)) {
        query_clear(&now);
        return -1;
    }
    if (result == QUERY_FAILED)
        return 0;
    w->kind = known ? now.info->state : JOB_KIND_UNKNOWN;
    w->found = true;
    query_clear(&w->query);
    w->query = now;
    return 0;
}

/* Once, and not of a job that has just started: somebody who waits for a job that is none of ours
 * would wait for ever. */
static void tell_silence(struct waiting *w, const struct error *why)
{
    if (!w->told && w->questions > QUESTIONS_UNTOLD) {
        failed(why);
        w->told = true;
    }
}

/* One look at the job. -1 with err: waiting has no sense. */
static int look(struct waiting *w, struct error *err)
{
    struct error why;
    if (query_is_found(&w->query) && ask_leader_again(w, &why) == 0)
        return 0;
    keep(w, NULL);
    if (monotonic_ms() < w->ask_at)
        return 0;
    if (ask_slurm(w, err) < 0)
        return -1;
    if (query_is_found(&w->query) && ask_leader_again(w, &why) < 0)
        tell_silence(w, &why);
    return 0;
}

static enum exit_status report(const struct waiting *w, enum wait_verdict verdict)
{
    static const struct {
        const char *json, *text;
        enum exit_status status;
    } outcomes[] = {
        [WAIT_ON] = {"timeout", "the time is over", STATUS_TIMEOUT},
        [WAIT_REACHED] = {"reached", NULL, STATUS_OK},
        [WAIT_ENDED] = {"ended", "the job has ended before", STATUS_ENDED},
    };
    if (w->arguments->json) {
        json_object *report = text_need(json_object_new_object());
        json_object_object_add(report, "job", json_object_new_int64(w->arguments->job_id));
        json_object_object_add(report, "outcome",
                               text_need(json_object_new_string(outcomes[verdict].json)));
        json_object_object_add(report, "state", json_object_get(w->state));
        print_json(report, false);
    } else if (outcomes[verdict].text != NULL)
        log_error("job %u: %s", w->arguments->job_id, outcomes[verdict].text);
    return outcomes[verdict].status;
}

static void pause_for_a_look(const struct waiting *w)
{
    long long ms = LOOK_MS, left = w->end > 0 ? w->end - monotonic_ms() : ms;
    if (left < ms)
        ms = left > 0 ? left : 0;
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&pause, NULL);
}

static enum exit_status wait_for(struct waiting *w)
{
    struct error err;
    for (;;) {
        if (look(w, &err) < 0)
            return failed(&err);
        enum wait_verdict verdict = wait_decide(&w->arguments->goal, w->kind, w->state, &err);
        if (verdict == WAIT_NEVER)
            return failed(&err);
        if (verdict != WAIT_ON || is_over(w))
            return report(w, verdict);
        pause_for_a_look(w);
    }
}

static enum exit_status run(const struct arguments *arguments)
{
    struct waiting w = {.arguments = arguments};
    struct error err;
    if (arguments->wait_seconds > 0)
        w.end = monotonic_ms() + arguments->wait_seconds * 1000LL;
    start_slurm(&w);
    w.site = site_create(&err);
    if (w.site == NULL)
        return failed(&err);
    enum exit_status status = wait_for(&w);
    json_object_put(w.state);
    query_clear(&w.query);
    site_destroy(w.site);
    return status;
}

const struct command wait_command = {
    .name = "wait",
    .summary = "wait until a job has a size, a step or a state, or has ended",
    .help = "Usage: selastic wait JOB [--size N|MIN:MAX] [--step N] [--state STATE]\n"
            "                         [--timeout S] [--json]\n"
            "       selastic wait JOB --ended [--timeout S] [--json]\n"
            "\n"
            "Wait until an elastic job is as described, for scripts. Of several conditions all\n"
            "have to hold at the same time. The job is looked at once a second; what lasts for\n"
            "less may be missed. Slurm is asked only while the job's leader does not answer.\n"
            "\n"
            "      --size N|MIN:MAX  so many nodes train\n"
            "      --step N          training has made N steps, in all its generations\n"
            "      --state STATE     pending, waiting, running, switching or ending\n"
            "      --ended           the job has ended, whatever its exit status\n"
            "      --timeout S       give up after S seconds (default: never)\n"
            "      --json            print JSON: the outcome, and the state of the job\n"
            "  -h, --help            print this text\n"
            "\n"
            "Exit status: 0 it is so; 1 it cannot be waited for; 3 the time is over; 4 the job\n"
            "has ended before.\n",
    .run = run,
};
