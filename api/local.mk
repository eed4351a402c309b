# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
# A shared library that is linked like a program: libtool would compile all objects a second time. It has a folder of its own,
# because GlusterFS's library has the same name: the LD_LIBRARY_PATH of a program names the folder.
gfapidir = $(pkglibdir)
gfapi_PROGRAMS = libgfapi.so.0
libgfapi_so_0_SOURCES = \
	api/acl.c \
	api/api-internal.h \
	api/attr.c \
	api/dir.c \
	api/dump.c \
	api/engine.c \
	api/file.c \
	api/gfapi.h \
	api/io.c \
	api/names.c \
	api/object.c \
	api/path.c \
	api/refused.c \
	api/refused.def \
	api/request.c \
	api/upcall.c \
	api/volume.c \
	api/xattr.c \
	daemon/daemon.h \
	daemon/statedump-options.c \
	daemon/statedump-options.h \
	daemon/statedump.c \
	mount/client-volume.c \
	mount/spec.c
libgfapi_so_0_LINK = $(CC) $(AM_CFLAGS) $(CFLAGS) $(AM_LDFLAGS) $(LDFLAGS) -shared -Wl,-soname,libgfapi.so.0 \
	-Wl,--version-script=$(top_srcdir)/api/gfapi.map -Wl,-z,defs -Wl,-z,nodelete -o $@
libgfapi_so_0_LDADD = $(KILN_LIBS)
libgfapi_so_0_DEPENDENCIES = libkiln-xlators.a libkiln-rpc.a libglusterfs.a $(top_srcdir)/api/gfapi.map
EXTRA_DIST += api/gfapi.map

check_PROGRAMS += api/test-path
api_test_path_SOURCES = api/test-path.c api/path.c api/request.c $(TEST_CHILDREN)
api_test_path_LDFLAGS = $(WRAP_FOR_CHILDREN)
api_test_path_LDADD = $(TEST_LIBS)
