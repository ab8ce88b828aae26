// nbody_tile: accelerations of bodies; each block goes through all of them in shared tiles
// launch: accelerate; grid 2; block 32
// args: out acceleration float32[64,3] nan; in body float32[64,4] uniform; n int32 64
extern "C" __global__ void accelerate(float* acceleration, const float4* body, int n) {
    __shared__ float4 tile[32];
    int i = blockIdx.x * 32 + threadIdx.x;
    float4 mine = body[i];
    float ax = 0.0f, ay = 0.0f, az = 0.0f;
    for (int first = 0; first < n; first += 32) {
        tile[threadIdx.x] = body[first + threadIdx.x];
        __syncthreads();
        for (int k = 0; k < 32; k++) {
            float dx = tile[k].x - mine.x, dy = tile[k].y - mine.y, dz = tile[k].z - mine.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
            float pull = tile[k].w * inverse * inverse * inverse;
            ax += pull * dx;
            ay += pull * dy;
            az += pull * dz;
        }
        __syncthreads();
    }
    acceleration[3 * i] = ax;
    acceleration[3 * i + 1] = ay;
    acceleration[3 * i + 2] = az;
}
