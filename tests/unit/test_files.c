/* SPDX-License-Identifier: GPL-2.0-or-later */
/* common/files, common/conf_file and common/log, in a directory of the test's own that is gone
 * afterwards. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/conf_file.h"
#include "common/files.h"
#include "common/log.h"
#include "lib/text.h"
#include "tests/unit/support.h"
#include "tests/unit/test_dir.h"

/* The test's own directory, and the current one: names in the tests are short. */
static char root[TEST_DIR_SIZE];

static int set_up(void **state)
{
    unsetenv("ELASTIC_CONF");
    unsetenv("SLURM_CONF");
    for (const struct policy_option *option = policy_options; option->json != NULL; option++)
        unsetenv(option->environment);
    umask(022);
    return make_test_dir(root) ? chdir(root) : -1;
}

/* Not dir_remove: that is one of those under test. */
static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    return remove(path);
}

static int tear_down(void **state)
{
    return chdir("/") == 0 ? nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS) : -1;
}

static void put(const char *path, const char *text)
{
    struct error err = {""};

    if (file_replace(path, text, strlen(text), 0600, &err) != 0)
        fail_msg("%s", err.text);
}

static void assert_content(const char *path, const char *expected)
{
    struct error err = {""};
    size_t len = 0;
    char *text = file_read(path, 100000, &len, &err);

    if (text == NULL)
        fail_msg("%s", err.text);
    assert_string_equal(text, expected);
    assert_int_equal(len, strlen(expected));
    free(text);
}

static int mode_of(const char *path)
{
    struct stat st;

    return lstat(path, &st) == 0 ? (int)(st.st_mode & 07777) : -1;
}

static int count_entries(const char *path)
{
    DIR *dir = opendir(path);
    int count = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count - 2; /* . and .. */
}

static int count_descriptors(void)
{
    return count_entries("/proc/self/fd");
}

static void test_replace(void **state)
{
    int before = count_descriptors();
    struct stat first, second;

    assert_int_equal(mkdir("replace", 0700), 0);
    put("replace/f", "one");
    assert_content("replace/f", "one");
    assert_int_equal(mode_of("replace/f"), 0600);
    assert_int_equal(stat("replace/f", &first), 0);
    /* Another file in its place, so that whoever has the old one open still reads all of it. */
    assert_int_equal(file_replace("replace/f", "two\0x", 5, 0755, NULL), 0);
    assert_int_equal(stat("replace/f", &second), 0);
    assert_int_equal(second.st_size, 5);
    assert_int_not_equal(first.st_ino, second.st_ino);
    assert_int_equal(mode_of("replace/f"), 0755);
    put("replace/empty", "");
    assert_content("replace/empty", "");
    assert_int_equal(count_entries("replace"), 2);
    assert_int_equal(count_descriptors(), before);
}

static void test_replace_does_not_follow_symlinks(void **state)
{
    put("victim", "precious");
    assert_int_equal(symlink("victim", "link"), 0);
    put("link", "new");
    assert_content("victim", "precious");
    assert_content("link", "new");
    assert_int_equal(mode_of("link"), 0600);
}

static void test_replace_failures(void **state)
{
    struct error err = {""};
    int before = count_descriptors();

    assert_int_equal(mkdir("failures", 0700), 0);
    assert_int_equal(mkdir("failures/dir", 0700), 0);
    assert_int_equal(file_replace("failures/dir", "x", 1, 0600, &err), -1);
    assert_int_equal(errno, EISDIR);
    assert_string_equal(err.text, "cannot write failures/dir: Is a directory");
    /* The temporary file is gone. */
    assert_int_equal(count_entries("failures"), 1);
    assert_int_equal(file_replace("failures/none/f", "x", 1, 0600, &err), -1);
    assert_int_equal(errno, ENOENT);
    assert_string_equal(err.text, "cannot write failures/none/f: No such file or directory");
    assert_int_equal(count_descriptors(), before);
}

/* One process replaces, this one reads: always one text or the other, whole. */
static void test_readers_never_see_a_torn_file(void **state)
{
    enum { LENGTH = 50000, READS = 300 };
    char *a = malloc(LENGTH + 1), *b = malloc(LENGTH + 1);
    bool seen_a = false, seen_b = false;
    int status;
    pid_t pid;

    memset(a, 'a', LENGTH);
    memset(b, 'b', LENGTH);
    a[LENGTH] = b[LENGTH] = '\0';
    put("torn", a);
    pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* the test may fail */
        for (int i = 0; access("enough", F_OK) != 0; i++) {
            if (file_replace("torn", i % 2 ? a : b, LENGTH, 0600, NULL) != 0)
                _exit(1);
        }
        _exit(0);
    }
    assert_true(pid > 0);
    for (int reads = 0; reads < READS || !seen_a || !seen_b; reads++) {
        char *text = file_read("torn", LENGTH, NULL, NULL);

        assert_non_null(text);
        assert_true(strcmp(text, a) == 0 || strcmp(text, b) == 0);
        seen_a = seen_a || text[0] == 'a';
        seen_b = seen_b || text[0] == 'b';
        free(text);
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    }
    put("enough", "");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    free(a);
    free(b);
}

