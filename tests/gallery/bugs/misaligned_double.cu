// misaligned_double: a double four bytes into a record
// launch: load; grid 1; block 8
// args: out out float64[8] nan; in records uint8[96] integers(0,200)
extern "C" __global__ void load(double* out, const char* records) {
    out[threadIdx.x] = *(const double*)(records + 12 * threadIdx.x + 4);  // BUG memcheck misaligned
}
