/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Declarations shared by pump.c (the child and its life) and pump-stream.c (its bytes). */
#ifndef KILN_EVENT_PUMP_INTERNAL_H
#define KILN_EVENT_PUMP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "base/refcount.h"
#include "event/pump.h"
#include "event/timer.h"
#include "event/worker.h"

struct iobuf;

#define PUMP_BUFFER_BYTES 65536

/* Reasons to work on the pump. The thread that sets RUNNING works on it, alone. */
enum {
    WAKE_IN = 1u << 0,
    WAKE_OUT = 1u << 1,
    WAKE_ERR = 1u << 2,
    WAKE_CHILD = 1u << 3,
    WAKE_TIMEOUT = 1u << 4,
    WAKE_CANCEL = 1u << 5,
    WAKE_RUNNING = 1u << 6,
};
#define WAKE_STREAMS (WAKE_IN | WAKE_OUT | WAKE_ERR)

/* A descriptor in the event loop. It holds a reference to the pump until no thread can call its handler
 * any more. */
struct port {
    struct event_source src;
    struct pump *pump;
    unsigned wake;
    bool is_open, is_registered;
};

/* A standard stream of the child: its input, output or errors. Only the thread that has set RUNNING uses
 * its fields. */
struct stream {
    struct pump *pump;
    enum pump_kind kind;
    bool is_input, is_open, cannot_splice;
    struct port pipe;  /* our end */
    struct port other; /* the caller's descriptor */
    const char *bytes; /* PUMP_BYTES: the bytes not yet written */
    size_t bytes_left;
    pump_source_fn source;
    pump_sink_fn sink;
    struct iobuf *buf; /* [start, end) has been read and not yet written; NULL when empty */
    size_t start, end;
    uint64_t moved;
};

struct pump {
    struct refcount refs; /* of the running pump, of each port, of the caller */
    atomic_uint wake;
    struct worker_job job;
    struct timer timer;
    struct cds_list_head link; /* in the list of running pumps, under its lock */

    /* used only by the thread that has set RUNNING */
    pid_t pid;
    bool is_reaped;
    struct port child; /* the pidfd */
    struct stream in, out, err;
    uint64_t output_bytes, output_bytes_max;
    size_t buffer_bytes;
    struct pump_result result;

    void (*done)(struct pump *p, const struct pump_result *r, void *arg);
    void *arg;
};

/* pump.c */
/* Watches `fd`, which is taken over, also on failure. 0 or -errno. */
int port_open(struct port *port, struct pump *p, int fd, uint32_t events, unsigned wake);
void port_close(struct port *port);

/* pump-stream.c */
/* Makes the stream's ends from the options; *child_fd is to become the child's descriptor. 0 or -errno;
 * the caller must close the streams in either case. */
int stream_open_in(struct pump *p, const struct pump_options *o, int *child_fd);
int stream_open_out(struct pump *p, struct stream *s, const struct pump_sink *sink, size_t pipe_bytes,
                    unsigned wake, int *child_fd);
void stream_close(struct stream *s);
enum moved {
    MOVED_ALL,  /* all available bytes: an event will come when there are more */
    MOVED_TURN, /* enough for one turn */
    MOVED_END,
};
/* Moves bytes. Returns an enum moved, or -errno. */
int stream_move(struct stream *s);

#endif
