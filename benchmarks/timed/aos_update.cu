// aos_update: an array of structures of 24 bytes, all read and half of it written
// kind: layout
// set: build
// launch: aos_update; grid 4; block 128
// args: out particles float32[500,6] uniform; dt float32 0.5; n int32 500
// launch: aos_update; grid 4096; block 128
// args: out particles float32[524288,6] uniform; dt float32 0.5; n int32 524288
// launch: aos_update; grid 65536; block 128
// args: out particles float32[8388608,6] uniform; dt float32 0.5; n int32 8388608
// launch: aos_update; grid 327680; block 128
// args: out particles float32[41943040,6] uniform; dt float32 0.5; n int32 41943040
// expect: particles = close(particles + dt * np.hstack([particles[:, 3:], 0 * particles[:, 3:]]).astype(float), 2, 2)
struct Particle {
    float x, y, z, vx, vy, vz;
};

extern "C" __global__ void aos_update(Particle* particles, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    Particle p = particles[i];
    particles[i].x = p.x + dt * p.vx;
    particles[i].y = p.y + dt * p.vy;
    particles[i].z = p.z + dt * p.vz;
}
