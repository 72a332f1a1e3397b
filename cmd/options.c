/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Options of a program (options.h). */
#include "cmd/options.h"

#include <stdlib.h>

int options_read(int argc, char **argv, const struct options_syntax *syntax, void *to,
                 struct error *err)
{
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "", syntax->list, NULL)) != -1) {
        if (option == '?')
            return error_set(err, "%s: unknown option, or one without its value; see --help",
                             error_value(argv[optind - 1]).text);
        if (option == 'h') {
            syntax->help();
            exit(0);
        }
        if (syntax->read(to, option, err) != 0)
            return -1;
    }
    return 0;
}
