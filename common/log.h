/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Messages of one line on stderr: "elasticrun: …". Debug lines only with $ELASTIC_DEBUG set. */
#ifndef ELASTIC_LOG_H
#define ELASTIC_LOG_H

/* Name the program (the string is kept, not copied) and look at $ELASTIC_DEBUG. */
void log_init(const char *program);

/* Each call writes one line with one write, cleaned as errors are (error_clean), so that lines of
 * several threads and processes do not mix. Lines begin with "PROGRAM: ", "PROGRAM: error: " and
 * "PROGRAM: debug: ". errno keeps its value. */
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
