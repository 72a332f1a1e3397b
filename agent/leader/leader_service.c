/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The service of the job (leader_service.h).
 *
 *   CLAIMS ─► WAITS (another job runs it) ─► CLAIMS ─► SERVES ─► LOST (another job has claimed it)
 *                                                      SERVES ◄─► HANDED (… as was agreed)
 *
 * Files are written by threads, one after the other: the record first, then what follows of it. */
#include "agent/leader/leader_service.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "agent/leader/fit_desk.h"
#include "agent/leader/fit_runner.h"
#include "agent/leader/gangs.h"
#include "agent/leader/leader_internal.h"
#include "agent/leader/leader_roles.h"
#include "agent/leader/lease.h"
#include "agent/leader/model_copies.h"
#include "agent/leader/route_waiters.h"
#include "agent/leader/service_act.h"
#include "agent/leader/service_next.h"
#include "agent/leader/service_shell.h"
#include "agent/leader/service_text.h"
#include "common/log.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/reconcile.h"
#include "lib/roles_program.h"
#include "lib/s3_place.h"
#include "lib/service.h"
#include "lib/text.h"

#define BEAT_PAUSE   10.0 /* seconds between two writes of leader.json */
#define OFFER_PAUSE  1.0  /* … while another job may claim the service */
#define MIB          ((int64_t)1 << 20)
#define COPIES_DIR   "copies" /* in the directory of the service */
#define DEFAULT_SIZE MIB      /* of a model of which nothing is known */

static void on_timer(uv_timer_t *timer);

bool leader_service_any(const struct leader *leader)
{
    return leader->of_roles.service->role != NULL;
}

void leader_service_look(struct leader *leader)
{
    if (leader_service_any(leader))
        service_run_in(leader, 0);
}

/* ---- leader.json ----------------------------------------------------------------------------- */

static void beaten(void *owner, struct service_task *task)
{
    struct leader *leader = owner;

    leader->of_roles.service->beat = NULL;
    if (task->rc != 0 && task->claim == SERVICE_OTHERS)
        service_taken(leader, task->err.text);
    service_run_in(leader, leader->of_roles.service->ended ? BEAT_PAUSE : 0);
    leader_look_at_end(leader, 0);
}

static void write_leader(struct leader *leader, bool ended)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_task *task = service_new_task(leader, SERVICE_TASK_WRITE, beaten);
    bool leads = own->phase == PHASE_SERVES;

    own->beats = leader_now(leader) +
                 (own->next_job.handover.state == HANDOVER_OFFERS ? OFFER_PAUSE : BEAT_PAUSE);
    own->ended = ended;
    if (task != NULL) {
        snprintf(task->name, sizeof(task->name), "%s",
                 leads ? SERVICE_LEADER_FILE : SERVICE_BEFORE_FILE);
        task->text = service_text_leader(leader, own->term, ended);
        task->leads = leads;
    }
    service_begin(leader, task, &own->beat);
}

/* Another job waits for that. A job that has handed the service over says so in before.json. */
static void watch_leader(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    bool ended = leader_has_ended(leader);

    if (own->beat != NULL || own->service == NULL || own->phase == PHASE_LOST || own->ended)
        return;
    if (ended || leader_now(leader) >= own->beats)
        write_leader(leader, ended);
    service_run_in(leader, own->beats - leader_now(leader));
}

bool leader_service_busy(const struct leader *leader)
{
    const struct leader_service *own = leader->of_roles.service;

    return own->role != NULL && (own->phase == PHASE_SERVES || own->phase == PHASE_HANDED) &&
           !lease_deposed(leader) && (!own->ended || own->beat != NULL);
}

bool leader_service_routed(struct leader *leader, const char *router, int64_t epoch,
                           int64_t revision, json_object *report)
{
    struct service *service = leader->of_roles.service->service;
    json_object *drained = report != NULL ? json_object_object_get(report, "drained") : NULL;
    json_object *sessions = report != NULL ? json_object_object_get(report, "sessions") : NULL;
    json_object *asked = report != NULL ? json_object_object_get(report, "asked") : NULL;
    bool taken = service_routed(service, router, epoch, revision, drained, leader_now(leader));

    if (sessions != NULL)
        service_sessions(service, router, sessions);
    if (asked != NULL)
        service_asked(service, router, asked, json_get_bool(report, "asked-more", false));
    service_run_in(leader, 0);
    return taken;
}

/* ---- the repository -------------------------------------------------------------------------- */

/* Once, as long as there are too many. */
static void say_left_out(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    int count = service_left_out(own->service);

    if (count > 0 && !own->said_left_out)
        log_error("job %u: service %s: it has at most %d models, and %s has more: %d are left out, "
                  "all others go on",
                  leader->options->job, leader->options->roles->service, SHARD_COMMANDS_MODELS_MAX,
                  error_path(own->repository).text, count);
    own->said_left_out = count > 0;
}

