/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What `selastic topology show` prints. */
#ifndef SELASTIC_TOPOLOGY_RENDER_H
#define SELASTIC_TOPOLOGY_RENDER_H

#include "cmd/topology_site.h"

/* {"shapes": [{"shape", "nodes", "count", "summary", "description"}], "without_shape": "n9" or null,
 *  "switches": [{"switch", "level", "nodes", "switches", "shapes": [{"shape", "nodes"}]}]}, switches from the top, shapes of leaves only.
 * leaves as from topology_site_leaves. New object. */
json_object *topology_shown(const struct topology_site *site, const char *const *leaves);

/* The same for people, on so many columns (0: no limit). New string. */
char *topology_shown_text(json_object *shown, int width);

#endif
