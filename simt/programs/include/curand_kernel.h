/* Random numbers in kernels with cuRAND's names, for machines without NVIDIA's own header. Every generator here is
   Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): the distributions are those of
   cuRAND, the sequences of its default generator are not. */
#ifndef CURAND_KERNEL_H_
#define CURAND_KERNEL_H_
#include <cuda_runtime.h>

struct curandStatePhilox4_32_10 {
    unsigned key[2];
    unsigned counter[4];
    unsigned output[4];
    int next;        /* of the four outputs */
    bool has_normal; /* normals come in pairs */
    float normal;
};
typedef struct curandStatePhilox4_32_10 curandStatePhilox4_32_10_t;
typedef struct curandStatePhilox4_32_10 curandState, curandState_t, curandStateXORWOW, curandStateXORWOW_t,
    curandStateMRG32k3a, curandStateMRG32k3a_t;

__device__ inline void labkit_philox(curandState *state) {
    unsigned c0 = state->counter[0], c1 = state->counter[1], c2 = state->counter[2], c3 = state->counter[3];
    unsigned k0 = state->key[0], k1 = state->key[1];
    for (int round = 0; round < 10; round++) {
        unsigned high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        unsigned high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0, c1 = low1, c2 = high0 ^ c3 ^ k1, c3 = low0;
        k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
    }
    state->output[0] = c0, state->output[1] = c1, state->output[2] = c2, state->output[3] = c3;
    state->next = 0;
    if (!++state->counter[0])
        ++state->counter[1];
}

__device__ inline void curand_init(unsigned long long seed, unsigned long long subsequence,
                                   unsigned long long offset, curandState *state) {
    state->key[0] = (unsigned)seed, state->key[1] = (unsigned)(seed >> 32);
    unsigned long long block = offset / 4;
    state->counter[0] = (unsigned)block, state->counter[1] = (unsigned)(block >> 32);
    state->counter[2] = (unsigned)subsequence, state->counter[3] = (unsigned)(subsequence >> 32);
    state->has_normal = false;
    labkit_philox(state);
    state->next = (int)(offset % 4);
}

__device__ inline unsigned curand(curandState *state) {
    if (state->next == 4)
        labkit_philox(state);
    int next = state->next++;
    return next == 0 ? state->output[0] : next == 1 ? state->output[1] : next == 2 ? state->output[2] : state->output[3];
}

/* In (0, 1], as cuRAND's. */
__device__ inline float curand_uniform(curandState *state) {
    return (float)curand(state) * 2.3283064e-10f + 1.1641532e-10f;
}

__device__ inline double curand_uniform_double(curandState *state) {
    unsigned long long high = curand(state), low = curand(state);
    return (double)((high << 32 | low) >> 11) * 1.1102230246251565e-16 + 5.5511151231257827e-17;
}

__device__ inline float2 curand_normal2(curandState *state) { /* Box and Muller */
    float radius = sqrtf(-2.0f * logf(curand_uniform(state))), sine, cosine;
    sincospif(2.0f * curand_uniform(state), &sine, &cosine);
    return make_float2(radius * sine, radius * cosine);
}

__device__ inline float curand_normal(curandState *state) {
    if (state->has_normal) {
        state->has_normal = false;
        return state->normal;
    }
    float2 pair = curand_normal2(state);
    state->has_normal = true;
    state->normal = pair.y;
    return pair.x;
}

__device__ inline double curand_normal_double(curandState *state) {
    double radius = sqrt(-2.0 * log(curand_uniform_double(state))), sine, cosine;
    sincospi(2.0 * curand_uniform_double(state), &sine, &cosine);
    return radius * sine;
}

__device__ inline float curand_log_normal(curandState *state, float mean, float deviation) {
    return expf(mean + deviation * curand_normal(state));
}
#endif
