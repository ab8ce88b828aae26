// particles_soa: a structure of arrays: neighbours in memory
// launch: move; grid 2; block 64
// args: out x float32[100] uniform; in v float32[100] uniform; dt float32 0.5; n int32 100
// expect: x = (wide(x) + float(dt) * wide(v), 2 * EPS)
extern "C" __global__ void move(float* x, const float* v, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += dt * v[i];
}
