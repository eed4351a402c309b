/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* channel: the messages between kilnd and kiln-heal, lines of JSON on standard input and standard output,
 * two pipes that no other process has an end of.
 *
 *   kilnd                                                     kiln-heal
 *                                                             {"id": 0, "pid": its process id}, first
 *   {"do": "volume", "name": V, "heals": true, "sets": [volfile, ...]}
 *   {"do": "drop", "name": V}
 *   {"do": "rebalance", "name": V, "job": its number,         {"id": 0, "ended": V, "job": number,
 *    "kind": "layouts", "files" or "drain",                   "look": progress}, when the job has ended by itself
 *    "width": files at a time, "volfile": text}
 *   {"do": "drop-rebalance", "name": V}
 *   {"do": "progress", "id": N, "name": V}                    {"id": N, "error": E, "look": progress}
 *   {"do": "heal", "id": N, "name": V, "full": false}         {"id": N, "error": E}
 *   {"do": "statistics", "id": N, "name": V}                  {"id": N, "error": 0, "sets": [[[look, ...] of each
 *                                                              child] of each set],
 *                                                            "full_due": [boolean of each set],
 *                                                            "waits_for": [client of each set, or ""]}
 *   {"do": "stop-full", "id": N, "name": V}                  {"id": N, "error": 0}
 *   {"do": "judge", "id": N, "name": V, "set": S,             {"id": N, "error": 0, "needs": [crawl_need, ...],
 *    "gfids": [G, ...]}                                        "faults": [{"gfid", "error", "child"}, ...]}
 *   {"do": "resolve", "id": N, "name": V, "set": S,           {"id": N, "error": E}
 *    "gfid": G, "entry": name or null, "how": crawl_choice,
 *    "source": child}
 *
 * "error" is 0 or -errno: -ENOENT: the volume is not known. Answers come in any order. The end of kilnd, or
 * of the channel, ends kiln-heal; the end of kiln-heal makes kilnd start another one and send all volumes
 * again. Neither leaves any half-made state: the states of heals and migrations are on the bricks (heal.h,
 * migrate.c). */
#ifndef KILN_HEAL_CHANNEL_H
#define KILN_HEAL_CHANNEL_H

#include <jansson.h>

/* Reads and executes messages until the channel ends. Main thread. */
void channel_serve(void);
/* Sends an answer and consumes it. NULL: no memory for an answer; the asker waits until its deadline. */
void channel_answer(json_int_t id, json_t *answer);

/* answers.c: starts to answer a question; `message` is borrowed. */
void answer_question(const json_t *message);

#endif
