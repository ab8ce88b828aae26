/* cudaHostRegister: memory that the program has already, for kernels to use.

   Its pages become pages of the region, with what they hold. The program goes on to use them where they were, and
   the device sees them in the region. */
#include "runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096ull

extern int region_file; /* memory.c */

struct registered {
    char *start; /* as the program said */
    size_t bytes;
    char *pages, *region; /* the whole pages around it, and where they lie in the region */
    size_t page_bytes;
    struct registered *next;
};
static struct registered *all;

static struct registered *find_registered(const void *pointer) {
    for (struct registered *each = all; each; each = each->next)
        if ((char *)pointer >= each->start && (char *)pointer < each->start + each->bytes)
            return each;
    return NULL;
}

void *on_device(const void *pointer) {
    const struct registered *found = find_registered(pointer);
    return found ? found->region + ((char *)pointer - found->pages) : (void *)pointer;
}

SERVED(cudaError_t, cudaHostRegister, (void *pointer, size_t bytes, unsigned flags)) {
    BEGIN_CALL();
    if (!pointer || !bytes || flags & ~15u)
        return done(cudaErrorInvalidValue);
    struct registered made = {.start = pointer, .bytes = bytes};
    made.pages = (char *)((uint64_t)pointer / PAGE * PAGE);
    made.page_bytes = (size_t)(made.start + bytes - made.pages + PAGE - 1) / PAGE * PAGE;
    for (const struct registered *each = all; each; each = each->next)
        if (made.pages < each->pages + each->page_bytes && each->pages < made.pages + made.page_bytes)
            return done(cudaErrorHostMemoryAlreadyRegistered);
    if (is_ours(pointer))
        return done(cudaErrorHostMemoryAlreadyRegistered);
    char *own = __builtin_frame_address(0);
    if (own >= made.pages - (8 << 20) && own < made.pages + made.page_bytes)
        return done(refuse("cudaHostRegister of memory on the stack"));
    made.region = allocate(made.page_bytes, PINNED, PAGE);
    if (!made.region)
        return done(cudaErrorMemoryAllocation);
    memcpy(made.region, made.pages, made.page_bytes);
    if (mmap(made.pages, made.page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, region_file,
             (off_t)((uint64_t)made.region - REGION_START)) != made.pages) {
        release(made.region, PINNED);
        return done(cudaErrorInvalidValue);
    }
    struct registered *kept = malloc(sizeof *kept);
    *kept = made;
    kept->next = all;
    all = kept;
    return done(cudaSuccess);
}

SERVED(cudaError_t, cudaHostUnregister, (void *pointer)) {
    BEGIN_SYNCHRONISING();
    struct registered **at = &all;
    while (*at && (*at)->start != pointer)
        at = &(*at)->next;
    struct registered *found = *at;
    if (!found)
        return done(cudaErrorHostMemoryNotRegistered);
    host_waits_for_all();
    char *private = mmap(NULL, found->page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (private == MAP_FAILED)
        return done(cudaErrorMemoryAllocation);
    memcpy(private, found->region, found->page_bytes);
    mremap(private, found->page_bytes, found->page_bytes, MREMAP_MAYMOVE | MREMAP_FIXED, found->pages);
    release(found->region, PINNED);
    *at = found->next;
    free(found);
    return done(cudaSuccess);
}
