/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* worker: the threads that wait for events and run requests.
 *
 * One pool of workers a process, all in epoll_wait on one epoll set. The worker that gets an event runs its
 * handler to the end. When workers block in system calls, others still wait; a watchdog (in the timer thread)
 * adds some when all are busy and events are pending, and takes the posted jobs away from a worker that is
 * stuck. Idle, nothing here wakes up.
 *
 * Handlers and jobs run inside an RCU read section (urcu-memb).
 */
#ifndef KILN_EVENT_WORKER_H
#define KILN_EVENT_WORKER_H

#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

struct event_source;
/* `events` are EPOLL*. Edge-triggered without oneshot: several workers may run a source's handler at the same
 * time. */
typedef void (*event_fn)(struct event_source *src, uint32_t events);

/* Embedded in what owns the descriptor. */
struct event_source {
    int fd;
    event_fn fn;
    /* After event_remove(): called once, as soon as no handler runs or will; from whatever thread sees that.
     * It may free the owner and close `fd`. NULL: event_remove() waits for that moment instead. */
    void (*gone)(struct event_source *src);
    /* the loop's: tells a late event of a number's former owner from one of its present owner */
    uint32_t generation;
};

struct worker_options {
    unsigned min, max; /* 0: cores + 2; 0: 256 */
    unsigned idle_ms;  /* after which those beyond min leave; 0: 10,000 */
};

/* Starts workers, the watchdog and the timer thread. 0 or -errno. */
int workers_start(const struct worker_options *options);
/* Jobs posted so far are run; no handler, job or timer runs after this returns. Not from a worker. */
void workers_stop(void);

/* Edge-triggered (EPOLLET is added): the handler reads until it would block. 0 or -errno. `fd` stays open
 * until gone. */
int event_add(struct event_source *src, uint32_t events);
/* Other events; what is ready at this moment is reported again. 0 or -errno. */
int event_modify(struct event_source *src, uint32_t events);
/* No new handler starts; see `gone`. Once. From a handler of the same source only if it has a `gone`. */
void event_remove(struct event_source *src);

/* Work to run soon on a worker: from a worker, on this one right after the present handler (in order of
 * posting), unless it gets stuck in that; then, and from another thread, on any worker. The job is embedded
 * in its owner, so posting cannot fail; it may be posted again (or its owner freed) from its own run. */
struct worker_job {
    struct cds_list_head link;
    void (*run)(struct worker_job *job);
};
/* From any thread, with any lock held. */
void worker_post(struct worker_job *job);
/* On any worker, even when called from one: for work that must not wait for what this worker does next. */
void worker_post_any(struct worker_job *job);

/* Around a system call that may block for long: so that the watchdog knows at once. Cheap. No-op on other
 * threads. */
void worker_block_begin(void);
void worker_block_end(void);

struct worker_stats {
    unsigned threads, waiting, blocked;
    uint64_t events, posted, grown, shrunk;
};
/* Now, from any thread. */
void worker_stats(struct worker_stats *out);

#endif
