/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-watch: starts a heal of a volume of a store when bricks of this host accuse other bricks for a while.
 *
 * One host heals a volume (cluster_heals()), and its self-heal daemon crawls when a brick returns. A mount
 * that has lost a brick which the daemon still reaches marks files without such a return, and these files
 * would wait for the crawl of cluster.heal-timeout. So each host looks at the counts of its own bricks, and
 * asks the healing host for a crawl when a count is above zero in two looks: the brick of the healing host
 * may be the one that missed changes, and then only other hosts have counts. The same count causes a further
 * crawl after two looks, then four, and so on up to forty; a host asks another one no more often than that.
 *
 * A death of the host loses the counts of the former look only. */
#ifndef KILN_VOLUMES_HEAL_WATCH_H
#define KILN_VOLUMES_HEAL_WATCH_H

/* Looks in a thread of its own, unless the former look still runs. thread: one, which need not be allowed to
 * wait. */
void heal_watch_look(void);
/* Waits for the thread. Called after the last look. */
void heal_watch_end(void);

#endif
