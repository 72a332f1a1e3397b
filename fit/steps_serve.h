/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of a fit at the service: its replicas get the new state, or the one before again
 * (steps.h). */
#ifndef FIT_STEPS_SERVE_H
#define FIT_STEPS_SERVE_H

#include "fit/steps.h"

enum step serve_count(struct steps *steps, double now, struct error *err);
enum step serve_point(struct steps *steps, double now, struct error *err);
enum step serve_replace(struct steps *steps, double now, struct error *err);
enum step serve_point_back(struct steps *steps, double now, struct error *err);
enum step serve_restore(struct steps *steps, double now, struct error *err);

#endif
