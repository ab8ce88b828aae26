// random_lcg: pi by throwing darts with a linear congruential generator a thread
// launch: darts; grid 2; block 64
// args: out hits int32[128] -1; throws int32 50
extern "C" __global__ void darts(int* hits, int throws) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, inside = 0;
    unsigned state = 12345u + 6789u * i;
    for (int k = 0; k < throws; k++) {
        state = state * 1664525u + 1013904223u;
        float x = (state >> 8) * (1.0f / 16777216.0f);
        state = state * 1664525u + 1013904223u;
        float y = (state >> 8) * (1.0f / 16777216.0f);
        inside += x * x + y * y < 1.0f;
    }
    hits[i] = inside;
}
