/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fit/runner and fit/steps on a real directory, with a model of the leader and of the trainer. The
 * runner's process ends before, or after, each write of its record. Whoever follows comes to the
 * same end. */
#include "tests/unit/support.h"
#include "tests/unit/test_dir.h"

#include <fcntl.h>
#include <glob.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sodium.h>

#include "common/files.h"
#include "common/stop.h"
#include "fit/acl.h"
#include "fit/foreign.h"
#include "fit/grant.h"
#include "fit/new_state.h"
#include "fit/put_list.h"
#include "fit/runner.h"
#include "fit/spec.h"
#include "fit/training.h"
#include "fit/trainer_link.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/states.h"

#define LOOKS_MAX  2000
#define WRITES_MAX 40 /* more than a fit has */
#define CRASHED    77
#define NO_MOUNTS  78

enum end { ENDS_WELL, TRAINING_FAILS, REPLICAS_FAIL, IS_CANCELLED };

/* What the leader knows lies in files: it outlives the runner. */
static struct home home;
static char place[sizeof(home.dir) + 16];
static enum end wanted;
static bool multi;        /* a trainer of another user: nobody */
static bool mounts;       /* … which mounts something in the place of its result */
static const char *moves; /* … which puts the starter's `secret` to this name, at this question */
static const char *moves_at;
static enum { A_PROGRAM, A_ROLE, A_WORLD } trains;
static const char *passes_on; /* --from */
static char *run_json;        /* what is to be done, as it was at the start */
static int crash_at;          /* the write that is the last one; 0: none is */
static bool crash_after;
static int writes;

/* ---- the end of the process ------------------------------------------------------------------ */

int __real_home_record_write(const struct home *of, int64_t id, struct home_record *record,
                             struct error *err);
int __wrap_home_record_write(const struct home *of, int64_t id, struct home_record *record,
                             struct error *err);

int __wrap_home_record_write(const struct home *of, int64_t id, struct home_record *record,
                             struct error *err)
{
    bool last = ++writes == crash_at;
    int rc;

    if (last && !crash_after)
        _exit(CRASHED);
    rc = __real_home_record_write(of, id, record, err);
    if (last)
        _exit(CRASHED);
    return rc;
}

/* ---- the time -------------------------------------------------------------------------------- */

int __real_clock_gettime(clockid_t clock, struct timespec *time);
int __wrap_clock_gettime(clockid_t clock, struct timespec *time);

static int leap; /* seconds that have passed, for who looks at the clock */

/* The leader is not asked all the time how far its world is. Here no test waits for that. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *time)
{
    static int looks;
    int rc = __real_clock_gettime(clock, time);

    time->tv_sec += leap + (trains == A_WORLD ? looks++ / 8 : 0);
    return rc;
}

/* ---- the trainer's files --------------------------------------------------------------------- */

int __real_foreign_take(const char *from, const char *to, const struct foreign *foreign,
                        struct error *err);
int __wrap_foreign_take(const char *from, const char *to, const struct foreign *foreign,
                        struct error *err);

/* They are this user's here. */
int __wrap_foreign_take(const char *from, const char *to, const struct foreign *foreign,
                        struct error *err)
{
    struct foreign own = *foreign;

    own.owner = geteuid();
    return __real_foreign_take(from, to, &own, err);
}

/* What is taken is removed. The process ends in the middle of that. */
static bool crash_removing;
int __real_dir_remove_so(const char *path, const struct dir_removal *how, struct error *err);
int __wrap_dir_remove_so(const char *path, const struct dir_removal *how, struct error *err);

int __wrap_dir_remove_so(const char *path, const struct dir_removal *how, struct error *err)
{
    char list[PATH_MAX];

    if (crash_removing && strstr(path, GRANT_INCOMING) != NULL) {
        snprintf(list, sizeof(list), "%s/" PUT_LIST_FILE, path);
        assert_int_equal(unlink(list), 0);
        _exit(CRASHED);
    }
    return __real_dir_remove_so(path, how, err);
}

/* ---- the leader ------------------------------------------------------------------------------ */

static void path_of(char path[PATH_MAX], const char *name)
{
    snprintf(path, PATH_MAX, "%s/%s", home.dir, name);
}

