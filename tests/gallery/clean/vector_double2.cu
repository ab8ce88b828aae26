// vector_double2: lengths of vectors of two doubles
// launch: lengths; grid 2; block 32
// args: out out float64[60] nan; in in float64[60,2] normal; n int32 60
extern "C" __global__ void lengths(double* out, const double2* in, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sqrt(in[i].x * in[i].x + in[i].y * in[i].y);
}
