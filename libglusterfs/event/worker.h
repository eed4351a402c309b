/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* worker: the threads that wait for events and run requests.
 *
 * A process has one pool of workers, all in epoll_wait on one epoll set. The worker that gets an event
 * runs its handler to the end. When workers block in system calls, others still wait; a watchdog (in the
 * timer thread) adds workers when all are busy and events are pending, and takes the posted jobs away from
 * a worker that is stuck. In an idle process no thread here wakes up.
 *
 * Handlers and jobs run inside an RCU read section (urcu-memb). */
#ifndef KILN_EVENT_WORKER_H
#define KILN_EVENT_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

struct event_source;
/* `events` are EPOLL*. Edge-triggered without oneshot: several workers may run a source's handler at the same
 * time. */
typedef void (*event_fn)(struct event_source *src, uint32_t events);

/* Embedded in the owner of the descriptor. */
struct event_source {
    int fd;
    event_fn fn;
    /* After event_remove(): called once, as soon as no handler runs or will, from any thread. It may free
     * the owner and close `fd`. NULL: event_remove() waits for that moment instead. */
    void (*gone)(struct event_source *src);
    /* private to the loop: distinguishes a late event of the number's former owner */
    uint32_t generation;
};

struct worker_options {
    unsigned min, max; /* 0: cores + 2; 0: 256 */
    unsigned idle_ms;  /* idle time after which workers beyond min leave; 0: 10,000 */
};

/* Starts workers, the watchdog and the timer thread. 0 or -errno. */
int workers_start(const struct worker_options *options);
/* Runs the jobs posted so far and stops; no handler, job or timer runs after this returns. Not from a
 * worker. */
void workers_stop(void);

/* Watches a descriptor, edge-triggered (EPOLLET is added): the handler must read until it would block. 0
 * or -errno. `fd` stays open until gone. */
int event_add(struct event_source *src, uint32_t events);
/* Changes the events; an event that is ready at this moment is reported again. 0 or -errno. */
int event_modify(struct event_source *src, uint32_t events);
/* Prevents new handlers; see `gone`. Called once. From a handler of the same source only if it has a
 * `gone`. */
void event_remove(struct event_source *src);

/* Work to run soon on a worker. Posted from a worker, the job runs on this worker right after the present
 * handler (in order of posting), unless the handler gets stuck; then, and when posted from another thread,
 * the job runs on any worker. The job is embedded in its owner, so posting cannot fail. A run of the job may
 * post the job again or free the owner. */
struct worker_job {
    struct cds_list_head link;
    void (*run)(struct worker_job *job);
};
/* From any thread, with any lock held. */
void worker_post(struct worker_job *job);
/* Posts to any worker, even when called from one: for work that must not wait for this worker's next work. */
void worker_post_any(struct worker_job *job);

/* Called around a system call that may block for long, so that the watchdog knows at once. Cheap. No
 * effect on other threads. */
void worker_block_begin(void);
void worker_block_end(void);

struct worker_stats {
    unsigned threads, waiting, blocked;
    uint64_t events, posted, grown, shrunk;
};
/* The present numbers; any thread. */
void worker_stats(struct worker_stats *out);

#endif
