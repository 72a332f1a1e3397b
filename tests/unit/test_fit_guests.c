/* SPDX-License-Identifier: GPL-2.0-or-later */
/* fit/guests: what users of a trainer are answered; and lib/trainer_note. */
#include "tests/unit/support.h"

#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "fit/acl.h"
#include "fit/foreign.h"
#include "fit/grant.h"
#include "fit/guest_runner.h"
#include "fit/guests.h"
#include "fit/training.h"
#include "lib/json_get.h"
#include "lib/json_text.h"
#include "lib/trainer_note.h"

/* ---- the comment ----------------------------------------------------------------------------- */

static void test_notes(void **state)
{
    static const struct {
        const char *comment, *payer, *runner, *note;
    } rows[] = {
        {NULL, NULL, NULL, "elastic-trainer=base"},
        {"", NULL, NULL, "elastic-trainer=base"},
        {"mine", "eve", "anna", "mine elastic-trainer=base payer=eve runner=anna"},
        {"mine elastic-trainer=base payer=eve runner=anna", NULL, "anna",
         "mine elastic-trainer=base"},
        {"elastic-trainer=old", "eve", NULL, "elastic-trainer=base payer=eve"},
        {"not-elastic-trainer=x", NULL, NULL, "not-elastic-trainer=x elastic-trainer=base"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char *note = trainer_note(rows[i].comment, "base", rows[i].payer, rows[i].runner);

        assert_string_equal(note, rows[i].note);
        assert_true(trainer_note_names(note, "base"));
        assert_false(trainer_note_names(note, "bas"));
        assert_false(trainer_note_names(note, "base2"));
        free(note);
    }
    assert_false(trainer_note_names(NULL, "base"));
    assert_false(trainer_note_names("not-elastic-trainer=base", "base"));
}

static void test_names(void **state)
{
    static const char *const wrong[] = {"", "@", "a@", "@b", "a@b@c", "../x", "a b", "-a", NULL};
    struct trainer_name name;

    (void)state;
    assert_true(trainer_name_read("base@anna", &name));
    assert_string_equal(name.service, "base");
    assert_string_equal(name.user, "anna");
    assert_true(trainer_name_read("base", &name));
    assert_string_equal(name.user, "");
    for (const char *const *one = wrong; *one != NULL; one++)
        assert_false(trainer_name_read(*one, &name));
}

/* ---- the desk -------------------------------------------------------------------------------- */

static struct home guests;

/* The answer to that message of a user; "allow" is as given. */
static json_object *said(uid_t uid, const char *allow, const char *message)
{
    char text[4096];
    json_object *whole, *answer;

    snprintf(text, sizeof(text),
             "{\"uid\": %u, \"allow\": [%s], \"fit\": {\"run\": [\"true\"]}, \"message\": %s}", uid,
             allow, message);
    whole = json_text_parse(text, strlen(text), NULL);
    assert_non_null(whole);
    answer = guest_answer(&guests, whole);
    json_object_put(whole);
    return answer;
}

static void expect_code(json_object *answer, const char *code)
{
    assert_string_equal(json_get_string(answer, "code"), code);
    json_object_put(answer);
}

static int64_t number_of(json_object *answer)
{
    int64_t number = 0;

    assert_string_equal(json_get_string(answer, "t"), "fit");
    assert_true(json_get_int(answer, "number", 1, 1000, &number));
    json_object_put(answer);
    return number;
}

#define ASK   "{\"t\": \"fit-ask\", \"service\": \"s\", \"fit\": 3}"
#define OTHER 1U /* daemon */

static void test_who_may_ask(void **state)
{
    const struct passwd *entry = getpwuid(OTHER);
    char allow[64];

    (void)state;
    if (entry == NULL || geteuid() == OTHER) {
        print_message("there is no user with the uid 1\n");
        skip();
    }
    snprintf(allow, sizeof(allow), "\"%s\"", entry->pw_name);
    expect_code(said(OTHER, "", ASK), "denied");
    expect_code(said(OTHER, "\"somebody\"", ASK), "denied");
    assert_int_equal(number_of(said(OTHER, allow, ASK)), 1);
    snprintf(allow, sizeof(allow), "\"@%s\"", entry->pw_name);
    assert_int_equal(number_of(said(OTHER, allow, ASK)), 1); /* the same number */
    /* A number of somebody else does not exist. */
    expect_code(said(geteuid(), "", "{\"t\": \"fit-look\", \"number\": 1}"), "none");
    expect_code(said(geteuid(), "", "{\"t\": \"fit-end\", \"number\": 99}"), "none");
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 2);
}

