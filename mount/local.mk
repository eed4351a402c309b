# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
sbin_PROGRAMS += kiln-mount
kiln_mount_SOURCES = \
	mount/helper.c \
	mount/helper.h \
	mount/kiln-mount.c \
	mount/kiln-mount.h \
	mount/manual.c \
	mount/mount.c \
	mount/mount.h \
	mount/mount-follow.c \
	mount/mount-internal.h \
	mount/mount-saved.c \
	mount/option-table.c \
	mount/option-table.h \
	mount/options.c \
	mount/place.c \
	mount/place.h \
	mount/records.c \
	mount/records.h \
	mount/shared.c \
	mount/shared.h \
	mount/spec.c \
	mount/spec.h \
	mount/client-volume.c \
	mount/client-volume.h \
	mount/types.c \
	mount/types.h \
	mount/upgrade.c \
	mount/upgrade.h \
	mount/volume.c \
	daemon/daemon.c \
	daemon/daemon.h \
	daemon/sandbox.c \
	daemon/sandbox.h \
	daemon/sandbox-calls.c \
	daemon/sandbox-calls.h \
	daemon/statedump.c \
	daemon/statedump-options.c \
	daemon/statedump-options.h
kiln_mount_LDADD = $(ALLOCATOR_LIBS) libkiln-fuse.a $(KILN_LIBS) $(FUSE_LIBS) $(SANDBOX_LIBS)

check_PROGRAMS += mount/test-helper
mount_test_helper_SOURCES = mount/test-helper.c mount/helper.c mount/helper.h mount/option-table.c
mount_test_helper_LDADD = $(TEST_LIBS)

check_PROGRAMS += mount/test-mount
mount_test_mount_SOURCES = mount/test-mount.c mount/mount.c mount/mount.h mount/mount-follow.c mount/mount-saved.c mount/place.c mount/shared.c mount/shared.h mount/option-table.c
mount_test_mount_LDFLAGS = -Wl,--wrap=thread_start -Wl,--wrap=pthread_mutex_lock
mount_test_mount_LDADD = $(TEST_LIBS)

check_PROGRAMS += mount/test-shared
mount_test_shared_SOURCES = mount/test-shared.c mount/shared.c mount/shared.h mount/option-table.c
mount_test_shared_LDADD = $(TEST_LIBS)

# mount(8) looks for its helpers in /sbin only.
install-exec-hook:
	$(MKDIR_P) "$(DESTDIR)$(mounthelperdir)"
	ln -sf "$(sbindir)/kiln-mount" "$(DESTDIR)$(mounthelperdir)/mount.kiln"
uninstall-hook:
	rm -f "$(DESTDIR)$(mounthelperdir)/mount.kiln"