static void take_models(struct leader *leader, const struct service_found *found)
{
    struct leader_service *own = leader->of_roles.service;

    own->scanned = true;
    if (service_models(own->service, found->list, found->count, leader_now(leader)) != 0)
        log_error("job %u: service: out of memory", leader->options->job);
    say_left_out(leader);
}

static void scanned(void *owner, struct service_task *task)
{
    struct leader *leader = owner;
    struct leader_service *own = leader->of_roles.service;

    own->scan = NULL;
    if (own->scan_copies)
        model_copies_scanned(leader);
    own->scans = leader_now(leader) + leader->options->roles->models.every;
    if (task->rc != 0 && !own->unreadable)
        log_error("job %u: service %s: %s; its models stay as they are", leader->options->job,
                  leader->options->roles->service, task->err.text);
    own->unreadable = task->rc != 0;
    if (task->rc == 0 && own->phase == PHASE_SERVES)
        take_models(leader, &task->found);
    /* Not before the look: what has failed is not to begin again when it is there no more. */
    if (own->flushes && own->phase == PHASE_SERVES)
        shard_commands_flush(service_brain(own->service));
    service_run_in(leader, 0);
    leader_look_at_end(leader, 0);
}

static void watch_repository(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_task *task;

    model_copies_look(leader);
    if (own->scan != NULL || own->phase != PHASE_SERVES || service_holds(own->service) ||
        !model_copies_known(leader))
        return;
    if (own->scan_now || leader_now(leader) >= own->scans) {
        /* What somebody has asked for may not have been copied so far. */
        bool later = model_copies_asked(leader);

        own->scan_now = false;
        own->scan_copies = !model_copies_run(leader);
        own->flushes = own->flush_found && !later;
        own->flush_found = own->flush_found && later;
        task = service_new_task(leader, SERVICE_TASK_SCAN, scanned);
        if (task != NULL)
            task->copies = model_copies_any(leader);
        service_begin(leader, task, &own->scan);
        own->scans = leader_now(leader) + leader->options->roles->models.every;
    }
    service_run_in(leader, own->scans - leader_now(leader));
}

/* ---- the claim ------------------------------------------------------------------------------- */

static int open_service(struct leader *leader, const struct service_task *task, struct error *err)
{
    struct leader_service *own = leader->of_roles.service;
    const struct roles *roles = leader->options->roles;
    const struct role *role = own->role;
    char *program = roles_program(roles);
    json_object *record = NULL, *table = NULL;
    struct service_options options = {
        .brain = {.capacity = role->shards.capacity * MIB,
                  .max_shards = role->shards.max,
                  .default_size = DEFAULT_SIZE,
                  .window = role->shards.window,
                  .idle = role->shards.idle,
                  .restarts = roles_are_trained(roles) && roles->fit.replace != ROLES_FIT_LOAD},
        .scale = {.least = role->max,
                  .most = role->shards.most > 0 ? role->shards.most : role->max,
                  .sessions = role->shards.sessions,
                  .calm = role->shards.calm},
        .in_place = role->shards.load != 0,
        .surge = role->shards.surge,
        .unavailable = role->shards.unavailable,
        .one_first = roles_are_trained(roles) && roles->fit.replace == ROLES_FIT_ALL,
        .fail_fast = role->shards.fail_fast,
        .job = leader->options->job,
        .name = roles->service,
        .application = program,
    };

    if (task->record != NULL)
        record = json_text_parse(task->record, strlen(task->record), err);
    if (task->table != NULL)
        table = json_text_parse(task->table, strlen(task->table), NULL);
    if (program == NULL)
        error_set(err, "out of memory");
    else if (task->record == NULL || record != NULL)
        own->service = service_create(&options, record, table, leader_now(leader), err);
    json_object_put(record);
    json_object_put(table);
    free(program);
    return own->service != NULL ? 0 : -1;
}

/* It serves, or waits as before. */
static void claim_failed(struct leader *leader, struct service_task *task)
{
    struct leader_service *own = leader->of_roles.service;
    const char *name = leader->options->roles->service;

    if (task->rc == 0)
        service_next_others(leader, task);
    if (own->phase == PHASE_HANDED)
        return;
    if (!own->said_waits && task->rc == 0)
        log_info("job %u: service %s is run by job %u: waits for its end", leader->options->job,
                 name, task->claimed.holder);
    else if (!own->said_waits)
        log_error("job %u: service %s: %s; tries again", leader->options->job, name,
                  task->err.text);
    own->said_waits = true;
    own->phase = PHASE_WAITS;
}

