// race_reduce_tree: no barrier between the steps of the tree
// launch: reduce; grid 2; block 128
// args: out sums int32[2] -1; in values int32[256] integers(0,9)
extern "C" __global__ void reduce(int* sums, const int* values) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = values[blockIdx.x * 128 + t];
    __syncthreads();
    for (int half = 64; half > 0; half /= 2)
        if (t < half) s[t] += s[t + half];  // BUG racecheck race
    if (t == 0) sums[blockIdx.x] = s[0];
}