static void test_what_is_wrong(void **state)
{
    static const char *const wrong[] = {
        "{\"t\": \"show\"}",
        "{}",
        "{\"t\": \"fit-ask\", \"service\": \"../s\", \"fit\": 3}",
        "{\"t\": \"fit-ask\", \"service\": \"s\", \"fit\": 0}",
        "{\"t\": \"fit-begin\", \"number\": 2}",
        ("{\"t\": \"fit-begin\", \"number\": 2, \"call\": {\"modelDir\": \"m\", "
         "\"trainData\": \"/d\"}}"),
        "{\"t\": \"fit-begin\", \"number\": 2, \"call\": {\"modelDir\": \"/m\"}}",
    };

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 2);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        expect_code(said(geteuid(), "", wrong[i]), "wrong");
}

static void test_a_training(void **state)
{
    static const char begin[] = "{\"t\": \"fit-begin\", \"number\": 2, \"call\": {\"modelDir\": "
                                "\"/m\", \"trainData\": \"/d\"}}";
    json_object *answer;

    (void)state;
    number_of(said(geteuid(), "", begin));
    number_of(said(geteuid(), "", begin)); /* nothing is begun twice */
    assert_int_equal(
        file_replace(home_path(&guests, 2, HOME_LOG_FILE).text, "one\ntw\xff", 7, 0600, NULL), 0);
    answer = said(geteuid(), "", "{\"t\": \"fit-look\", \"number\": 2, \"from\": 0}");
    assert_string_equal(json_get_string(answer, "log"), "one\n");
    json_object_put(answer);
    assert_int_equal(number_of(said(geteuid(), "", "{\"t\": \"fit-end\", \"number\": 2}")), 2);
    /* Who asks after the end gets another one. */
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 3);
}

/* ---- their turn ------------------------------------------------------------------------------ */

static int notes, wanted; /* of the job's comment; replicas that the leader is asked for */

int service_note(struct service_link *link, const char *service, const char *payer,
                 struct error *err)
{
    (void)link;
    (void)service;
    (void)payer;
    (void)err;
    notes++;
    return 0;
}

int service_train(struct service_link *link, int count, int *there, char *why, size_t size,
                  struct error *err)
{
    (void)link;
    (void)err;
    snprintf(why, size, "%s", "");
    *there = wanted = count;
    return 0;
}

static struct home others;

static int make_turns(void **state)
{
    (void)state;
    others = guests;
    notes = wanted = 0;
    strcpy(guests.dir, "/tmp/test-turns-XXXXXX");
    return mkdtemp(guests.dir) != NULL ? 0 : -1;
}

static int remove_turns(void **state)
{
    int rc = dir_remove(guests.dir, NULL);

    (void)state;
    guests = others;
    return rc;
}

static bool look_at(struct guest_runner *runner, double later)
{
    struct error err = {""};
    bool busy;

    if (guest_runner_look(runner, (double)time(NULL) + later, &busy, &err) != 0)
        fail_msg("%s", err.text);
    return busy;
}

