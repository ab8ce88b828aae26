// atomics_ticket: each thread draws a different number; a ring of numbers with inc and dec
// launch: tickets; grid 2; block 64
// args: scratch next uint32[3] 0; out seen int32[128] 0; out ring int32[6] 0
// expect: seen = np.ones(128)
// expect: ring = np.bincount(np.arange(128) % 6)
extern "C" __global__ void tickets(unsigned* next, int* seen, int* ring) {
    unsigned ticket = atomicAdd(&next[0], 1u);
    seen[ticket] = 1;
    atomicAdd(&ring[atomicInc(&next[1], 5u)], 1);
    atomicDec(&next[2], 9u);
}
