// game_of_life: a generation on a torus
// launch: generation; grid 3 3; block 16 8
// args: out out uint8[24,40] 9; in in uint8[24,40] integers(0,2); rows int32 24; cols int32 40
extern "C" __global__ void generation(unsigned char* out, const unsigned char* in, int rows, int cols) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= cols || y >= rows) return;
    int alive = 0;
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++)
            if (dx || dy) alive += in[(y + dy + rows) % rows * cols + (x + dx + cols) % cols];
    out[y * cols + x] = alive == 3 || (alive == 2 && in[y * cols + x]);
}