/* They may come as often as they like: Slurm is not asked for each of them. */
static void test_ended_before_its_turn(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};

    (void)state;
    assert_false(look_at(&runner, 0));
    assert_int_equal(notes, 1);
    for (int i = 1; i <= 5; i++) {
        char end[64];

        assert_int_equal(number_of(said(geteuid(), "", ASK)), i);
        snprintf(end, sizeof(end), "{\"t\": \"fit-end\", \"number\": %d}", i);
        number_of(said(geteuid(), "", end));
        assert_true(look_at(&runner, 0));
        assert_true(home_has(&guests, i, GUEST_OVER_FILE));
    }
    assert_int_equal(notes, 1);
}

#define BEGIN_1                                                                                    \
    "{\"t\": \"fit-begin\", \"number\": 1, \"call\": {\"modelDir\": \"/m\", \"trainData\": "       \
    "\"/d\"}}"

/* Its user asks all the time, and holds the replica. */
static void heard_of(double later)
{
    const struct timespec times[2] = {{.tv_sec = time(NULL) + (time_t)later},
                                      {.tv_sec = time(NULL) + (time_t)later}};

    assert_int_equal(utimensat(AT_FDCWD, home_path(&guests, 1, GUEST_LOOKED_FILE).text, times, 0),
                     0);
}

static void test_not_for_ever(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};
    json_object *result;

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    assert_true(look_at(&runner, 0));
    assert_int_equal(wanted, 1);
    home_make(&guests, 1, HOME_TRAINER_FILE);
    heard_of(590);
    look_at(&runner, 590);
    assert_false(home_has(&guests, 1, GUEST_END_FILE));
    number_of(said(geteuid(), "", BEGIN_1));
    heard_of(3590);
    look_at(&runner, 3590); /* the limit without a word of the owner */
    assert_false(home_has(&guests, 1, GUEST_END_FILE));
    heard_of(3700);
    look_at(&runner, 3700);
    assert_true(home_has(&guests, 1, GUEST_OVER_FILE));
    result = home_read(&guests, 1, HOME_FIT_FILE, NULL);
    assert_non_null(strstr(json_get_string(result, "why"), "within.fit"));
    json_object_put(result);
    assert_int_equal(wanted, 0);
}

static void test_begun_by_nobody(void **state)
{
    struct guest_runner runner = {.home = guests, .service = "t", .noted = -1};

    (void)state;
    assert_int_equal(number_of(said(geteuid(), "", ASK)), 1);
    look_at(&runner, 0);
    home_make(&guests, 1, HOME_TRAINER_FILE);
    heard_of(700);
    look_at(&runner, 700);
    assert_true(home_has(&guests, 1, GUEST_OVER_FILE));
    assert_false(home_has(&guests, 1, HOME_FIT_FILE));
}

#define WITH_TURNS(test) cmocka_unit_test_setup_teardown(test, make_turns, remove_turns)

/* ---- files of others ------------------------------------------------------------------------- */

static char foreign_dir[] = "/tmp/test-foreign-XXXXXX";

/* A path there; it holds for the next call but one. */
static const char *at(const char *name)
{
    static char paths[2][128];
    static int which;

    which = 1 - which;
    snprintf(paths[which], sizeof(paths[which]), "%s/%s", foreign_dir, name);
    return paths[which];
}

static void put(const char *name, const char *text)
{
    assert_int_equal(file_replace(at(name), text, strlen(text), 0600, NULL), 0);
}

static void expect_error(int rc, const struct error *err, const char *text)
{
    assert_int_equal(rc, -1);
    if (strstr(err->text, text) == NULL)
        fail_msg("not \"%s\": %s", text, err->text);
}

static struct foreign own(void)
{
    return (struct foreign){.owner = geteuid()};
}

