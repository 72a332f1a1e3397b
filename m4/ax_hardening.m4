# SPDX-License-Identifier: GPL-2.0-or-later
#
# SYNOPSIS
#
#   AX_HARDENING
#
# DESCRIPTION
#
#   Hardening flags, and the option --enable-sanitizers, which replaces some of them. Output:
#
#     HARDEN_CFLAGS       for everything
#     PROGRAM_CFLAGS      for programs: position independent
#     PROGRAM_LDFLAGS     for programs: all symbols bound at start, then read-only
#     MODULE_LDFLAGS      for plugins: no -z now, for Slurm resolves their symbols lazily, in
#                         whichever program has loaded them
#     SANITIZER_CFLAGS    empty without --enable-sanitizers
#
#   And the Automake conditional SANITIZERS.
AC_DEFUN([AX_HARDENING], [
    AC_ARG_ENABLE([sanitizers],
        [AS_HELP_STRING([--enable-sanitizers],
            [build with AddressSanitizer and UndefinedBehaviorSanitizer, for make check])],
        [], [enable_sanitizers=no])

    HARDEN_CFLAGS=
    PROGRAM_CFLAGS=
    PROGRAM_LDFLAGS=
    MODULE_LDFLAGS=
    SANITIZER_CFLAGS=
    AX_APPEND_CFLAGS([HARDEN_CFLAGS], [ \
        -fstack-protector-strong \
        -fstack-clash-protection \
        -fcf-protection \
        -fno-strict-aliasing \
        -fno-strict-overflow])
    AX_APPEND_CFLAGS([PROGRAM_CFLAGS], [-fPIE])
    AX_APPEND_LDFLAGS([PROGRAM_LDFLAGS], [-pie -Wl,--as-needed -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack])
    AX_APPEND_LDFLAGS([MODULE_LDFLAGS], [-Wl,--as-needed -Wl,-z,relro -Wl,-z,lazy -Wl,-z,noexecstack])

    AS_IF([test "x$enable_sanitizers" = xyes], [
        AX_APPEND_CFLAGS([SANITIZER_CFLAGS], [ \
            -fsanitize=address,undefined \
            -fno-sanitize-recover=all \
            -fno-omit-frame-pointer])
        AC_MSG_CHECKING([that sanitized programs link])
        ax_hardening_save=$CFLAGS
        CFLAGS="$CFLAGS $SANITIZER_CFLAGS"
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[]], [[]])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([--enable-sanitizers: $CC has no sanitizer runtime. Install libgcc-12-dev (gcc) or libclang-rt-dev (clang)])])
        # gcc says so by itself. Tests look for it, to do less where each step takes longer.
        AC_COMPILE_IFELSE([AC_LANG_SOURCE([[
#ifndef __SANITIZE_ADDRESS__
#error "not said"
#endif
int said;
            ]])],
            [], [SANITIZER_CFLAGS="$SANITIZER_CFLAGS -D__SANITIZE_ADDRESS__=1"])
        CFLAGS=$ax_hardening_save
    ], [
        # Fortified functions hide what the sanitizers look for. They also need an optimising build.
        AS_CASE([" $CFLAGS $CPPFLAGS "],
            [*-O0*|*FORTIFY_SOURCE*], [],
            [*-O*], [HARDEN_CFLAGS="$HARDEN_CFLAGS -D_FORTIFY_SOURCE=2"])
    ])
    AC_SUBST([HARDEN_CFLAGS])
    AC_SUBST([PROGRAM_CFLAGS])
    AC_SUBST([PROGRAM_LDFLAGS])
    AC_SUBST([MODULE_LDFLAGS])
    AC_SUBST([SANITIZER_CFLAGS])
    AM_CONDITIONAL([SANITIZERS], [test "x$enable_sanitizers" = xyes])
])
