/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a member holds on its node (run_dir.h). */
#include "agent/run_dir.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

#include "common/files.h"

/* The agent holds a lock on this file for as long as it lives; who can take the lock knows that the agent has died. */
#define LOCK_NAME "agent.lock"

static bool agent_lives(const char *dir)
{
    char path[512];
    int fd;
    bool lives;

    snprintf(path, sizeof(path), "%s/%s", dir, LOCK_NAME);
    fd = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    lives = flock(fd, LOCK_EX | LOCK_NB) != 0;
    close(fd);
    return lives;
}

/* Remove what killed agents of this user have left on this node (name given) or under this name. */
static void sweep(const char *root, const char *node)
{
    char prefix[64], path[512];
    size_t node_len = strlen(node);
    DIR *dir = opendir(root);
    struct dirent *entry;
    struct stat st;

    if (dir == NULL)
        return;
    snprintf(prefix, sizeof(prefix), "elastic-%u-", (unsigned)getuid());
    while ((entry = readdir(dir)) != NULL) {
        size_t len = strlen(entry->d_name);

        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0 || len < node_len + 1 ||
            strcmp(entry->d_name + len - node_len, node) != 0 ||
            entry->d_name[len - node_len - 1] != '-')
            continue;
        snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
        if (lstat(path, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != getuid() ||
            agent_lives(path))
            continue;
        dir_remove(path, NULL);
    }
    closedir(dir);
}

int run_dir_name(char *path, size_t size, const char *root, uint32_t job, uint32_t restarts,
                 const char *node)
{
    int len = snprintf(path, size, "%s/elastic-%u-%u.%u-%s", root, (unsigned)getuid(), job,
                       restarts, node);

    return len < 0 || (size_t)len >= size ? -1 : 0;
}

char *run_dir_make(const char *root, uint32_t job, uint32_t restarts, const char *node,
                   struct error *err)
{
    char path[512], lock[600];
    int fd;

    if (run_dir_name(path, sizeof(path), root, job, restarts, node) != 0) {
        error_set(err, "snapshot_dir '%s' is too long", root);
        return NULL;
    }
    sweep(root, node);
    if (dir_make(path, err) != 0)
        return NULL;
    snprintf(lock, sizeof(lock), "%s/%s", path, LOCK_NAME);
    fd = open(lock, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0) {
        error_set(err, "%s: %s: another elasticrun of this job runs on this node", path,
                  strerror(errno));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    /* fd stays open: the lock is held until this process ends. */
    return strdup(path);
}

void run_dir_remove(const char *path)
{
    if (path != NULL)
        dir_remove(path, NULL);
}