static void test_foreign_files(void **state)
{
    const struct foreign self = own(), other = {.owner = geteuid() + 1};
    struct error err = {""};
    char result[PATH_MAX];

    (void)state;
    put("data", "d");
    assert_int_equal(foreign_copy(at("data"), &self, at("to"), result, &err), 0);
    assert_true(strstr(result, "/to/data") != NULL);
    expect_error(foreign_copy(at("data"), &other, at("to"), result, &err), &err,
                 "it does not belong to the user who asks");
    assert_int_equal(symlink("data", at("link")), 0);
    expect_error(foreign_copy(at("link"), &self, at("to"), result, &err), &err,
                 "there is a link in it");
    /* What is put there under numbers has its names once it is taken. */
    assert_int_equal(dir_make(at("there"), NULL), 0);
    assert_int_equal(foreign_put(at("to"), at("there"), &self, &err), 0);
    assert_int_equal(dir_make(at("taken"), NULL), 0);
    assert_int_equal(foreign_take(at("there"), at("taken"), &self, &err), 0);
    assert_int_equal(access(at("taken/data"), F_OK), 0);
}

/* What a trainer can put there: nothing of this user's becomes a file of the state. */
static void test_what_is_not_taken(void **state)
{
    const struct foreign self = own(), other = {.owner = geteuid() + 1};
    static const char *const names[] = {"complete.json", "./x",  "../x",          "/x", "",
                                        ".incoming/x",   "a//b", "./.incoming/x", NULL};
    struct error err = {""};
    char list[64], *large;

    (void)state;
    assert_int_equal(dir_make(at("in"), NULL), 0);
    assert_int_equal(dir_make(at("out"), NULL), 0);
    put("in/1", "secret");
    put("in/files.json", "[\"model\"]");
    expect_error(foreign_take(at("in"), at("out"), &other, &err), &err,
                 "does not belong to the user who trains");
    assert_int_equal(access(at("out/model"), F_OK), -1);
    for (const char *const *name = names; *name != NULL; name++) {
        snprintf(list, sizeof(list), "[\"%s\"]", *name);
        put("in/files.json", list);
        expect_error(foreign_take(at("in"), at("out"), &self, &err), &err,
                     "a name that cannot be used");
    }
    put("in/files.json", "[\"model\"]");
    assert_int_equal(unlink(at("in/1")), 0);
    assert_int_equal(symlink("/etc/hostname", at("in/1")), 0);
    assert_int_equal(foreign_take(at("in"), at("out"), &self, &err), -1);
    /* A list that is small as a text only. */
    large = calloc(1, 1 << 20);
    assert_non_null(large);
    memset(large, ',', (1 << 20) - 1);
    large[0] = '[';
    put("in/files.json", large);
    free(large);
    expect_error(foreign_take(at("in"), at("out"), &self, &err), &err, "no list of at most");
}

static bool stops_at_once(void *arg)
{
    ++*(int *)arg;
    return true;
}

/* A file may have any size without any room. */
static void test_foreign_sizes(void **state)
{
    struct foreign self = own();
    struct error err = {""};
    char result[PATH_MAX];
    int asked = 0;

    (void)state;
    put("huge", "");
    assert_int_equal(truncate(at("huge"), (off_t)1 << 42), 0);
    expect_error(foreign_copy(at("huge"), &self, at("copies"), result, &err), &err,
                 "no room for a copy");
    put("small", "s");
    self.stops = stops_at_once;
    self.arg = &asked;
    expect_error(foreign_copy(at("small"), &self, at("copies"), result, &err), &err, "given up");
    assert_true(asked > 0);
}

static int make_foreign(void **state)
{
    (void)state;
    return mkdtemp(foreign_dir) != NULL ? 0 : -1;
}

static int remove_foreign(void **state)
{
    (void)state;
    assert_int_equal(dir_remove(foreign_dir, NULL), 0);
    strcpy(foreign_dir, "/tmp/test-foreign-XXXXXX");
    return 0;
}

