# SPDX-License-Identifier: GPL-2.0-or-later
#
# examples/: what users start from; each is a directory with a README.
digitsdir = $(examplesdir)/digits
dist_digits_DATA = \
    examples/digits/README.md \
    examples/digits/check_log.py \
    examples/digits/digits.py \
    examples/digits/train_ddp.py \
    examples/digits/train_elastic.py \
    examples/digits/train_restart.py
