// label_propagation: connected components of an image: each pixel takes the least label next to it, until none changes
// launch: components; grid 1; block 12 12
// args: out label int32[12,12] -1; in image int32[12,12] integers(0,3)
extern "C" __global__ void components(int* label, const int* image) {
    const int W = 12;
    __shared__ int s[W + 2][W + 2];
    int x = threadIdx.x + 1, y = threadIdx.y + 1, i = threadIdx.y * W + threadIdx.x;
    for (int k = i; k < (W + 2) * (W + 2); k += W * W) s[k / (W + 2)][k % (W + 2)] = 0x7fffffff;
    __syncthreads();
    bool on = image[i] > 0;
    if (on) s[y][x] = i;
    int changed;
    do {
        __syncthreads();
        int least = min(min(s[y - 1][x], s[y + 1][x]), min(s[y][x - 1], s[y][x + 1]));
        changed = on && least < s[y][x];
        __syncthreads();
        if (changed) s[y][x] = least;
    } while (__syncthreads_or(changed));
    label[i] = on ? s[y][x] : -1;
}