/* A trainer that was killed leaves its copies: the next one removes them, and no others. */
static void test_scratch(void **state)
{
    struct training_scratch used, left;
    char path[PATH_MAX];
    struct error err;

    (void)state;
    assert_int_equal(setenv("TMPDIR", foreign_dir, 1), 0);
    assert_int_equal(training_scratch_make(&used, &err), 0);
    assert_int_equal(training_scratch_make(&left, &err), 0);
    snprintf(path, sizeof(path), "%.4000s/copy", left.path);
    assert_int_equal(file_replace(path, "d", 1, 0600, NULL), 0);
    close(left.lock); /* as at the end of its process */
    assert_int_equal(dir_make(at("elastic-other"), NULL), 0);
    training_scratch_sweep();
    assert_int_equal(access(left.path, F_OK), -1);
    assert_int_equal(access(used.path, F_OK), 0);
    assert_int_equal(access(at("elastic-other"), F_OK), 0);
    training_scratch_remove(&used);
    assert_string_equal(used.path, "");
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, make_foreign, remove_foreign)

/* ---- access ---------------------------------------------------------------------------------- */

static struct home own_home;
static char data_path[128], write_path[128];

static int make_grants(void **state)
{
    int64_t id;

    if (make_foreign(state) != 0 || chmod(foreign_dir, 0711) != 0 ||
        setenv("HOME", foreign_dir, 1) != 0 || home_open(&own_home, "s", NULL) != 0)
        return -1;
    put("data", "d");
    snprintf(data_path, sizeof(data_path), "%s", at("data"));
    snprintf(write_path, sizeof(write_path), "%s", at("models/m/000001.partial/" GRANT_INCOMING));
    *strrchr(write_path, '/') = '\0';
    if (dir_make(write_path, NULL) != 0)
        return -1;
    write_path[strlen(write_path)] = '/';
    return home_add(&own_home, json_object_new_object(), &id, NULL);
}

static struct grant_order an_order(void)
{
    return (struct grant_order){.user = "other",
                                .uid = OTHER,
                                .read = {{data_path, 0}},
                                .write = write_path,
                                .job = 7,
                                .restarts = 1,
                                .cluster = "one",
                                .until = 1000};
}

static void give(const struct grant_order *order)
{
    struct error err = {""};

    if (grant_give(&own_home, 1, order, &err) != 0)
        fail_msg("%s", err.text);
}

static bool is_open(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool has = false;

    assert_true(fd >= 0);
    assert_int_equal(acl_has_user(fd, path, OTHER, &has, NULL), 0);
    close(fd);
    return has;
}

/* So many grants are open no more when that run has ended. */
static int revoked(uint32_t job, uint32_t restarts, const char *cluster, double now)
{
    const struct grant_run run = {.job = job, .restarts = restarts, .cluster = cluster};
    int count;

    assert_int_equal(grant_revoke_all(job != 0 ? &run : NULL, now, &count, NULL), 0);
    return count;
}

/* Jobs of two clusters have the same number, and the same home. */
static void test_whose_grant(void **state)
{
    struct grant_order order = an_order();

    (void)state;
    give(&order);
    assert_true(is_open(data_path) && is_open(write_path));
    assert_int_equal(revoked(8, 9, "One", 10), 0);
    assert_int_equal(revoked(7, 0, "One", 10), 0);
    assert_int_equal(revoked(7, 1, "two", 10), 0);
    assert_true(is_open(data_path));
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(is_open(data_path) || is_open(write_path) || grant_is_open(&own_home, 1));
    give(&order);
    assert_int_equal(revoked(7, 1, NULL, 10), 1);
    order.cluster = NULL; /* as grants of before */
    give(&order);
    assert_int_equal(revoked(7, 1, "two", 10), 1);
}

static void test_expired_grant(void **state)
{
    const struct grant_order order = an_order();

    (void)state;
    give(&order);
    assert_int_equal(revoked(0, 0, NULL, 999), 0);
    assert_true(is_open(data_path));
    assert_int_equal(revoked(0, 0, NULL, 1001), 1);
    assert_false(is_open(data_path) || is_open(write_path));
}

