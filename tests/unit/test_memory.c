/* SPDX-License-Identifier: GPL-2.0-or-later */
/* agent/memory on trees of files as the kernel shows them. */
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/memory.h"
#include "tests/unit/support.h"

#define MIB (UINT64_C(1) << 20)

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    return remove(path);
}

/* Write a file below root, with its directories. */
static void put(const char *root, const char *name, const char *text)
{
    char path[PATH_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = strchr(path + strlen(root) + 1, '/'); slash;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

#define MEMINFO "MemTotal: 8192 kB\nMemFree: 1024 kB\nMemAvailable:    6291456 kB\n" /* 6 GiB */

static void test_least_of_all(void **state)
{
    static const struct {
        const char *files[8][2];
        uint64_t left;
    } table[] = {
        {{{NULL}}, UINT64_MAX},
        {{{"proc/meminfo", MEMINFO}}, 6144 * MIB},
        {{{"proc/meminfo", "MemAvailable: lots\n"}}, UINT64_MAX},
        /* No limit, or none that can be read. */
        {{{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/job_1/step_0\n"},
          {"sys/fs/cgroup/job_1/step_0/memory.max", "max\n"},
          {"sys/fs/cgroup/job_1/step_0/memory.current", "1048576\n"},
          {"sys/fs/cgroup/job_1/memory.max", "1048576\n"}},
         6144 * MIB},
        /* The job's limit holds for its step; caches can be dropped. */
        {{{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "0::/job_1/step_0\n"},
          {"sys/fs/cgroup/job_1/step_0/memory.max", "max\n"},
          {"sys/fs/cgroup/job_1/memory.max", "104857600\n"},
          {"sys/fs/cgroup/job_1/memory.current", "83886080\n"},
          {"sys/fs/cgroup/job_1/memory.stat", "anon 1\ninactive_file 10485760\n"}},
         30 * MIB},
        {{{"proc/self/cgroup", "0::/\n"},
          {"sys/fs/cgroup/memory.max", "10485760\n"},
          {"sys/fs/cgroup/memory.current", "20971520\n"}},
         0},
        /* Version 1, with other controllers before it. */
        {{{"proc/meminfo", MEMINFO},
          {"proc/self/cgroup", "9:cpuset:/c\n7:memory:/slurm/job_1\n"},
          {"sys/fs/cgroup/memory/slurm/job_1/memory.limit_in_bytes", "52428800\n"},
          {"sys/fs/cgroup/memory/slurm/job_1/memory.usage_in_bytes", "41943040\n"},
          {"sys/fs/cgroup/memory/slurm/job_1/memory.stat", "total_inactive_file 1048576\n"}},
         11 * MIB},
        {{{"proc/meminfo", MEMINFO}, {"proc/self/cgroup", "nonsense\n::\n0::no/slash\n"}},
         6144 * MIB},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char root[] = "/tmp/elastic-test-memory-XXXXXX";

        assert_non_null(mkdtemp(root));
        for (size_t k = 0; k < COUNT(table[i].files) && table[i].files[k][0]; k++)
            put(root, table[i].files[k][0], table[i].files[k][1]);
        if (memory_available(root) != table[i].left)
            fail_msg("case %zu: %llu bytes", i, (unsigned long long)memory_available(root));
        assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
}

static void test_this_machine(void **state)
{
    (void)state;
    assert_true(memory_available("") > MIB);
    assert_true(memory_available("") < UINT64_MAX);
}

static void test_kills_for_want_of_memory(void **state)
{
    static const struct {
        const char *files[3][2];
        uint64_t kills;
    } table[] = {
        {{{NULL}}, 0},
        {{{"proc/self/cgroup", "0::/job_1/step_0\n"},
          {"sys/fs/cgroup/job_1/step_0/memory.events", "low 0\noom 7\noom_kill 2\n"},
          {"sys/fs/cgroup/job_1/memory.events", "oom_kill 9\n"}},
         2},
        {{{"proc/self/cgroup", "9:cpuset:/c\n7:memory:/slurm/job_1\n"},
          {"sys/fs/cgroup/memory/slurm/job_1/memory.oom_control",
           "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}},
         3},
    };

    (void)state;
    for (size_t i = 0; i < COUNT(table); i++) {
        char root[] = "/tmp/elastic-test-memory-XXXXXX";

        assert_non_null(mkdtemp(root));
        for (size_t k = 0; k < COUNT(table[i].files) && table[i].files[k][0]; k++)
            put(root, table[i].files[k][0], table[i].files[k][1]);
        assert_int_equal(memory_oom_kills(root), table[i].kills);
        assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_least_of_all),
        cmocka_unit_test(test_kills_for_want_of_memory),
        cmocka_unit_test(test_this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
