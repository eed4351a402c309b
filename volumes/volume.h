/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volume: the definition of a volume: its name, its ordered bricks, its options. It is a plain value: this
 * module touches no disk, no brick and no lock. A volume that other threads can see is constant; a changed
 * copy replaces it.
 *
 * Its text is JSON (see also kiln-state(5) and state-dir.h):
 *
 *     {"format": 2, "name": "demo", "id": "5f0c...", "status": "started", "replica": 2, "arbiter": 0,
 *      "username": "...", "password": "...",
 *      "bricks": [{"host": "", "path": "/srv/b1", "made": true, "id": 0}, ...], "next_brick": 2,
 *      "coming": [like bricks], "options": {"network.ping-timeout": "10"}, "task": volume-task.h}
 */
#ifndef KILN_VOLUMES_VOLUME_H
#define KILN_VOLUMES_VOLUME_H

#include <jansson.h>
#include <stdbool.h>

#include "base/gfid.h"
#include "volumes/problem.h"

/* Format 1, without ids and coming bricks, can be read too. A volume without a task is written in format 2,
 * for an older kilnd, and only a dispersed one in format 4, which has "redundancy". */
#define VOLUME_FORMAT 4
#define VOLUME_NAME_MAX 128
#define VOLUME_BRICKS_MAX 1024
#define VOLUME_BRICK_ID_MAX 1000000
#define VOLUME_BRICK_PATH_MAX 1024
#define VOLUME_OPTIONS_MAX 1024
#define VOLUME_VALUE_MAX 8192
#define VOLUME_KEY_MAX 255 /* of an option */

enum volume_status {
    VOLUME_CREATING, /* bricks are being created: undone at the next start */
    VOLUME_CREATED,  /* never started */
    VOLUME_STARTED,
    VOLUME_STOPPED,
};

struct volume_brick {
    char *host; /* as given; "": this machine, at the address that the client used */
    char *path; /* absolute and normalised */
    bool made;  /* kilnd created the folder */
    /* The number of the brick in the names of clients and of pending xattrs. It does not change when other
     * bricks are added or removed, and a replacement brick gets the same number. */
    unsigned id;
};

struct volume_option {
    char *key, *value;
};

struct volume {
    char *name;
    struct gfid id;
    enum volume_status status;
    unsigned replica; /* bricks of a set; 1: not replicated */
    /* 0: the bricks of a set hold copies. Above 0: a dispersed set, of which any `replica` - `redundancy`
     * bricks give the files back */
    unsigned redundancy;
    bool has_arbiter; /* the last brick of each replica set holds no data */
    struct volume_brick *bricks;
    unsigned brick_count; /* a multiple of replica */
    unsigned next_id;     /* above the id of every brick so far */
    struct volume_brick *coming; /* bricks that are being added: undone at the next start */
    unsigned coming_count;
    struct volume_option *options; /* the options that are set, sorted by key */
    unsigned option_count;
    json_t *task; /* the latest rebalance (volume-task.h), owned; NULL: none so far */
    char username[GFID_TEXT_SIZE], password[GFID_TEXT_SIZE]; /* credentials of the daemon's own clients */
};

/* The strings are copied. Returns NULL without memory. A new volume has a fresh id, username and password. */
struct volume *volume_new(const char *name, unsigned replica, bool has_arbiter);
struct volume *volume_copy(const struct volume *v);
void volume_free(struct volume *v);
/* Returns 0 or -ENOMEM. The brick gets a fresh id. */
int volume_add_brick(struct volume *v, const char *host, const char *path, bool made);
/* Inserts a brick with all its fields before the brick at `place`. */
int volume_insert_brick(struct volume *v, unsigned place, const struct volume_brick *b);
int volume_add_coming(struct volume *v, const struct volume_brick *b);
void volume_drop_coming(struct volume *v);
void volume_remove_brick(struct volume *v, unsigned place);
/* Returns the place of the brick with this path, or -1. */
int volume_find_brick(const struct volume *v, const char *path);
int volume_set_option(struct volume *v, const char *key, const char *value);
/* Returns false if the option was not set. */
bool volume_unset_option(struct volume *v, const char *key);
/* Returns the set value, which stays the volume's, or NULL. */
const char *volume_option_of(const struct volume *v, const char *key);

/* Tells whether the brick at this place holds names and counters only. */
static inline bool
volume_is_arbiter(const struct volume *v, unsigned brick)
{
    return v->has_arbiter && brick % v->replica == v->replica - 1;
}

/* Returns among how many bricks of a set the bytes of a file are divided: K of a dispersed set of K + R
 * bricks, else 1. */
static inline unsigned
volume_data_bricks(const struct volume *v)
{
    return v->redundancy && v->redundancy < v->replica ? v->replica - v->redundancy : 1;
}

/* "Created", "Started", "Stopped". */
const char *volume_status_text(enum volume_status status);
/* "Distribute", "Replicate", "Disperse", "Distributed-Replicate", "Distributed-Disperse". */
const char *volume_type_text(const struct volume *v);

/* Allows letters, digits, '-' and '_'. Returns 0 or -EINVAL. */
int volume_check_name(const char *name, struct problem *why);
/* Tells whether the name is a keyword of the volfile grammar. Clients cannot parse the volfile of such a
 * volume. */
bool volume_name_is_keyword(const char *name);
/* Checks the name of a new volume: like volume_check_name(), and no keyword. Returns 0 or -EINVAL. */
int volume_check_new_name(const char *name, struct problem *why);
/* Checks that replica, arbiter and the number of bricks match. Returns 0 or -EINVAL. */
int volume_check_shape(const struct volume *v, struct problem *why);
/* Refuses an operation that is not built for dispersed volumes: 0 for other volumes, or -EOPNOTSUPP. */
int volume_refuse_dispersed(const struct volume *v, const char *what, struct problem *why);
/* Checks a host name, an address, or "". Returns 0 or -EINVAL. */
int volume_check_host(const char *host, struct problem *why);
/* Checks and normalises the path of a brick: absolute, without "//", "." and "..", and with bytes only
 * that a client can send. Returns 0 with the normal form in `out` (VOLUME_BRICK_PATH_MAX + 1 bytes), or
 * -EINVAL. */
int volume_check_path(const char *path, char *out, struct problem *why);

/* Returns a new reference, or NULL without memory. */
json_t *volume_to_json(const struct volume *v);
/* Checks every field. Returns NULL with *why on failure: -EINVAL: wrong text, -EPROTO: newer format,
 * -ENOMEM.
 */
struct volume *volume_from_json(const json_t *json, struct problem *why);

#endif
