// nbody_tiles: forces of all bodies on each, tiles of bodies in shared memory
// kind: application
// set: build
// launch: nbody_tiles; grid 1; block 128
// args: out forces float32[128,4] nan; in bodies float32[128,4] uniform; n int32 128
// launch: nbody_tiles; grid 32; block 128
// args: out forces float32[4096,4] nan; in bodies float32[4096,4] uniform; n int32 4096
// launch: nbody_tiles; grid 132; block 128
// args: out forces float32[16896,4] nan; in bodies float32[16896,4] uniform; n int32 16896
// launch: nbody_tiles; grid 512; block 128
// args: out forces float32[65536,4] nan; in bodies float32[65536,4] uniform; n int32 65536
// expect: forces = (lambda d: (np.c_[(d * (bodies[:, 3] * ((d ** 2).sum(2) + .01) ** -1.5)[:, :, None]).sum(1), np.zeros(n)], 0.01))(wide(bodies)[None, :, :3] - wide(bodies)[:, None, :3])
extern "C" __global__ void nbody_tiles(float4* forces, const float4* bodies, int n) {
    __shared__ float4 tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 mine = bodies[i];
    float x = 0, y = 0, z = 0;
    for (int first = 0; first < n; first += 128) {
        tile[threadIdx.x] = bodies[first + threadIdx.x];
        __syncthreads();
        #pragma unroll 8
        for (int j = 0; j < 128; j++) {
            float4 b = tile[j];
            float dx = b.x - mine.x, dy = b.y - mine.y, dz = b.z - mine.z;
            float near = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f), pull = b.w * near * near * near;
            x += dx * pull;
            y += dy * pull;
            z += dz * pull;
        }
        __syncthreads();
    }
    forces[i] = make_float4(x, y, z, 0);
}
