# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_SLURM
#
# DESCRIPTION
#
#   Finds the installed Slurm: its headers, its client library, its version and the directory that
#   its plugins are in. Stops with the name of the package where the headers or the library are
#   missing.
#
#   Options of configure:
#
#     --with-slurm=PREFIX            Slurm that is installed under PREFIX, where pkg-config and the
#                                    compiler do not find it
#     --with-slurm-plugindir=DIR     where our plugins are installed. Default: Slurm's own plugin
#                                    directory where that lies under our --prefix, else
#                                    LIBDIR/slurm, so that an installation never leaves its prefix
#
#   Output (AC_SUBST):
#
#     SLURM_CPPFLAGS           for <slurm/slurm.h> and <slurm/spank.h>
#     SLURM_LIBS               for programs that call libslurm
#     SLURM_VERSION            such as 22.05.8
#     SLURM_SYSTEM_PLUGINDIR   the installed Slurm's plugin directory, empty if not found
#     slurmplugindir           where our plugins are installed
AC_DEFUN([AX_SLURM], [
    AC_REQUIRE([PKG_PROG_PKG_CONFIG])
    AC_REQUIRE([AC_PROG_SED])
    AC_ARG_WITH([slurm],
        [AS_HELP_STRING([--with-slurm=PREFIX],
            [use the Slurm that is installed under PREFIX])],
        [AS_CASE([$withval],
            [yes|no|''], [AC_MSG_ERROR([--with-slurm needs the directory that Slurm is installed in])])],
        [with_slurm=])
    AC_ARG_WITH([slurm-plugindir],
        [AS_HELP_STRING([--with-slurm-plugindir=DIR],
            [install our Slurm plugins in DIR @<:@Slurm's own if under PREFIX, else LIBDIR/slurm@:>@])],
        [AS_CASE([$withval],
            [/*], [],
            [AC_MSG_ERROR([--with-slurm-plugindir needs an absolute path, not '$withval'])])],
        [with_slurm_plugindir=])

    SLURM_CPPFLAGS=
    SLURM_LIBS=-lslurm
    ax_slurm_libdirs=
    AS_IF([test -n "$with_slurm"], [
        SLURM_CPPFLAGS="-isystem $with_slurm/include"
        for ax_slurm_dir in "$with_slurm/lib64" "$with_slurm/lib"; do
            AS_IF([test -e "$ax_slurm_dir/libslurm.so"], [
                ax_slurm_libdirs=$ax_slurm_dir
                SLURM_LIBS="-L$ax_slurm_dir -Wl,-rpath,$ax_slurm_dir -lslurm"
                break
            ])
        done
    ], [$PKG_CONFIG --exists slurm 2>/dev/null], [
        SLURM_CPPFLAGS=`$PKG_CONFIG --cflags slurm`
        SLURM_LIBS=`$PKG_CONFIG --libs slurm`
        ax_slurm_libdirs=`$PKG_CONFIG --variable=libdir slurm`
    ])

    ax_slurm_save_CPPFLAGS=$CPPFLAGS
    ax_slurm_save_LIBS=$LIBS
    CPPFLAGS="$SLURM_CPPFLAGS $CPPFLAGS"
    LIBS="$SLURM_LIBS $LIBS"
    AC_CHECK_HEADERS([slurm/slurm.h slurm/spank.h slurm/slurm_version.h], [],
        [AC_MSG_ERROR([Slurm's headers were not found. Install the package libslurm-dev (Debian) or slurm-devel, or give --with-slurm=PREFIX])])
    AC_MSG_CHECKING([for libslurm])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <slurm/slurm.h>]],
            [[return (int) slurm_api_version();]])],
        [AC_MSG_RESULT([$SLURM_LIBS])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([libslurm was not found. Install the package libslurm-dev (Debian) or slurm-devel, or give --with-slurm=PREFIX])])

    AC_MSG_CHECKING([for the version of the installed Slurm])
    AC_COMPUTE_INT([ax_slurm_number], [SLURM_VERSION_NUMBER], [[#include <slurm/slurm_version.h>]],
        [AC_MSG_RESULT([unknown])
         AC_MSG_ERROR([<slurm/slurm_version.h> defines no SLURM_VERSION_NUMBER])])
    SLURM_VERSION=`printf '%d.%02d.%d' $((ax_slurm_number >> 16)) $((ax_slurm_number >> 8 & 255)) \
        $((ax_slurm_number & 255))`
    AC_MSG_RESULT([$SLURM_VERSION])
    CPPFLAGS=$ax_slurm_save_CPPFLAGS
    LIBS=$ax_slurm_save_LIBS

    AC_MSG_CHECKING([for Slurm's plugin directory])
    SLURM_SYSTEM_PLUGINDIR=
    ax_slurm_multiarch=`$CC -print-multiarch 2>/dev/null`
    for ax_slurm_dir in $ax_slurm_libdirs \
        ${ax_slurm_multiarch:+/usr/lib/$ax_slurm_multiarch} /usr/lib64 /usr/lib /usr/local/lib; do
        for ax_slurm_name in slurm-wlm slurm; do
            # Every Slurm since 19.05 has this plugin, and nothing else has a file of this name.
            AS_IF([test -z "$SLURM_SYSTEM_PLUGINDIR" &&
                   test -e "$ax_slurm_dir/$ax_slurm_name/select_cons_tres.so"],
                [SLURM_SYSTEM_PLUGINDIR=$ax_slurm_dir/$ax_slurm_name])
        done
    done
    AC_MSG_RESULT([${SLURM_SYSTEM_PLUGINDIR:-not found}])

    AC_MSG_CHECKING([where our Slurm plugins are installed])
    ax_slurm_prefix=$prefix
    AS_IF([test "x$ax_slurm_prefix" = xNONE], [ax_slurm_prefix=$ac_default_prefix])
    AS_IF([test -n "$with_slurm_plugindir"], [slurmplugindir=$with_slurm_plugindir],
        [AS_CASE([$SLURM_SYSTEM_PLUGINDIR],
            ["$ax_slurm_prefix"/local/*], [slurmplugindir='${libdir}/slurm'],
            ["$ax_slurm_prefix"/?*], [slurmplugindir=$SLURM_SYSTEM_PLUGINDIR],
            [slurmplugindir='${libdir}/slurm'])])
    AC_MSG_RESULT([$slurmplugindir])

    AC_SUBST([SLURM_CPPFLAGS])
    AC_SUBST([SLURM_LIBS])
    AC_SUBST([SLURM_VERSION])
    AC_SUBST([SLURM_SYSTEM_PLUGINDIR])
    AC_SUBST([slurmplugindir])
])
