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

__device__ inline double curand_log_normal_double(curandState *state, double mean, double deviation) {
    return exp(mean + deviation * curand_normal_double(state));
}

/* Several numbers at once: the next ones of the same sequence. */
__device__ inline uint4 curand4(curandState *state) {
    unsigned x = curand(state), y = curand(state), z = curand(state), w = curand(state);
    return make_uint4(x, y, z, w);
}

__device__ inline float4 curand_uniform4(curandState *state) {
    float x = curand_uniform(state), y = curand_uniform(state), z = curand_uniform(state), w = curand_uniform(state);
    return make_float4(x, y, z, w);
}

__device__ inline double2 curand_uniform2_double(curandState *state) {
    double x = curand_uniform_double(state), y = curand_uniform_double(state);
    return make_double2(x, y);
}

__device__ inline float4 curand_normal4(curandState *state) {
    float2 first = curand_normal2(state), second = curand_normal2(state);
    return make_float4(first.x, first.y, second.x, second.y);
}

__device__ inline double2 curand_normal2_double(curandState *state) {
    double radius = sqrt(-2.0 * log(curand_uniform_double(state))), sine, cosine;
    sincospi(2.0 * curand_uniform_double(state), &sine, &cosine);
    return make_double2(radius * sine, radius * cosine);
}

__device__ inline float2 curand_log_normal2(curandState *state, float mean, float deviation) {
    float2 normal = curand_normal2(state);
    return make_float2(expf(mean + deviation * normal.x), expf(mean + deviation * normal.y));
}

__device__ inline float4 curand_log_normal4(curandState *state, float mean, float deviation) {
    float2 first = curand_log_normal2(state, mean, deviation), second = curand_log_normal2(state, mean, deviation);
    return make_float4(first.x, first.y, second.x, second.y);
}

/* Events of rate 1 until `rate` has passed: exact, in a time that grows with `rate`. */
__device__ inline unsigned curand_poisson(curandState *state, double rate) {
    unsigned events = 0;
    for (double time = -log(curand_uniform_double(state)); time < rate; time -= log(curand_uniform_double(state)))
        events++;
    return events;
}

/* Leave out the next `count` numbers, or whole sequences. */
__device__ inline void skipahead(unsigned long long count, curandState *state) {
    unsigned long long block = (unsigned long long)state->counter[1] << 32 | state->counter[0];
    unsigned long long next = 4 * (block - 1) + (unsigned)state->next + count;
    state->counter[0] = (unsigned)(next / 4), state->counter[1] = (unsigned)(next / 4 >> 32);
    state->has_normal = false;
    labkit_philox(state);
    state->next = (int)(next % 4);
}

__device__ inline void skipahead_sequence(unsigned long long count, curandState *state) {
    unsigned long long sequence = ((unsigned long long)state->counter[3] << 32 | state->counter[2]) + count;
    state->counter[2] = (unsigned)sequence, state->counter[3] = (unsigned)(sequence >> 32);
    skipahead(0, state);
}
#endif
