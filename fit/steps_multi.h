/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The actions of a fit that a trainer of another user carries out (steps.h). */
#ifndef FIT_STEPS_MULTI_H
#define FIT_STEPS_MULTI_H

#include "fit/steps.h"

enum step multi_ensure(struct steps *steps, double now, struct error *err);
enum step multi_grant(struct steps *steps, double now, struct error *err);
enum step multi_fit(struct steps *steps, double now, struct error *err);
enum step multi_complete(struct steps *steps, double now, struct error *err);
enum step multi_revoke(struct steps *steps, double now, struct error *err);
/* What cannot be removed of the partial state: it is put where no fit looks. -1: there is nothing,
 * and err is as it was. */
int multi_leave(struct steps *steps, struct error *err);

#endif