static void test_append(void **state)
{
    struct error err = {""};
    int before = count_descriptors();

    assert_int_equal(file_append("log", "{\"generation\":1}", &err), 0);
    assert_int_equal(file_append("log", "", &err), 0);
    assert_int_equal(file_append("log", "{\"generation\":2}", &err), 0);
    assert_content("log", "{\"generation\":1}\n\n{\"generation\":2}\n");
    assert_int_equal(mode_of("log"), 0600);

    /* A line that was cut does not take the next one with it. */
    assert_int_equal(file_replace("torn", "{\"gen", 5, 0600, &err), 0);
    assert_int_equal(file_append("torn", "{}", &err), 0);
    assert_int_equal(file_append("torn", "{}", &err), 0);
    assert_content("torn", "{\"gen\n{}\n{}\n");

    assert_int_equal(file_append("log", "a\nb", &err), -1);
    assert_string_equal(err.text, "cannot append to log: the text is more than one line");
    assert_int_equal(symlink("log", "log-link"), 0);
    assert_int_equal(file_append("log-link", "x", &err), -1);
    assert_int_equal(errno, ELOOP);
    assert_int_equal(file_append(".", "x", &err), -1);
    assert_int_equal(errno, EISDIR);
    assert_int_equal(mkfifo("append-fifo", 0600), 0);
    assert_int_equal(file_append("append-fifo", "x", &err), -1);
    assert_int_equal(file_append("none/log", "x", &err), -1);
    assert_string_equal(err.text, "cannot append to none/log: No such file or directory");
    assert_content("log", "{\"generation\":1}\n\n{\"generation\":2}\n");
    assert_int_equal(count_descriptors(), before);
}

