/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The distance of two marks on an axis of time. Pure. */
#ifndef SELASTIC_TICK_H
#define SELASTIC_TICK_H

/* The smallest round number of seconds that is not below least: a second, … a day, weeks. */
double tick_round(double least);

#endif
