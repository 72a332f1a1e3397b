/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The command line of elastic-router (router_arguments.h). */
#include "router/router_arguments.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "lib/number.h"
#include "lib/shard_commands.h"

#define PORT_MAX 65535

static const struct option long_options[] = {
    {"listen", required_argument, NULL, 'l'},
    {"tokens", required_argument, NULL, 't'},
    {"no-tokens", no_argument, NULL, 'n'},
    {"route-by", required_argument, NULL, 'b'},
    {"table", required_argument, NULL, 'f'},
    {"directory", required_argument, NULL, 'd'},
    {"run-dir", required_argument, NULL, 'r'},
    {"haproxy", required_argument, NULL, 'p'},
    {"status", no_argument, NULL, 's'},
    {"json", no_argument, NULL, 'j'},
    {"wait", no_argument, NULL, 'w'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static bool is_address(int family, const char *text, size_t length)
{
    struct in6_addr parsed;
    char address[INET6_ADDRSTRLEN];

    if (length >= sizeof(address))
        return false;
    snprintf(address, sizeof(address), "%.*s", (int)length, text);
    return inet_pton(family, address, &parsed) == 1;
}

int router_listen_read(const char *text, char listen[ROUTER_LISTEN], struct error *err)
{
    const char *colon = strrchr(text, ':');
    size_t length = colon != NULL ? (size_t)(colon - text) : 0;
    int port;

    if (colon == NULL || number_parse(colon + 1, strlen(colon + 1), 1, PORT_MAX, &port) != 0)
        return error_set(err, "--listen=%s: give ADDRESS:PORT (127.0.0.1:8080, [::1]:8080, :8080)",
                         error_value(text).text);
    if (length == 0 || (length == 1 && text[0] == '*')) {
        snprintf(listen, ROUTER_LISTEN, "*:%d", port);
        return 0;
    }
    if (!is_address(AF_INET, text, length) &&
        !(length > 2 && text[0] == '[' && text[length - 1] == ']' &&
          is_address(AF_INET6, text + 1, length - 2)))
        return error_set(err,
                         "--listen=%s: the address has to be a number of this machine (127.0.0.1, "
                         "[::1]), or nothing for all of them",
                         error_value(text).text);
    snprintf(listen, ROUTER_LISTEN, "%.*s:%d", (int)length, text, port);
    return 0;
}

static int read_route_by(const char *text, struct router_arguments *arguments, struct error *err)
{
    if (route_by_parse(text, &arguments->by, &arguments->what))
        return 0;
    return error_set(err, "--route-by=%s: give " ROUTE_BY_FORM, error_value(text).text);
}

static int read_option(struct router_arguments *arguments, int option, char *const *argv,
                       struct error *err)
{
    switch (option) {
    case 'l':
        return router_listen_read(optarg, arguments->listen, err);
    case 't':
        arguments->tokens = optarg;
        return 0;
    case 'n':
        arguments->no_tokens = true;
        return 0;
    case 'b':
        return read_route_by(optarg, arguments, err);
    case 'f':
        arguments->table = optarg;
        return 0;
    case 'd':
        arguments->directory = optarg;
        return 0;
    case 'r':
        arguments->run_dir = optarg;
        return 0;
    case 'p':
        arguments->haproxy = optarg;
        return 0;
    case 's':
        arguments->status = true;
        return 0;
    case 'j':
        arguments->json = true;
        return 0;
    case 'w':
        arguments->wait = true;
        return 0;
    case 'h':
        arguments->help = true;
        return 0;
    default:
        return error_set(err, "%s: unknown option, or one without its value; see --help",
                         error_value(argv[optind - 1]).text);
    }
}

static int check(const struct router_arguments *arguments, struct error *err)
{
    if (!shard_name_ok(arguments->service))
        return error_set(err, "'%s' is no name of a service: letters, digits and ._-",
                         error_value(arguments->service).text);
    if (arguments->json && !arguments->status)
        return error_set(err, "--json belongs to --status");
    if (!arguments->status && arguments->listen[0] == '\0')
        return error_set(err, "where to listen? --listen=ADDRESS:PORT");
    if (arguments->tokens != NULL && arguments->no_tokens)
        return error_set(err, "--tokens and --no-tokens exclude each other");
    if (arguments->table != NULL && arguments->directory != NULL)
        return error_set(err, "--table and --directory exclude each other");
    return 0;
}

int router_arguments_read(int argc, char **argv, struct router_arguments *arguments,
                          struct error *err)
{
    int option;

    *arguments = (struct router_arguments){0};
    opterr = 0;
    optind = 0;
    while ((option = getopt_long(argc, argv, "h", long_options, NULL)) != -1)
        if (read_option(arguments, option, argv, err) != 0)
            return -1;
    if (arguments->help)
        return 0;
    if (argc - optind != 1)
        return error_set(err, argc == optind ? "which service? give its name"
                                             : "one service at a time; see --help");
    arguments->service = argv[optind];
    return check(arguments, err);
}
