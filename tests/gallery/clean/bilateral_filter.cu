// bilateral_filter: an image smoothed where its values are near; pixels packed in 32 bits
// launch: bilateral; grid 3 2; block 8 8
// args: out out uint32[13,20] 0; in in uint32[13,20] integers(0,4294967296); w int32 20; h int32 13; r int32 2
__device__ float4 unpack(unsigned c) {
    return {(c & 0xff) * (1 / 255.f), ((c >> 8) & 0xff) * (1 / 255.f), ((c >> 16) & 0xff) * (1 / 255.f), (c >> 24) * (1 / 255.f)};
}
__device__ unsigned pack(float4 v) {
    auto to = [](float f) -> unsigned { return __float2uint_rn(__saturatef(f) * 255.f); };
    return to(v.w) << 24 | to(v.z) << 16 | to(v.y) << 8 | to(v.x);
}
__device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
__device__ float4 operator*(float s, float4 a) { return make_float4(s * a.x, s * a.y, s * a.z, s * a.w); }

extern "C" __global__ void bilateral(unsigned* out, const unsigned* in, int w, int h, int r) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float4 centre = unpack(in[y * w + x]), total = {0, 0, 0, 0};
    float sum = 0;
    for (int dy = -r; dy <= r; dy++)
        for (int dx = -r; dx <= r; dx++) {
            float4 c = unpack(in[min(max(y + dy, 0), h - 1) * w + min(max(x + dx, 0), w - 1)]);
            float d2 = (c.x - centre.x) * (c.x - centre.x) + (c.y - centre.y) * (c.y - centre.y) + (c.z - centre.z) * (c.z - centre.z);
            float factor = __expf(-(dx * dx + dy * dy) / 8.f) * __expf(-d2 / 0.5f);
            total = total + factor * c;
            sum += factor;
        }
    out[y * w + x] = pack((1 / sum) * total);
}
