// race_transpose: the tile is read before the block has filled it
// launch: transpose; grid 2 2; block 32 8
// args: out out float32[64,64] nan; in in float32[64,64] uniform; n int32 64
// also: initcheck
extern "C" __global__ void transpose(float* out, const float* in, int n) {
    __shared__ float tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];  // OTHER
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8)
        out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];  // BUG racecheck race
}
