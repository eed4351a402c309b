/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volume-options: the keys of `volume set`: the allowed values of each key, its default, and the option of
 * a layer that it becomes in the volfiles of bricks and clients (spec: management 6.2 to 6.4). All keys
 * are in one table; a key for several layers has several rows.
 */
#ifndef KILN_VOLUMES_VOLUME_OPTIONS_H
#define KILN_VOLUMES_VOLUME_OPTIONS_H

#include <stdbool.h>

#include "data/option.h"
#include "volumes/problem.h"
#include "volumes/volume.h"

enum volume_side {
    SIDE_BRICK,
    SIDE_CLIENT, /* also the self-heal daemon's layers of the same types */
    SIDE_SELF,   /* no option of a layer: enables a layer, or controls this daemon */
};

struct volume_key {
    const char *key;
    enum volume_side side;
    const char *layer;   /* type of the layer; NULL for SIDE_SELF */
    bool is_written;     /* written to the volfile even with its default */
    struct option check; /* the layer's key, type, bounds and default */
};

/* Returns a row by its index in the table; NULL: no more rows. */
const struct volume_key *volume_keys(unsigned index);
/* Returns the first row of a key, or NULL. */
const struct volume_key *volume_key_find(const char *key);
/* Returns the most similar key, for "did you mean", or NULL if no key is similar. */
const char *volume_key_like(const char *key);

/* Checks whether this volume may have the option. Returns 0, -ENOENT or -EINVAL with *why. A brick may
 * still refuse the value. */
int volume_option_check(const struct volume *v, const char *key, const char *value, struct problem *why);
/* Returns the effective value: the set value, else the default, else "". */
const char *volume_option_value(const struct volume *v, const char *key);
bool volume_option_bool(const struct volume *v, const char *key);
/* Returns the limit of the whole volume in bytes; 0: no limit. */
uint64_t volume_limit(const struct volume *v);
/* Tells whether the volume's bricks count the usage of folders. */
bool volume_counts_usage(const struct volume *v);

/* Sets the options of a new volume, as stock does (management 6.5). Returns 0 or -ENOMEM. */
int volume_options_of_new(struct volume *v);

#endif
