/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pool-control: what an operator reads and sets of this process's memory pools and stacks, as text: for
 * command lines, kilnd's verb pools, and the mount's xattr trusted.kiln.pools.
 *
 *     sweep     500ms, 10s, or milliseconds; 0: never      the period N of the sweeper (10 s)
 *     release   drop | keep                                empty spans (drop)
 *     cap       bytes, with K, M or G; 0: none             cached at most, in the whole process
 *     stacks    age | drop | keep                          released stacks (age), see stack-pool.h
 *
 * thread: any. */
#ifndef KILN_CORO_POOL_CONTROL_H
#define KILN_CORO_POOL_CONTROL_H

#include <stdbool.h>
#include <stddef.h>

/* "KEY=VALUE", or with a blank between them. 0, or -EINVAL. Acts at once, also before the pools are made. */
int pool_control_set(const char *text);

/* The words that belong in the place of a refused text. */
const char *pool_control_expected(const char *text);

/* Gives memory back now; the bytes. soft: all that is cached. hard: also the free pages between objects that
 * live, and what malloc keeps. Milliseconds: not on a thread that serves. */
size_t pool_control_trim(bool is_hard);

/* "set KEY VALUE", "trim soft" or "trim hard". 0 or -EINVAL. */
int pool_control_run(const char *order);

/* All figures as a JSON object: {"process": {...}, "pools": [{..., "owners": [...]}], "stacks": [...]}. The
 * keys are those of a statedump. To be freed; NULL: no memory. */
char *pool_control_json(void);

#endif
