/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fit/: the files of a fit, what it is to do, and its new state. */
#include "tests/unit/support.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "common/files.h"
#include "common/stop.h"
#include "fit/gang.h"
#include "fit/home.h"
#include "fit/new_state.h"
#include "fit/user_program.h"
#include "fit/spec.h"
#include "lib/json_text.h"
#include "state/command.h"

static struct home home;
static char place[sizeof(home.dir) + 16];

static int set_up(void **state)
{
    (void)state;
    strcpy(home.dir, "/tmp/test-fit-XXXXXX");
    assert_non_null(mkdtemp(home.dir));
    snprintf(place, sizeof(place), "%s/models/m", home.dir);
    return sodium_init() >= 0 ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    return dir_remove(home.dir, NULL);
}

static void write_text_to(const char *path, const char *text)
{
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static json_object *parse(const char *text)
{
    struct error err = {""};
    json_object *json = json_text_parse(text, strlen(text), &err);

    if (json == NULL)
        fail_msg("%s", err.text);
    return json;
}

/* ---- what is to be done ---------------------------------------------------------------------- */

#define SERVICE                                                                                    \
    "{\"repository\": \"/r\", \"fit\": {\"run\": [\"t\", \"x\"], \"stage\": null, \"start\": 10, " \
    "\"fit\": 20, \"target\": 30, \"keep\": 2}}"

static json_object *create(const char *service, const char *model, const char *data,
                           struct error *err)
{
    static const double two = 2;
    json_object *json = parse(service), *run;
    struct spec_order order = {
        .service = "s", .model = model, .data = data, .format = "csv", .within = {NULL, &two}};

    run = spec_create(&order, json, 1000, err);
    json_object_put(json);
    return run;
}

static void test_spec(void **state)
{
    struct error err = {""};
    json_object *run = create(SERVICE, "m", "/data/d1", &err), *call;
    struct spec spec;
    int64_t id;

    (void)state;
    assert_int_equal(home_add(&home, run, &id, &err), 0);
    assert_int_equal(id, 1);
    assert_int_equal(home_add(&home, create(SERVICE, "m", "/d", &err), &id, &err), 0);
    assert_int_equal(id, 2);
    assert_int_equal(spec_read(&home, 1, &spec, &err), 0);
    assert_string_equal(spec.place, "/r/m");
    assert_string_equal(spec.run[1], "x");
    assert_null(spec.stage);
    assert_int_equal(spec.keep, 2);
    assert_near(spec.limits.start, 10, 0);
    assert_near(spec.limits.fit, 2, 0);
    call = spec_call(&spec, "/new", NULL, NULL);
    assert_string_equal(
        json_object_to_json_string_ext(call,
                                       JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
        "{\"modelDir\":\"/new\",\"previousModelDir\":null,\"trainData\":\"/data/d1\","
        "\"targetsData\":null,\"config\":null,\"datasetInfo\":{\"id\":\"/data/d1\","
        "\"name\":\"d1\",\"format\":\"csv\"},\"targetServiceInfo\":{\"id\":\"m\","
        "\"name\":\"s\"},\"stagedDir\":null}");
    json_object_put(call);
    spec_clear(&spec);
}

/* Where the states are on S3, the training learns of the bucket. */
static void test_bucket(void **state)
{
    static const char service[] =
        "{\"repository\": \"/r\", \"fit\": {\"run\": [\"t\"], \"states\": \"s3://models/states\"}}";
    struct error err = {""};
    json_object *run = create(service, "m", "/d", &err);

    (void)state;
    assert_string_equal(
        json_object_to_json_string_ext(json_object_object_get(run, "targetServiceInfo"),
                                       JSON_C_TO_STRING_PLAIN),
        "{\"id\":\"m\",\"name\":\"s\",\"bucket\":\"models\"}");
    json_object_put(run);
}

static void test_spec_refusals(void **state)
{
    static const struct {
        const char *service, *model, *data, *want;
    } cases[] = {
        {"{\"repository\": \"/r\", \"fit\": null}", "m", "/d", "service s has no training"},
        {SERVICE, "../m", "/d", "--model=../m: a model has"},
        {SERVICE, "m", "web://x", "--data=web://x: the service has no program"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct error err = {""};

        assert_null(create(cases[i].service, cases[i].model, cases[i].data, &err));
        if (strstr(err.text, cases[i].want) == NULL)
            fail_msg("%s instead of %s", err.text, cases[i].want);
    }
}

/* ---- records --------------------------------------------------------------------------------- */

static void test_record(void **state)
{
    const struct fit_limits limits = {1, 2, 3};
    struct home_record record = {.fit = fit_begin(FIT_SINGLE, &limits, 5), .state = 8}, read;
    struct error err = {""};
    int64_t id;

    (void)state;
    assert_int_equal(home_add(&home, create(SERVICE, "m", "/d", &err), &id, &err), 0);
    assert_int_equal(home_record_read(&home, id, &read, &err), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(home_record_write(&home, id, &record, &err), 0);
    fit_tell(&record.fit, &(struct fit_fact){.kind = FIT_FACT_CANCEL, .reason = "why"}, 6);
    fit_tell(&record.fit, &(struct fit_fact){.kind = FIT_FACT_DONE, .action = FIT_DO_DISCARD}, 7);
    assert_int_equal(home_record_write(&home, id, &record, &err), 0);
    assert_int_equal(home_record_read(&home, id, &read, &err), 0);
    assert_int_equal(read.state, 8);
    assert_int_equal(read.steps, 2);
    assert_int_equal(read.history[0].status, FIT_INITIAL);
    assert_int_equal(read.history[1].status, FIT_CANCELLED);
    assert_near(read.history[1].at, 7, 0);
    assert_string_equal(read.fit.reason, "why");
    write_text_to(home_path(&home, id, HOME_STATUS_FILE).text, "{\"format\": 1}");
    assert_int_equal(home_record_read(&home, id, &read, &err), -1);
    assert_int_not_equal(errno, ENOENT);
    assert_non_null(strstr(err.text, "this is no status of a fit"));
}

static void test_one_runner(void **state)
{
    struct error err = {""};
    int64_t first, second;

    (void)state;
    assert_int_equal(home_claim(&home, &first, &err), 0);
    assert_true(home_claimed(&home, first));
    assert_int_equal(home_claim(&home, &second, &err), 0);
    assert_true(second > first);
    assert_false(home_claimed(&home, first));
    assert_true(home_claimed(&home, second));
}

/* ---- a training that is a gang --------------------------------------------------------------- */

static struct gang gang_of(const char *start, int task)
{
    char number[8];

    snprintf(number, sizeof(number), "%d", task);
    setenv("SLURM_JOB_ID", "7", 1);
    setenv("ELASTIC_START", start, 1);
    setenv("ELASTIC_TASK", number, 1);
    setenv("ELASTIC_TASKS", "3", 1);
    return gang_here();
}

static void test_gang(void **state)
{
    struct gang first, others[2], late = gang_of("4", 1);
    struct error err = {""}, why = {"because"};
    char staged[PATH_MAX];
    int64_t id;

    (void)state;
    assert_int_equal(home_add(&home, json_object_new_object(), &id, &err), 0);
    for (int attempt = 1; attempt <= 2; attempt++) {
        const char *start = attempt == 1 ? "5" : "6";

        first = gang_of(start, 0);
        for (int i = 0; i < 2; i++) {
            others[i] = gang_of(start, i + 1);
            assert_int_equal(others[i].task, i + 1);
            assert_false(gang_has_begun(&others[i], &home, id, staged, sizeof(staged)));
        }
        assert_int_equal(gang_begin(&first, &home, id, attempt, "/tmp/s", &err), 0);
        assert_true(gang_has_begun(&others[0], &home, id, staged, sizeof(staged)));
        assert_string_equal(staged, "/tmp/s");
        assert_false(gang_has_begun(&late, &home, id, staged, sizeof(staged)));
        assert_int_equal(gang_say(&others[0], &home, id, 0, &why, &err), 0);
        assert_int_equal(gang_say(&others[0], &home, id, 0, &why, &err), 0);
        assert_false(gang_has_begun(&others[0], &home, id, staged, sizeof(staged)));
        assert_true(gang_has_begun(&others[1], &home, id, staged, sizeof(staged)));
        assert_false(gang_is_done(&first, &home, id));
        assert_false(gang_has_failed(&first, &home, id, &err));
        assert_int_equal(gang_say(&others[1], &home, id, attempt == 1 ? 3 : 0, &why, &err), 0);
        assert_int_equal(gang_has_failed(&first, &home, id, &err), attempt == 1);
        assert_int_equal(gang_is_done(&first, &home, id), attempt == 2);
    }
    assert_string_equal(err.text, "task 2: because");
}

/* ---- the new state --------------------------------------------------------------------------- */

static void test_new_state(void **state)
{
    struct new_state new_state = {.place = place, .number = 3, .previous = 2};
    struct new_state_path path = new_state_path(place, 3, false), whole;
    char file[PATH_MAX + 16];
    struct error err = {""};

    (void)state;
    assert_int_equal(new_state_make(&new_state, NULL, &err), 0);
    assert_int_equal(new_state_make(&new_state, NULL, &err), -1);
    assert_int_equal(errno, EEXIST);
    assert_int_equal(new_state_check(&new_state, &err), -1);
    assert_int_equal(new_state_finish(&new_state, "fit 1", &err), -1);
    assert_string_equal(err.text, "the training has written no files");
    snprintf(file, sizeof(file), "%s/weights", path.text);
    write_text_to(file, "abc");
    assert_int_equal(new_state_finish(&new_state, "fit 1", &err), 0);
    assert_int_equal(new_state_check(&new_state, &err), 0);
    write_text_to(file, "abcd");
    assert_int_equal(new_state_check(&new_state, &err), -1);
    write_text_to(file, "abc");
    assert_int_equal(new_state_publish(&new_state, &err), 0);
    assert_int_equal(new_state_publish(&new_state, &err), 0);
    whole = new_state_path(place, 3, true);
    assert_int_equal(access(whole.text, F_OK), 0);
    assert_int_not_equal(access(path.text, F_OK), 0);
    new_state.number = 4;
    assert_int_equal(new_state_publish(&new_state, &err), -1);
    assert_int_equal(new_state_discard(&new_state, &err), 0);
}

static void expect_other(int rc, const struct error *err)
{
    assert_int_equal(rc, -1);
    assert_non_null(strstr(err->text, "another one"));
}

/* Another directory in its place is none of it, whatever is asked for; and it stays. */
static void test_pinned(void **state)
{
    struct pin pin = {0};
    struct new_state new_state = {.place = place, .number = 12, .pin = &pin};
    const struct new_state attempt = {
        .place = place, .number = 12, .pin = &pin, .attempt = "1.0.1"};
    const struct new_state_path path = new_state_path(place, 12, false),
                                whole = new_state_path(place, 12, true),
                                away = new_state_path(place, 13, true);
    char file[PATH_MAX + 16];
    struct error err = {""};
    int fd;

    (void)state;
    assert_int_equal(new_state_make(&new_state, &pin, &err), 0);
    snprintf(file, sizeof(file), "%s/weights", path.text);
    write_text_to(file, "abc");
    assert_int_equal(new_state_finish(&new_state, "fit 1", &err), 0);
    assert_int_equal(rename(path.text, away.text), 0);
    assert_int_equal(mkdir(path.text, 0700), 0);
    write_text_to(file, "secret");
    assert_true(new_state_is_other(&new_state));
    expect_other(new_state_open(&new_state, &err), &err);
    expect_other(new_state_open_done(&new_state, &err), &err);
    expect_other(new_state_finish(&new_state, "fit 1", &err), &err);
    expect_other(new_state_check(&new_state, &err), &err);
    expect_other(new_state_begin(&attempt, &err), &err);
    expect_other(new_state_seal(&attempt, "sealed", &err), &err);
    expect_other(new_state_take(&attempt, &err), &err);
    expect_other(new_state_discard(&new_state, &err), &err);
    expect_other(new_state_publish(&new_state, &err), &err);
    assert_int_equal(access(file, F_OK), 0);
    assert_int_not_equal(access(whole.text, F_OK), 0);
    assert_int_equal(unlink(file), 0);
    assert_int_equal(rmdir(path.text), 0);
    assert_int_equal(rename(away.text, path.text), 0);
    assert_int_equal(new_state_publish(&new_state, &err), 0);
    fd = new_state_open_done(&new_state, &err);
    assert_true(fd >= 0);
    close(fd);
}

/* A link out of the state is no file of it. */
static void test_links(void **state)
{
    struct new_state new_state = {.place = place, .number = 9, .attempt = "1.0.1"};
    char file[PATH_MAX + 16];
    struct error err = {""};

    (void)state;
    assert_int_equal(new_state_make(&new_state, NULL, &err), 0);
    assert_int_equal(new_state_begin(&new_state, &err), 0);
    snprintf(file, sizeof(file), "%s/weights", new_state_attempt_path(place, 9, "1.0.1").text);
    assert_int_equal(symlink("/etc/passwd", file), 0);
    assert_int_equal(new_state_finish(&new_state, "fit 1", &err), -1);
    assert_string_equal(err.text, "weights is no regular file");
    assert_int_equal(new_state_begin(&new_state, &err), 0);
    assert_int_not_equal(access(file, F_OK), 0);
}

/* ---- attempts -------------------------------------------------------------------------------- */

/* A path of attempt NAME of state 20. */
static const char *of_attempt(const char *name, const char *file)
{
    static char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", new_state_attempt_path(place, 20, name).text, file);
    return path;
}

static const char *of_state(bool whole, const char *file)
{
    static char path[PATH_MAX + 64];

    snprintf(path, sizeof(path), "%s/%s", new_state_path(place, 20, whole).text, file);
    return path;
}

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The first one goes on, on a node that is cut off: before the second one ends, after that, and
 * when its files are moved. A file that only the first one has is none of the state. */
static void test_attempts(void **state)
{
    const struct new_state first = {.place = place, .number = 20, .attempt = "1.0.1"},
                           second = {.place = place, .number = 20, .attempt = "1.0.2"};
    struct error err = {""};
    int late;

    (void)state;
    assert_int_equal(new_state_make(&first, NULL, &err), 0);
    assert_int_equal(new_state_begin(&first, &err), 0);
    write_text_to(of_attempt("1.0.1", "weights"), "old");
    write_text_to(of_attempt("1.0.1", "rank-3"), "old");
    assert_int_equal(new_state_begin(&second, &err), 0);
    assert_false(is_there(of_attempt("1.0.2", "rank-3")));
    write_text_to(of_attempt("1.0.2", "weights"), "new");
    assert_int_equal(mkdir(of_attempt("1.0.2", "parts"), 0700), 0);
    write_text_to(of_attempt("1.0.2", "parts/1"), "new");
    late = open(of_attempt("1.0.1", "weights"), O_WRONLY | O_CLOEXEC);
    write_text_to(of_attempt("1.0.1", "weights"), "later");
    assert_int_equal(new_state_finish(&first, "fit 1", &err), 0);
    write_text_to(of_attempt("1.0.2", "shape"), "new");
    assert_int_equal(new_state_finish(&second, "fit 1", &err), 0);
    /* Who takes it is killed when one file has been moved. */
    assert_int_equal(rename(of_attempt("1.0.2", "shape"), of_state(false, "shape")), 0);
    assert_int_equal(new_state_take(&second, &err), 0);
    assert_int_equal(new_state_take(&second, &err), 0);
    assert_int_equal(new_state_check(&second, &err), 0);
    assert_int_equal(write(late, "late", 4), 4);
    close(late);
    assert_int_equal(open(of_attempt("1.0.1", "rank-3"), O_WRONLY | O_CREAT, 0600), -1);
    assert_int_equal(mkdir(of_attempt("1.0.1", ""), 0700), 0); /* it makes its directory anew */
    write_text_to(of_attempt("1.0.1", "rank-3"), "late");
    assert_int_equal(new_state_publish(&second, &err), 0);
    assert_false(is_there(of_attempt("1.0.1", "rank-3")));
    assert_false(is_there(of_state(true, "rank-3")) || is_there(of_state(true, ".attempt-1.0.1")));
    assert_true(is_there(of_state(true, "weights")) && is_there(of_state(true, "shape")));
}

/* What a world has written is taken from the path that its workers know. */
static void test_sealed(void **state)
{
    struct new_state world = {.place = place, .number = 21, .attempt = "7"};
    char file[PATH_MAX + 16], *text;
    struct error err = {""};

    (void)state;
    assert_int_equal(new_state_make(&world, NULL, &err), 0);
    assert_int_equal(new_state_seal(&world, "sealed", &err), -1);
    assert_int_equal(new_state_begin(&world, &err), 0);
    snprintf(file, sizeof(file), "%s/weights", new_state_attempt_path(place, 21, "7").text);
    write_text_to(file, "abc");
    assert_int_equal(new_state_seal(&world, "sealed", &err), 0);
    assert_int_equal(open(file, O_WRONLY | O_CREAT, 0600), -1);
    assert_int_equal(new_state_seal(&world, "sealed", &err), 0);
    /* A worker makes the directory once more, while the runner that has sealed it is killed. */
    assert_int_equal(new_state_begin(&world, &err), 0);
    write_text_to(file, "late");
    assert_int_equal(new_state_seal(&world, "sealed", &err), 0);
    world.attempt = "sealed";
    assert_int_equal(new_state_take(&world, &err), 0);
    world.attempt = "7";
    assert_int_equal(new_state_begin(&world, &err), 0);
    write_text_to(file, "late");
    world.attempt = NULL;
    assert_int_equal(new_state_finish(&world, "fit 1", &err), 0);
    assert_int_equal(new_state_publish(&world, &err), 0);
    snprintf(file, sizeof(file), "%s/complete.json", new_state_path(place, 21, true).text);
    text = file_read(file, 4096, NULL, &err);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"weights\""));
    assert_null(strstr(text, "attempt"));
    free(text);
}

/* ---- programs -------------------------------------------------------------------------------- */

static int kills, stray; /* of groups; those whose number may be another program's by then */

/* In the place of kill() (tests/unit/local.mk). */
int __real_kill(pid_t pid, int number);
int __wrap_kill(pid_t pid, int number);

int __wrap_kill(pid_t pid, int number)
{
    siginfo_t info;

    if (pid < 0) {
        kills++;
        stray += waitid(P_PID, (id_t)-pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0;
    }
    return __real_kill(pid, number);
}

static bool after_looks(void *looks)
{
    return --*(int *)looks == 0;
}

static void test_programs(void **state)
{
    char log[sizeof(home.dir) + 8], *added[] = {(char[]){"WHAT=more"}, NULL};
    struct program program = {.added = added, .log = log, .unwanted = after_looks};
    char *good[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"echo $WHAT"}, NULL};
    char *bad[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"exit 3"}, NULL};
    char *missing[] = {(char[]){"/nonexistent"}, NULL};
    char *long_one[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};
    struct error why = {""};
    int code, looks = -1;
    char *text;

    (void)state;
    snprintf(log, sizeof(log), "%s/log", home.dir);
    program.arg = &looks;
    program.argv = good;
    assert_true(program_run(&program, &code, &why));
    assert_int_equal(code, 0);
    text = file_read(log, 100, NULL, NULL);
    assert_string_equal(text, "more\n");
    free(text);
    program.argv = bad;
    assert_true(program_run(&program, &code, &why));
    assert_int_equal(code, 3);
    assert_non_null(strstr(why.text, "exit status 3"));
    program.argv = missing;
    assert_true(program_run(&program, &code, &why));
    assert_non_null(strstr(why.text, "/nonexistent cannot be run"));
    program.argv = long_one;
    looks = 2;
    assert_false(program_run(&program, &code, &why));
    assert_int_equal(code, 128 + 15);
    assert_int_equal(kills, 5); /* each one's at its end, and the last one's SIGTERM */
    assert_int_equal(stray, 0);
}

/* ---- the state before, copied from S3 -------------------------------------------------------- */

static bool is_third_look(void *arg)
{
    return ++*(int *)arg >= 3;
}

/* Whoever may write in the model's directory can hold its lock for ever. */
static void test_lock_of_another(void **state)
{
    const struct s3_limits limits = S3_LIMITS;
    const struct options options = {.quiet = true};
    char from[PATH_MAX], to[PATH_MAX], path[PATH_MAX + 32];
    struct new_state first = {.place = from, .number = 1};
    struct error err = {""};
    struct place *source;
    int fd, looks = 0;

    (void)state;
    snprintf(from, sizeof(from), "%s/from", home.dir);
    snprintf(to, sizeof(to), "%s/to", home.dir);
    assert_int_equal(new_state_make(&first, NULL, &err), 0);
    snprintf(path, sizeof(path), "%s/weights", new_state_path(from, 1, false).text);
    write_text_to(path, "w");
    assert_int_equal(new_state_finish(&first, "by hand", &err), 0);
    assert_int_equal(new_state_publish(&first, &err), 0);
    assert_int_equal(dir_make(to, &err), 0);
    snprintf(path, sizeof(path), "%s/.lock", to);
    write_text_to(path, "");
    fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && flock(fd, LOCK_EX) == 0);
    source = place_open(from, &limits, &err);
    assert_non_null(source);

    stop_limit(20); /* for a test that fails */
    stop_when(is_third_look, &looks);
    assert_int_equal(command_pull(source, to, &options, &err), -1);
    alarm(0);
    assert_non_null(strstr(err.text, "stopped, or out of time"));
    stop_watch(0);
    close(fd);
    assert_int_equal(command_pull(source, to, &options, &err), 0);
    place_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec),          cmocka_unit_test(test_bucket),
        cmocka_unit_test(test_spec_refusals), cmocka_unit_test(test_record),
        cmocka_unit_test(test_one_runner),    cmocka_unit_test(test_gang),
        cmocka_unit_test(test_new_state),     cmocka_unit_test(test_links),
        cmocka_unit_test(test_programs),      cmocka_unit_test(test_lock_of_another),
        cmocka_unit_test(test_pinned),        cmocka_unit_test(test_attempts),
        cmocka_unit_test(test_sealed),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
