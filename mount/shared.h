/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* shared: a process that has many mounts. Clients ask the process for further mounts through a unix socket.
 *
 *      kiln-mount --shared A /a     finds the lock free: takes the lock, stays and listens
 *      kiln-mount --shared B /b     connects, sends the options of the mount, gets the outcome, and ends with
 *                                   the status of the outcome
 *
 * A request is a packet of words NAME=VALUE with a NUL behind each word. A table has the options that belong
 * to a mount. The reply is a packet with the exit status and the reason. Client and shared process exchange
 * packets only if both are root's and in the same mount namespace, because a mount of a process in another
 * namespace would be invisible to the client.
 */
#ifndef KILN_MOUNT_SHARED_H
#define KILN_MOUNT_SHARED_H

#include "mount/kiln-mount.h"

#define SHARED_SOCKET "/run/kiln-mount.sock"

enum shared_outcome {
    SHARED_JOINED, /* the other process has answered: *status and *why */
    SHARED_NONE,   /* no process listens */
    SHARED_ELSEWHERE, /* the process is in another mount namespace, and would mount out of sight */
    SHARED_FIRST,  /* shared_find() only: this process has the lock */
    SHARED_FAILED, /* *why */
};

/* Asks the process that listens, if any. */
enum shared_outcome shared_join(const char *path, const struct mount_options *o, const char *mountpoint,
                                int *status, char *why, size_t why_size);
/* Like shared_join(), but takes the lock if no process has the lock. Waits for a minute at most while another
 * process starts or ends. */
enum shared_outcome shared_find(const char *path, const struct mount_options *o, const char *mountpoint,
                                int *status, char *why, size_t why_size);
/* Has systemd start the service that is the shared process, so that the process does not end with the session
 * or the mount unit that asks first. Returns true if the process starts; shared_await() asks that process.
 * Returns false if systemd is not here, or does not start such a service. */
#define SHARED_SERVICE "kiln-mount.service"
bool shared_start_service(void);
/* Tries shared_join() again and again for a minute at most. */
enum shared_outcome shared_await(const char *path, const struct mount_options *o, const char *mountpoint,
                                 int *status, char *why, size_t why_size);
/* Takes the lock, as the process of that service. Returns 0 or -errno; -EWOULDBLOCK: another process has the
 * lock. */
int shared_become(const char *path);
/* Begins to listen, after SHARED_FIRST or shared_become(). A separate thread takes requests and calls
 * mounts_add(). Returns 0 or -errno. */
int shared_listen(const char *path);
/* Ends the thread and frees the lock for another process. Called after the last mount. */
void shared_end(const char *path);

/* For a newer program of this process (upgrade.h): the lock and the socket. Saves, keeps open over exec(2) or
 * not (0 or -errno), and takes over for shared_listen(). Main thread. */
struct parcel;
void shared_save(struct parcel *to);
int shared_keep_open(bool keeps);
void shared_restore(struct parcel *from);

/* Writes a request. Returns the packet's bytes, or -ENOSPC. */
int shared_encode(const struct mount_options *o, const char *mountpoint, char *out, size_t size);
/* Reads a request; the texts of `o` point into `packet`. Returns 0, or -EINVAL with the word that was not
 * understood. */
int shared_decode(char *packet, size_t bytes, struct mount_options *o, const char **mountpoint,
                  const char **bad_word);

#endif
