# SPDX-License-Identifier: GPL-2.0-or-later
#
# fit/: elastic-fit, trainings of the models of a service: its runner, the replica that trains, and
# `selastic fit`. What does not ask a leader is a library, for the tests.
noinst_LIBRARIES += fit/libfit.a
fit_libfit_a_SOURCES = \
    fit/acl.c \
    fit/acl.h \
    fit/foreign.c \
    fit/foreign.h \
    fit/gang.c \
    fit/gang.h \
    fit/grant.c \
    fit/grant.h \
    fit/grant_list.c \
    fit/grant_list.h \
    fit/grant_plan.c \
    fit/grant_plan.h \
    fit/grant_tree.c \
    fit/grant_tree.h \
    fit/guest_runner.c \
    fit/guest_runner.h \
    fit/guest_trainer.c \
    fit/guest_trainer.h \
    fit/guests.c \
    fit/guests.h \
    fit/home.c \
    fit/home.h \
    fit/leader_link.h \
    fit/new_state.c \
    fit/new_state.h \
    fit/pin.c \
    fit/pin.h \
    fit/put_list.c \
    fit/put_list.h \
    fit/room.c \
    fit/room.h \
    fit/runner.c \
    fit/runner.h \
    fit/s3_box.c \
    fit/s3_bucket_grant.c \
    fit/s3_bucket_grant.h \
    fit/s3_box.h \
    fit/s3_foreign.c \
    fit/s3_foreign.h \
    fit/s3_grant.c \
    fit/s3_grant.h \
    fit/s3_left.c \
    fit/s3_left.h \
    fit/s3_states.c \
    fit/s3_states.h \
    fit/server_call.c \
    fit/server_call.h \
    fit/spec.c \
    fit/spec.h \
    fit/steps.c \
    fit/steps.h \
    fit/steps_multi.c \
    fit/steps_multi.h \
    fit/steps_serve.c \
    fit/steps_serve.h \
    fit/trainer_link.h \
    fit/training.c \
    fit/training.h \
    fit/user_program.c \
    fit/user_program.h
fit_libfit_a_CPPFLAGS = $(AM_CPPFLAGS) $(ACL_CFLAGS) $(CURL_CFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(SODIUM_CFLAGS)
fit_libfit_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
FIT_LIBS = fit/libfit.a $(STATE_LIBS) $(COMMON_LIBS) $(ACL_LIBS) $(CURL_LATE_LIBS) $(JSONC_LIBS) $(SODIUM_LIBS)

pkglibexec_PROGRAMS += fit/elastic-fit
fit_elastic_fit_SOURCES = \
    cmd/ask.c \
    cmd/deadline.c \
    cmd/print.c \
    cmd/jobs.c \
    cmd/query.c \
    cmd/service_job.c \
    fit/become.c \
    fit/desk.c \
    fit/fit_command.h \
    fit/fit_show.c \
    fit/fit_show.h \
    fit/guest_show.c \
    fit/leader_link.c \
    fit/main.c \
    fit/run.c \
    fit/start.c \
    fit/trainer.c \
    fit/trainer_link.c
fit_elastic_fit_CPPFLAGS = $(fit_libfit_a_CPPFLAGS) $(MUNGE_CFLAGS)
fit_elastic_fit_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
fit_elastic_fit_LINK = $(PROGRAM_LINK)
fit_elastic_fit_LDADD = $(FIT_LIBS) $(CMD_LIBS) $(COMMON_LIBS) $(LIBUV_LIBS) $(JSONC_LIBS) \
    $(MUNGE_LIBS)

EXTRA_DIST += fit/README.md
