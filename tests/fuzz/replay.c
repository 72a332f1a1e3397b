/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Runs a fuzz target once on each file of its corpus, without libFuzzer: TARGET [FILE]...
 *
 * Without files, those of $top_srcdir/tests/fuzz/corpus/TARGET. Prints TAP. What an input does
 * wrong ends the program, after the name of its file. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"

#define INPUT_MAX (4 * 1024 * 1024)

static bool replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data, *exact;
    size_t size;

    if (file == NULL)
        return false;
    data = malloc(INPUT_MAX);
    size = data != NULL ? fread(data, 1, INPUT_MAX, file) : 0;
    fclose(file);
    /* No longer than the input, for the sanitizers. */
    exact = data != NULL ? realloc(data, size > 0 ? size : 1) : NULL;
    if (exact == NULL)
        return false;
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return true;
}

static int replay_all(char *const *paths, int count)
{
    int failed = 0;

    printf("1..%d\n", count);
    for (int i = 0; i < count; i++) {
        const char *slash = strrchr(paths[i], '/');
        bool ok;

        printf("# %s\n", paths[i]);
        fflush(stdout);
        ok = replay(paths[i]);
        failed += !ok;
        printf("%s %d - %s\n", ok ? "ok" : "not ok", i + 1, slash != NULL ? slash + 1 : paths[i]);
    }
    return failed > 0;
}

static int is_input(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

int main(int argc, char **argv)
{
    const char *top = getenv("top_srcdir"), *slash = strrchr(argv[0], '/');
    const char *target = slash != NULL ? slash + 1 : argv[0];
    char directory[PATH_MAX], **paths;
    struct dirent **entries = NULL;
    int count;

    if (argc > 1)
        return replay_all(argv + 1, argc - 1);
    snprintf(directory, sizeof(directory), "%s/tests/fuzz/corpus/%s", top != NULL ? top : ".",
             target);
    count = scandir(directory, &entries, is_input, alphasort);
    paths = count > 0 ? calloc((size_t)count, sizeof(*paths)) : NULL;
    if (paths == NULL) {
        printf("Bail out! no corpus in %s: %s\n", directory,
               count < 0 ? strerror(errno) : "it is empty");
        return 1;
    }
    for (int i = 0; i < count; i++) {
        if (asprintf(&paths[i], "%s/%s", directory, entries[i]->d_name) < 0)
            return 1;
        free(entries[i]);
    }
    free(entries);
    argc = replay_all(paths, count);
    for (int i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    return argc;
}
