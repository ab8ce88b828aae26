// pair_energy: Lennard-Jones energy of each particle with a list of 64 random neighbours
// kind: application
// set: build
// launch: pair_energy; grid 2; block 128
// args: out energy float32[200] nan; in places float32[200,3] uniform; in neighbours int32[64,200] integers(0,200); n int32 200
// launch: pair_energy; grid 128; block 128
// args: out energy float32[16384] nan; in places float32[16384,3] uniform; in neighbours int32[64,16384] integers(0,16384); n int32 16384
// launch: pair_energy; grid 1024; block 128
// args: out energy float32[131072] nan; in places float32[131072,3] uniform; in neighbours int32[64,131072] integers(0,131072); n int32 131072
// launch: pair_energy; grid 4096; block 128
// args: out energy float32[524288] nan; in places float32[524288,3] uniform; in neighbours int32[64,524288] integers(0,524288); n int32 524288
// expect: energy = (lambda s3: close((s3 * s3 - s3).sum(0), 3000, 64 * 64))((((wide(places)[neighbours] - places) ** 2).sum(2) + .5) ** -3)
extern "C" __global__ void pair_energy(float* energy, const float* places, const int* neighbours, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = places[3 * i], y = places[3 * i + 1], z = places[3 * i + 2], sum = 0;
    for (int j = 0; j < 64; j++) {
        int other = neighbours[j * n + i];
        float dx = places[3 * other] - x, dy = places[3 * other + 1] - y, dz = places[3 * other + 2] - z;
        float s = 1.0f / (dx * dx + dy * dy + dz * dz + 0.5f), s3 = s * s * s;
        sum += s3 * s3 - s3;
    }
    energy[i] = sum;
}
