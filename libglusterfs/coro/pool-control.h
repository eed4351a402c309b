/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pool-control: an operator's view of this process's memory pools and stacks, and its settings, as text:
 * for command lines, kilnd's verb pools, and the mount's xattr trusted.kiln.pools.
 *
 *     sweep     500ms, 10s, or milliseconds; 0: never      the period N of the sweeper (10 s)
 *     release   drop | keep                                empty spans (drop)
 *     cap       bytes, with K, M or G; 0: none             most bytes cached in the whole process
 *     stacks    age | drop | keep                          released stacks (age), see stack-pool.h
 *
 * thread: any. */
#ifndef KILN_CORO_POOL_CONTROL_H
#define KILN_CORO_POOL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

/* Sets "KEY=VALUE"; a blank may replace the '='. 0, or -EINVAL. Takes effect at once, also before the
 * pools are made. */
int pool_control_set(const char *text);

/* Returns the accepted forms, for the error message after a refused text. */
const char *pool_control_expected(const char *text);

/* Gives memory back now; returns the bytes. soft: all cached objects. hard: also the free pages between
 * live objects and the memory that malloc caches. Takes milliseconds, so it is not for a worker thread. */
size_t pool_control_trim(bool is_hard);

/* Runs "set KEY VALUE", "trim soft" or "trim hard". 0 or -EINVAL. */
int pool_control_run(const char *order);

/* Returns all statistics as a JSON object: {"process": {...}, "pools": [{..., "owners": [...]}], "stacks":
 * [...]}. The keys are those of a statedump. The caller frees the text; NULL: no memory. */
char *pool_control_json(void);

#endif
