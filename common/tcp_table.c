/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's list of TCP sockets (tcp_table.h). */
#include "common/tcp_table.h"

#include <stdio.h>

/* Lines "  0: LOCAL:PORT REMOTE:PORT STATE QUEUES TIMER RETRANSMITS UID …", the addresses as the machine stores them,
 * in hexadecimal. */
bool tcp_table_find(const char *table, unsigned local_port, unsigned remote_port,
                    struct tcp_socket *found)
{
    FILE *file = fopen(table, "re");
    char line[256];
    bool is_it = false;

    if (file == NULL)
        return false;
    while (!is_it && fgets(line, sizeof(line), file) != NULL) {
        unsigned local, remote, state, uid;

        is_it = sscanf(line, " %*u: %*[0-9A-Fa-f]:%x %*[0-9A-Fa-f]:%x %x %*s %*s %*s %u", &local,
                       &remote, &state, &uid) == 4 &&
                local == local_port && remote == remote_port;
        if (is_it)
            *found = (struct tcp_socket){.state = state, .uid = uid};
    }
    fclose(file);
    return is_it;
}
