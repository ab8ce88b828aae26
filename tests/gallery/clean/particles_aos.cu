// particles_aos: an array of structures, 16 bytes apart
// launch: move; grid 2; block 64
// args: out particles float32[100,4] uniform; dt float32 0.5; n int32 100
struct Particle {
    float x, v, mass, age;
};

extern "C" __global__ void move(Particle* particles, float dt, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) particles[i].x += dt * particles[i].v;
}