static void claimed(void *owner, struct service_task *task)
{
    struct leader *leader = owner;
    struct leader_service *own = leader->of_roles.service;

    own->task = NULL;
    own->claims = leader_now(leader) + service_next_pause(leader);
    service_run_in(leader, service_next_pause(leader));
    leader_look_at_end(leader, 0);
    if (task->rc != 0 || task->claim == SERVICE_OTHERS) {
        claim_failed(leader, task);
        return;
    }
    own->term = task->claimed.term;
    own->beats = 0;
    service_destroy(own->service);
    own->service = NULL;
    if (open_service(leader, task, &task->err) != 0) {
        service_lose(leader, task->err.text);
        return;
    }
    own->phase = PHASE_SERVES;
    log_info("job %u: runs service %s, term %" PRId64 "%s", leader->options->job,
             leader->options->roles->service, own->term,
             task->record != NULL ? ", with what it had before" : "");
    service_next_mine(leader, task);
    service_run_in(leader, 0);
}

static void watch_claim(struct leader *leader)
{
    struct leader_service *own = leader->of_roles.service;
    struct service_task *task;

    if (own->task != NULL || leader_has_ended(leader))
        return;
    if (leader_now(leader) < own->claims) {
        service_run_in(leader, own->claims - leader_now(leader));
        return;
    }
    if (own->phase == PHASE_WAITS)
        own->phase = PHASE_CLAIMS;
    task = service_new_task(leader, SERVICE_TASK_CLAIM, claimed);
    if (task != NULL) {
        task->gone = own->next_job.gone;
        task->now = leader_now(leader);
    }
    service_begin(leader, task, &own->task);
}

/* ---- the timer ------------------------------------------------------------------------------- */

static void on_timer(uv_timer_t *timer)
{
    struct leader *leader = timer->data;
    struct leader_service *own = leader->of_roles.service;

    route_waiters_tell(leader);
    if (!lease_may_act(leader) && !leader_has_ended(leader))
        return; /* leader_service_look() follows */
    if (own->phase == PHASE_CLAIMS || own->phase == PHASE_WAITS ||
        (own->phase == PHASE_HANDED && !own->next_job.stopped))
        watch_claim(leader);
    watch_leader(leader);
    fit_runner_look(leader);
    if ((own->phase != PHASE_SERVES && own->phase != PHASE_HANDED) || leader_has_ended(leader))
        return;
    service_next_watch(leader);
    watch_repository(leader);
    if (own->running && own->task == NULL && leader_now(leader) >= own->retries)
        service_act_go_on(leader);
    /* Replicas that go on after a takeover are known by now, and models that there are. */
    if (!own->running && (own->scanned || service_holds(own->service)) && leader_roles_run(leader))
        service_act_run(leader);
}

/* ---- what users ask -------------------------------------------------------------------------- */

int leader_service_ready(const struct leader *leader, struct error *err)
{
    const struct leader_service *own = leader->of_roles.service;
    const uint32_t job = leader->options->job;

    if (own->role == NULL)
        return error_set(err, "job %u runs no service", job);
    if (own->phase == PHASE_SERVES)
        return 0;
    if (own->phase == PHASE_LOST || own->phase == PHASE_HANDED)
        return error_set(err, "job %u does not run service %s any more", job,
                         leader->options->roles->service);
    return error_set(err, "job %u does not run service %s yet: it claims it", job,
                     leader->options->roles->service);
}

int leader_service_routes(const struct leader *leader, struct error *err)
{
    return leader->of_roles.service->phase == PHASE_HANDED ? 0 : leader_service_ready(leader, err);
}

const char *leader_service_table(const struct leader *leader, int64_t *revision)
{
    *revision = leader->of_roles.service->revision;
    return leader->of_roles.service->text;
}

void leader_service_apply(struct leader *leader)
{
    if (model_copies_any(leader))
        model_copies_ask(leader);
    else
        leader->of_roles.service->scan_now = true;
    service_run_in(leader, 0);
}

void leader_service_flush(struct leader *leader, bool repack)
{
    if (repack)
        shard_commands_repack(service_brain(leader->of_roles.service->service));
    leader->of_roles.service->flush_found = !repack;
    leader_service_apply(leader);
}

void leader_service_measured(struct leader *leader, json_object *sizes)
{
    struct leader_service *own = leader->of_roles.service;

    if (own->service == NULL || own->phase != PHASE_SERVES || sizes == NULL)
        return;
    service_measured(own->service, sizes, leader_now(leader));
    service_run_in(leader, 0);
}

const char *leader_service_model(const struct leader *leader, const char *name, const char *key,
                                 struct error *err)
{
    return service_model(leader->of_roles.service->service, name, key, err);
}

int leader_service_move(struct leader *leader, const char *model, int shard, struct error *err)
{
    struct service *service = leader->of_roles.service->service;

    if (shard_commands_move(service_brain(service), model, shard, err) != 0)
        return -1;
    service_run_in(leader, 0);
    return 0;
}