/* Two processes append at once: every line is whole. */
static void test_append_from_two_processes(void **state)
{
    enum { LINES = 500 };
    char line[200] = "";
    int status, lines = 0;
    char *text, *at;
    pid_t pid = fork();

    memset(line, pid == 0 ? 'c' : 'p', sizeof(line) - 1);
    for (int i = 0; i < LINES; i++) {
        if (file_append("both", line, NULL) != 0 && pid == 0)
            _exit(1);
    }
    if (pid == 0)
        _exit(0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    text = file_read("both", 1000000, NULL, NULL);
    for (at = text; *at != '\0'; at += sizeof(line)) {
        assert_int_equal(strspn(at, *at == 'c' ? "c" : "p"), sizeof(line) - 1);
        assert_int_equal(at[sizeof(line) - 1], '\n');
        lines++;
    }
    assert_int_equal(lines, 2 * LINES);
    free(text);
}

static void test_make(void **state)
{
    struct error err = {""};

    assert_int_equal(dir_make("made/of//several/", &err), 0);
    assert_int_equal(mode_of("made"), 0700);
    assert_int_equal(mode_of("made/of"), 0700);
    assert_int_equal(mode_of("made/of/several"), 0700);
    assert_int_equal(dir_make("made/of/several", &err), 0);
    assert_int_equal(dir_make("made/of/several/again", &err), 0);
    assert_int_equal(dir_make(root, &err), 0);
    /* The mode of one that is there is its owner's business. */
    assert_int_equal(chmod("made/of", 0755), 0);
    assert_int_equal(dir_make("made/of", &err), 0);
    assert_int_equal(mode_of("made/of"), 0755);

    /* A user may have put the parents elsewhere, but not the last one. */
    assert_int_equal(symlink("made", "moved"), 0);
    assert_int_equal(dir_make("moved/beside", &err), 0);
    assert_int_equal(mode_of("made/beside"), 0700);
    assert_int_equal(dir_make("moved", &err), -1);
    assert_string_equal(err.text, "cannot use the directory moved: it is a symlink");
    assert_int_equal(dir_make("moved/", &err), -1);
    assert_string_equal(err.text, "cannot use the directory moved: it is a symlink");
    assert_int_equal(symlink("nowhere", "dangling"), 0);
    assert_int_equal(dir_make("dangling", &err), -1);
    assert_string_equal(err.text, "cannot use the directory dangling: it is a symlink");

    put("file", "");
    assert_int_equal(dir_make("file", &err), -1);
    assert_string_equal(err.text, "cannot use the directory file: it is not a directory");
    assert_int_equal(errno, ENOTDIR);
    assert_int_equal(dir_make("file/below", &err), -1);
    assert_string_equal(err.text, "cannot make the directory file/below: Not a directory");
    assert_int_equal(dir_make("", &err), -1);
    assert_string_equal(err.text, "cannot make the directory : the name is empty");
}

/* Somebody else's directory in our place: root gives one away, others look at one of root's. */
static void test_foreign_directory(void **state)
{
    struct error err = {""};
    const char *foreign = "/";
    char expected[128] = "";
    uid_t owner = 0;

    if (geteuid() == 0) {
        foreign = "foreign";
        owner = 65534;
        assert_int_equal(mkdir(foreign, 0777), 0);
        assert_int_equal(chown(foreign, owner, (gid_t)-1), 0);
    }
    text_append(expected, sizeof(expected),
                "cannot use the directory %s: it belongs to uid %u, not to uid %u", foreign,
                (unsigned int)owner, (unsigned int)geteuid());
    assert_int_equal(dir_make(foreign, &err), -1);
    assert_string_equal(err.text, expected);
    assert_int_equal(errno, EPERM);
    assert_int_equal(dir_remove(foreign, &err), -1);
    assert_string_equal(err.text, expected);
    assert_int_equal(access(foreign, F_OK), 0);
}

static void assert_stranger(const char *path, const char *stranger)
{
    struct error err = {""};
    char expected[200] = "";

    text_append(expected, sizeof(expected),
                "cannot use the directory %s: it belongs to uid 65534, who could change all in it; "
                "a directory of your own would be right",
                stranger);
    assert_int_equal(dir_make_private(path, &err), -1);
    assert_string_equal(err.text, expected);
    assert_int_equal(errno, EPERM);
}

/* What another user has made in a directory where any user may, and what an admin has made. */
static void test_parent_of_a_stranger(void **state)
{
    struct error err = {""};

    if (geteuid() != 0)
        skip();
    assert_int_equal(mkdir("scratch", 0700), 0);
    assert_int_equal(chmod("scratch", 01777), 0);
    assert_int_equal(mkdir("scratch/taken", 0777), 0);
    assert_int_equal(chown("scratch/taken", 65534, (gid_t)-1), 0);
    assert_stranger("scratch/taken/new", "scratch/taken");
    assert_int_equal(access("scratch/taken/new", F_OK), -1);
    /* … also if what is to be made is there, and one's own. */
    assert_int_equal(dir_make("scratch/taken/named", &err), 0);
    assert_stranger("scratch/taken/named", "scratch/taken");
    assert_int_equal(symlink("..", "scratch/link"), 0);
    assert_int_equal(lchown("scratch/link", 65534, (gid_t)-1), 0);
    assert_stranger("scratch/link/new", "scratch/link");

    assert_int_equal(dir_make_private("scratch/own/new", &err), 0);
    assert_int_equal(dir_make_private("scratch/own/new", &err), 0);
    assert_int_equal(chmod("scratch", 01775), 0);
    assert_stranger("scratch/taken/new", "scratch/taken");
    /* Nobody but root has had a say. */
    assert_int_equal(chmod("scratch", 0755), 0);
    assert_int_equal(dir_make_private("scratch/taken/new", &err), 0);
    /* Whose the directory is, who could change anything in it. */
    assert_int_equal(chown("scratch", 65534, (gid_t)-1), 0);
    assert_int_equal(chmod("scratch", 01777), 0);
    assert_int_equal(dir_make_private("scratch/taken/new", &err), 0);
}

static void test_remove(void **state)
{
    struct error err = {""};
    int before = count_descriptors();

    assert_int_equal(dir_make("gone/a/b/c", &err), 0);
    assert_int_equal(dir_make("kept", &err), 0);
    put("kept/f", "kept");
    put("gone/f", "x");
    put("gone/a/.hidden", "x");
    put("gone/a/b/c/f", "x");
    assert_int_equal(symlink("../kept", "gone/to-dir"), 0);
    assert_int_equal(symlink("../kept/f", "gone/a/to-file"), 0);
    assert_int_equal(symlink("nowhere", "gone/a/b/dangling"), 0);
    assert_int_equal(symlink(".", "gone/loop"), 0);
    assert_int_equal(mkfifo("gone/fifo", 0600), 0);
    assert_int_equal(chmod("gone/f", 0), 0);
    if (dir_remove("gone/", &err) != 0)
        fail_msg("%s", err.text);
    assert_int_equal(mode_of("gone"), -1);
    assert_content("kept/f", "kept");
    assert_int_equal(dir_remove("gone", &err), 0);
    assert_int_equal(dir_remove("none/at/all", &err), 0);

    assert_int_equal(symlink("kept", "kept-link"), 0);
    assert_int_equal(dir_remove("kept-link", &err), -1);
    assert_string_equal(err.text, "cannot use the directory kept-link: it is a symlink");
    assert_int_equal(dir_remove("kept-link/", &err), -1);
    assert_int_equal(dir_remove("kept/f", &err), -1);
    assert_string_equal(err.text, "cannot use the directory kept/f: it is not a directory");
    assert_content("kept/f", "kept");
    assert_int_equal(count_descriptors(), before);
}

/* Deeper than a path can name at once, as a worker may leave it behind. */
static void test_remove_deep_tree(void **state)
{
    int depth = 300, fd = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(mkdir("deep", 0700), 0);
    assert_int_equal(chdir("deep"), 0);
    for (int i = 0; i < depth; i++) {
        assert_int_equal(mkdir("dddddddd", 0700), 0);
        assert_int_equal(chdir("dddddddd"), 0);
    }
    assert_int_equal(fchdir(fd), 0);
    close(fd);
    assert_int_equal(dir_remove("deep", NULL), 0);
    assert_int_equal(mode_of("deep"), -1);
}

/* Somebody makes f anew in each directory as soon as it is gone, and "full" cannot be removed. */
static int removals, removals_most;
int __real_unlinkat(int dir, const char *name, int flags);
int __wrap_unlinkat(int dir, const char *name, int flags);

int __wrap_unlinkat(int dir, const char *name, int flags)
{
    if (removals_most == 0)
        return __real_unlinkat(dir, name, flags);
    if (++removals > removals_most)
        fail_msg("more than %d tries to remove something", removals_most);
    if (strcmp(name, "f") == 0)
        return 0;
    if (strcmp(name, "full") != 0)
        return __real_unlinkat(dir, name, flags);
    errno = flags == AT_REMOVEDIR ? ENOTEMPTY : EISDIR;
    return -1;
}

static void make_filled(const char *top)
{
    char path[256];

    snprintf(path, sizeof(path), "%s", top);
    for (int depth = 0; depth < 20; depth++) {
        size_t length = strlen(path);

        assert_int_equal(mkdir(path, 0700), 0);
        strcpy(path + length, "/f");
        put(path, "x");
        strcpy(path + length, "/d");
    }
    strcpy(path + strlen(path) - 1, "full");
    assert_int_equal(mkdir(path, 0700), 0);
}

static void test_remove_while_filled(void **state)
{
    struct error err = {""};

    (void)state;
    make_filled("filled");
    removals_most = 20000;
    removals = 0;
    assert_int_equal(dir_remove("filled", &err), -1);
    removals_most = 0;
    assert_int_equal(dir_remove("filled", &err), 0);
}

static bool stops_soon(void *arg)
{
    return ++*(int *)arg > 5;
}

static void test_remove_and_stop(void **state)
{
    struct error err = {""};
    int looks = 0;
    const struct dir_removal how = {.stops = stops_soon, .stops_arg = &looks};

    (void)state;
    make_filled("stopped");
    assert_int_equal(dir_remove_so("stopped", &how, &err), -1);
    assert_int_equal(errno, ECANCELED);
    assert_int_equal(looks, 6);
    assert_int_equal(access("stopped/d/d/d/d/d/d", F_OK), 0);
    assert_int_equal(dir_remove("stopped", &err), 0);
}

static bool is_inode(const struct stat *st, const void *arg)
{
    return st->st_ino == *(const ino_t *)arg;
}

static void test_remove_the_right_one(void **state)
{
    struct stat st;
    struct error err = {""};
    ino_t inode;
    struct dir_removal how = {.is = is_inode, .is_arg = &inode, .keep = true};

    (void)state;
    assert_int_equal(dir_make("right/below", &err), 0);
    assert_int_equal(stat("right", &st), 0);
    inode = st.st_ino + 1;
    assert_int_equal(dir_remove_so("right", &how, &err), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(access("right/below", F_OK), 0);
    inode = st.st_ino;
    assert_int_equal(dir_remove_so("right", &how, &err), 0);
    assert_int_equal(access("right", F_OK), 0);
    assert_int_equal(access("right/below", F_OK), -1);
    how.keep = false;
    assert_int_equal(dir_remove_so("right", &how, &err), 0);
    how.keep = true;
    assert_int_equal(dir_remove_so("right", &how, &err), -1);
    assert_int_equal(errno, ENOENT);
}

#define SWAPPED 3000

/* When the first file of swap/in is gone, swap/in is a link to kept files of the same names. */
static void *swap_when_it_begins(void *arg)
{
    char event[4096];
    int watch = *(const int *)arg;

    if (read(watch, event, sizeof(event)) <= 0 || rename("swap/in", "swap-moved") != 0 ||
        symlink("../swap-kept", "swap/in") != 0)
        return (void *)(uintptr_t) "no swap";
    return NULL;
}

static int count_files(const char *path)
{
    DIR *list = opendir(path);
    struct dirent *entry;
    int count = 0;

    assert_non_null(list);
    while ((entry = readdir(list)) != NULL)
        count += entry->d_name[0] != '.';
    closedir(list);
    return count;
}

/* Somebody who can write there puts a link where a directory was: nothing behind it goes. */
static void test_remove_while_swapped(void **state)
{
    int watch = inotify_init1(IN_CLOEXEC);
    pthread_t thread;
    void *said;

    assert_int_equal(dir_make("swap/in", NULL), 0);
    assert_int_equal(dir_make("swap-kept", NULL), 0);
    for (int i = 0; i < SWAPPED; i++) {
        char path[64];

        for (int kept = 0; kept < 2; kept++) {
            snprintf(path, sizeof(path), "%s/file-%d", kept ? "swap-kept" : "swap/in", i);
            assert_true(close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600)) == 0);
        }
    }
    assert_true(inotify_add_watch(watch, "swap/in", IN_DELETE) >= 0);
    assert_int_equal(pthread_create(&thread, NULL, swap_when_it_begins, &watch), 0);
    dir_remove("swap", NULL);
    assert_int_equal(pthread_join(thread, &said), 0);
    close(watch);
    if (said != NULL)
        fail_msg("%s", (const char *)said);
    assert_int_equal(count_files("swap-kept"), SWAPPED);
}

