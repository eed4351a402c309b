/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-inline: the pool's fast path, for callers whose pool has a number known to the compiler.
 *
 *     enum { ID_FRAME = MEM_ID_TYPED_MIN };
 *     mem_pool_new_opts(
 *         &(struct mem_pool_opts){ .name = "frame", .size = sizeof(struct frame), .id = ID_FRAME });
 *     struct frame *f = mem_get_t(ID_FRAME);
 *     mem_put_t(ID_FRAME, f);
 *
 * The layouts below are shared with the library and private to it. */
#ifndef KILN_MEM_INLINE_H
#define KILN_MEM_INLINE_H

#include "mem/mem-pool.h"

#if defined(__SANITIZE_ADDRESS__)
#define MEM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MEM_ASAN 1
#endif
#endif
#ifndef MEM_ASAN
#define MEM_ASAN 0
#endif

/* One instruction where a compiler makes two or three; a thread sanitizer could not see that instruction. */
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define MEM_X86 1
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef MEM_X86
#define MEM_X86 0
#endif
#endif
#else
#define MEM_X86 0
#endif

/* Defined by a build that links the library's objects into a program, not into a shared object: saves an
 * instruction. */
#ifdef MEM_IN_PROGRAM
#define MEM_TLS_MODEL "local-exec"
#else
#define MEM_TLS_MODEL "initial-exec"
#endif

/* A function that reads or writes headers, which are poisoned in an ASan build. */
#if MEM_ASAN
#define MEM_RAW __attribute__((no_sanitize_address))
#define MEM_INLINE static inline
#else
#define MEM_RAW
#define MEM_INLINE static inline __attribute__((always_inline))
#endif

#define MEM_LIKELY(x) __builtin_expect(!!(x), 1)
#define MEM_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Lies just before every object; in the object's own cache line unless the pool asked for alignment. The
 * fast path reads and writes only the word, and always the whole word, so that a load finds it in the
 * store buffer. */
struct mem_header {
    uint64_t word; /* state | line << 32 | owner << 48; the owner is 0 in a dead object */
    uint32_t id;   /* pool id */
    uint32_t traced;
};

/* Low half of the word: one of these, xor the pool's cookie. */
enum { MEM_STATE_LIVE = 0x4c495645, MEM_STATE_DEAD = 0x44454144, MEM_STATE_QUARANTINE = 0x5155524e };

/* Offset of the pool's line in a thread's block, in bits 32 .. 47 of the word: id * 64; 0, where no word
 * matches, in a pool whose puts all take the slow path. The mask keeps any word, even a foreign one,
 * within the block. */
#define MEM_LINE_SHIFT 32
#define MEM_LINE_MASK 0x3fc0u
#define MEM_OWNER_SHIFT 48

struct mem_magazine {
    struct mem_magazine *next;
    /* count is stale while the magazine is loaded: then the number of objects is top - base */
    uint32_t count, cap;
    void *slot[];
};

/* One thread's cache of one pool: a cache line. Written by its thread inside the bracket, or by the
 * sweeper that holds the thread's req at LOCKED; gets by the thread only. Puts are not counted: each put
 * moves top, so puts - gets = top - base + flow at any moment, and flow is written only together with
 * base. */
struct mem_line {
    void **top, **base, **end; /* the loaded magazine: base = slot, end = slot + cap; all NULL if none */
    struct mem_magazine *previous;
    struct mem_magazine *cold; /* chain */
    uint64_t gets;
    uint64_t word;             /* of this pool's live objects without an owner; 0 = line not in use */
    uint32_t flow;             /* modulo 2^32, like all sums of flow */
    uint16_t nprevious, ncold; /* objects in previous and in the cold chain, for statistics */
};

enum mem_req {
    MEM_REQ_NONE = 0,
    MEM_REQ_LOCKED = 1, /* the sweeper may be in this thread's lines: the thread must use the depot instead */
    MEM_REQ_DEMOTE = 2, /* the thread must age its own lines */
    MEM_REQ_ALWAYS = 3, /* not attached, detached, or a mode without lines: always the slow path */
};

/* One thread. Followed by one struct mem_line per pool id, from id 2 on: 256 * 64 bytes in all, of which a
 * thread touches one page for its first 62 pools. */
struct mem_thread {
    /* 1 while the thread is in its lines. Written by the thread. A byte, for shorter instructions */
    uint8_t busy;
    uint32_t req;  /* enum mem_req. Written by the sweeper, except for the thread's CAS DEMOTE -> NONE. */
    uint8_t state, active;
    uint16_t retry;
    uint32_t serial;
    uint64_t unused0; /* a put of an object without a line reads here, at the offset of a line's end */
    struct mem_thread *next, *prev; /* registry, under its mutex */
    uint64_t changes; /* odd while the thread is changing base and flow of a line */
    uint64_t guard0; /* guard0 and guard1 lie at the offset of a line's word: ids 0 and 1 match no object */
    uint64_t unused1;
    uint64_t used[4]; /* bitmap of lines in use */
    uint64_t unused2[2];
    uint64_t guard1;
    uint64_t unused3;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Eight bytes of static TLS, so that a program may dlopen an object that is linked with this. */
extern __thread struct mem_thread *mem_self __attribute__((tls_model(MEM_TLS_MODEL)));

void *mem_get_slow(unsigned id, uint64_t owner, const void *site);
void mem_put_slow(void *object, const void *site);
void *mem_get_by_id(unsigned id);

#ifdef __cplusplus
}
#endif

MEM_INLINE struct mem_line *
mem_line_of(struct mem_thread *t, unsigned id)
{
    return (struct mem_line *)(void *)t + id;
}

