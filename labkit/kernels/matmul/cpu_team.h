// cpu_team.h: threads that begin at once, work on one job and wait for each other (rungs 8 and 9)
#ifndef _GNU_SOURCE
#define _GNU_SOURCE // for the choice of cores
#endif
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef THREADS
#define THREADS 2
#endif
_Static_assert(THREADS >= 1 && THREADS <= 256, "choose THREADS from 1 to 256");

struct team {
    void (*work)(struct team *team, int number, void *job);
    void *job;
    int arrived, round; // at the barrier
#ifdef __GLIBC__
    cpu_set_t cores; // that this process may use
#endif
};
struct member {
    struct team *team;
    int number;
    pthread_t thread;
};

// Wait until all threads of the team are here. The last one to come opens the way.
static void barrier(struct team *team)
{
    int round = __atomic_load_n(&team->round, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&team->arrived, 1, __ATOMIC_ACQ_REL) == THREADS) {
        team->arrived = 0;
        __atomic_store_n(&team->round, round + 1, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&team->round, __ATOMIC_ACQUIRE) == round)
        sched_yield();
}

static void *begin(void *argument)
{
    struct member *member = argument;
#ifdef __GLIBC__
    if (CPU_COUNT(&member->team->cores) > 0)
        sched_setaffinity(0, sizeof member->team->cores, &member->team->cores); // from here on, any core
#endif
    member->team->work(member->team, member->number, member->team->job);
    return NULL;
}

// Linux starts a thread on the core of its parent, and needs milliseconds, as long as a whole product, to see
// that another core is idle. So thread `number` begins on the core that is so many places further.
static void start(struct member *member)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
#ifdef __GLIBC__
    int core = sched_getcpu();
    if (core >= 0 && CPU_COUNT(&member->team->cores) > 0) {
        cpu_set_t one;
        for (int steps = member->number; steps > 0; steps -= CPU_ISSET(core, &member->team->cores) != 0)
            core = (core + 1) % CPU_SETSIZE;
        CPU_ZERO(&one);
        CPU_SET(core, &one);
        pthread_attr_setaffinity_np(&attributes, sizeof one, &one);
    }
#endif
    int failed = pthread_create(&member->thread, &attributes, begin, member);
    pthread_attr_destroy(&attributes);
    if (failed) // it may be the choice of a core that the system refuses
        failed = pthread_create(&member->thread, NULL, begin, member);
    if (failed) {
        fprintf(stderr, "the system gives no more threads: %d of %d began\n", member->number, THREADS);
        abort();
    }
}

// Call work(team, number, job) in THREADS threads, with numbers from 0, and wait until all have returned.
static void run_team(void (*work)(struct team *team, int number, void *job), void *job)
{
    struct team team = {.work = work, .job = job};
    struct member members[THREADS];
#ifdef __GLIBC__
    if (sched_getaffinity(0, sizeof team.cores, &team.cores) != 0)
        CPU_ZERO(&team.cores);
#endif
    for (int t = 1; t < THREADS; ++t) {
        members[t] = (struct member){.team = &team, .number = t};
        start(&members[t]);
    }
    work(&team, 0, job);
    for (int t = 1; t < THREADS; ++t)
        pthread_join(members[t].thread, NULL);
}
