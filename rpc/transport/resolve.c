/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A queue of questions and up to RESOLVERS_MAX detached threads. A thread ends when the queue is empty. If an
 * asker takes a question back while getaddrinfo() works on it, the thread frees the question later, so the
 * asker need not wait. */
#include "rpc/transport/resolve.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "log/log.h"

enum { RESOLVERS_MAX = 4 };

struct resolve_query {
    struct cds_list_head link;
    struct resolve *asker; /* NULL: taken back */
    bool is_running;
    char service[8];
    char host[];
};

static struct {
    pthread_mutex_t lock; /* guards all below, each query and each asker */
    struct cds_list_head waiting;
    unsigned threads;
} resolver = {.lock = PTHREAD_MUTEX_INITIALIZER, .waiting = CDS_LIST_HEAD_INIT(resolver.waiting)};

static int
ask(const char *host, const char *service, int flags, struct addrinfo **out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV | flags};
    int failed = getaddrinfo(host, service, &hints, out);

    switch (failed) {
    case 0:
        return 0;
    case EAI_MEMORY:
        return -ENOMEM;
    case EAI_AGAIN:
        return -EAGAIN;
    case EAI_SYSTEM:
        return -errno;
    default:
        return -EADDRNOTAVAIL;
    }
}

int
resolve_digits(const char *host, uint16_t port, struct addrinfo **out)
{
    char service[8];

    snprintf(service, sizeof service, "%u", port);
    return ask(host, service, AI_NUMERICHOST, out);
}

/* Hands the answer to the asker, unless the asker has taken the question back. Frees the query. */
static void
deliver_locked(struct resolve_query *q, struct addrinfo *addresses, int err)
{
    struct resolve *r = q->asker;

    free(q);
    if (!r) {
        if (addresses)
            freeaddrinfo(addresses);
        return;
    }
    r->query = NULL;
    r->addresses = addresses;
    r->err = err;
    worker_post(r->done);
}

static void *
resolver_main(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "kiln-resolve");
    pthread_mutex_lock(&resolver.lock);
    while (!cds_list_empty(&resolver.waiting)) {
        struct resolve_query *q = cds_list_first_entry(&resolver.waiting, struct resolve_query, link);
        struct addrinfo *addresses = NULL;

        cds_list_del(&q->link);
        q->is_running = true;
        pthread_mutex_unlock(&resolver.lock);
        int err = ask(q->host, q->service, 0, &addresses);

        pthread_mutex_lock(&resolver.lock);
        deliver_locked(q, addresses, err);
    }
    resolver.threads--;
    pthread_mutex_unlock(&resolver.lock);
    return NULL;
}

/* 0 if a thread is or will be there for the waiting questions. */
static int
grow_locked(void)
{
    if (resolver.threads == RESOLVERS_MAX)
        return 0;
    int err = thread_start(resolver_main, NULL);

    if (!err)
        resolver.threads++;
    return resolver.threads ? 0 : err;
}

int
resolve_start(struct resolve *r, const char *host, uint16_t port)
{
    size_t bytes = strlen(host) + 1;
    struct resolve_query *q = calloc(1, sizeof *q + bytes);

    assert(!r->query);
    if (!q)
        return -ENOMEM;
    memcpy(q->host, host, bytes);
    snprintf(q->service, sizeof q->service, "%u", port);
    q->asker = r;
    pthread_mutex_lock(&resolver.lock); /* held over pthread_create(): only other askers wait */
    int err = grow_locked();

    if (!err) {
        r->query = q;
        cds_list_add_tail(&q->link, &resolver.waiting);
    }
    pthread_mutex_unlock(&resolver.lock);
    if (err)
        free(q);
    return err;
}

int
resolve_take(struct resolve *r, struct addrinfo **out)
{
    /* once this thread has the lock, the thread that posted the answer has finished with it */
    pthread_mutex_lock(&resolver.lock);
    int err = r->err;

    *out = r->addresses;
    r->addresses = NULL;
    pthread_mutex_unlock(&resolver.lock);
    return err;
}

bool
resolve_cancel(struct resolve *r)
{
    pthread_mutex_lock(&resolver.lock);
    struct resolve_query *q = r->query;

    r->query = NULL;
    if (q)
        q->asker = NULL;
    if (q && !q->is_running) {
        cds_list_del(&q->link);
        free(q);
    }
    pthread_mutex_unlock(&resolver.lock);
    return q != NULL;
}
