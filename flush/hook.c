/* SPDX-License-Identifier: GPL-2.0-or-later */
/* elastic-hook: Slurm's prolog and epilog of slurm-elastic. It starts epilog.d/50-elastic, with
 * what that looks at and no more.
 *
 * Slurm gives a prolog all SPANK_ variables of a user, who may have made a hundred thousand of
 * them. bash needs half a minute of processor time to take them in, before the first line of a
 * script, and nobody gets the node meanwhile. Nothing here grows with their number but one walk
 * along the list.
 *
 * An admin may copy this program to where slurm-elastic itself is not installed, or not mounted:
 * then it does nothing. It never fails: Slurm would drain the node. */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SCRIPT    "/epilog.d/50-elastic"
#define EXTENSION "SLURM_JOB_COMMENT=elastic-extension-of="
#define WORDS_MAX 24

/* The variables that the script looks at: USED there. */
static const char *const used[] = {
    "SLURM_CONF=",   "SLURM_SCRIPT_CONTEXT=", "SLURM_NODELIST=", "SLURMD_NODENAME=",
    "SLURM_JOB_ID=", "SLURM_JOB_UID=",        "SLURM_JOB_GID=",  "SLURM_JOB_RESTART_COUNT=",
    "ELASTIC_CONF=",
};
/* … which only have to be there. Arguments can be read by every user of the node. */
static const struct {
    const char *begin, *as;
} marks[] = {
    {"SPANK_ELASTIC_SIZES=", "SPANK_ELASTIC_SIZES="},
    {"SPANK_ELASTIC_ROLES_NODES=", "SPANK_ELASTIC_SIZES="},
    {"SPANK_ELASTIC_EXTEND=", "SPANK_ELASTIC_EXTEND="},
    {EXTENSION, EXTENSION},
};

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* What bash does: a script that cannot be read, or is torn, ends well. */
static const char *const shell[] = {"/bin/bash", "-pc", "trap 'exit 0' EXIT; . \"$0\""};

_Static_assert(COUNT(shell) + 1 + COUNT(used) + COUNT(marks) + 1 <= WORDS_MAX,
               "room for all words");

extern char **environ;

static bool begins(const char *text, const char *begin)
{
    return strncmp(text, begin, strlen(begin)) == 0;
}

/* Each name once, from one walk. words has room for all. */
static void choose(const char *words[])
{
    const char *values[COUNT(used)] = {NULL};
    bool there[COUNT(marks)] = {false};

    for (char **entry = environ; *entry != NULL; entry++) {
        for (size_t i = 0; i < COUNT(used); i++)
            if (values[i] == NULL && begins(*entry, used[i]))
                values[i] = *entry;
        for (size_t i = 0; i < COUNT(marks); i++)
            there[i] = there[i] || begins(*entry, marks[i].begin);
    }
    for (size_t i = 0; i < COUNT(used); i++)
        if (values[i] != NULL)
            *words++ = values[i];
    for (size_t i = 0; i < COUNT(marks); i++)
        if (there[i])
            *words++ = marks[i].as;
    *words = NULL;
}

/* Beside a copy of this program may be another one, with the script's name. */
static bool is_script(const char *path)
{
    int fd = access(path, X_OK) == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    char mark[2];
    bool is = fd >= 0 && read(fd, mark, sizeof(mark)) == sizeof(mark) && memcmp(mark, "#!", 2) == 0;

    if (fd >= 0)
        close(fd);
    return is;
}

/* Beside this program, else where it was installed. NULL: nowhere. */
static const char *find_script(char path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - sizeof(SCRIPT));
    char *end;

    path[len > 0 ? len : 0] = '\0';
    end = strrchr(path, '/');
    if (end != NULL)
        memcpy(end, SCRIPT, sizeof(SCRIPT));
    if (end != NULL && is_script(path))
        return path;
    return is_script(PKGLIBEXECDIR SCRIPT) ? PKGLIBEXECDIR SCRIPT : NULL;
}

int main(void)
{
    char path[PATH_MAX], *none[] = {NULL};
    const char *words[WORDS_MAX], *script = find_script(path);

    memcpy(words, shell, sizeof(shell));
    words[COUNT(shell)] = script;
    choose(words + COUNT(shell) + 1);
    if (script != NULL)
        execve(words[0], (char *const *)words, none);
    return 0;
}
