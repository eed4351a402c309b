# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kilnd
kilnd_SOURCES = \
	glusterfsd/brick-types.c \
	glusterfsd/brick-types.h \
	glusterfsd/config.c \
	glusterfsd/config.h \
	glusterfsd/hand-over.c \
	glusterfsd/http-routes.c \
	glusterfsd/http-routes.h \
	glusterfsd/kilnd.c \
	glusterfsd/kilnd.h \
	glusterfsd/metrics.c \
	glusterfsd/metrics.h \
	glusterfsd/option-table.c \
	glusterfsd/option-table.h \
	glusterfsd/options.c \
	glusterfsd/questions.c \
	glusterfsd/questions.h \
	mount/inside.h \
	mount/inside.c \
	mount/mount.c \
	mount/mount-follow.c \
	mount/mount-saved.c \
	mount/place.c \
	mount/records.c \
	mount/option-table.c \
	mount/option-table.h \
	mount/shared.c \
	mount/spec.c \
	mount/client-volume.c \
	mount/client-volume.h \
	mount/types.c \
	mount/volume.c
# The allocator first: it takes malloc's place.
kilnd_LDADD = $(ALLOCATOR_LIBS) libkiln-fuse.a $(KILN_LIBS) $(JANSSON_LIBS) $(SANDBOX_LIBS) $(FUSE_LIBS)

check_PROGRAMS += glusterfsd/test-options-table
glusterfsd_test_options_table_SOURCES = glusterfsd/test-options-table.c glusterfsd/brick-types.c
glusterfsd_test_options_table_LDADD = $(TEST_LIBS)
check_PROGRAMS += glusterfsd/test-config
glusterfsd_test_config_SOURCES = glusterfsd/test-config.c glusterfsd/config.c
glusterfsd_test_config_LDADD = $(TEST_LIBS)
