/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Makes requests in one thread and finishes them in another, from a pool.
 *
 *     cc mempool-example.c $(pkg-config --cflags --libs kiln-mempool) -o example && ./example */
#include <mem/mem-inline.h>
#include <mem/mem-pool.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct request {
    struct request *next;
    int number;
    char payload[200];
};

enum { ID_REQUEST = MEM_ID_TYPED_MIN, REQUESTS = 200000, CLIENT = 1 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static struct request *queue;

static void *
finish_requests(void *sum)
{
    for (int left = REQUESTS; left;) {
        pthread_mutex_lock(&mutex);
        while (!queue)
            pthread_cond_wait(&arrived, &mutex);
        struct request *list = queue;
        queue = NULL;
        pthread_mutex_unlock(&mutex);
        for (struct request *next; list; list = next, left--) {
            next = list->next;
            *(long *)sum += list->number;
            mem_put_t(ID_REQUEST, list); /* any thread may put an object that another thread got */
        }
    }
    return NULL;
}

int
main(void)
{
    struct mem_pool_opts o = { .name = "request", .size = sizeof(struct request), .id = ID_REQUEST };
    struct mem_pool *pool = mem_pool_new_opts(&o);
    pthread_t finisher;
    long sum = 0;

    if (!pool || mem_pools_init() || mem_owner_new("client") != CLIENT)
        return 1;
    pthread_create(&finisher, NULL, finish_requests, &sum);
    for (int i = 0; i < REQUESTS; i++) {
        struct request *r = i % 2 ? mem_get_owner(pool, CLIENT) : mem_get_t(ID_REQUEST);

        if (!r)
            return 1;
        r->number = i;
        pthread_mutex_lock(&mutex);
        r->next = queue;
        queue = r;
        pthread_mutex_unlock(&mutex);
        pthread_cond_signal(&arrived);
    }
    pthread_join(finisher, NULL);
    printf("mode %s, sum %ld, held by the client %lld\n", mem_pools_mode(), sum,
           (long long)mem_owner_balance(CLIENT, NULL));
    return sum == (long)REQUESTS * (REQUESTS - 1) / 2 && mem_pools_fini_strict() == 0 ? 0 : 1;
}
