// vector_uchar4: a picture of RGBA bytes to grey
// launch: grey; grid 3; block 64
// args: out out uint8[150] 0; in in uint8[150,4] integers(0,256); n int32 150
extern "C" __global__ void grey(unsigned char* out, const uchar4* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    uchar4 p = in[i];
    out[i] = (77 * p.x + 150 * p.y + 29 * p.z) >> 8;
}
