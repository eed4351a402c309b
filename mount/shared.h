/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* shared: one process that has many mounts: further ones are asked for through a unix socket.
 *
 *      kiln-mount --shared A /a     nobody holds the lock: this process stays, and listens
 *      kiln-mount --shared B /b     connects, says what it would mount, gets the outcome, and ends with it
 *
 * A request is one packet: words NAME=VALUE with a NUL behind each, by a table of the options that belong to
 * a mount; the reply is one: the exit status and why. Both are sent and taken by root alone, in one mount
 * namespace: a process in another one would mount where nobody sees it.
 */
#ifndef KILN_MOUNT_SHARED_H
#define KILN_MOUNT_SHARED_H

#include "mount/kiln-mount.h"

#define SHARED_SOCKET "/run/kiln-mount.sock"

enum shared_outcome {
    SHARED_JOINED, /* the other process has answered: *status and *why */
    SHARED_NONE,   /* no process listens */
    SHARED_ELSEWHERE, /* the process is in another mount namespace: its mounts would not be seen here */
    SHARED_FIRST,  /* shared_find() only: the lock is ours */
    SHARED_FAILED, /* *why */
};

/* Asks the process that listens, if there is one. */
enum shared_outcome shared_join(const char *path, const struct mount_options *o, const char *mountpoint,
                                int *status, char *why, size_t why_size);
/* The same, or become that process: waits while another is on its way up or down, for a minute at most. */
enum shared_outcome shared_find(const char *path, const struct mount_options *o, const char *mountpoint,
                                int *status, char *why, size_t why_size);
/* Has systemd start the service that is the shared process, so that the process does not end with the session
 * or the mount unit that asks first. True: a process is on its way, which shared_await() asks. False: there
 * is no systemd here, or it has no such service. */
#define SHARED_SERVICE "kiln-mount.service"
bool shared_start_service(void);
/* As shared_join(), again and again for a minute at most. */
enum shared_outcome shared_await(const char *path, const struct mount_options *o, const char *mountpoint,
                                 int *status, char *why, size_t why_size);
/* Becomes the process of that service: takes the lock. 0 or -errno; -EWOULDBLOCK: another process has the
 * lock. */
int shared_become(const char *path);
/* After SHARED_FIRST: requests are taken, by a thread of its own, and become mounts_add(). 0 or -errno. */
int shared_listen(const char *path);
/* After the last mount: nothing is taken any more, the lock is free for another process. */
void shared_end(const char *path);

/* The table, for the tests. The packet's bytes, or -ENOSPC. */
int shared_encode(const struct mount_options *o, const char *mountpoint, char *out, size_t size);
/* What `o` gets points into `packet`. 0, or -EINVAL with the word that is not understood. */
int shared_decode(char *packet, size_t bytes, struct mount_options *o, const char **mountpoint,
                  const char **bad_word);

#endif
