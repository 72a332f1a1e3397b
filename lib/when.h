/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Moments, as users write them for sbatch --begin and --deadline.
 *
 * libslurm reads these formats, but only for programs with its internal headers. Pure but for the
 * time zone of the process. */
#ifndef ELASTIC_WHEN_H
#define ELASTIC_WHEN_H

#include <stddef.h>
#include <stdint.h>

#include "lib/error.h"

#define WHEN_TEXT_MAX 32

/* What messages say of the formats. */
#define WHEN_FORM "a time such as 2026-12-01T08:00, 16:00, 12/01, \"tomorrow 8:00\" or now+60hours"

/* Read text as a moment, in seconds since the epoch, at `now`:
 *
 *   YYYY-MM-DD[THH:MM[:SS]], MMDD[YY], MM/DD[/YY], MM.DD[.YY], today, tomorrow
 *   HH:MM[:SS] [AM|PM], midnight, noon, fika (15:00), teatime (16:00)
 *   now, now+COUNT[seconds|minutes|hours|days|weeks]
 *
 * A time may stand beside a day, with a blank, "T" or "-" between them. A day without a time begins
 * at 0:00. What lacks a day or a year is the next one after now. All that is in the zone of the
 * process, but with a Z or an offset such as +01:00 behind YYYY-MM-DDTHH:MM. A time that the end of
 * daylight saving repeats is the earlier one; a time that its beginning leaves out is an hour
 * later.
 *
 * now 0: it is not known, and what needs it is refused. Returns 0 with *when set, or -1 with *when
 * unchanged. */
int when_parse(const char *text, int64_t now, int64_t *when, struct error *err);

/* The moment in a form that each zone reads as the same: 2026-12-01T07:00:00Z. Returns buf. */
char *when_format(int64_t when, char *buf, size_t size);

#endif
