// aos_two_fields: an array of structures of 32 bytes of which two fields are read
// kind: layout
// set: build
// launch: aos_two_fields; grid 2; block 256
// args: out out float32[500] nan; in points float32[500,8] uniform; n int32 500
// launch: aos_two_fields; grid 4096; block 256
// args: out out float32[1048576] nan; in points float32[1048576,8] uniform; n int32 1048576
// launch: aos_two_fields; grid 32768; block 256
// args: out out float32[8388608] nan; in points float32[8388608,8] uniform; n int32 8388608
// launch: aos_two_fields; grid 98304; block 256
// args: out out float32[25165824] nan; in points float32[25165824,8] uniform; n int32 25165824
// expect: out = points[:, 0] * points[:, 3]
struct Point {
    float x, y, z, mass, vx, vy, vz, age;
};

extern "C" __global__ void aos_two_fields(float* out, const Point* points, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = points[i].x * points[i].mass;
}
