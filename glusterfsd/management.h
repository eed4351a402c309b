/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* management: this process as a brick of glusterd: it gets its volfiles there, says which bricks it serves on
 * which port, and hears of changes (spec: management 2, 3).
 *
 * One connection for the process, kept for life. On each new one every brick's volfile is fetched and every
 * brick is signed in. A brick has one fetch under way; what is heard meanwhile makes one more. A volfile that
 * says what the brick does already changes nothing; another becomes its options, in a thread of bricks.c.
 *
 * thread: any, but where it says otherwise. One mutex guards the list of bricks; it is never held over a
 * call.
 */
#ifndef KILN_GLUSTERFSD_MANAGEMENT_H
#define KILN_GLUSTERFSD_MANAGEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct volfile;

struct management_options {
    /* one of them: where glusterd is. The strings live as long as the process */
    const char *host, *unix_path;
    uint16_t port;
    const char *brick_name;       /* of the command line: part of each GETSPEC */
    uint16_t brick_port;          /* what SIGNIN says, for every brick */
    /* Changes a volfile before a brick is made of it. 0 or -errno with *error. */
    int (*prepare)(struct volfile *v, char *error, size_t error_size);
};

/* Connects. 0 or -errno. */
int management_start(const struct management_options *options);
/* The volfile of this id; the brick in it is known from now on. Once, from the main thread, which waits. NULL
 * with *error and the exit status that says why (management 1.6). */
struct volfile *management_first_volfile(const char *id, int *exit_status, char *error, size_t error_size);
/* Signs in all bricks and waits for the answers. From the main thread. 0, -EIO with a line in the log. */
int management_sign_in(void);
/* Every brick's volfile is fetched again. */
void management_refetch(void);

/* One more brick, whose volfiles have this id; it was attached by glusterd, which needs no SIGNIN. 0,
 * -ENOMEM; a brick that is known gets the id. */
int management_add(const char *brick, const char *id);
/* The brick goes: SIGNOUT is on its way when this returns. False: it was not known. *is_last: no other is
 * left. */
bool management_remove(const char *brick, bool *is_last);
/* The attach for which it was added has failed. A brick that is served all the same, as before, keeps the id
 * it had; one that was served before and is not any more is signed out; one that never was is forgotten. */
void management_not_attached(const char *brick, bool is_served);

/* Signs out every brick: the process is ending. Harmless if it was never started, as the next. */
void management_sign_out(void);
/* Closes; waits until nothing of it runs. No brick operation and no job of bricks.c runs any more; before
 * workers_stop(). */
void management_stop(void);

#endif
