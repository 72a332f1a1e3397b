/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the subcommands of selastic share: their table, the exit status, and how they print. */
#ifndef SELASTIC_COMMAND_H
#define SELASTIC_COMMAND_H

#include <stdbool.h>

#include <json-c/json.h>

#include "cmd/arguments.h"

enum exit_status {
    STATUS_OK = 0,
    STATUS_FAILED = 1,
    STATUS_USAGE = 2,
    STATUS_TIMEOUT = 3, /* wait: the time is over */
    STATUS_ENDED = 4,   /* wait: the job has ended before */
};

struct command {
    const char *name;
    const char *summary; /* a few words for the list of commands */
    const char *help;    /* usage and options, whole lines */
    enum exit_status (*run)(const struct arguments *arguments);
    /* Instead of help and run: another program does it all. Returns where it cannot be started. */
    enum exit_status (*become)(char **argv);
};

extern const struct command list_command, show_command, resize_command, history_command,
    roles_command, replicas_command, scale_command, fail_command, remove_command, endpoints_command,
    logs_command, reports_command, proxy_command, clean_command, plan_command, states_command,
    topology_command, wait_command, doctor_command, usage_command, top_command, exporter_command,
    services_command, shard_command, apply_command, flush_command, repack_command, move_command,
    place_command, withdraw_command, serve_command, handover_command, router_command, fit_command;

/* Columns of the terminal on stdout, 0 if stdout is no terminal. */
int terminal_width(void);

/* Print a text and free it. */
void print_text(char *text);

/* Write a text into a file that all may read whom the umask lets, and free it. */
/* … "-": standard output. */
int write_text(const char *path, char *text, struct error *err);

/* Print an object as JSON and put it: indented, or on one line for a stream of objects. */
void print_json(json_object *object, bool one_line);

/* The message on stderr, for status STATUS_FAILED. */
enum exit_status failed(const struct error *err);

/* A new request {"t": type}. */
json_object *request_new(const char *type);

#endif
