/* What `labkit check` hears of the order of work, so that it finds missing waits: simt/programs/server/waits.py.

   The server answers with the pages that pending work uses. The program's own code has no access to them until it
   has waited: a page fault shows that it has not. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

struct guard {
    uint64_t start, end, protection;
};
static struct guard *guards;
static uint32_t guard_count;

static void protect(const struct guard *guard, int protection) {
    mprotect((void *)guard->start, guard->end - guard->start, protection);
}

void lift_guards(void) {
    for (uint32_t i = 0; i < guard_count; i++)
        protect(&guards[i], PROT_READ | PROT_WRITE);
    guard_count = 0;
}

/* Guard the pages that the server's answer names, and no others. */
static void guard_pages(struct message *answer) {
    uint32_t count = get_u32(answer);
    const void *wanted = answer->data + answer->read;
    if (count == guard_count && (!count || !memcmp(guards, wanted, count * sizeof *guards)))
        return;
    lift_guards();
    guards = realloc(guards, (count + 1) * sizeof *guards);
    get(answer, guards, count * sizeof *guards);
    guard_count = count;
    for (uint32_t i = 0; i < count; i++)
        protect(&guards[i], (int)guards[i].protection);
}

void note_order(enum order kind, const uint64_t *numbers, size_t count) {
    if (!follows_order())
        return;
    struct message message = {0};
    put_u32(&message, kind);
    put(&message, call_sites(), SITES * sizeof(uint64_t));
    put(&message, numbers, count * sizeof *numbers);
    if (ask(ORDER, &message))
        guard_pages(&message);
    forget(&message);
}

/* Say whether a fault is the host's use of guarded pages. If so, it is noted, and the program may go on. */
bool is_guarded(const void *address, void *context) {
    uint64_t at = (uint64_t)address;
    if (!is_ours(address) || at < HOST_START)
        return false;
    pthread_mutex_lock(&lock); /* another thread may have waited meanwhile */
    mcontext_t *machine_context = &((ucontext_t *)context)->uc_mcontext;
#ifdef __x86_64__
    uint64_t instruction = (uint64_t)machine_context->gregs[REG_RIP];
    uint64_t is_write = machine_context->gregs[REG_ERR] >> 1 & 1;
#else
    uint64_t instruction = machine_context->pc, is_write = 0;
#endif
    for (uint32_t i = guard_count; i-- > 0;) /* a later one goes over an earlier */
        if (at >= guards[i].start && at < guards[i].end) {
            note_sites((void *)instruction);
            uint64_t sites[SITES];
            memcpy(sites, call_sites(), sizeof sites);
            sites[0]++; /* the others are return addresses: behind the instruction */
            use_sites(sites);
            is_write |= guards[i].protection == PROT_READ;
            note_order(HOST_TOUCHED, (uint64_t[]){at, is_write}, 2);
            break;
        }
    bool is_open = !mprotect((void *)(at / 4096 * 4096), 1, PROT_READ | PROT_WRITE);
    pthread_mutex_unlock(&lock);
    return is_open;
}

void run_on_host(cudaStream_t stream, void (*run)(void *), void *data) {
    lift_guards();
    run(data);
    note_order(HOST_WAITS_FOR_STREAM, (uint64_t[]){stream_handle(stream)}, 1);
}
