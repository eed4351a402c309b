/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-volume: the volumes of kiln-heal. A volume has a graph and a crawler (crawl.h) for each replica set.
 *
 * Threads: the main thread adds and drops volumes. Other threads hold a volume, found by heal_volume_find(),
 * while they answer a question; dropping waits for them. One mutex guards the list and the counts of holders;
 * the other fields are constant after the volume was added. */
#ifndef KILN_HEAL_HEAL_VOLUME_H
#define KILN_HEAL_HEAL_VOLUME_H

#include <stdbool.h>
#include <stddef.h>

#include "xlators/cluster/replicate/crawl.h"

struct heal_volume;

/* Adds the volume, or replaces the one of this name unless it is equal. `texts`: the volfile of each replica
 * set. `heals` false: the volume is only judged. Returns 0, or -errno after logging the reason; then there is
 * no volume of this name. */
int heal_volume_add(const char *name, bool heals, char *const *texts, size_t count);
/* Stops the heals of the volume and forgets it. No such volume is no error. */
void heal_volume_drop(const char *name);
void heal_volumes_drop_all(void);

/* NULL: no such volume. Release the volume with heal_volume_release(). */
struct heal_volume *heal_volume_find(const char *name);
void heal_volume_release(struct heal_volume *v);
size_t heal_volume_sets(const struct heal_volume *v);
/* Returns the crawler of the set; NULL: a dispersed set, which has none. */
struct crawler *heal_volume_crawler(const struct heal_volume *v, size_t set);
/* Asks for a heal of the set. Returns as crawler_ask(). */
int heal_volume_ask(const struct heal_volume *v, size_t set, bool is_full);
/* As the functions of a crawler (crawl.h), for a set of either kind. */
bool heal_volume_full_is_due(const struct heal_volume *v, size_t set);
/* "": also for a dispersed set, which gets no more bricks. */
void heal_volume_waits_for(const struct heal_volume *v, size_t set, char *who, size_t size);
void heal_volume_stop_full(const struct heal_volume *v, size_t set);
unsigned heal_volume_children(const struct heal_volume *v, size_t set);
unsigned heal_volume_looks(const struct heal_volume *v, size_t set, unsigned child,
                           struct crawl_look out[CRAWL_LOOKS_KEPT]);

#endif