static void assert_unreadable(const char *path, size_t max, int code, const char *message)
{
    struct error err = {""};
    size_t len = 77;

    assert_null(file_read(path, max, &len, &err));
    assert_int_equal(errno, code);
    assert_string_equal(err.text, message);
    assert_int_equal(len, 77);
}

static void test_read(void **state)
{
    int before = count_descriptors();
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "read-socket"};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char *text;
    size_t len;

    put("read", "12345");
    assert_int_equal(symlink("read", "read-link"), 0);
    assert_content("read-link", "12345");
    text = file_read("read", 5, &len, NULL);
    assert_string_equal(text, "12345");
    free(text);
    assert_unreadable("read", 4, EFBIG, "cannot read read: it has 5 bytes; at most 4 are allowed");
    assert_unreadable("none", 4, ENOENT, "cannot read none: No such file or directory");
    assert_unreadable("read/x", 4, ENOTDIR, "cannot read read/x: Not a directory");
    assert_unreadable(".", 4, EISDIR, "cannot read .: it is a directory, not a file");
    assert_unreadable("/dev/zero", 4, EINVAL,
                      "cannot read /dev/zero: it is a device, not a regular file");
    /* Nobody writes into it: a blocking open would wait for ever. */
    assert_int_equal(mkfifo("read-fifo", 0600), 0);
    assert_unreadable("read-fifo", 4, EINVAL,
                      "cannot read read-fifo: it is a FIFO, not a regular file");
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_unreadable("read-socket", 4, ENXIO, "cannot read read-socket: it is not a regular file");
    close(fd);
    /* Files of the kernel say that they are empty. */
    text = file_read("/proc/self/status", 100000, &len, NULL);
    assert_true(len > 100 && strlen(text) == len);
    free(text);
    assert_unreadable("/proc/self/status", 100, EFBIG,
                      "cannot read /proc/self/status: it has more bytes than are allowed");
    assert_int_equal(count_descriptors(), before);
}

