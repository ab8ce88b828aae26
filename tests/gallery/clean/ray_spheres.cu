// ray_spheres: rays against spheres in constant memory; the nearest hit by structures, references and operators
// launch: trace; grid 2 2; block 8 8
// args: out depth float32[12,14] nan; out id int32[12,14] -2; width int32 14; height int32 12
struct Vec {
    float x, y, z;
    __host__ __device__ Vec operator-(const Vec& o) const { return {x - o.x, y - o.y, z - o.z}; }
    __host__ __device__ float dot(const Vec& o) const { return x * o.x + y * o.y + z * o.z; }
};
struct Sphere { Vec centre; float radius; };
__constant__ Sphere SPHERES[3] = {{{0, 0, 5}, 1}, {{1.5f, 0.5f, 6}, 1.5f}, {{-2, -1, 4}, 0.75f}};

__device__ bool hit(const Sphere& s, const Vec& direction, float& t) {
    Vec to = Vec{0, 0, 0} - s.centre;
    float b = to.dot(direction), c = to.dot(to) - s.radius * s.radius, d = b * b - c;
    if (d < 0) return false;
    t = -b - sqrtf(d);
    return t > 0;
}

extern "C" __global__ void trace(float* depth, int* id, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    Vec d{(x + 0.5f) / width - 0.5f, (y + 0.5f) / height - 0.5f, 1.f};
    float inverse = rnorm3df(d.x, d.y, d.z);
    d = {d.x * inverse, d.y * inverse, d.z * inverse};
    float nearest = 1e9f;
    int best = -1;
#pragma unroll
    for (int i = 0; i < 3; ++i)
        if (float t; hit(SPHERES[i], d, t) && t < nearest) nearest = t, best = i;
    depth[y * width + x] = nearest;
    id[y * width + x] = best;
}
