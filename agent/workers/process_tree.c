/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Descendants of a process, by the parents that /proc names (process_tree.h). */
#include "agent/workers/process_tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct process {
    char state;
    pid_t pid, parent;
    long pages; /* resident */
};

struct table {
    struct process *list;
    size_t count, room;
};

/* Fields 5 to 23 of /proc/PID/stat, which are not looked at. */
#define SKIPPED "%*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %*u %*u"

/* From /proc/PID/stat: "PID (any text) STATE PPID …". False when the process is gone or a
 * zombie. */
static bool read_process(int proc_fd, const char *pid, struct process *process)
{
    char path[32], stat[512];
    const char *end;
    ssize_t got;
    int fd;

    snprintf(path, sizeof(path), "%.20s/stat", pid);
    fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    got = read(fd, stat, sizeof(stat) - 1);
    close(fd);
    if (got <= 0)
        return false;
    stat[got] = '\0';
    end = strrchr(stat, ')');
    process->pid = atoi(pid);
    return end != NULL &&
           sscanf(end + 1, " %c %d " SKIPPED " %ld", &process->state, &process->parent,
                  &process->pages) == 3 &&
           process->state != 'Z' && process->state != 'X';
}

char process_state(pid_t pid)
{
    int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct process process;
    char text[16];
    bool found;

    if (proc_fd < 0)
        return 0;
    snprintf(text, sizeof(text), "%d", (int)pid);
    found = read_process(proc_fd, text, &process);
    close(proc_fd);
    return found ? process.state : 0;
}

bool process_has_pending(pid_t pid, int number)
{
    char path[32], *line = NULL;
    uint64_t pending = 0;
    size_t size = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    while (getline(&line, &size, file) > 0 && sscanf(line, "ShdPnd: %" SCNx64, &pending) != 1)
        ;
    free(line);
    fclose(file);
    return (pending >> (number - 1) & 1) != 0;
}

static int read_table(struct table *table)
{
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    if (proc == NULL)
        return -1;
    while ((entry = readdir(proc)) != NULL) {
        struct process process;

        if (!isdigit((unsigned char)entry->d_name[0]) ||
            !read_process(dirfd(proc), entry->d_name, &process))
            continue;
        if (table->count == table->room) {
            size_t room = table->room == 0 ? 256 : table->room * 2;
            struct process *list = realloc(table->list, room * sizeof(*list));

            if (list == NULL)
                break;
            table->list = list;
            table->room = room;
        }
        table->list[table->count++] = process;
    }
    closedir(proc);
    return 0;
}

/* The pids of root's descendants in the order of their generations: a new array, *count long. */
static pid_t *descendants(const struct table *table, pid_t root, size_t *count)
{
    pid_t *found = calloc(table->count + 1, sizeof(*found));
    size_t last = 1;

    if (found == NULL)
        return NULL;
    found[0] = root;
    for (size_t at = 0; at < last; at++)
        for (size_t i = 0; i < table->count && last <= table->count; i++)
            if (table->list[i].parent == found[at])
                found[last++] = table->list[i].pid;
    *count = last - 1;
    memmove(found, found + 1, *count * sizeof(*found));
    return found;
}

uint64_t process_tree_memory(pid_t root)
{
    struct table table = {0};
    size_t count = 0;
    pid_t *found = read_table(&table) == 0 ? descendants(&table, root, &count) : NULL;
    uint64_t pages = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < table.count; k++)
            if (table.list[k].pid == found[i] && table.list[k].pages > 0)
                pages += (uint64_t)table.list[k].pages;
    free(found);
    free(table.list);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

int process_tree_signal(pid_t root, pid_t pid, int number)
{
    struct table table = {0};
    size_t count = 0;
    pid_t *found = read_table(&table) == 0 ? descendants(&table, root, &count) : NULL;
    int rc = -1;

    for (size_t i = 0; i < count; i++)
        if (found[i] == pid)
            rc = kill(pid, number);
    free(found);
    free(table.list);
    return rc;
}

int process_tree_kill(pid_t root)
{
    struct table table = {0};
    size_t count = 0;
    pid_t *found;

    if (read_table(&table) != 0)
        return -1;
    found = descendants(&table, root, &count);
    for (size_t i = 0; i < count; i++)
        kill(found[i], SIGKILL);
    free(found);
    free(table.list);
    return (int)count;
}
