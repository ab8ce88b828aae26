// adamw_update: one step of AdamW with weight decay; parameters in bfloat16 besides float
// launch: update<float, unsigned short>; grid 3; block 64
// args: out param float32[150] normal; out low uint16[150] 0; out m float32[150] normal; out v float32[150] uniform(0,1); in grad float32[150] normal; n uint64 150; rate float32 0.01; beta1 float32 0.9; beta2 float32 0.999; decay float32 0.1
#include <cuda_bf16.h>

__device__ float mixed(float old, float fresh, float keep) { return keep * old + (1.0f - keep) * fresh; }

template <typename T, typename Low>
__global__ void update(T* param, Low* low, float* m, float* v, const T* grad, size_t n, float rate, float beta1, float beta2, float decay) {
    size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
    if (i >= n) return;
    float g = (float)grad[i];
    float m1 = m[i] = mixed(m[i], g, beta1);
    float v1 = v[i] = mixed(v[i], g * g, beta2);
    m1 /= 1.0f - beta1;
    v1 /= 1.0f - beta2;
    float old = param[i], next = old - rate * (m1 / (sqrtf(v1) + 1e-8f) + decay * old);
    low[i] = __bfloat16_as_ushort(__float2bfloat16_rn(next));
    param[i] = next;
}
