/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What elastic-flush says of a run directory, as far as elastic-runs acts upon it. */
#ifndef ELASTIC_FLUSH_SAID_H
#define ELASTIC_FLUSH_SAID_H

/* The line of a directory that was left as it is. */
#define SAID_IN_USE "nothing to flush: it is in use"

/* How the line of one begins that should be gone, and that the rights of the user cannot remove.
 * Such a line is an error. */
#define SAID_NOT_REMOVED "not removed"
#define SAID_ERROR       "elastic-flush: "

/* The same of one that could not be opened, so it may be in use. */
#define SAID_UNSEEN SAID_NOT_REMOVED ", unseen"

/* How it goes on of one that was left as it is, since a signal asked for that. */
#define SAID_ENDED "ended by signal"

#endif
