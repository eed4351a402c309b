/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The handshake of mem-sweep.c under every order of its steps. Built with its own copy of the pool, in
 * which MEM_HOOK stops the owner before O1 .. O4 and the sweeper before S1 .. S4; the test hands out
 * turns. Orders that a random stress meets once in a billion operations happen here every time. */
#include "mem/mem-internal.h"

#include <check.h>
#include <dlfcn.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- turns ----------------------------------------------------------------------------------- */

enum role { NOBODY, OWNER, SWEEPER };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static __thread enum role my_role;
static const char *schedule; /* 'O' and 'S': the owner of each next step */
static size_t at;
static enum role holder; /* the role between two hooks, in the step it was given */
static bool finished[3];
static bool in_lists[3];
static unsigned overlaps;
static int stop_sweeper_at = -1, stop_owner_at = -1; /* a hook where that role waits for go_on */
static bool stopped, go_on;

static bool
has_turns_left(enum role r)
{
    return schedule && strchr(schedule + at, r == OWNER ? 'O' : 'S') != NULL;
}

static bool
may_step(enum role r)
{
    while (schedule && schedule[at] && finished[schedule[at] == 'O' ? OWNER : SWEEPER])
        at++;
    if (holder != NOBODY)
        return false;
    return !has_turns_left(r) || schedule[at] == (r == OWNER ? 'O' : 'S');
}

static void
note_lists(enum mem_hook point)
{
    if (point == O3 || point == S3) {
        in_lists[my_role] = true;
        overlaps += in_lists[OWNER] && in_lists[SWEEPER];
    } else if (point == O4 || point == S4 || point == O1 || point == S1) {
        in_lists[my_role] = false;
    }
}

static void
stop_here(enum mem_hook point)
{
    if ((my_role == SWEEPER && stop_sweeper_at == (int)point) ||
        (my_role == OWNER && stop_owner_at == (int)point)) {
        stopped = true;
        stop_sweeper_at = stop_owner_at = -1;
        pthread_cond_broadcast(&changed);
        while (!go_on)
            pthread_cond_wait(&changed, &mutex);
    }
}

void
mem_test_hook(enum mem_hook point)
{
    if (my_role == NOBODY)
        return;
    pthread_mutex_lock(&mutex);
    if (holder == my_role) {
        holder = NOBODY;
        pthread_cond_broadcast(&changed);
    }
    while (!may_step(my_role))
        pthread_cond_wait(&changed, &mutex);
    if (schedule && has_turns_left(my_role)) {
        holder = my_role;
        at++;
    }
    note_lists(point);
    stop_here(point);
    pthread_mutex_unlock(&mutex);
}

static void
take_part(enum role r)
{
    pthread_mutex_lock(&mutex);
    my_role = r;
    pthread_mutex_unlock(&mutex);
}

