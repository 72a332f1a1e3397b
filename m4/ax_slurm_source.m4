# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_SLURM_SOURCE
#
# DESCRIPTION
#
#   Finds a configured Slurm source, which plugins of slurmctld need: their headers are not
#   installed. Call AX_SLURM first.
#
#   slurmctld refuses a plugin that was built for another micro version, rightly: job_record_t
#   changes between them. So the source must be exactly the installed version; any other is an
#   error that names both.
#
#   Option of configure:
#
#     --with-slurm-source=DIR    the source tree, configured in DIR itself or in DIR/build (there
#                                config.h and slurm/slurm_version.h are written). No make is needed.
#
#   Without the option those plugins are not built.
#
#   Output:
#
#     HAVE_SLURM_SOURCE        an Automake conditional
#     SLURM_SOURCE             the source tree (AC_SUBST)
#     SLURM_PLUGIN_CPPFLAGS    to compile plugins of slurmctld (AC_SUBST)
#
#   Slurm's headers include "config.h" and mean their own. Ours is in . if configure runs in the tree.
#   So the first -I is a directory slurm-config, which has nothing but a config.h that includes
#   Slurm's. Slurm's own directory cannot be it: gcc ignores a -I that is a -isystem as well.
AC_DEFUN([AX_SLURM_SOURCE], [
    AC_REQUIRE([AX_SLURM])
    AC_ARG_WITH([slurm-source],
        [AS_HELP_STRING([--with-slurm-source=DIR],
            [configured source of exactly the installed Slurm, to build the plugins of slurmctld])],
        [], [with_slurm_source=no])

    SLURM_SOURCE=
    SLURM_PLUGIN_CPPFLAGS=
    AS_CASE([$with_slurm_source],
        [no], [],
        [yes|''], [AC_MSG_ERROR([--with-slurm-source needs the directory of the Slurm source; scripts/setup makes one])],
        [_AX_SLURM_SOURCE_CHECK])
    AC_SUBST([SLURM_SOURCE])
    AC_SUBST([SLURM_PLUGIN_CPPFLAGS])
    AM_CONDITIONAL([HAVE_SLURM_SOURCE], [test -n "$SLURM_SOURCE"])
])

AC_DEFUN([_AX_SLURM_SOURCE_CHECK], [
    AC_MSG_CHECKING([for the configured source of Slurm $SLURM_VERSION])
    AS_IF([ax_slurm_source=`cd "$with_slurm_source" 2>/dev/null && pwd`], [],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([--with-slurm-source: there is no directory '$with_slurm_source'])])
    AS_IF([test -e "$ax_slurm_source/src/common/slurm_xlator.h"], [],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([--with-slurm-source: '$with_slurm_source' is not a Slurm source tree (it has no src/common/slurm_xlator.h)])])
    ax_slurm_build=
    for ax_slurm_dir in "$ax_slurm_source" "$ax_slurm_source/build"; do
        AS_IF([test -e "$ax_slurm_dir/config.h" && test -e "$ax_slurm_dir/slurm/slurm_version.h"],
            [ax_slurm_build=$ax_slurm_dir])
    done
    AS_IF([test -n "$ax_slurm_build"], [],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([--with-slurm-source: the source in '$with_slurm_source' is not configured (neither it nor its build/ has config.h and slurm/slurm_version.h). Run Slurm's ./configure there, or scripts/setup])])
    ax_slurm_hex=`$SED -n 's/^@%:@define SLURM_VERSION_NUMBER *0x\(@<:@0-9a-fA-F@:>@*\).*/\1/p' \
        "$ax_slurm_build/slurm/slurm_version.h"`
    ax_slurm_number=$((0x${ax_slurm_hex:-0}))
    ax_slurm_source_version=`printf '%d.%02d.%d' $((ax_slurm_number >> 16)) \
        $((ax_slurm_number >> 8 & 255)) $((ax_slurm_number & 255))`
    AS_IF([test "$ax_slurm_source_version" = "$SLURM_VERSION"], [],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([--with-slurm-source: the source in '$with_slurm_source' is Slurm $ax_slurm_source_version, but the installed Slurm is $SLURM_VERSION. slurmctld loads only plugins built from exactly its own version; scripts/setup fetches that source])])
    SLURM_SOURCE=$ax_slurm_source
    # -isystem: what is in Slurm's headers is not warned about.
    # Debian and the RPMs build Slurm with --disable-debug, that is, with NDEBUG.
    AS_MKDIR_P([slurm-config])
    AS_ECHO(["@%:@include \"$ax_slurm_build/config.h\""]) >slurm-config/config.h
    SLURM_PLUGIN_CPPFLAGS="-DNDEBUG -D_GNU_SOURCE -I`pwd`/slurm-config -isystem $ax_slurm_build -isystem $ax_slurm_build/slurm -isystem $ax_slurm_source -isystem $ax_slurm_source/src"
    AC_MSG_RESULT([$ax_slurm_build])

    ax_slurm_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$SLURM_PLUGIN_CPPFLAGS $CPPFLAGS"
    AC_MSG_CHECKING([that its headers compile])
    AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#include "config.h"
#include "src/common/slurm_xlator.h"
#include "src/slurmctld/slurmctld.h"
job_record_t *record;
]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([--with-slurm-source: the headers of '$with_slurm_source' do not compile; see config.log])])
    CPPFLAGS=$ax_slurm_save_CPPFLAGS
])
