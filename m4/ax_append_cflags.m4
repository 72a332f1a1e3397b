# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_APPEND_CFLAGS(VARIABLE, FLAGS)
#
# DESCRIPTION
#
#   Appends to VARIABLE each of the blank-separated FLAGS that the compiler accepts.
#   -Werror is on while trying, since clang only warns about a warning option that it does not know.
AC_DEFUN([AX_APPEND_CFLAGS], [
    for ax_flag in $2; do
        AS_VAR_PUSHDEF([ax_cache], [ax_cv_cflags_$ax_flag])
        AC_CACHE_CHECK([whether $CC accepts $ax_flag], [ax_cache], [
            ax_append_save=$CFLAGS
            CFLAGS="$CFLAGS -Werror $ax_flag"
            AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
                [AS_VAR_SET([ax_cache], [yes])],
                [AS_VAR_SET([ax_cache], [no])])
            CFLAGS=$ax_append_save
        ])
        AS_VAR_IF([ax_cache], [yes], [$1="${$1:+$$1 }$ax_flag"])
        AS_VAR_POPDEF([ax_cache])
    done
])
