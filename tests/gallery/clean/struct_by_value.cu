// struct_by_value: a structure of a scale, a shift and a length as argument
// launch: apply; grid 2; block 64
// args: out out float32[100] nan; in in float32[100] uniform; line f8,f4,i4 (2.5, -1.25, 100)
struct Line {
    double scale;
    float shift;
    int n;
};

extern "C" __global__ void apply(float* out, const float* in, Line line) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < line.n) out[i] = (float)(line.scale * in[i]) + line.shift;
}
