// backprop_layer: a layer of a network: products in a 16 x 16 square, summed along y by halving strides
// launch: layer; grid 1 3; block 16 16; options -DH=16
// args: out partial float32[3,16] nan; in in float32[48] uniform; in weight float32[48,16] uniform
extern "C" __global__ void layer(float* partial, const float* in, const float* weight) {
    __shared__ float input[H], product[H][H];
    int tx = threadIdx.x, ty = threadIdx.y, row = H * blockIdx.y + ty;
    if (tx == 0) input[ty] = in[row];
    __syncthreads();
    product[ty][tx] = weight[row * H + tx] * input[ty];
    __syncthreads();
    for (int i = 1; i <= __log2f(H); i++) {
        int power = (int)__powf(2, i);
        if (ty % power == 0) product[ty][tx] += product[ty + power / 2][tx];
        __syncthreads();
    }
    if (ty == 0) partial[blockIdx.y * H + tx] = product[0][tx];
}
