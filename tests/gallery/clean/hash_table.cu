// hash_table: keys go to a table by atomicCAS with linear probing; equal keys share a slot and are counted there
// launch: count; grid 2; block 64
// args: out counts int32[2,64] -1; scratch slots uint32[2,128] 4294967295; scratch at uint32[2,128] 0; in key uint32[2,64] integers(0,40)
static constexpr unsigned EMPTY = 0xffffffffu, MASK = 127;

__device__ unsigned mix(unsigned k) {
    k ^= k >> 16;
    k *= 0x85ebca6b;
    return (k ^ k >> 13) & 3 ? k >> 26 : 0;
}

extern "C" __global__ void count(int* counts, unsigned* slots, unsigned* at, const unsigned* key) {
    slots += blockIdx.x * (MASK + 1), at += blockIdx.x * (MASK + 1);
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned slot = mix(key[i]);
    while (true) {
        unsigned before = atomicCAS(&slots[slot], EMPTY, key[i]);
        if (before == EMPTY || before == key[i]) break;
        slot = (slot + 1) & MASK;
    }
    atomicAdd(&at[slot], 1u);
    __syncthreads();
    counts[i] = at[slot];
}
