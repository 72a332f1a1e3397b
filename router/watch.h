/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A small file that others replace: looked at again and again, in a thread, because its file system
 * may be slow or hang. */
#ifndef ELASTIC_ROUTER_WATCH_H
#define ELASTIC_ROUTER_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include <uv.h>

struct watch;

/* There is another text: `text` with length bytes, and a NUL behind it, until the end of the call.
 * NULL: it cannot be read, then why says so, once. Comes from the loop. */
typedef void watch_changed(const char *text, size_t length, const char *why, void *arg);

/* Each `ms`. The file has to belong to this user or to root, and has at most max bytes. With
 * `secret`, nobody else may read it. NULL: out of memory. */
struct watch *watch_create(uv_loop_t *loop, const char *path, size_t max, bool secret, uint64_t ms,
                           watch_changed *changed, void *arg);
/* changed is not called any more. Freed once the loop has closed its handle, and its thread is
 * done. */
void watch_destroy(struct watch *watch);

#endif
