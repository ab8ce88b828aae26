// template_policy: an operation as a template's type, a name expression of three parameters
// launch: combine<float, Maximum, 2>; grid 1; block 50
// args: out out float32[100] nan; in a float32[100] uniform; in b float32[100] uniform
// launch: combine<int, Product, 2>; grid 1; block 50
// args: out out int32[100] -1; in a int32[100] integers(-9,9); in b int32[100] integers(-9,9)
// expect: out = np.maximum(a, b) if a.dtype.kind == "f" else a * b
struct Maximum {
    template <typename T> __device__ T operator()(T a, T b) const { return a > b ? a : b; }
};
struct Product {
    template <typename T> __device__ T operator()(T a, T b) const { return a * b; }
};

template <typename T, typename Operation, int EACH>
__global__ void combine(T* out, const T* a, const T* b) {
    Operation operation;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int i = e * blockDim.x + threadIdx.x;
        out[i] = operation(a[i], b[i]);
    }
}
