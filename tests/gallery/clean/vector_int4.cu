// vector_int4: a copy of 16 bytes a thread, words reversed
// launch: reverse; grid 2; block 32
// args: out out int32[50,4] -1; in in int32[50,4] integers(0,1000); n int32 50
extern "C" __global__ void reverse(int4* out, const int4* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = make_int4(in[i].w, in[i].z, in[i].y, in[i].x);
}
