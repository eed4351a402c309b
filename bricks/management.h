/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* management: this process as a brick of glusterd: the process gets its volfiles from glusterd, reports the
 * bricks that it serves and their port, and hears of changes (spec: management 2, 3).
 *
 * One connection for the process, kept for life. On each new connection the process fetches every brick's
 * volfile and signs in every brick. A brick has one fetch under way; changes that are announced meanwhile
 * cause one further fetch. A volfile with the brick's present options changes nothing; another volfile
 * becomes the brick's options, in a thread of bricks.c.
 *
 * thread: any, unless a function says otherwise. One mutex guards the list of bricks and is never held over
 * a call.
 */
#ifndef KILN_BRICKS_MANAGEMENT_H
#define KILN_BRICKS_MANAGEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parcel;
struct volfile;

struct management_options {
    /* host or unix_path: the place of glusterd. The strings live as long as the process */
    const char *host, *unix_path;
    uint16_t port;
    const char *brick_name;       /* of the command line: part of each GETSPEC */
    uint16_t brick_port;          /* the port in the SIGNIN of every brick */
    /* Changes a volfile before a brick is made of it. 0 or -errno with *error. */
    int (*prepare)(struct volfile *v, char *error, size_t error_size);
};

/* Connects. 0 or -errno. */
int management_start(const struct management_options *options);
/* The volfile of this id; the brick in the volfile is known from now on. From the main thread, which waits.
 * NULL with *error and the exit status for the reason (management 1.6). */
struct volfile *management_first_volfile(const char *id, int *exit_status, char *error, size_t error_size);
/* Signs in all bricks and waits for the answers. From the main thread. 0, -EIO with a line in the log. */
int management_sign_in(void);
/* Fetches every brick's volfile again. */
void management_refetch(void);

/* Adds a brick whose volfiles have this id. glusterd attached the brick and needs no SIGNIN. 0, -ENOMEM; a
 * known brick gets the id. */
int management_add(const char *brick, const char *id);
/* The brick goes: SIGNOUT is on its way when this function returns. False: the brick was not known. *is_last:
 * no other brick is left. */
bool management_remove(const char *brick, bool *is_last);
/* The attach for which the brick was added has failed. A brick that serves all the same, as before, keeps its
 * former id. A brick that served before and does not any more is signed out. A brick that never served is
 * forgotten. */
void management_not_attached(const char *brick, bool is_served);

/* Upgrades (upgrade.h). Fetches the volfiles of all bricks for the next program, which then starts without
 * glusterd, and waits for at most 10 s. 0, also without management_start(), or -errno: glusterd does not
 * answer. Any thread. */
int management_collect(void);
/* Writes the ids and texts of all bricks' volfiles; reads them in the next program. Main thread. */
void management_save(struct parcel *to);
void management_restore(struct parcel *from);
/* The volfile's id of the brick with this number, from 0 on, of the earlier program. NULL: no more. The text
 * lives as long as the process. Main thread. */
const char *management_restored_id(unsigned number);
/* As management_first_volfile(), of that brick; once. */
struct volfile *management_restored_volfile(unsigned number, int *exit_status, char *error,
                                            size_t error_size);

/* Signs out every brick: the process is ending. Harmless without management_start(), as is
 * management_stop(). */
void management_sign_out(void);
/* Closes the connection; waits until no callback runs. No brick operation and no job of bricks.c runs any
 * more; before workers_stop(). */
void management_stop(void);

#endif
