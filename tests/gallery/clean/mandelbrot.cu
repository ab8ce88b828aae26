// mandelbrot: iterations until escape, with break
// launch: mandelbrot; grid 3 3; block 8 8
// args: out out int32[20,24] -1; rows int32 20; cols int32 24; most int32 40
extern "C" __global__ void mandelbrot(int* out, int rows, int cols, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= cols || y >= rows) return;
    double cr = -2.0 + 3.0 * x / cols, ci = -1.5 + 3.0 * y / rows, zr = 0, zi = 0;
    int i = 0;
    for (; i < most; i++) {
        if (zr * zr + zi * zi > 4.0) break;
        double next = zr * zr - zi * zi + cr;
        zi = 2 * zr * zi + ci;
        zr = next;
    }
    out[y * cols + x] = i;
}
