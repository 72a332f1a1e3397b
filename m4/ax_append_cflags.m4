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
        AC_MSG_CHECKING([whether $CC accepts $ax_flag])
        ax_supported_save=$CFLAGS
        CFLAGS="$CFLAGS -Werror $ax_flag"
        AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
            [AC_MSG_RESULT([yes])
             $1="${$1:+$$1 }$ax_flag"],
            [AC_MSG_RESULT([no])])
        CFLAGS=$ax_supported_save
    done
])
