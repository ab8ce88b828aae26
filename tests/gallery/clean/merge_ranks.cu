// merge_ranks: two sorted runs merged: each element's place is its own index plus its rank in the other run
// launch: merge; grid 2; block 64
// args: out out int32[4,32] -1; in in int32[4,32] = 1 4 6 9 12 15 15 18 21 22 23 30 31 33 40 41 0 2 4 6 8 9 9 15 16 17 20 25 30 30 31 50 5 5 5 5 6 6 6 6 7 7 7 7 8 8 8 8 5 5 6 6 6 7 7 7 7 8 8 9 9 9 9 9 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
template <bool inclusive>
__device__ unsigned rank_of(int value, const int* run, unsigned length) {
    unsigned at = 0;
    for (unsigned step = 16; step > 0; step >>= 1) {
        unsigned next = min(at + step, length);
        if (inclusive ? run[next - 1] <= value : run[next - 1] < value) at = next;
    }
    return at;
}

extern "C" __global__ void merge(int* out, const int* in) {
    __shared__ int s[64];
    int t = threadIdx.x, pair = t / 32, i = t % 32;
    s[t] = in[blockIdx.x * 64 + t];
    __syncthreads();
    const int *first = s + pair * 32, *second = first + 16;
    unsigned place = i < 16 ? i + rank_of<false>(first[i], second, 16) : i - 16 + rank_of<true>(second[i - 16], first, 16);
    out[blockIdx.x * 64 + pair * 32 + place] = first[i];
}