static void set_text(const char *name, const char *text)
{
    char path[PATH_MAX];

    path_of(path, name);
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static void get_text(const char *name, char *text, size_t size)
{
    char path[PATH_MAX], *read;

    path_of(path, name);
    read = file_read(path, 100, NULL, NULL);
    snprintf(text, size, "%s", read != NULL ? read : "");
    free(read);
}

/* The model's pointer, as the leader sees it in its repository. */
static void see_current(char name[64])
{
    char path[PATH_MAX];
    ssize_t len;

    snprintf(path, sizeof(path), "%s/" STATE_POINTER, place);
    len = readlink(path, name, 63);
    name[len > 0 ? len : 0] = '\0';
}

int service_look(struct service_link *link, const char *model, struct service_look *look,
                 struct error *err)
{
    char served[64], broken[64];
    static int looks; /* each second one sees a replica that starts */

    (void)link;
    (void)model;
    (void)err;
    *look = (struct service_look){0};
    get_text("served", served, sizeof(served));
    get_text("broken", broken, sizeof(broken));
    see_current(look->version);
    look->known = look->version[0] != '\0' || served[0] != '\0';
    if (strcmp(look->version, served) != 0 && strcmp(look->version, broken) != 0) {
        if (wanted == REPLICAS_FAIL && strcmp(look->version, "000001") != 0) {
            set_text("broken", look->version);
            snprintf(broken, sizeof(broken), "%s", look->version);
        } else {
            set_text("served", look->version);
            look->updating = true;
        }
    }
    if (broken[0] != '\0' && strcmp(look->version, broken) == 0)
        snprintf(look->why, sizeof(look->why), "shard_1 did not get ready with %s", broken);
    snprintf(look->has, sizeof(look->has), "%s", served);
    look->routed = served[0] != '\0';
    look->wanted = look->routed ? 2 : 0;
    look->ready = looks++ % 2 == 0 ? look->wanted / 2 : look->wanted;
    return 0;
}

/* It would try a state once more that has failed. */
int service_flush(struct service_link *link, struct error *err)
{
    char current[64], broken[64];

    (void)link;
    (void)err;
    see_current(current);
    get_text("broken", broken, sizeof(broken));
    if (broken[0] != '\0' && strcmp(current, broken) == 0)
        set_text("retried", broken);
    return 0;
}

int service_train(struct service_link *link, const char *role, int count,
                  struct service_trainer *trainer, struct error *err)
{
    char ended[8];

    (void)link;
    (void)err;
    assert_string_equal(role, trains == A_PROGRAM ? "fit" : "learner");
    set_text("trainers", count > 0 ? "1" : "");
    get_text("ended", ended, sizeof(ended));
    *trainer = (struct service_trainer){.there = count, .ready = count > 0};
    if (trains == A_WORLD && ended[0] != '\0') {
        trainer->there = 0;
        trainer->ready = false;
        trainer->ended = count > 0;
        trainer->status = atoi(ended);
    }
    return 0;
}

/* ---- the trainer ----------------------------------------------------------------------------- */

static void say(const char *file, int code)
{
    json_object *json = json_object_new_object();

    json_object_object_add(json, "exit", json_object_new_int(code));
    assert_int_equal(home_write(&home, 1, file, json, NULL), 0);
}

/* An attempt writes a file that has its name. */
static void write_files(const struct new_state *state)
{
    struct new_state_path path = new_state_attempt_path(place, state->number, state->attempt);
    char file[PATH_MAX + 16];

    snprintf(file, sizeof(file), "%.4000s/of-%.20s", path.text, state->attempt);
    assert_int_equal(file_replace(file, "w", 1, 0600, NULL), 0);
}

static void end_attempt(const struct home_record *record, const char *name)
{
    const struct new_state state = {.place = place, .number = record->state, .attempt = name};
    struct spec spec;

    if (new_state_begin(&state, NULL) != 0)
        return; /* it is published */
    assert_int_equal(spec_read(&home, 1, &spec, NULL), 0);
    assert_int_equal(training_call(&home, 1, &spec, record, name, NULL), 0);
    spec_clear(&spec);
    write_files(&state);
    assert_int_equal(new_state_finish(&state, "fit 1", NULL), 0);
    if (wanted == TRAINING_FAILS)
        say(HOME_FIT_FILE, 3);
    else
        assert_int_equal(training_done(&home, 1, name, NULL), 0);
}

/* It does what the record on disk says, as a process of its own does. */
static void train(void)
{
    struct home_record record;
    char trainers[8], ended[8];

    get_text("trainers", trainers, sizeof(trainers));
    if (trainers[0] == '\0' || home_record_read(&home, 1, &record, NULL) != 0)
        return;
    if (record.fit.dedicated && !home_has(&home, 1, HOME_TRAINER_FILE) && trains != A_WORLD)
        say(HOME_TRAINER_FILE, 0);
    get_text("ended", ended, sizeof(ended));
    /* One that was taken for lost has ended, too. */
    if (trains == A_ROLE && record.fit.action == FIT_DO_COMPLETE)
        end_attempt(&record, "7.0.1");
    if (ended[0] != '\0' || multi || record.fit.action != FIT_DO_FIT ||
        home_has(&home, 1, HOME_FIT_FILE) || record.fit.cleaning)
        return;
    if (wanted == IS_CANCELLED) {
        home_make(&home, 1, HOME_CANCEL_FILE);
        return;
    }
    if (trains == A_WORLD) { /* the runner makes a state of it */
        write_files(&(struct new_state){.number = record.state, .attempt = "7"});
        set_text("ended", wanted == TRAINING_FAILS ? "3" : "0");
        return;
    }
    end_attempt(&record, "7.0.2");
}

/* ---- the trainer of another user ------------------------------------------------------------- */

#define OTHER_USER "nobody"

int service_note(struct service_link *link, const char *service, const char *payer,
                 struct error *err)
{
    (void)link;
    (void)service;
    (void)payer;
    (void)err;
    return 0;
}

struct trainer_link *trainer_link_create(const struct trainer_name *name)
{
    assert_string_equal(name->user, OTHER_USER);
    return calloc(1, 1);
}

void trainer_link_destroy(struct trainer_link *link)
{
    free(link);
}

/* Who is at work there has access: to the data, and to where its result belongs. */
static bool has_access(const char *path)
{
    const struct passwd *other = getpwnam(OTHER_USER);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool has = false;

    assert_non_null(other);
    if (fd < 0)
        return false;
    assert_int_equal(acl_has_user(fd, path, other->pw_uid, &has, NULL), 0);
    close(fd);
    return has;
}

/* As this user would be that one: the files are put there, and it is that user's turn no more. */
static void train_elsewhere(json_object *call)
{
    const char *to = json_object_get_string(json_object_object_get(call, "modelDir"));
    char from[PATH_MAX], file[PATH_MAX + 16], data[PATH_MAX];

    path_of(from, "theirs");
    path_of(data, "data");
    assert_true(has_access(data) && has_access(to));
    snprintf(file, sizeof(file), "%s/weights", from);
    assert_int_equal(dir_make(from, NULL), 0);
    assert_int_equal(file_replace(file, "w", 1, 0600, NULL), 0);
    assert_int_equal(foreign_put(from, to, &(struct foreign){.owner = geteuid()}, NULL), 0);
    if (mounts)
        assert_int_equal(mount("none", to, "tmpfs", 0, NULL), 0);
    set_text("begun", "1");
}

/* Whoever may rename above the state of before, or the new one, can do so. */
static void move_secret(void)
{
    char to[PATH_MAX], away[PATH_MAX], secret[PATH_MAX];

    path_of(to, moves);
    path_of(away, "away");
    path_of(secret, "secret");
    if (access(secret, F_OK) == 0 && rename(to, away) == 0)
        assert_int_equal(rename(secret, to), 0);
}

/* An S3 server answers for ever: the action of the clean-up ends, and is tried again. */
static bool hangs;

static void hang(void)
{
    int from = leap;

    hangs = false;
    while (stop_asked() == 0)
        if (leap++ > from + 300)
            _exit(3);
}

/* A question to the trainer ends the process that asks, as after its deadline. */
static bool ends_the_runner, is_left;

void trainer_link_leave(struct trainer_link *link)
{
    (void)link;
    is_left = true;
}

enum trainer_said trainer_link_ask(struct trainer_link *link, json_object *request,
                                   json_object **answer, struct error *err)
{
    const char *type = json_object_get_string(json_object_object_get(request, "t"));
    json_object *call = json_object_object_get(request, "call");
    static json_object *said;
    char text[128], begun[8];

    (void)link;
    (void)err;
    if (strcmp(type, "fit-end") == 0 && ends_the_runner) {
        json_object_put(request);
        if (is_left)
            return TRAINER_REFUSES;
        _exit(CRASHED);
    }
    if (strcmp(type, "fit-end") == 0 && hangs) {
        hang();
        error_set(err, "stopped, or out of time");
        json_object_put(request);
        return TRAINER_WAITS;
    }
    if (strcmp(type, "fit-begin") == 0 && wanted != IS_CANCELLED)
        train_elsewhere(call);
    if (strcmp(type, "fit-begin") == 0 && wanted == IS_CANCELLED)
        home_make(&home, 1, HOME_CANCEL_FILE);
    if (moves != NULL && strcmp(type, moves_at) == 0)
        move_secret();
    get_text("begun", begun, sizeof(begun));
    snprintf(text, sizeof(text), "{\"number\": 5, \"ready\": true, \"over\": true%s%s%s",
             begun[0] != '\0' && strcmp(type, "fit-look") == 0 ? ", \"result\": {\"exit\": " : "",
             begun[0] == '\0' || strcmp(type, "fit-look") != 0 ? ""
             : wanted == TRAINING_FAILS                        ? "3}"
                                                               : "0}",
             "}");
    json_object_put(said);
    *answer = said = json_text_parse(text, strlen(text), NULL);
    json_object_put(request);
    return TRAINER_ANSWERS;
}

/* ---- a history ------------------------------------------------------------------------------- */

/* A state that counts, and is served. */
static void make_state(int64_t number)
{
    const struct new_state state = {.place = place, .number = number};
    char file[PATH_MAX + 16], name[STATE_NAME_SIZE];
    struct error err = {""};

    state_name(name, number);
    assert_int_equal(new_state_make(&state, NULL, &err), 0);
    snprintf(file, sizeof(file), "%s/weights", new_state_path(place, number, false).text);
    assert_int_equal(file_replace(file, "w", 1, 0600, &err), 0);
    assert_int_equal(new_state_finish(&state, "by hand", &err), 0);
    assert_int_equal(new_state_publish(&state, &err), 0);
    snprintf(file, sizeof(file), "%s/" STATE_POINTER, place);
    unlink(file);
    assert_int_equal(symlink(name, file), 0);
    set_text("served", name);
}

static char *read_run(void)
{
    char *text = file_read(home_path(&home, 1, HOME_RUN_FILE).text, HOME_FILE_MAX, NULL, NULL);

    assert_non_null(text);
    return text;
}

static void begin(void)
{
    struct spec_order order = {.service = "s", .model = "m", .data = "/d", .from = passes_on};
    char text[PATH_MAX + 128], data[PATH_MAX];
    struct error err = {""};
    json_object *service;
    int64_t id;

    assert_true(make_test_dir(home.dir));
    assert_int_equal(chmod(home.dir, 0711), 0); /* a trainer has to pass it */
    assert_int_equal(setenv("HOME", home.dir, 1), 0);
    snprintf(place, sizeof(place), "%s/models/m", home.dir);
    make_state(1);
    if (multi) {
        path_of(data, "data");
        set_text("data", "d");
        order.data = data;
        order.trainer = "t@" OTHER_USER;
    }
    snprintf(text, sizeof(text), "{\"repository\": \"%s/models\", \"fit\": {%s%s}}", home.dir,
             trains == A_PROGRAM ? "\"run\": [\"t\"]" : "\"role\": \"learner\"",
             trains == A_WORLD ? ", \"world\": true" : "");
    service = json_text_parse(text, strlen(text), &err);
    assert_int_equal(home_add(&home, spec_create(&order, service, 1, &err), &id, &err), 0);
    json_object_put(service);
    free(run_json);
    run_json = read_run();
}

/* Of a child: until the fit is over, or its write has come. */
static void run_once(void)
{
    struct home_record record;
    struct runner *runner;
    struct error err = {""};
    int64_t claim;
    enum runner_sees sees;

    if (home_claim(&home, &claim, &err) != 0)
        _exit(1);
    runner = runner_create(&(struct runner_options){.home = &home, .claim = claim, .job = 7});
    for (int i = 0; i < LOOKS_MAX; i++) {
        train();
        if (runner_look(runner, &sees, &err) != 0) {
            fprintf(stderr, "%s\n", err.text);
            _exit(1);
        }
        if (home_record_read(&home, 1, &record, &err) == 0 && fit_is_over(&record.fit)) {
            runner_destroy(runner);
            _exit(0);
        }
    }
    _exit(2);
}

static int run_in_child(void)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        close(STDERR_FILENO);
        if (mounts &&
            (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
            _exit(NO_MOUNTS);
        run_once();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int count_partials(void)
{
    char path[PATH_MAX];
    int count = 0;

    for (int i = 1; i < 9; i++) {
        snprintf(path, sizeof(path), "%s", new_state_path(place, i, false).text);
        count += access(path, F_OK) == 0;
    }
    return count;
}

/* Nobody else has any. */
static void check_access(void)
{
    char path[PATH_MAX];

    assert_false(grant_is_open(&home, 1));
    for (const char *const *name =
             (const char *const[]){"", "data", "models", "models/m", "models/m/000001",
                                   "models/m/000001/weights", "models/m/000002", NULL};
         *name != NULL; name++) {
        path_of(path, *name);
        assert_false(has_access(path));
    }
}

/* It is never changed. */
static void check_run(void)
{
    char *text = read_run();
    struct stat st;

    assert_string_equal(text, run_json);
    assert_int_equal(stat(home_path(&home, 1, HOME_RUN_FILE).text, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0400);
    free(text);
}

/* Files of one attempt, and nothing else of any. */
static void check_files(void)
{
    char pattern[PATH_MAX];
    glob_t found;

    path_of(pattern, "models/m/000002/of-*");
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    globfree(&found);
    path_of(pattern, "models/m/000002/.attempt*");
    assert_int_equal(glob(pattern, 0, NULL, &found), GLOB_NOMATCH);
}

static void check_end(void)
{
    static const enum fit_status ends[] = {[ENDS_WELL] = FIT_SUCCESS,
                                           [TRAINING_FAILS] = FIT_FAILED,
                                           [REPLICAS_FAIL] = FIT_FAILED,
                                           [IS_CANCELLED] = FIT_CANCELLED};
    struct home_record record;
    char current[64], served[64], trainers[8], retried[64];

    assert_int_equal(home_record_read(&home, 1, &record, NULL), 0);
    assert_int_equal(record.fit.status, ends[wanted]);
    see_current(current);
    get_text("served", served, sizeof(served));
    get_text("trainers", trainers, sizeof(trainers));
    assert_string_equal(current, wanted == ENDS_WELL ? "000002" : "000001");
    assert_string_equal(served, current);
    get_text("retried", retried, sizeof(retried));
    assert_string_equal(trainers, "");
    assert_string_equal(retried, "");
    assert_int_equal(record.previous, 1);
    assert_int_equal(record.fit.mode, multi ? FIT_MULTI : FIT_SINGLE);
    if (multi)
        check_access();
    assert_int_equal(count_partials(), 0);
    check_run();
    if (wanted == ENDS_WELL)
        assert_int_equal(record.fit.count, 2);
    if (wanted == ENDS_WELL && !multi)
        check_files();
}

/* A crash at the n-th write of the first process. False: it did not come to that write. */
static bool play(enum end end, int write, bool after)
{
    bool crashed;
    int code;

    wanted = end;
    begin();
    crash_at = write;
    crash_after = after;
    code = run_in_child();
    crashed = code == CRASHED;
    crash_at = 0;
    if (crashed)
        code = run_in_child();
    if (code != 0)
        fail_msg("end %d, write %d: the process has ended with %d", (int)end, write, code);
    check_end();
    assert_int_equal(dir_remove(home.dir, NULL), 0);
    return crashed;
}

static void play_end(enum end end, bool after)
{
    int write = 1;

    while (play(end, write, after))
        assert_true(++write < WRITES_MAX);
    /* There is more than one or two of them. */
    assert_true(write > 5);
}

static void play_all(void)
{
    for (int end = ENDS_WELL; end <= IS_CANCELLED; end++)
        for (int after = 0; after < 2; after++)
            play_end((enum end)end, after == 1);
}

static void test_each_write(void **state)
{
    (void)state;
    multi = false;
    play_all();
}

/* The training is a role: the runner begins it otherwise, and sees the end of a world itself. */
static void test_each_write_of_a_role(void **state)
{
    (void)state;
    multi = false;
    trains = A_ROLE;
    play_end(ENDS_WELL, true);
    trains = A_WORLD;
    play_end(ENDS_WELL, false);
    play_end(TRAINING_FAILS, true);
    play_end(IS_CANCELLED, false);
    trains = A_PROGRAM;
}

static void need_other_user(void)
{
    if (getpwnam(OTHER_USER) == NULL) {
        print_message("there is no user " OTHER_USER "\n");
        skip();
    }
}

/* The same at a trainer of another user, who has access only for as long. */
static void test_each_write_of_multi(void **state)
{
    (void)state;
    need_other_user();
    multi = true;
    play_all();
}

/* The training is told where it finds that state; 0: there is none. The new one is the third. */
static void check_previous(int64_t number)
{
    json_object *call = home_read(&home, 1, "call-7.0.2.json", NULL);
    const char *path = json_get_string(call, "previousModelDir");
    char current[64];

    assert_non_null(call);
    if (number == 0)
        assert_null(path);
    else
        assert_string_equal(path, new_state_path(place, number, true).text);
    json_object_put(call);
    see_current(current);
    assert_string_equal(current, "000003");
}

/* By `--from`, and without it. Of two states the second one counts. If it is torn, it is the first
 * one that is passed on. */
static void test_previous(void **state)
{
    static const struct {
        const char *from;
        bool torn; /* the second one */
        int64_t previous;
        const char *refused;
    } rows[] = {
        {NULL, false, 2, NULL},
        {"000001", false, 1, NULL},
        {"none", false, 0, NULL},
        {NULL, true, 1, NULL},
        {"000001", true, 1, NULL},
        {"000002", true, 0, "--from=000002: 000002 is not complete: "},
        {"000003", false, 0, "--from=000003: there is no state 000003"},
    };
    struct home_record record;
    char weights[PATH_MAX];

    (void)state;
    multi = false;
    wanted = ENDS_WELL;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        const char *refused = rows[i].refused != NULL ? rows[i].refused : "";

        passes_on = rows[i].from;
        begin();
        make_state(2);
        path_of(weights, "models/m/000002/weights");
        assert_true(!rows[i].torn || unlink(weights) == 0);
        assert_int_equal(run_in_child(), 0);
        assert_int_equal(home_record_read(&home, 1, &record, NULL), 0);
        if (record.fit.status != (refused[0] != '\0' ? FIT_FAILED : FIT_SUCCESS) ||
            strncmp(record.fit.reason, refused, strlen(refused)) != 0)
            fail_msg("row %zu: %s: %s", i, fit_status_name(record.fit.status), record.fit.reason);
        if (refused[0] == '\0')
            check_previous(rows[i].previous);
        assert_int_equal(count_partials(), 0);
        assert_int_equal(dir_remove(home.dir, NULL), 0);
    }
    passes_on = NULL;
}

/* So many have stayed. *first: one of them. */
static size_t find_left(char first[PATH_MAX])
{
    char pattern[PATH_MAX];
    glob_t found;
    size_t count;

    path_of(pattern, "models/m/" GRANT_INCOMING "-1-*");
    count = glob(pattern, 0, NULL, &found) == 0 ? found.gl_pathc : 0;
    if (count > 0)
        snprintf(first, PATH_MAX, "%s", found.gl_pathv[0]);
    globfree(&found);
    return count;
}

/* A training that has succeeded is not lost by that, nor by what stays of a fit of another service
 * that has the same number. */
static void test_removing(void **state)
{
    char left[PATH_MAX];

    (void)state;
    need_other_user();
    multi = true;
    wanted = ENDS_WELL;
    begin();
    path_of(left, "models/m/" GRANT_INCOMING "-1/theirs");
    assert_int_equal(dir_make(left, NULL), 0);
    crash_removing = true;
    assert_int_equal(run_in_child(), CRASHED);
    crash_removing = false;
    assert_int_equal(run_in_child(), 0);
    check_end();
    assert_int_equal(access(left, F_OK), 0);
    assert_int_equal(find_left(left), 0);
    assert_int_equal(dir_remove(home.dir, NULL), 0);
}

/* What is mounted there can be neither removed nor renamed: it goes out of the way with all that is
 * around it. */
static void test_mounted(void **state)
{
    char left[PATH_MAX], inside[PATH_MAX + 16];
    int code;

    (void)state;
    multi = mounts = true;
    wanted = TRAINING_FAILS;
    begin();
    code = run_in_child();
    mounts = false;
    if (code == NO_MOUNTS) {
        print_message("this user cannot mount anything\n");
        assert_int_equal(dir_remove(home.dir, NULL), 0);
        skip();
    }
    assert_int_equal(code, 0);
    check_end();
    assert_int_equal(find_left(left), 1);
    snprintf(inside, sizeof(inside), "%s/" GRANT_INCOMING, left);
    assert_int_equal(access(inside, F_OK), 0);
    assert_int_equal(dir_remove(home.dir, NULL), 0);
}

/* A private directory of the starter in the place of a state is neither opened nor published, and
 * stays as it is. */
static void test_moved(void **state)
{
    static const struct {
        const char *to, *at;
    } rows[] = {{"models/m/000001", "fit-ask"},
                {"models/m/000002.partial", "fit-ask"},
                {"models/m/000002.partial", "fit-begin"}};
    struct home_record record;
    char path[PATH_MAX], key[PATH_MAX + 8];

    (void)state;
    need_other_user();
    multi = true;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        wanted = ENDS_WELL;
        begin();
        path_of(path, "secret");
        assert_int_equal(mkdir(path, 0700), 0);
        set_text("secret/key", "k");
        moves = rows[i].to;
        moves_at = rows[i].at;
        assert_int_equal(run_in_child(), 0);
        moves = NULL;
        assert_int_equal(home_record_read(&home, 1, &record, NULL), 0);
        if (record.fit.status != FIT_FAILED || strstr(record.fit.reason, "another one") == NULL)
            fail_msg("row %zu: %s: %s", i, fit_status_name(record.fit.status), record.fit.reason);
        check_access();
        path_of(path, rows[i].to);
        snprintf(key, sizeof(key), "%s/key", path);
        assert_int_equal(access(key, F_OK), 0);
        assert_false(has_access(path) || has_access(key));
        assert_int_equal(dir_remove(home.dir, NULL), 0);
    }
}

/* An action of the clean-up that waits has its time, and is tried again. */
static void test_hanging(void **state)
{
    (void)state;
    need_other_user();
    multi = hangs = true;
    wanted = TRAINING_FAILS;
    begin();
    assert_int_equal(run_in_child(), 0);
    hangs = false;
    check_end();
    assert_int_equal(dir_remove(home.dir, NULL), 0);
}

/* The owner's file system hangs: the end of access does not depend on that. */
static void test_questions_that_end_the_runner(void **state)
{
    (void)state;
    need_other_user();
    multi = ends_the_runner = true;
    wanted = TRAINING_FAILS;
    begin();
    assert_int_equal(run_in_child(), CRASHED);
    assert_int_equal(run_in_child(), CRASHED);
    leap = 100;
    assert_int_equal(run_in_child(), 0);
    leap = 0;
    ends_the_runner = false;
    check_end();
    assert_int_equal(dir_remove(home.dir, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_write),
                                       cmocka_unit_test(test_each_write_of_a_role),
                                       cmocka_unit_test(test_each_write_of_multi),
                                       cmocka_unit_test(test_previous),
                                       cmocka_unit_test(test_removing),
                                       cmocka_unit_test(test_mounted),
                                       cmocka_unit_test(test_hanging),
                                       cmocka_unit_test(test_questions_that_end_the_runner),
                                       cmocka_unit_test(test_moved)};

    return sodium_init() >= 0 ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