static void assert_conf_path(const char *elastic, const char *slurm, const char *expected)
{
    char *path;

    setenv("ELASTIC_CONF", elastic, 1);
    setenv("SLURM_CONF", slurm, 1);
    path = conf_file_path();
    assert_string_equal(path, expected);
    free(path);
    unsetenv("ELASTIC_CONF");
    unsetenv("SLURM_CONF");
}

static void test_conf_path(void **state)
{
    char *path = conf_file_path();

    assert_string_equal(path, "/etc/slurm/elastic.conf");
    free(path);
    assert_conf_path("", "", "/etc/slurm/elastic.conf");
    assert_conf_path("/a/b", "/c/slurm.conf", "/a/b");
    assert_conf_path("", "/c/d/slurm.conf", "/c/d/elastic.conf");
    assert_conf_path("", "/slurm.conf", "/elastic.conf");
    assert_conf_path("", "slurm.conf", "elastic.conf");
}

static void assert_conf_beside(const char *slurm, const char *standard, const char *expected)
{
    char *path = conf_file_beside(slurm, standard);

    assert_string_equal(path, expected);
    free(path);
}

/* Configless: $SLURM_CONF is in a directory that only slurmd fills. */
static void test_conf_beside(void **state)
{
    (void)state;
    put("elastic.conf", "");
    put("standard.conf", "");
    assert_conf_beside("./slurm.conf", "standard.conf", "./elastic.conf");
    assert_conf_beside("cache/slurm.conf", "standard.conf", "standard.conf");
    assert_conf_beside("cache/slurm.conf", "none.conf", "cache/elastic.conf");
    /* That is a mistake, not a missing file. */
    assert_conf_beside("elastic.conf/slurm.conf", "standard.conf", "elastic.conf/elastic.conf");
    assert_int_equal(unlink("elastic.conf"), 0);
}

