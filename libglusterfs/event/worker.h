/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* worker: the threads that wait for events and run requests (architecture 3).
 *
 * One pool of workers a process, all in epoll_wait on one epoll set. The worker that gets an event runs its handler to the
 * end. When workers block in system calls, others still wait; a watchdog adds some when all are busy and events are pending.
 */
#ifndef KILN_EVENT_WORKER_H
#define KILN_EVENT_WORKER_H

#include <stdint.h>
#include <urcu/list.h>

struct event_source;
/* Runs on one worker at a time for a source armed with oneshot semantics; `events` are EPOLL*. */
typedef void (*event_fn)(struct event_source *src, uint32_t events);

/* Embedded in what owns the descriptor. */
struct event_source {
    int fd;
    event_fn fn;
};

struct worker_options {
    unsigned min, max; /* 0: cores + 2; 0: 256 */
};

/* Starts workers, the watchdog and the timer thread. 0 or -errno. */
int workers_start(const struct worker_options *options);
/* No handler runs after this returns. */
void workers_stop(void);

/* Edge-triggered (EPOLLET): the handler reads until it would block. 0 or -errno. */
int event_add(struct event_source *src, uint32_t events);
void event_remove(struct event_source *src);

/* Work to run soon on a worker: from a worker, on this one right after the present handler (in order of posting); from
 * another thread, on any worker. The job is embedded in its owner, so posting cannot fail. */
struct worker_job {
    struct cds_list_head link;
    void (*run)(struct worker_job *job);
};
void worker_post(struct worker_job *job);

/* Around a system call that may block for long: so that the watchdog knows at once. Cheap. */
void worker_block_begin(void);
void worker_block_end(void);

struct worker_stats {
    unsigned threads, waiting, blocked;
    uint64_t events, posted, grown, shrunk;
};
void worker_stats(struct worker_stats *out);

#endif
