/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Output of the workers and replicas of this node (member_internal.h). A member of the base writes
 * it. Others send it to the leader, which says how much of it has been written. */
#include <sodium.h>

#include "agent/member/member_internal.h"
#include "agent/member/replicas.h"

#define OUTPUT_CHUNK  32768        /* bytes of worker output in one message */
#define OUTPUT_WINDOW (256 * 1024) /* bytes sent to the leader and not yet written by it */

static void forward(struct member *m, const char *name, int rank, int fd, const char *data,
                    size_t len)
{
    char text[sodium_base64_ENCODED_LEN(OUTPUT_CHUNK, sodium_base64_VARIANT_ORIGINAL)];

    for (size_t at = 0; at < len; at += OUTPUT_CHUNK) {
        size_t part = len - at < OUTPUT_CHUNK ? len - at : OUTPUT_CHUNK;
        json_object *msg = member_message("out");

        sodium_bin2base64(text, sizeof(text), (const unsigned char *)data + at, part,
                          sodium_base64_VARIANT_ORIGINAL);
        json_object_object_add(msg, "rank", json_object_new_int(rank));
        json_object_object_add(msg, "fd", json_object_new_int(fd));
        json_object_object_add(msg, "data", json_object_new_string(text));
        if (name != NULL)
            json_object_object_add(msg, "name", json_object_new_string(name));
        member_send(m, msg);
        m->output.unacked += part;
    }
}

void member_output(struct member *m, const char *name, int rank, int fd, const char *data,
                   size_t len)
{
    bool full;

    if (m->output.own != NULL) {
        if (name != NULL)
            output_label(m->output.own, rank, name);
        full = !output_write(m->output.own, rank, fd, data, len, NULL, NULL);
    } else {
        forward(m, name, rank, fd, data, len);
        full = m->output.unacked > OUTPUT_WINDOW;
    }
    if (full && !m->output.paused)
        member_pause_output(m, true);
}

void member_output_ended(struct member *m, int rank)
{
    if (m->output.own != NULL)
        output_end_rank(m->output.own, rank);
}

void member_pause_output(struct member *m, bool pause)
{
    m->output.paused = pause;
    if (m->group != NULL)
        workers_pause_output(m->group->workers, pause);
    if (m->next != NULL)
        workers_pause_output(m->next->workers, pause);
    if (m->replicas != NULL)
        replicas_pause_output(m->replicas, pause);
}

void member_output_written(struct member *m, size_t bytes)
{
    m->output.unacked = bytes < m->output.unacked ? m->output.unacked - bytes : 0;
    if (m->output.paused && m->output.unacked < OUTPUT_WINDOW / 2)
        member_pause_output(m, false);
}
