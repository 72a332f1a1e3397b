# SPDX-License-Identifier: GPL-2.0-or-later
#
# cmd/: selastic. What is pure (arguments, JSON to text) is a library of its own, for the unit tests.
noinst_LIBRARIES += cmd/libselastic.a
cmd_libselastic_a_SOURCES = \
    cmd/argument_values.c \
    cmd/argument_values.h \
    cmd/arguments.c \
    cmd/arguments.h \
    cmd/doctor_lines.c \
    cmd/endpoints.c \
    cmd/endpoints.h \
    cmd/history_file.c \
    cmd/history_file.h \
    cmd/job_plan.c \
    cmd/job_plan.h \
    cmd/jobs.c \
    cmd/jobs.h \
    cmd/node_answers.c \
    cmd/node_answers.h \
    cmd/options.c \
    cmd/options.h \
    cmd/picture.c \
    cmd/picture.h \
    cmd/picture_life.c \
    cmd/picture_life.h \
    cmd/render.c \
    cmd/render.h \
    cmd/render_parts.h \
    cmd/render_slow.c \
    cmd/logs.c \
    cmd/logs.h \
    cmd/report_list.c \
    cmd/report_list.h \
    cmd/replicas.c \
    cmd/replicas.h \
    cmd/services.c \
    cmd/services.h \
    cmd/shape.c \
    cmd/shape.h \
    cmd/svg.c \
    cmd/svg.h \
    cmd/terminal_text.c \
    cmd/terminal_text.h \
    cmd/tick.c \
    cmd/tick.h \
    cmd/timeline.c \
    cmd/timeline.h \
    cmd/top_screen.c \
    cmd/top_screen.h \
    cmd/topology_check.c \
    cmd/topology_check.h \
    cmd/topology_map.c \
    cmd/topology_map.h \
    cmd/usage_list.c \
    cmd/usage_list.h \
    cmd/usage_picture.c \
    cmd/usage_picture.h \
    cmd/wait_rule.c \
    cmd/wait_rule.h
cmd_libselastic_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS)
cmd_libselastic_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
CMD_LIBS = cmd/libselastic.a $(CORE_LIBS)

# What a node is: hwloc, and nothing else of selastic.
noinst_LIBRARIES += cmd/libmachine.a
cmd_libmachine_a_SOURCES = \
    cmd/machine_find.c \
    cmd/machine_find.h \
    cmd/machine_link.c
cmd_libmachine_a_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(HWLOC_CFLAGS)
cmd_libmachine_a_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
MACHINE_LIBS = cmd/libmachine.a $(CORE_LIBS) $(HWLOC_LIBS)

bin_PROGRAMS += cmd/selastic
cmd_selastic_SOURCES = \
    cmd/as_owner.c \
    cmd/as_owner.h \
    cmd/ask.c \
    cmd/ask.h \
    cmd/clean.c \
    cmd/command.h \
    cmd/deadline.c \
    cmd/deadline.h \
    cmd/doctor_command.c \
    cmd/doctor_files.c \
    cmd/doctor_files.h \
    cmd/doctor_job.c \
    cmd/doctor_job.h \
    cmd/doctor_look.c \
    cmd/doctor_look.h \
    cmd/doctor_ports.c \
    cmd/doctor_ports.h \
    cmd/doctor_step.c \
    cmd/doctor_step.h \
    cmd/endpoints_command.c \
    cmd/exporter.c \
    cmd/fail.c \
    cmd/history.c \
    cmd/job_file.c \
    cmd/job_file.h \
    cmd/libexec.c \
    cmd/libexec.h \
    cmd/list.c \
    cmd/logs_command.c \
    cmd/node_steps.c \
    cmd/node_steps.h \
    cmd/order.c \
    cmd/order.h \
    cmd/plan_command.c \
    cmd/print.c \
    cmd/proxy.c \
    cmd/query.c \
    cmd/query.h \
    cmd/reports_command.c \
    cmd/resize.c \
    cmd/roles_commands.c \
    cmd/scale.c \
    cmd/selastic.c \
    cmd/service_commands.c \
    cmd/service_job.c \
    cmd/service_job.h \
    cmd/show.c \
    cmd/states_command.c \
    cmd/survey.c \
    cmd/survey.h \
    cmd/top.c \
    cmd/topology.c \
    cmd/topology_collect.c \
    cmd/topology_render.c \
    cmd/topology_render.h \
    cmd/topology_site.c \
    cmd/topology_site.h \
    cmd/usage_command.c \
    cmd/usage_marks.c \
    cmd/usage_marks.h \
    cmd/view.c \
    cmd/view.h \
    cmd/wait.c
cmd_selastic_CPPFLAGS = $(AM_CPPFLAGS) $(JSONC_CFLAGS) $(LIBUV_CFLAGS) $(MUNGE_CFLAGS) \
    $(NCURSES_CFLAGS) \
    -DPKGLIBEXECDIR='"$(pkglibexecdir)"' \
    -DEXAMPLESDIR='"$(docdir)/examples"' \
    -DSLURM_PLUGINS='"$(slurmplugindir)"' \
    -DSLURM_SYSTEM_PLUGINS='"$(SLURM_SYSTEM_PLUGINDIR)"'
cmd_selastic_CFLAGS = $(AM_CFLAGS) $(PROGRAM_CFLAGS)
cmd_selastic_LINK = $(PROGRAM_LINK)
cmd_selastic_LDADD = $(CMD_LIBS) $(MACHINE_LIBS) $(COMMON_LIBS) $(LIBUV_LIBS) $(JSONC_LIBS) \
    $(MUNGE_LIBS) $(NCURSES_LIBS)

# bash-completion looks for a file with the name of the command.
completiondir = $(datadir)/bash-completion/completions
completion_DATA = cmd/completion/elasticrun cmd/completion/selastic
CLEANFILES += $(completion_DATA)
EXTRA_DIST += \
    cmd/README.md \
    etc/elasticrun.bash-completion \
    etc/selastic.bash-completion

$(completion_DATA): cmd/completion/%: etc/%.bash-completion
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(top_srcdir)/etc/$*.bash-completion $@
