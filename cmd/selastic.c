/* SPDX-License-Identifier: GPL-2.0-or-later */
/* selastic: look at and resize elastic jobs. This file only finds the subcommand. */
#include "config.h"

#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "common/log.h"
#include "common/release_own.h"

static const struct command *const commands[] = {
    &list_command,    &top_command,      &show_command,      &wait_command,     &resize_command,
    &history_command, &usage_command,    &roles_command,     &replicas_command, &scale_command,
    &fail_command,    &remove_command,   &endpoints_command, &logs_command,     &reports_command,
    &proxy_command,   &exporter_command, &services_command,  &shard_command,    &apply_command,
    &flush_command,   &repack_command,   &move_command,      &place_command,    &withdraw_command,
    &serve_command,   &handover_command, &router_command,    &clean_command,    &plan_command,
    &states_command,  &fit_command,      &doctor_command,    &topology_command};
#define COMMANDS (sizeof(commands) / sizeof(*commands))

static void print_usage(FILE *out)
{
    fputs("Usage: selastic COMMAND [ARGUMENT]...\n\nCommands:\n", out);
    for (size_t i = 0; i < COMMANDS; i++)
        fprintf(out, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs(
        "\n'selastic COMMAND --help' explains a command. 'selastic --version' prints the version.\n"
        "Exit status: 0 success, 1 refused or failed, 2 wrong command line. See selastic(1).\n",
        out);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];
    return NULL;
}

static enum exit_status wrong_usage(const struct error *err)
{
    failed(err);
    return STATUS_USAGE;
}

static enum exit_status unknown_command(const char *name)
{
    struct error err;
    arguments_unknown(name, &err);
    return wrong_usage(&err);
}

static enum exit_status run_help(const char *name)
{
    static char help_option[] = "--help";
    const struct command *command = name != NULL ? find_command(name) : NULL;
    if (name != NULL && command == NULL)
        return unknown_command(name);
    if (command != NULL && command->become != NULL)
        return command->become((char *[]){NULL, help_option, NULL});
    if (command != NULL)
        fputs(command->help, stdout);
    else
        print_usage(stdout);
    return STATUS_OK;
}

static enum exit_status run_command(int argc, char **argv)
{
    struct arguments arguments;
    struct error err;
    const struct command *command = find_command(argv[0]);
    if (command == NULL)
        return unknown_command(argv[0]);
    if (command->become != NULL)
        return command->become(argv);
    if (arguments_parse(argc, argv, &arguments, &err) < 0)
        return wrong_usage(&err);
    return arguments.help ? run_help(argv[0]) : command->run(&arguments);
}

static enum exit_status dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        printf("selastic %s (Slurm %s)\n", release_own()->name, ELASTIC_SLURM_VERSION);
        return STATUS_OK;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return run_help(NULL);
    if (strcmp(argv[1], "help") == 0)
        return run_help(argv[2]);
    return run_command(argc - 1, argv + 1);
}

int main(int argc, char **argv)
{
    setlocale(LC_CTYPE, ""); /* which characters can be printed */
    log_init("selastic");
    enum exit_status status = dispatch(argc, argv);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        log_error("cannot write the output: %m");
        return STATUS_FAILED;
    }
    return status;
}