static void
leave_off(void)
{
    pthread_mutex_lock(&mutex);
    finished[my_role] = true;
    in_lists[my_role] = false;
    if (holder == my_role)
        holder = NOBODY;
    my_role = NOBODY;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void
new_game(const char *turns)
{
    schedule = turns;
    at = 0;
    holder = NOBODY;
    memset(finished, 0, sizeof(finished));
    memset(in_lists, 0, sizeof(in_lists));
    stopped = go_on = false;
}

static void
wait_until_stopped(void)
{
    pthread_mutex_lock(&mutex);
    while (!stopped)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static void
let_go_on(void)
{
    pthread_mutex_lock(&mutex);
    go_on = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* ---- the two players ------------------------------------------------------------------------- */

enum { HELD = 400 };
enum operation { GET_HOT, GET_EMPTY, PUT_ROOM, PUT_FULL, OPERATIONS };

static struct mem_pool *pool;
static pthread_barrier_t ready;
static enum operation operation;
static bool ask_first; /* a DEMOTE is pending at the start */
static uint16_t owner;    /* of the objects; 0: none */
/* the owner does a second operation: it must not profit from having wiped out a LOCKED */
static bool twice;

struct hand {
    void *held[HELD];
    unsigned n;
};

static void
hand_get(struct hand *h)
{
    h->held[h->n] = owner ? mem_get_owner(pool, owner) : mem_get(pool);
    ck_assert_ptr_nonnull(h->held[h->n]);
    memset(h->held[h->n], (int)h->n, 200);
    h->n++;
}

static void
hand_put(struct hand *h)
{
    mem_put(h->held[--h->n]);
}

/* Brings the lines into the state that the operation needs. */
static void
prepare(struct hand *h)
{
    struct mem_line *l;

    for (unsigned i = 0; i < 40; i++)
        hand_get(h);
    for (unsigned i = 0; i < 10; i++)
        hand_put(h);
    l = mem_line_of(mem_self, pool->id);
    while (operation == GET_EMPTY && l->top != l->base)
        hand_get(h);
    if (operation == PUT_FULL) {
        while (h->n < HELD - 100)
            hand_get(h);
        while (l->top != l->end)
            hand_put(h);
    }
    mem_self->req = ask_first ? MEM_REQ_DEMOTE : MEM_REQ_NONE;
}

static void *
owner_main(void *arg)
{
    struct hand h = { .n = 0 };

    (void)arg;
    prepare(&h);
    pthread_barrier_wait(&ready);
    take_part(OWNER);
    for (int i = 0; i <= twice; i++) {
        if (operation == GET_HOT || operation == GET_EMPTY)
            hand_get(&h);
        else
            hand_put(&h);
    }
    leave_off();
    while (h.n)
        hand_put(&h);
    return NULL;
}

static void *
sweeper_main(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&ready);
    take_part(SWEEPER);
    mem_pools_sweep_now();
    leave_off();
    return NULL;
}

static void
play(const char *turns)
{
    pthread_t player, sweeper;

    new_game(turns);
    pthread_create(&player, NULL, owner_main, NULL);
    pthread_create(&sweeper, NULL, sweeper_main, NULL);
    pthread_join(player, NULL);
    pthread_join(sweeper, NULL);
    ck_assert_msg(overlaps == 0, "%s, operation %d: both were in the lists", turns, operation);
    mem_pools_check();
    struct mem_pool_stats s;
    mem_pool_stats(pool, &s);
    ck_assert_int_eq(s.live, 0);
    ck_assert_uint_eq(s.gets, s.puts);
    ck_assert_int_eq(owner ? mem_owner_balance(owner, NULL) : 0, 0);
}

static void
setup(void)
{
    mem_pools_set_mode("on");
    pool = mem_pool_new_fn(200, 0, "handshake");
    ck_assert_ptr_nonnull(pool);
    pthread_barrier_init(&ready, NULL, 2);
}

/* Plays every sequence of `owners` O and 4 S, for every operation. Returns their number. */
static unsigned
play_all(unsigned owners)
{
    char turns[16];
    unsigned games = 0, n = owners + 4;

    for (unsigned set = 0; set < 1u << n; set++) {
        if (__builtin_popcount(set) != 4)
            continue;
        for (unsigned i = 0; i < n; i++)
            turns[i] = set & (1u << i) ? 'S' : 'O';
        turns[n] = 0;
        for (operation = 0; operation < OPERATIONS; operation++)
            play(turns);
        games++;
    }
    return games;
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(every_order_of_steps_is_safe)
{
    ask_first = false;
    ck_assert_uint_eq(play_all(4), 70);
}
END_TEST

/* Objects with an owner take other paths. */
START_TEST(every_order_with_an_owner_is_safe)
{
    owner = (uint16_t)mem_owner_new("owner");
    ck_assert_uint_eq(owner, 1);
    ck_assert_uint_eq(play_all(4), 70);
    ask_first = true;
    ck_assert_uint_eq(play_all(5), 126);
}
END_TEST

/* The owner has seen DEMOTE; before, at and after its compare-exchange the next pass writes LOCKED. */
START_TEST(every_order_with_a_demote_pending)
{
    ask_first = true;
    ck_assert_uint_eq(play_all(5), 126);
}
END_TEST

/* Two operations: a compare-exchange that wiped out LOCKED would admit the second one while the sweeper
 * works. */
START_TEST(every_order_with_a_demote_pending_and_two_operations)
{
    ask_first = true;
    twice = true;
    ck_assert_uint_eq(play_all(9), 715);
}
END_TEST

static void *
busy_owner(void *arg)
{
    mem_put(mem_get(pool));
    pthread_barrier_wait(&ready); /* the sweeper starts */
    wait_until_stopped();
    for (int i = 0; i < 1000; i++) {
        void *p = mem_get(pool);

        memset(p, 1, 200);
        mem_put(p);
    }
    *(bool *)arg = true;
    pthread_barrier_wait(&ready);
    return NULL;
}

START_TEST(owners_go_on_while_the_sweeper_is_stopped)
{
    pthread_t player, sweeper;
    bool done = false;
    struct mem_pool_stats s;

    new_game(NULL);
    stop_sweeper_at = S2; /* the owner is LOCKED, and stays so */
    pthread_create(&player, NULL, busy_owner, &done);
    pthread_create(&sweeper, NULL, sweeper_main, NULL);
    wait_until_stopped();
    pthread_barrier_wait(&ready); /* the owner has done its thousand operations */
    ck_assert(done);
    let_go_on();
    pthread_join(player, NULL);
    pthread_join(sweeper, NULL);
    mem_pool_stats(pool, &s);
    ck_assert_uint_ge(s.bypass, 2000);
    ck_assert_uint_le(s.system_allocs, 64); /* objects that it put were available to its next get */
    ck_assert_int_eq(s.live, 0);
    mem_pools_check();
}
END_TEST

static struct mem_thread *stopped_thread;

static void *
stopping_owner(void *arg)
{
    void *p = mem_get(pool);

    (void)arg;
    mem_put(p);
    stopped_thread = mem_self;
    take_part(OWNER);
    p = mem_get(pool); /* stops in the middle */
    leave_off();
    ck_assert_uint_eq(mem_self->req, MEM_REQ_DEMOTE);
    mem_put(p); /* ages the lines on its way in */
    ck_assert_uint_eq(mem_self->req, MEM_REQ_NONE);
    return NULL;
}

START_TEST(sweeper_does_not_wait_for_an_owner_inside)
{
    pthread_t player;

    new_game(NULL);
    stop_owner_at = O3;
    pthread_create(&player, NULL, stopping_owner, NULL);
    wait_until_stopped();
    mem_pools_sweep_now(); /* returns */
    ck_assert_uint_eq(stopped_thread->busy, 1);
    ck_assert_uint_eq(stopped_thread->req, MEM_REQ_DEMOTE);
    mem_pools_sweep_now();
    ck_assert_uint_eq(stopped_thread->req, MEM_REQ_DEMOTE);
    let_go_on();
    pthread_join(player, NULL);
    mem_pools_check();
}
END_TEST

/* ---- code that runs where the sweeper releases the registry ---------------------------------- */

#if !MEM_TSAN /* TSan has its own pthread_mutex_unlock */

static void (*between)(void); /* runs whenever a thread has released the registry mutex */

int
pthread_mutex_unlock(pthread_mutex_t *m)
{
    static int (*unlock)(pthread_mutex_t *);
    static __thread bool inside;
    int err;

    if (!unlock)
        unlock = (int (*)(pthread_mutex_t *))dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    err = unlock(m);
    if (m == &mem_registry_mutex && between && !inside) {
        inside = true;
        between();
        inside = false;
    }
    return err;
}

enum { CROWD = 40 };
static struct mem_thread *blocks[CROWD];
static pthread_t crowd[CROWD];
static sem_t ready_sem, go[CROWD];
static int left_early = -1;

static void *
one_of_the_crowd(void *arg)
{
    int me = (int)(intptr_t)arg;

    mem_put(mem_get(pool));
    blocks[me] = mem_self;
    sem_post(&ready_sem);
    sem_wait(&go[me]);
    return NULL;
}

static void
next_in_line_leaves(void)
{
    for (int i = 0; i < CROWD && left_early < 0; i++) {
        if (blocks[i] != mem_threads_cursor)
            continue;
        left_early = i;
        sem_post(&go[i]);
        pthread_join(crowd[i], NULL);
    }
}

/* Between two groups the sweeper holds no thread: the next thread may exit. */
START_TEST(a_thread_exits_when_it_is_next)
{
    struct mem_pool_stats s;

    sem_init(&ready_sem, 0, 0);
    for (int i = 0; i < CROWD; i++) {
        sem_init(&go[i], 0, 0);
        ck_assert_int_eq(pthread_create(&crowd[i], NULL, one_of_the_crowd, (void *)(intptr_t)i), 0);
        sem_wait(&ready_sem);
    }
    between = next_in_line_leaves;
    mem_pools_sweep_now();
    between = NULL;
    ck_assert_int_ge(left_early, 0);
    mem_pool_stats(pool, &s);
    ck_assert_uint_eq(s.cached_hot, 0); /* no thread was left out */
    mem_pools_check();
    for (int i = 0; i < CROWD; i++) {
        if (i == left_early)
            continue;
        sem_post(&go[i]);
        pthread_join(crowd[i], NULL);
    }
}
END_TEST

static pthread_t test_thread;
static sem_t wake_up, woken;
static int disturbed;

static void *
light_sleeper(void *arg)
{
    (void)arg;
    for (;;) {
        sem_wait(&wake_up);
        mem_put(mem_get(pool));
        sem_post(&woken);
    }
    return NULL;
}

/* The sweeper, in no pass, has found all pools quiet: at this moment one becomes active. */
static void
disturb(void)
{
    if (pthread_equal(pthread_self(), test_thread) || __atomic_load_n(&disturbed, __ATOMIC_RELAXED) == 3 ||
        pthread_mutex_trylock(&mem_sweep_mutex) != 0)
        return;
    pthread_mutex_unlock(&mem_sweep_mutex);
    struct mem_pool_stats s;
    mem_pool_stats(pool, &s);
    if (s.bytes_resident)
        return;
    sem_post(&wake_up);
    sem_wait(&woken);
    __atomic_fetch_add(&disturbed, 1, __ATOMIC_RELAXED);
}

START_TEST(the_sweeper_does_not_fall_asleep_over_it)
{
    struct mem_pool_stats s;
    pthread_t t;

    test_thread = pthread_self();
    sem_init(&wake_up, 0, 0);
    sem_init(&woken, 0, 0);
    ck_assert_int_eq(pthread_create(&t, NULL, light_sleeper, NULL), 0);
    sem_post(&wake_up);
    sem_wait(&woken);
    between = disturb;
    mem_pools_set_option("sweep", "2");
    ck_assert_int_eq(mem_pools_init(), 0);
    do {
        usleep(1000); /* or until the test's time is up */
        mem_pool_stats(pool, &s);
    } while (__atomic_load_n(&disturbed, __ATOMIC_RELAXED) < 3 || s.bytes_resident);
    between = NULL;
    mem_pools_fini();
}
END_TEST

static __thread bool yields_to_mapper; /* this thread is slow to map memory: another one maps first */
static struct mem_pool *other;

void *
mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t offset)
{
    if (yields_to_mapper) {
        yields_to_mapper = false;
        sem_post(&wake_up);
        sem_wait(&woken);
    }
    return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, offset);
}

static void *
quick_mapper(void *arg)
{
    sem_wait(&wake_up);
    *(void **)arg = mem_get(other);
    sem_post(&woken);
    return NULL;
}

/* Both find no room and map some; the slower one uses the other's mapping, and gives its own back. */
START_TEST(two_threads_map_memory)
{
    struct mem_process_stats s;
    void *o, *theirs;
    pthread_t t;

    sem_init(&wake_up, 0, 0);
    sem_init(&woken, 0, 0);
    other = mem_pool_new_fn(200, 0, "other");
    mem_put(mem_get(pool)); /* the thread has its block */
    mem_pools_trim(3);
    mem_pools_trim(3);
    ck_assert_int_eq(pthread_create(&t, NULL, quick_mapper, &theirs), 0);
    mem_pools_stats(&s);
    ck_assert_uint_eq(s.reserved_bytes, 0);
    yields_to_mapper = true;
    o = mem_get(pool);
    ck_assert(!yields_to_mapper);
    pthread_join(t, NULL);
    ck_assert_ptr_nonnull(o);
    ck_assert_ptr_nonnull(theirs);
    mem_pools_stats(&s);
    ck_assert_uint_eq(s.reserved_bytes, 2 << 20); /* not twice */
    mem_put(o);
    mem_put(theirs);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST
#endif

static Suite *
test_suite(void)
{
    Suite *s = suite_create("mem-handshake");
    TCase *t = tcase_create("orders");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, every_order_of_steps_is_safe);
    tcase_add_test(t, every_order_with_a_demote_pending);
    tcase_add_test(t, every_order_with_a_demote_pending_and_two_operations);
    tcase_add_test(t, owners_go_on_while_the_sweeper_is_stopped);
    tcase_add_test(t, sweeper_does_not_wait_for_an_owner_inside);
    tcase_add_test(t, every_order_with_an_owner_is_safe);
#if !MEM_TSAN
    tcase_add_test(t, a_thread_exits_when_it_is_next);
    tcase_add_test(t, the_sweeper_does_not_fall_asleep_over_it);
    tcase_add_test(t, two_threads_map_memory);
#endif
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
