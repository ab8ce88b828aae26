// class_and_lambda: an operator of a class, a constructor and a lambda
// launch: compute; grid 1; block 50
// args: out out int32[50,2] -1; in in int32[50,2] integers(-20,20)
struct Pair {
    int a, b;
    __device__ Pair(int a, int b) : a(a), b(b) {}
    __device__ Pair operator*(const Pair& other) const { return Pair(a * other.a - b * other.b, a * other.b + b * other.a); }
};

extern "C" __global__ void compute(int* out, const int* in) {
    int t = threadIdx.x, n = blockDim.x;
    auto at = [=](int i) { return Pair(in[2 * (i % n)], in[2 * (i % n) + 1]); };
    Pair product = at(t) * at(t + 1);
    out[2 * t] = product.a;
    out[2 * t + 1] = product.b;
}
