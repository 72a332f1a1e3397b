# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_APPEND_CFLAGS(VARIABLE, FLAGS)
#
# DESCRIPTION
#
#   Appends to VARIABLE each of the blank-separated FLAGS that the compiler accepts. It mostly accepts all
#   of them, so they are tried together first.
#   -Werror is on while trying, since clang only warns about a warning option that it does not know.
AC_DEFUN([AX_APPEND_CFLAGS], [
    ax_flags=`echo $2`
    _AX_APPEND_CFLAGS([$1], [$ax_flags], [
        for ax_flag in $ax_flags; do
            _AX_APPEND_CFLAGS([$1], [$ax_flag])
        done
    ])
])

# _AX_APPEND_CFLAGS(VARIABLE, FLAGS, [IF-NOT]): all of them, or none.
AC_DEFUN([_AX_APPEND_CFLAGS], [
    AS_VAR_PUSHDEF([ax_cache], [ax_cv_cflags_$2])
    AC_CACHE_CHECK([whether $CC accepts $2], [ax_cache], [
        ax_append_save=$CFLAGS
        CFLAGS="$CFLAGS -Werror $2"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
            [AS_VAR_SET([ax_cache], [yes])],
            [AS_VAR_SET([ax_cache], [no])])
        CFLAGS=$ax_append_save
    ])
    AS_VAR_IF([ax_cache], [yes], [$1="${$1:+$$1 }$2"], [$3])
    AS_VAR_POPDEF([ax_cache])
])
