# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
libkiln_xlators_a_SOURCES += \
	xlators/features/shard/blocks.c \
	xlators/features/shard/calls.c \
	xlators/features/shard/data.c \
	xlators/features/shard/file.c \
	xlators/features/shard/hold.c \
	xlators/features/shard/length.c \
	xlators/features/shard/names.c \
	xlators/features/shard/shard-internal.h \
	xlators/features/shard/shard.c \
	xlators/features/shard/sweep.c

check_PROGRAMS += xlators/features/shard/test-shard
xlators_features_shard_test_shard_SOURCES = xlators/features/shard/test-shard.c $(TEST_CHILDREN)
xlators_features_shard_test_shard_LDFLAGS = $(WRAP_FOR_CHILDREN)
xlators_features_shard_test_shard_LDADD = $(TEST_LIBS)