static void test_shapes_path(void **state)
{
    struct conf conf = {.shapes_file = (char *)"/a/shapes.json"};
    char *path = conf_file_shapes(NULL);

    (void)state;
    assert_string_equal(path, "/etc/slurm/elastic-shapes.json");
    free(path);
    setenv("SLURM_CONF", "/c/d/slurm.conf", 1);
    path = conf_file_shapes(NULL);
    assert_string_equal(path, "/c/d/elastic-shapes.json");
    free(path);
    path = conf_file_shapes(&conf);
    assert_string_equal(path, "/a/shapes.json");
    free(path);
    conf.shapes_file = NULL;
    setenv("ELASTIC_CONF", "/b/my.conf", 1);
    path = conf_file_shapes(&conf);
    assert_string_equal(path, "/b/elastic-shapes.json");
    free(path);
    unsetenv("ELASTIC_CONF");
    unsetenv("SLURM_CONF");
}

static void assert_no_conf(const char *path, const char *message)
{
    struct error err = {""};
    struct conf *conf = conf_file_load(path, &err);

    assert_null(conf);
    assert_string_equal(err.text, message);
}

static void test_conf_load(void **state)
{
    struct error err = {""};
    struct conf *conf;

    put("site.conf", "max_nodes = 9\n[pool a]\n");
    conf = conf_file_load("site.conf", &err);
    assert_non_null(conf);
    assert_int_equal(conf->max_nodes, 9);
    assert_string_equal(conf->path, "site.conf");
    assert_true(conf->was_read);
    conf_destroy(conf);
    /* Optional, unless somebody has named it. */
    conf = conf_file_load("none.conf", &err);
    assert_non_null(conf);
    assert_int_equal(conf->max_pending, 2);
    assert_string_equal(conf->path, "none.conf");
    assert_false(conf->was_read);
    conf_destroy(conf);
    setenv("SLURM_CONF", "nowhere/slurm.conf", 1);
    conf = conf_file_load(NULL, &err);
    assert_non_null(conf);
    conf_destroy(conf);
    setenv("ELASTIC_CONF", "none.conf", 1);
    assert_no_conf(NULL, "ELASTIC_CONF: cannot read none.conf: No such file or directory");
    setenv("ELASTIC_CONF", "site.conf", 1);
    conf = conf_file_load(NULL, &err);
    assert_non_null(conf);
    assert_int_equal(conf->max_nodes, 9);
    conf_destroy(conf);
    unsetenv("ELASTIC_CONF");
    unsetenv("SLURM_CONF");

    put("bad.conf", "max_nodes = 9\nmax_node = 8\n");
    assert_null(conf_file_load("bad.conf", &err));
    assert_memory_equal(err.text, "bad.conf:2: unknown key 'max_node'; known keys: max_pending,",
                        60);
    assert_no_conf(".", "elastic.conf: cannot read .: it is a directory, not a file");
    assert_no_conf("site.conf/x", "elastic.conf: cannot read site.conf/x: Not a directory");
}

