# SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later
# Volumes as values and as files: no bricks, no sockets.
VOLUME_STATE_SOURCES = \
	volumes/brick-host.c \
	volumes/brick-host.h \
	volumes/problem.c \
	volumes/problem.h \
	volumes/state-dir.c \
	volumes/state-dir.h \
	volumes/volfile-text.c \
	volumes/volfile-text.h \
	volumes/volume-options.c \
	volumes/volume-options.h \
	volumes/volume-task.c \
	volumes/volume-task.h \
	volumes/volume.c \
	volumes/volume.h
VOLUME_SOURCES = $(VOLUME_STATE_SOURCES) \
	volumes/brick-call.c \
	volumes/brick-call.h \
	volumes/brick-jobs.c \
	volumes/brick-jobs.h \
	volumes/brick-place.c \
	volumes/brick-place.h \
	volumes/brick-marks.c \
	volumes/brick-marks.h \
	volumes/brick-plan.c \
	volumes/brick-plan.h \
	volumes/fragments.c \
	volumes/fragments.h \
	volumes/heal-pending.c \
	volumes/heal-pending.h \
	volumes/volumes.c \
	volumes/volumes-bricks.c \
	volumes/volumes-coming.c \
	volumes/volumes.h \
	volumes/volumes-internal.h
kilnd_SOURCES += $(VOLUME_SOURCES) \
	volumes/brick-age.c \
	volumes/brick-age.h \
	volumes/brick-check.c \
	volumes/brick-check.h \
	volumes/brick-path.c \
	volumes/brick-path.h \
	volumes/child-log.c \
	volumes/child-log.h \
	volumes/clear-locks.c \
	volumes/cluster-ask.c \
	volumes/cluster-ask.h \
	volumes/cluster-bricks.c \
	volumes/cluster-bricks.h \
	volumes/cluster-change.c \
	volumes/cluster-change.h \
	volumes/cluster-identity.c \
	volumes/cluster-identity.h \
	volumes/cluster-jobs-internal.h \
	volumes/cluster-jobs.c \
	volumes/cluster-jobs.h \
	volumes/cluster-look.c \
	volumes/cluster-look.h \
	volumes/cluster-place.c \
	volumes/cluster-place.h \
	volumes/cluster-quota.c \
	volumes/cluster-quota.h \
	volumes/cluster-register.c \
	volumes/cluster-register.h \
	volumes/cluster.c \
	volumes/cluster.h \
	volumes/curl-library.c \
	volumes/curl-library.h \
	volumes/store-etcd.c \
	volumes/store.h \
	volumes/verb-host.c \
	volumes/verb-move.c \
	volumes/verb-top.c \
	volumes/verb-store.c \
	volumes/hooks.c \
	volumes/host-proof.c \
	volumes/host-proof.h \
	volumes/hooks.h \
	volumes/clear-locks.h \
	volumes/front.c \
	volumes/front.h \
	volumes/heal-watch.c \
	volumes/heal-watch.h \
	volumes/healer.c \
	volumes/healer.h \
	volumes/verb-heal.c \
	volumes/job-drain.c \
	volumes/job-heal.c \
	volumes/job-rebalance.c \
	volumes/job-upgrade.c \
	volumes/own-host.c \
	volumes/own-host.h \
	volumes/profile.c \
	volumes/quota-hosts.c \
	volumes/quota-hosts.h \
	volumes/quota-rows.c \
	volumes/quota-rows.h \
	volumes/quota.c \
	volumes/quota.h \
	volumes/rebalance.c \
	volumes/rebalance.h \
	volumes/verb-rebalance.c \
	volumes/shut-out.c \
	volumes/shut-out.h \
	volumes/profile.h \
	volumes/verbs-ask.c \
	volumes/verbs-change.c \
	volumes/verbs-internal.h \
	volumes/verbs-process.c \
	volumes/verbs.c \
	volumes/verbs.def \
	volumes/verbs.h \
	volumes/volumes-take.c \
	volumes/volfile-server.c \
	volumes/volfile-server.h

check_PROGRAMS += volumes/test-volumes volumes/test-quota-rows volumes/test-host-proof
volumes_test_host_proof_SOURCES = volumes/test-host-proof.c volumes/host-proof.c volumes/problem.c
volumes_test_host_proof_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
volumes_test_quota_rows_SOURCES = volumes/test-quota-rows.c volumes/quota-rows.c
volumes_test_quota_rows_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
volumes_test_volumes_SOURCES = volumes/test-volumes.c $(VOLUME_SOURCES) bricks/bricks.c glusterfsd/brick-types.c
volumes_test_volumes_LDADD = $(TEST_LIBS) $(JANSSON_LIBS)
# Calls that change a disk, so that a test can end the process before each.
volumes_test_volumes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=write,--wrap=fsync,--wrap=renameat,--wrap=unlinkat \
	-Wl,--wrap=mkdirat,--wrap=mkdir,--wrap=rmdir,--wrap=fsetxattr,--wrap=fremovexattr
