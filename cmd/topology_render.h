/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The output of `selastic topology show`. */
#ifndef SELASTIC_TOPOLOGY_RENDER_H
#define SELASTIC_TOPOLOGY_RENDER_H

#include "cmd/topology_site.h"

/* Returns a new object, with switches from the top, and shapes of leaf switches only. leaves is the
 * result of topology_site_leaves.
 *
 *     {"shapes": [{"shape", "nodes", "count", "summary", "description"}],
 *      "without_shape": "n9" or null,
 *      "switches": [{"switch", "level", "nodes", "switches", "shapes": [{"shape", "nodes"}]}]} */
json_object *topology_shown(const struct topology_site *site, const char *const *leaves);

/* The object as text for people, within that many columns (0: no limit). A new string. */
char *topology_shown_text(json_object *shown, int width);

#endif