static void assert_no_policy(const char *path, const char *message)
{
    struct policy policy;
    struct error err = {""};

    policy_init(&policy);
    assert_int_equal(policy_file_load(path, &policy, &err), -1);
    assert_string_equal(err.text, message);
    assert_int_equal(policy.grace, POLICY_UNSET);
}

static void test_policy_load(void **state)
{
    struct policy policy;
    struct error err = {""};
    int fd;

    put("good.json", "{\"grace\": 5}\n");
    policy_init(&policy);
    assert_int_equal(policy_file_load("good.json", &policy, &err), 0);
    assert_int_equal(policy.grace, 5);

    put("bad.json", "{\"grace\": 5,\n \"gracious\": 6}");
    assert_no_policy(
        "bad.json",
        "policy file bad.json: \"gracious\": unknown key; known keys: nodes, replica, grace, "
        "grow_delay, "
        "snooze, fault_wait, hang_wait, straggler, max_restarts, signal, grow, requeue, pool, "
        "deadline, "
        "fallback, "
        "budget, max_price, wake, reclaim, mlflow_tracking_uri, mlflow_experiment_name, "
        "mlflow_run_name, mlflow_run_id, scale_config");
    put("empty.json", "");
    assert_no_policy("empty.json",
                     "policy file empty.json: there is nothing in it; write {\"key\": value, ...}");
    assert_no_policy("none.json", "policy file: cannot read none.json: No such file or directory");
    assert_no_policy(".", "policy file: cannot read .: it is a directory, not a file");
    assert_int_equal(mkfifo("fifo.json", 0600), 0);
    assert_no_policy("fifo.json",
                     "policy file: cannot read fifo.json: it is a FIFO, not a regular file");
    /* 100 MB, and none of them read. */
    fd = open("large.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, 100000000), 0);
    close(fd);
    assert_no_policy(
        "large.json",
        "policy file: cannot read large.json: it has 100000000 bytes; at most 1048576 are allowed");
}

static void test_environment(void **state)
{
    struct policy policy;
    struct error err = {""};

    setenv("ELASTIC_SIZES", "2:4", 1);
    setenv("ELASTIC_GRACE", "11", 1);
    setenv("ELASTIC_GROW_DELAY", "12", 1);
    setenv("ELASTIC_SNOOZE", "13", 1);
    setenv("ELASTIC_FAULT_WAIT", "14", 1);
    setenv("ELASTIC_POOL", "a,b", 1);
    setenv("ELASTIC_SIGNAL", "SIGUSR1", 1);
    policy_init(&policy);
    assert_int_equal(policy_from_environment(&policy, true, &err), 0);
    assert_int_equal(policy.sizes.min, 2);
    assert_int_equal(policy.sizes.max, 4);
    assert_int_equal(policy.grace, 11);
    assert_int_equal(policy.grow_delay, 12);
    assert_int_equal(policy.snooze, 13);
    assert_int_equal(policy.fault_wait, 14);
    assert_int_equal(policy.pool_count, 2);
    assert_int_equal(policy.signal, 10);

    /* The command line has spoken: what the variable says does not matter, not even that it is
     * wrong. */
    policy_init(&policy);
    policy_set(&policy, "grace", "1", NULL);
    setenv("ELASTIC_GRACE", "wrong", 1);
    setenv("ELASTIC_SIZES", "wrong", 1);
    assert_int_equal(policy_from_environment(&policy, false, &err), 0);
    assert_int_equal(policy.grace, 1);
    assert_int_equal(policy.sizes.min, 0);
    assert_int_equal(policy.snooze, 13);

    policy_init(&policy);
    setenv("ELASTIC_GRACE", "", 1);
    assert_int_equal(policy_from_environment(&policy, false, &err), 0);
    assert_int_equal(policy.grace, POLICY_UNSET);
    setenv("ELASTIC_GRACE", "10m", 1);
    assert_int_equal(policy_from_environment(&policy, false, &err), -1);
    assert_string_equal(
        err.text,
        "ELASTIC_GRACE=10m: '10m' is not a number of seconds; allowed are whole numbers from 0 "
        "to 31536000");
    setenv("ELASTIC_SIZES", "8:2", 1);
    assert_int_equal(policy_from_environment(&policy, true, &err), -1);
    assert_string_equal(
        err.text,
        "ELASTIC_SIZES=8:2: MIN 8 is larger than MAX 2; write MIN:MAX with 1 <= MIN <= MAX <= "
        "65533");
}

/* A value for an option that has no default. */
static const char *some_value(const struct policy_option *option)
{
    switch (option->kind) {
    case POLICY_KIND_SIZES:
        return "2:8";
    case POLICY_KIND_TIME:
        return "2026-12-01T07:00:00Z";
    case POLICY_KIND_AMOUNT:
        return "12.5";
    case POLICY_KIND_NUMBER_OR_WORD:
        return option->words[0];
    case POLICY_KIND_TEXT:
        return option->form == POLICY_FORM_URL ? "http://mlflow:5000" : "a";
    default:
        return "a";
    }
}

/* A deadline counts from the moment that the caller gives. */
static void test_relative_deadline(void **state)
{
    struct policy policy;
    struct error err = {""};

    (void)state;
    put("deadline.json", "{\"deadline\": \"now+2hours\"}");
    policy_init(&policy);
    assert_int_equal(policy_file_load("deadline.json", &policy, &err), -1);
    assert_non_null(strstr(err.text, "depends on when it is read"));
    policy.now = 1796108400;
    assert_int_equal(policy_file_load("deadline.json", &policy, &err), 0);
    assert_true(policy.deadline == 1796108400 + 7200);
    policy_clear(&policy);
    setenv("ELASTIC_DEADLINE", "now+1hours", 1);
    assert_int_equal(policy_from_environment(&policy, true, &err), 0);
    assert_true(policy.deadline == 1796108400 + 3600);
    unsetenv("ELASTIC_DEADLINE");
    policy_clear(&policy);
}

/* Each option of the table has its variable. */
static void test_environment_of_the_table(void **state)
{
    for (const struct policy_option *o = policy_options; o->json != NULL; o++) {
        char *text = policy_option_default(o), *read;
        const char *value = text != NULL ? text : some_value(o);
        struct policy policy;

        if (o->option == NULL)
            continue;
        policy_init(&policy);
        setenv(o->environment, value, 1);
        assert_int_equal(policy_from_environment(&policy, true, NULL), 0);
        read = policy_option_text(&policy, o);
        assert_string_equal(read, value);
        unsetenv(o->environment);
        free(read);
        free(text);
    }
}

/* What three calls write on stderr, with and without $ELASTIC_DEBUG. */
static void log_into(const char *path)
{
    int saved = dup(STDERR_FILENO), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    log_init("elasticrun");
    errno = EDOM;
    log_info("generation %d", 3);
    log_error("two\nlines \033[31m");
    log_debug("detail %s", "x");
    assert_int_equal(errno, EDOM);
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
}

static void test_log(void **state)
{
    unsetenv("ELASTIC_DEBUG");
    log_into("quiet");
    assert_content("quiet", "elasticrun: generation 3\nelasticrun: error: two?lines ?[31m\n");
    setenv("ELASTIC_DEBUG", "1", 1);
    log_into("loud");
    assert_content("loud", "elasticrun: generation 3\nelasticrun: error: two?lines "
                           "?[31m\nelasticrun: debug: detail x\n");
    unsetenv("ELASTIC_DEBUG");
}

static void test_long_log_line(void **state)
{
    char text[10000], *line;
    int saved = dup(STDERR_FILENO), fd = open("long", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    memset(text, 'l', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(dup2(fd, STDERR_FILENO), STDERR_FILENO);
    log_info("%s", text);
    log_info("next");
    dup2(saved, STDERR_FILENO);
    close(saved);
    close(fd);
    line = file_read("long", 100000, NULL, NULL);
    assert_int_equal(strcspn(line, "\n"), 2046);
    assert_string_equal(strchr(line, '\n') + 1, "elasticrun: next\n");
    free(line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_replace_does_not_follow_symlinks),
        cmocka_unit_test(test_replace_failures),
        cmocka_unit_test(test_readers_never_see_a_torn_file),
        cmocka_unit_test(test_append),
        cmocka_unit_test(test_append_from_two_processes),
        cmocka_unit_test(test_make),
        cmocka_unit_test(test_foreign_directory),
        cmocka_unit_test(test_parent_of_a_stranger),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_remove_deep_tree),
        cmocka_unit_test(test_remove_while_filled),
        cmocka_unit_test(test_remove_and_stop),
        cmocka_unit_test(test_remove_the_right_one),
        cmocka_unit_test(test_remove_while_swapped),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_conf_path),
        cmocka_unit_test(test_conf_beside),
        cmocka_unit_test(test_shapes_path),
        cmocka_unit_test(test_conf_load),
        cmocka_unit_test(test_policy_load),
        cmocka_unit_test(test_relative_deadline),
        cmocka_unit_test(test_environment_of_the_table),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_long_log_line),
    };

    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests_name("files", tests, set_up, tear_down);
}
