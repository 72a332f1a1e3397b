/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The run directory of an agent that starts (agent/run_dir.c), while others look again and again
 * whether its agent has died. */
#include "tests/unit/support.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/run_dir.h"
#include "common/files.h"

#define ROUNDS  150
#define LOOKERS 2

static char root[] = "/tmp/elastic-test-run-dir-XXXXXX";
static char path[128], lock_path[160];

static struct conf *make_conf(void)
{
    struct conf *conf = conf_create();

    assert_non_null(conf);
    free(conf->snapshot_dir);
    conf->snapshot_dir = strdup(root);
    assert_non_null(conf->snapshot_dir);
    return conf;
}

static int make_root(void **state)
{
    if (mkdtemp(root) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/elastic-%u-12.0-n1", root, (unsigned int)getuid());
    snprintf(lock_path, sizeof(lock_path), "%s/agent.lock", path);
    return 0;
}

static int remove_root(void **state)
{
    return rmdir(root);
}

/* As a sweep does: it has the lock of what is dead for a moment, and takes away what has been
 * left. */
static _Noreturn void look_for_ever(void)
{
    alarm(600);
    for (;;) {
        struct stat st, named;
        int fd = open(lock_path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

        if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 &&
            lstat(lock_path, &named) == 0 && st.st_ino == named.st_ino)
            unlink(lock_path);
        if (fd >= 0)
            close(fd);
    }
}

static bool is_locked(void)
{
    int fd = open(lock_path, O_RDONLY);
    bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0;

    if (fd >= 0)
        close(fd);
    return locked;
}

/* An agent: it has its directory, which is its own, until it ends. */
static int agent(void)
{
    struct conf *conf = make_conf();
    struct error err = {""};
    char *made = run_dir_make(conf, 12, 0, "n1", &err);
    int status = made != NULL && strcmp(made, path) == 0 && is_locked() ? 0 : 1;

    if (status != 0)
        fprintf(stderr, "%s: %s\n", made != NULL ? made : "nothing", err.text);
    free(made);
    conf_destroy(conf);
    return status;
}

/* in_order: what it has is removed while it still has it, as the end of a job does. */
static int run_agent(bool in_order)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        status = agent();
        if (in_order)
            dir_remove(path, NULL);
        _exit(status);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

static void test_nobody_takes_it_for_dead(void **state)
{
    pid_t lookers[LOOKERS];
    int failed = 0;

    for (int i = 0; i < LOOKERS; i++) {
        lookers[i] = fork();
        if (lookers[i] == 0)
            look_for_ever();
    }
    for (int i = 0; i < ROUNDS; i++)
        failed += run_agent(true) != 0;
    for (int i = 0; i < LOOKERS; i++) {
        kill(lookers[i], SIGKILL);
        waitpid(lookers[i], NULL, 0);
    }
    assert_int_equal(failed, 0);
}

static void test_another_agent_lives(void **state)
{
    struct conf *conf = make_conf();
    struct error err = {""};
    struct stat st;
    int fd, begun[2], status = -1;
    char byte;
    pid_t pid;

    assert_int_equal(pipe(begun), 0);
    pid = fork();
    if (pid == 0) {
        byte = (char)agent();
        if (write(begun[1], &byte, 1) == 1)
            pause();
        _exit(0);
    }
    assert_int_equal(read(begun[0], &byte, 1), 1);
    assert_int_equal(byte, 0);
    assert_null(run_dir_make(conf, 12, 0, "n1", &err));
    assert_non_null(strstr(err.text, "another elasticrun of this job runs on this node"));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    /* What is in the place of a lock is replaced by nobody, and waited for by nobody. */
    assert_int_equal(unlink(lock_path), 0);
    assert_int_equal(symlink("/etc/passwd", lock_path), 0);
    assert_null(run_dir_make(conf, 12, 0, "n1", &err));
    assert_int_equal(unlink(lock_path), 0);
    assert_int_equal(run_agent(false), 0);
    fd = open(lock_path, O_RDONLY);
    assert_true(fd >= 0 && fstat(fd, &st) == 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    close(fd);
    close(begun[0]);
    close(begun[1]);
    dir_remove(path, NULL);
    conf_destroy(conf);
}

#define OTHER_JOB 4000000001U

/* How another user has taken a name. */
enum taken {
    TAKEN_DIRECTORY,
    TAKEN_FILE,  /* a link to one that belongs to this user */
    TAKEN_OWN,   /* a directory of this user's, in which others may write, moved there */
    TAKEN_MOUNT, /* a file system that says that it belongs to this user */
};

static void take_name(const char *name, enum taken taken)
{
    if (taken == TAKEN_FILE) {
        assert_int_equal(file_replace(name, "", 0, 0666, NULL), 0);
        return;
    }
    assert_int_equal(mkdir(name, 0700), 0);
    assert_int_equal(taken == TAKEN_OWN ? chmod(name, 0777) : chown(name, 65534, 65534), 0);
    if (taken == TAKEN_MOUNT)
        assert_int_equal(mount("none", name, "tmpfs", 0, "mode=700"), 0);
}

static void give_name_back(const char *name, enum taken taken)
{
    if (taken == TAKEN_MOUNT)
        assert_int_equal(umount(name), 0);
    assert_int_equal(taken == TAKEN_FILE ? unlink(name) : rmdir(name), 0);
}

/* Another user has taken both names. */
static void check_names(enum taken taken)
{
    struct conf *conf = make_conf();
    struct error err = {""};
    char names[2][128], own[64], *made[2];
    int status = -1;
    pid_t pid;

    snprintf(own, sizeof(own), RUN_DIR_FALLBACK "/elastic-%u.", (unsigned int)getuid());
    for (int i = 0; i < 2; i++) {
        snprintf(names[i], sizeof(names[i]), "%s/elastic-%u-%u.0-n1",
                 i == 0 ? root : RUN_DIR_FALLBACK, (unsigned int)getuid(), OTHER_JOB);
        take_name(names[i], taken);
    }
    /* One is killed, and leaves its directory; the next removes that. */
    pid = fork();
    if (pid == 0)
        _exit(run_dir_make(conf, OTHER_JOB, 0, "n1", &err) != NULL ? 0 : 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    for (int i = 0; i < 2; i++) {
        made[i] = run_dir_make(conf, OTHER_JOB, 0, "n1", &err);
        if (made[i] == NULL)
            fail_msg("%s", err.text);
        assert_memory_equal(made[i], own, strlen(own));
        if (i == 0)
            run_dir_leave(made[i], true);
    }
    run_dir_leave(made[1], true);
    for (int i = 0; i < 2; i++) {
        *strrchr(made[i], '/') = '\0';
        assert_int_equal(access(made[i], F_OK), -1);
        free(made[i]);
        give_name_back(names[i], taken);
    }
    conf_destroy(conf);
}

static void test_names_that_another_user_has_taken(void **state)
{
    if (getuid() != 0)
        skip();
    check_names(TAKEN_DIRECTORY);
    check_names(TAKEN_FILE);
    assert_int_equal(chmod(root, 01777), 0);
    check_names(TAKEN_OWN);
    assert_int_equal(chmod(root, 0700), 0);
}

/* In a mount namespace of this process. */
static void test_names_on_which_another_user_has_mounted(void **state)
{
    if (getuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        skip();
    check_names(TAKEN_MOUNT);
}

static bool is_endless;
static long names_read;

/* In the place of libc's, for what is linked into this program. */
struct dirent *readdir(DIR *dir)
{
    static struct dirent one = {.d_name = "x"};
    struct dirent *(*libc)(DIR *) = (struct dirent * (*)(DIR *)) dlsym(RTLD_NEXT, "readdir");

    if (!is_endless)
        return libc(dir);
    return ++names_read <= 100L * RUN_DIR_NAMES_MAX ? &one : NULL;
}

static void test_millions_of_names_of_others(void **state)
{
    struct conf *conf = make_conf();
    struct error err = {""};
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        is_endless = true;
        if (run_dir_make(conf, 12, 0, "n1", &err) == NULL)
            _exit(2);
        _exit(names_read > 2 && names_read <= 4L * (RUN_DIR_NAMES_MAX + 1) ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    dir_remove(path, NULL);
    conf_destroy(conf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_takes_it_for_dead),
        cmocka_unit_test(test_another_agent_lives),
        cmocka_unit_test(test_names_that_another_user_has_taken),
        cmocka_unit_test(test_names_on_which_another_user_has_mounted),
        cmocka_unit_test(test_millions_of_names_of_others),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