int leader_service_place(struct leader *leader, int shard, char *const *models, int *changes,
                         struct error *err)
{
    struct leader_service *own = leader->of_roles.service;

    if (service_place(own->service, shard, models, leader_now(leader), changes, err) != 0)
        return -1;
    own->scan_now = true;
    service_run_in(leader, 0);
    return 0;
}

int leader_service_withdraw(struct leader *leader, const char *model, struct error *err)
{
    if (service_withdraw(leader->of_roles.service->service, model, leader_now(leader)) != 0)
        return error_set(err, "out of memory");
    leader->of_roles.service->scan_now = true;
    service_run_in(leader, 0);
    return 0;
}

void leader_service_serve(struct leader *leader, const char *model)
{
    service_serve(leader->of_roles.service->service, model);
    leader->of_roles.service->scan_now = true;
    service_run_in(leader, 0);
}

void leader_service_describe(struct leader *leader, json_object *into)
{
    service_describe(leader->of_roles.service->service, leader_now(leader), into);
    json_object_object_add(into, "term", json_object_new_int64(leader->of_roles.service->term));
    json_object_object_add(into, "repository",
                           json_object_new_string(model_copies_any(leader)
                                                      ? leader->options->roles->models.repository
                                                      : leader->of_roles.service->repository));
    if (service_next_any(leader))
        json_object_object_add(into, "handover", service_text_handover(leader));
    json_object_object_add(into, "dir", json_object_new_string(leader->of_roles.service->dir));
    fit_runner_describe(leader, into);
}

void leader_service_counts(struct leader *leader, json_object *into)
{
    const struct leader_service *own = leader->of_roles.service;

    if (own->phase == PHASE_SERVES)
        json_object_object_add(into, "service", service_counts(own->service));
}

/* ---- life ------------------------------------------------------------------------------------ */

static void set_paths(struct leader_service *own, const struct leader_options *options)
{
    const struct roles *roles = options->roles;
    bool copies = s3_place_is(roles->models.repository);
    const char *repository = copies ? roles->models.copies : roles->models.repository;
    const char *below = copies ? roles->service : "";
    struct error err = {""};

    if (service_dir_path(own->dir, sizeof(own->dir), options->roles->service, &err) != 0) {
        log_error("job %u: service %s: %s", options->job, options->roles->service, err.text);
        own->phase = PHASE_LOST;
    }
    if (repository == NULL)
        snprintf(own->repository, sizeof(own->repository), "%.*s/" COPIES_DIR,
                 (int)(sizeof(own->repository) - sizeof("/" COPIES_DIR)), own->dir);
    else
        snprintf(own->repository, sizeof(own->repository), "%s%s%s%s%s",
                 repository[0] == '/' ? "" : options->cwd, repository[0] == '/' ? "" : "/",
                 repository, copies ? "/" : "", below);
}

struct leader_service *leader_service_create(const struct leader_options *options)
{
    struct leader_service *own = calloc(1, sizeof(*own));

    if (own == NULL)
        return NULL;
    own->fit = fit_runner_create();
    own->desk = fit_desk_create();
    own->copies = model_copies_create();
    if (own->fit == NULL || own->desk == NULL || own->copies == NULL) {
        fit_desk_destroy(own->desk);
        fit_runner_destroy(own->fit);
        model_copies_destroy(own->copies);
        free(own);
        return NULL;
    }
    TAILQ_INIT(&own->waiters);
    own->on_timer = on_timer;
    if (options->roles == NULL || options->roles->service == NULL)
        return own;
    own->role = &options->roles->list[roles_shards(options->roles)];
    own->phase = PHASE_CLAIMS;
    service_handover_init(&own->next_job.handover);
    set_paths(own, options);
    return own;
}

void leader_service_open(struct leader *leader)
{
    leader_timer_init(leader, &leader->of_roles.service->timer);
}

void leader_service_close(struct leader *leader)
{
    fit_desk_close(leader);
    fit_runner_close(leader);
    model_copies_close(leader);
    leader_timer_close(&leader->of_roles.service->timer);
}

static void disown(struct service_task *task)
{
    if (task != NULL)
        task->owner = NULL;
}

void leader_service_destroy(struct leader_service *own)
{
    if (own == NULL)
        return;
    route_waiters_clear(own);
    disown(own->task);
    disown(own->scan);
    disown(own->beat);
    disown(own->next_job.program);
    disown(own->next_job.look);
    service_next_forget(own);
    service_actions_clear(&own->actions);
    service_destroy(own->service);
    json_object_put(own->table);
    free(own->text);
    fit_desk_destroy(own->desk);
    fit_runner_destroy(own->fit);
    model_copies_destroy(own->copies);
    free(own);
}
