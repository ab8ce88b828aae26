// soa_update: the same for six arrays in one allocation
// kind: layout
// set: held out
// launch: soa_update; grid 4; block 128
// args: out fields float32[6,500] uniform; dt float32 0.5; n int32 500
// launch: soa_update; grid 4096; block 128
// args: out fields float32[6,524288] uniform; dt float32 0.5; n int32 524288
// launch: soa_update; grid 65536; block 128
// args: out fields float32[6,8388608] uniform; dt float32 0.5; n int32 8388608
// launch: soa_update; grid 327680; block 128
// args: out fields float32[6,41943040] uniform; dt float32 0.5; n int32 41943040
// expect: fields = close(fields + dt * np.vstack([fields[3:], 0 * fields[3:]]).astype(float), 2, 2)
extern "C" __global__ void soa_update(float* fields, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int axis = 0; axis < 3; axis++) fields[axis * n + i] += dt * fields[(3 + axis) * n + i];
}