/* Somebody who may rename there has put another file of this user in its place. */
static void test_another_file(void **state)
{
    struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    assert_int_equal(grant_check(data_path, &order.read[0].inode, &err), 0);
    give(&order);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    put("secret", "s");
    assert_int_equal(rename(at("secret"), data_path), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err,
                 "another one than when the fit was started");
    assert_false(is_open(data_path));
    /* … or a link to a directory of this user. */
    assert_int_equal(dir_make(at("private"), NULL), 0);
    put("private/data", "s");
    assert_int_equal(symlink("private", at("way")), 0);
    order.read[0].inode = 0;
    order.read[0].path = at("way/data");
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "there is a link in it");
    assert_false(is_open(at("private/data")));
    /* That keeps no fit from its end. */
    order.read[0].path = data_path;
    give(&order);
    assert_int_equal(rename(data_path, at("moved")), 0);
    assert_int_equal(symlink("private/data", data_path), 0);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
}

/* Nobody could pass the repository: what others may read in it was closed by that alone. */
static void test_repository(void **state)
{
    const struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    assert_int_equal(mkdir(at("models/other"), 0755), 0);
    assert_int_equal(chmod(at("models/other"), 0755), 0);
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "models/other: others may open it");
    assert_false(is_open(data_path) || grant_is_open(&own_home, 1));
    assert_int_equal(chmod(at("models/other"), 0750), 0);
    give(&order);
    assert_int_equal(revoked(7, 1, "One", 10), 1);
}

/* Whoever may write below data must not keep access from being taken back. */
static void test_what_comes_meanwhile(void **state)
{
    struct grant_order order = an_order();
    char deep[PATH_MAX];

    (void)state;
    assert_int_equal(dir_make(at("tree"), NULL), 0);
    put("tree/file", "d");
    snprintf(deep, sizeof(deep), "%s", at("tree"));
    order.read[0].path = strdup(deep);
    give(&order);
    assert_true(is_open(at("tree/file")));
    for (int i = 0; i < 40; i++) {
        strcat(deep, "/a");
        assert_int_equal(mkdir(deep, 0700), 0);
    }
    assert_int_equal(revoked(7, 1, "One", 10), 1);
    assert_false(is_open(at("tree/file")) || is_open(at("tree")));
    free((char *)(uintptr_t)order.read[0].path);
}

/* Data below a directory that nobody passes, and no place of a result among files. */
static void test_no_result_here(void **state)
{
    struct grant_order order = an_order();
    struct error err = {""};

    (void)state;
    assert_int_equal(dir_make(at("private"), NULL), 0);
    assert_int_equal(chmod(at("private"), 0700), 0);
    put("private/data", "d");
    order.read[0].path = at("private/data");
    order.write = NULL;
    expect_error(grant_give(&own_home, 1, &order, &err), &err, "others cannot pass this directory");
}

#define WITH_GRANTS(test) cmocka_unit_test_setup_teardown(test, make_grants, remove_foreign)

static int make_home(void **state)
{
    (void)state;
    strcpy(guests.dir, "/tmp/test-guests-XXXXXX");
    return mkdtemp(guests.dir) != NULL ? 0 : -1;
}

static int remove_home(void **state)
{
    (void)state;
    return dir_remove(guests.dir, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_who_may_ask),
        cmocka_unit_test(test_what_is_wrong),
        cmocka_unit_test(test_a_training),
        WITH_FILES(test_foreign_files),
        WITH_FILES(test_what_is_not_taken),
        WITH_FILES(test_foreign_sizes),
        WITH_FILES(test_scratch),
        WITH_TURNS(test_ended_before_its_turn),
        WITH_TURNS(test_not_for_ever),
        WITH_TURNS(test_begun_by_nobody),
        WITH_GRANTS(test_whose_grant),
        WITH_GRANTS(test_expired_grant),
        WITH_GRANTS(test_another_file),
        WITH_GRANTS(test_repository),
        WITH_GRANTS(test_what_comes_meanwhile),
        WITH_GRANTS(test_no_result_here),
    };

    return cmocka_run_group_tests(tests, make_home, remove_home);
}
