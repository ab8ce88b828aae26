// gelu_forward_backward: GELU by tanh and its gradient, 16 bytes per access through a packed type
// launch: gelu; grid 2; block 32
// args: out out float32[200] nan; out dx float32[200] nan; in in float32[200] uniform(-4,4); in dy float32[200] normal; n int32 200
#define ROOT_2_OVER_PI 0.7978845608f

template <class T, int SIZE = 16 / sizeof(T)>
struct alignas(16) Packed {
    T values[SIZE];
    static constexpr int size = SIZE;
    __device__ T& operator[](int i) { return values[i]; }
    __device__ const T& operator[](int i) const { return values[i]; }
};
using Four = Packed<float>;

__device__ inline Four load_four(const float* at) { return *reinterpret_cast<const Four*>(at); }
__device__ inline void store_four(float* at, Four value) { *reinterpret_cast<Four*>(at) = value; }

extern "C" __global__ void gelu(float* out, float* dx, const float* in, const float* dy, int n) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * Four::size;
    if (first >= n) return;
    Four x = load_four(in + first), grad = load_four(dy + first), y, d;
#pragma unroll
    for (int k = 0; k < Four::size; ++k) {
        float v = x[k], cube = 0.044715f * v * v * v;
        float argument = ROOT_2_OVER_PI * (v + cube), t = tanhf(argument), c = coshf(argument);
        float sech = 1.0f / (c * c);
        y[k] = 0.5f * v * (1.0f + t);
        d[k] = grad[k] * (0.5f * (1.0f + t) + v * 0.5f * sech * ROOT_2_OVER_PI * (1.0f + 3.0f * 0.044715f * v * v));
    }
    store_four(out + first, y);
    store_four(dx + first, d);
}
