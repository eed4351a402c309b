/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/upgrade.h"

#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/own-program.h"
#include "base/parcel.h"
#include "daemon/sandbox.h"
#include "event/timer.h"
#include "log/log.h"
#include "mount/mount.h"
#include "mount/shared.h"
#include "xlators/mount/fuse/fuse.h"

#define STATE_VARIABLE "KILN_MOUNT_SAVED_STATE" /* the number of the descriptor */
#define MAGIC 0x4b534d54u
enum { DEADLINE_MS = 3000 };

static char **arguments;
static struct parcel state; /* of the earlier program */
static bool has_state, was_sandboxed, was_shared;
static uint64_t frozen_ns;
static unsigned past_programs;
static bool is_allowed, is_sandboxed, is_shared;

/* ---- the new program's side ------------------------------------------------------------------ */

static int
read_mounts_state(int fd)
{
    int err = parcel_read(&state, fd);

    close(fd);
    if (err)
        return err;
    if (parcel_get_u32(&state) != MAGIC || parcel_get_u32(&state) != MOUNT_UPGRADE_FORMAT)
        return -EBADMSG;
    frozen_ns = parcel_get_u64(&state);
    past_programs = parcel_get_u32(&state);
    was_sandboxed = parcel_get_u32(&state);
    was_shared = parcel_get_u32(&state);
    fuse_set_generation(past_programs);
    if (was_shared)
        shared_restore(&state);
    return state.is_broken ? -EBADMSG : 0;
}

int
mount_upgrade_begin(int argc, char **argv)
{
    const char *number = getenv(STATE_VARIABLE);

    /* a copy, because the parser of the command line changes the order */
    arguments = calloc((size_t)argc + 1, sizeof *arguments);
    if (!arguments)
        return -ENOMEM;
    memcpy(arguments, argv, (size_t)argc * sizeof *arguments);
    if (!number)
        return 0;
    int err = read_mounts_state(atoi(number));

    unsetenv(STATE_VARIABLE);
    has_state = true;
    if (!err && was_sandboxed)
        err = sandbox_take_over();
    if (err)
        fprintf(stderr, "kiln-mount: the state of the earlier program cannot be read: %s\n", strerror(-err));
    return err;
}

int
mount_upgrade_answer_check(void)
{
    printf(MOUNT_UPGRADE_ANSWER " %d\n", MOUNT_UPGRADE_FORMAT);
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

bool
mount_upgrade_has_state(void)
{
    return has_state;
}

bool
mount_upgrade_was_sandboxed(void)
{
    return was_sandboxed;
}

bool
mount_upgrade_was_shared(void)
{
    return was_shared;
}

unsigned
mount_upgrade_restore(void)
{
    unsigned count = mounts_restore(&state);

    parcel_free(&state);
    return count;
}

void
mount_upgrade_done(unsigned served, unsigned failed)
{
    char *said = getenv(MOUNT_UPGRADE_COUNT);

    if (said) /* the environment of exec(2), which /proc shows */
        snprintf(said, strlen(said) + 1, "%u serving after %u ms %u mounts %u lost", past_programs,
                 (unsigned)((clock_mono_ns() - frozen_ns) / 1000000), served, failed);
    log_event(failed ? LOG_ERROR : LOG_INFO, NULL, "mount-upgraded",
              "kiln-mount %s goes on with %u mounts after %u ms; %u mounts are lost", PACKAGE_VERSION, served,
              (unsigned)((clock_mono_ns() - frozen_ns) / 1000000), failed);
}

void
mount_upgrade_allow(bool has_sandbox, bool shares)
{
    is_allowed = true;
    is_sandboxed = has_sandbox;
    is_shared = shares;
}

/* ---- the old program's side ------------------------------------------------------------------ */

static int
save_all(struct parcel *to)
{
    parcel_put_u32(to, MAGIC);
    parcel_put_u32(to, MOUNT_UPGRADE_FORMAT);
    parcel_put_u64(to, frozen_ns);
    parcel_put_u32(to, past_programs + 1);
    parcel_put_u32(to, is_sandboxed);
    parcel_put_u32(to, is_shared);
    if (is_shared)
        shared_save(to);
    return mounts_save(to);
}

static int
keep_all(bool keeps)
{
    int err = mounts_keep_open(keeps), shared = is_shared ? shared_keep_open(keeps) : 0;
    int sandbox = is_sandboxed ? sandbox_keep_capabilities(keeps) : 0;

    return err ? err : shared ? shared : sandbox;
}

/* Returns only after a failure: -errno. */
static int
run_program(const char *program, const struct parcel *saved)
{
    char number[16], count[96];
    int fd = memfd_create("kiln-mount-saved-state", 0);
    int err = fd < 0 ? -errno : parcel_write(saved, fd);

    err = err ? err : keep_all(true);
    if (!err) {
        snprintf(number, sizeof number, "%d", fd);
        snprintf(count, sizeof count, "%-90u", past_programs + 1); /* with room for the new program's words */
        setenv(STATE_VARIABLE, number, 1);
        setenv(MOUNT_UPGRADE_COUNT, count, 1);
        execv(program, arguments); /* signals stay blocked: none is lost or ends the new program */
        err = -errno;
        unsetenv(STATE_VARIABLE);
    }
    (void)keep_all(false);
    if (fd >= 0)
        close(fd);
    return err;
}

void
mount_upgrade_run(void)
{
    struct parcel saved = {0};
    char program[PATH_MAX], why[PATH_MAX + 256] = "";
    int err = own_program(program);

    if (!is_allowed || err) {
        log_event(LOG_ERROR, NULL, "mount-upgrade-early", "no upgrade now: %s",
                  err ? strerror(-err) : "kiln-mount is still starting");
        return;
    }
    frozen_ns = clock_mono_ns();
    err = mounts_freeze(DEADLINE_MS, why, sizeof why);
    if (!err) {
        err = save_all(&saved);
        if (!err) {
            log_event(LOG_INFO, NULL, "mount-upgrade-begins", "kiln-mount %s runs %s", PACKAGE_VERSION,
                      program);
            err = run_program(program, &saved);
        }
        snprintf(why, sizeof why, "%s cannot be run: %s", program, strerror(-err));
        mounts_thaw();
    }
    parcel_free(&saved);
    log_event(LOG_ERROR, NULL, "mount-upgrade-failed", "%s: this kiln-mount, %s, goes on", why,
              PACKAGE_VERSION);
}
