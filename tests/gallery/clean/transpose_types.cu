// transpose_types: the padded transpose for other types
// launch: transpose<double>; grid 2 2; block 32 32
// args: out out float64[40,33] nan; in in float64[33,40] uniform; R int32 33; C int32 40
// launch: transpose<long long>; grid 2 2; block 32 32
// args: out out int64[40,33] -1; in in int64[33,40] integers(-9000000000,9000000000); R int32 33; C int32 40
// launch: transpose<char>; grid 2 2; block 32 32
// args: out out int8[40,33] -1; in in int8[33,40] integers(-128,128); R int32 33; C int32 40
template <typename T>
__global__ void transpose(T* out, const T* in, int R, int C) {
    __shared__ T tile[32][33];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    if (x < C && y < R) tile[threadIdx.y][threadIdx.x] = in[y * C + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    if (x < R && y < C) out[y * R + x] = tile[threadIdx.x][threadIdx.y];
}
