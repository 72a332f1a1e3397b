/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One line messages on stderr: "elasticrun: …". Debug lines only with $ELASTIC_DEBUG set. */
#ifndef ELASTIC_LOG_H
#define ELASTIC_LOG_H

void log_init(const char *program);
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
