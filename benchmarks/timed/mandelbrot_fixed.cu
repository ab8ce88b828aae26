// mandelbrot_fixed: an iteration of a complex number with a fixed number of rounds, no early end
// kind: divergence
// set: build
// launch: mandelbrot_fixed; grid 2 3; block 32 8
// args: out out float32[20,40] nan; rounds int32 2; rows int32 20; cols int32 40
// launch: mandelbrot_fixed; grid 16 64; block 32 8
// args: out out float32[512,512] nan; rounds int32 500; rows int32 512; cols int32 512
// launch: mandelbrot_fixed; grid 128 512; block 32 8
// args: out out float32[4096,4096] nan; rounds int32 100; rows int32 4096; cols int32 4096
// launch: mandelbrot_fixed; grid 64 256; block 32 8
// args: out out float32[2048,2048] nan; rounds int32 1000; rows int32 2048; cols int32 2048
// expect: out = close(np.abs((lambda c: c * c + c)(.5 * np.arange(40) / 40 - .25 + 1j * (.5 * np.arange(20)[:, None] / 20 - .25))) ** 2, 40, 1)
extern "C" __global__ void mandelbrot_fixed(float* out, int rounds, int rows, int cols) {
    int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= rows || col >= cols) return;
    float a = 0.5f * col / cols - 0.25f, b = 0.5f * row / rows - 0.25f, x = 0, y = 0;
    for (int j = 0; j < rounds; j++) {
        float next = x * x - y * y + a;
        y = 2 * x * y + b;
        x = next;
    }
    out[row * cols + col] = x * x + y * y;
}
