// launches.cu: what a launch costs, and the tail of one whose blocks have unequal work
extern "C" __global__ void empty() {}

extern "C" __global__ void one_float(const float* in, float* out) { out[0] = in[0]; }

// Blocks with the same work in all: 0, as much for each; 1, more from block to block; -1, less.
extern "C" __global__ void work(float* sink, float a, float b, int order, int step, int never)
{
    int place = order > 0 ? blockIdx.x + 1 : gridDim.x - blockIdx.x;
    int rounds = (order ? 2 * place : gridDim.x + 1) * step;
    float x = a;
    #pragma unroll 1
    for (int round = 0; round < rounds; ++round)
        #pragma unroll
        for (int i = 0; i < 16; ++i)
            asm volatile("fma.rn.f32 %0, %0, %1, %2;" : "+f"(x) : "f"(a), "f"(b));
    if (never)
        sink[0] = x;
}