/* The line that an object's word points to. */
MEM_INLINE struct mem_line *
mem_line_in(struct mem_thread *t, uint64_t word)
{
    return (struct mem_line *)(void *)((char *)t + ((word >> MEM_LINE_SHIFT) & MEM_LINE_MASK));
}

/* Are the states and lines of two words the same? Owners may differ. */
MEM_INLINE bool
mem_word_matches(uint64_t a, uint64_t b)
{
    return !((a ^ b) << (64 - MEM_OWNER_SHIFT));
}

MEM_RAW MEM_INLINE struct mem_header *
mem_header_of(void *object)
{
    return (struct mem_header *)object - 1;
}

/* The holder of the object writes its word; a thread that counts an owner's objects reads it meanwhile. */
MEM_RAW MEM_INLINE uint64_t
mem_word_read(const struct mem_header *h)
{
    return __atomic_load_n(&h->word, __ATOMIC_RELAXED);
}

MEM_RAW MEM_INLINE void
mem_word_write(struct mem_header *h, uint64_t word)
{
    __atomic_store_n(&h->word, word, __ATOMIC_RELAXED);
}

/* Increments a counter that has a single writer: readers in other threads see a whole old or new value.
 * Compilers make three instructions of the relaxed load and store, where the machine has one (not locked,
 * because there is no other writer). */
MEM_INLINE void
mem_bump64(uint64_t *counter, uint64_t by)
{
#if MEM_X86
    __asm__("addq %1, %0" : "+m"(*counter) : "er"(by));
#else
    __atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + by, __ATOMIC_RELAXED);
#endif
}

#ifndef MEM_HOOK
#define MEM_HOOK(point) ((void)0) /* the handshake tests stop a thread at these points */
#endif

/* Enters the lines. No fence instruction: the sweeper's membarrier supplies the store-load order. */
MEM_INLINE bool
mem_enter(struct mem_thread *t)
{
    MEM_HOOK(O1);
    __atomic_store_n(&t->busy, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    MEM_HOOK(O2);
#if MEM_X86 && defined(MEM_IN_PROGRAM) /* x86: every load acquires. Measured with initial-exec: no gain */
    __asm__ goto("cmpl %1, %0\n\tjne %l2" : : "m"(t->req), "i"(MEM_REQ_NONE) : "cc", "memory" : kept_out);
    return true;
kept_out:
    return false;
#else
    return MEM_LIKELY(__atomic_load_n(&t->req, __ATOMIC_ACQUIRE) == MEM_REQ_NONE);
#endif
}

MEM_INLINE void
mem_leave(struct mem_thread *t)
{
    MEM_HOOK(O4);
    __atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

/* line: the pool's offset in a thread's block (id times 64). owner: as in a word. */
MEM_RAW MEM_INLINE void *
mem_get_fast(size_t line, uint64_t owner, const void *site)
{
    struct mem_thread *t = mem_self;
    struct mem_line *l = (struct mem_line *)(void *)((char *)t + line);

    if (mem_enter(t)) {
        void **top = __atomic_load_n(&l->top, __ATOMIC_RELAXED);

        if (MEM_LIKELY(top != l->base)) {
            void *p = *--top;

            MEM_HOOK(O3);
            __atomic_store_n(&l->top, top, __ATOMIC_RELAXED);
            mem_bump64(&l->gets, 1);
            owner |= l->word;
            mem_leave(t);
            /* outside of the bracket: the object already belongs to the caller */
            mem_word_write(mem_header_of(p), owner);
            return p;
        }
    }
    return mem_get_slow((unsigned)(line / sizeof(struct mem_line)), owner, site);
}

/* id: the pool's number if known to the compiler, 0 to find the line by the object's word. */
MEM_RAW MEM_INLINE void
mem_put_fast(void *p, unsigned id, const void *site)
{
    struct mem_thread *t = mem_self;

    if (mem_enter(t)) { /* first, because in the modes without lines there is no header to read */
        uint64_t word = mem_word_read(mem_header_of(p));
        struct mem_line *l = id ? mem_line_of(t, id) : mem_line_in(t, word);
        void **top = __atomic_load_n(&l->top, __ATOMIC_RELAXED);
        uint64_t live = l->word;
        /* Same state and pool; the owner may differ, because the line's word has none. If the object's
         * word has selected the line, the line bits are equal anyway. */
        bool same = id ? mem_word_matches(word, live) : (uint32_t)word == (uint32_t)live;

        if (MEM_LIKELY(top != l->end) && MEM_LIKELY(same)) {
            MEM_HOOK(O3);
            mem_word_write(mem_header_of(p), live ^ (MEM_STATE_LIVE ^ MEM_STATE_DEAD));
            *top = p;
            __atomic_store_n(&l->top, top + 1, __ATOMIC_RELAXED);
            mem_leave(t);
            return;
        }
    }
    mem_put_slow(p, site);
}

#if MEM_ASAN /* bodies and headers are poisoned, so only the library may read them */
static inline void *
mem_get_t(unsigned id)
{
    return mem_get_by_id(id);
}

static inline void
mem_put_t(unsigned id, void *p)
{
    (void)id;
    if (p)
        mem_put(p);
}
#else
MEM_INLINE void *
mem_get_t(unsigned id)
{
    return mem_get_fast(id * sizeof(struct mem_line), 0, NULL);
}

/* The object must be from that pool; NULL is allowed. */
MEM_INLINE void
mem_put_t(unsigned id, void *p)
{
    if (MEM_LIKELY(p != NULL))
        mem_put_fast(p, id, NULL);
}
#endif

#endif
