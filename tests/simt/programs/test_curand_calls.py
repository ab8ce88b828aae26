"""cuRAND in kernels and from the host: distributions by their moments, sequences by seeds and offsets."""

import numpy as np

DEVICE = """
#include <cstdio>
#include <curand_kernel.h>

const int THREADS = 256, ROUNDS = 64, KINDS = 14;

__global__ void draw(double *out, unsigned long long seed) {
    const int thread = blockIdx.x * blockDim.x + threadIdx.x;
    curandStatePhilox4_32_10_t state;
    curand_init(seed, thread, 0, &state);
    for (int round = 0; round < ROUNDS; round++) {
        const float4 u4 = curand_uniform4(&state), n4 = curand_normal4(&state);
        const double2 u2 = curand_uniform2_double(&state), n2d = curand_normal2_double(&state);
        const float2 n2 = curand_normal2(&state), l2 = curand_log_normal2(&state, 0.5f, 0.25f);
        const float4 l4 = curand_log_normal4(&state, 0.5f, 0.25f);
        const uint4 bits = curand4(&state);
        const double drawn[KINDS] = {u4.x, u4.w, u2.x, u2.y, n4.x, n4.w, n2d.x, n2d.y, n2.x,
                                     l2.y, l4.z, curand_log_normal_double(&state, 0.5, 0.25),
                                     bits.z / 4294967296.0, (double)curand_poisson(&state, 3.5)};
        for (int kind = 0; kind < KINDS; kind++)
            out[(kind * ROUNDS + round) * THREADS + thread] = drawn[kind];
    }
}

__global__ void skip(unsigned *out) {
    curandState here, ahead, other, jumped;
    curand_init(7, 3, 5, &here);
    for (int i = 0; i < 10; i++) curand(&here);
    curand_init(7, 3, 5, &ahead);
    skipahead(10, &ahead);
    curand_init(7, 4, 2, &other);
    curand_init(7, 3, 2, &jumped);
    skipahead_sequence(1, &jumped);
    out[0] = curand(&here), out[1] = curand(&ahead), out[2] = curand(&other), out[3] = curand(&jumped);
    const uint4 four = curand4(&here);
    curand(&ahead), out[4] = four.y, out[5] = curand(&ahead);
}

int main() {
    double *out;
    unsigned *skipped;
    cudaMallocManaged(&out, KINDS * ROUNDS * THREADS * sizeof(double));
    cudaMallocManaged(&skipped, 6 * sizeof(unsigned));
    draw<<<2, THREADS / 2>>>(out, 1234);
    skip<<<1, 1>>>(skipped);
    cudaDeviceSynchronize();
    for (int kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < ROUNDS * THREADS; i++) printf("%.6g ", out[kind * ROUNDS * THREADS + i]);
        printf("\\n");
    }
    for (int i = 0; i < 6; i++) printf("%u ", skipped[i]);
    cudaFree(out);
    cudaFree(skipped);
}
"""
# Mean and variance of each kind.
UNIFORM, NORMAL = (1 / 2, 1 / 12), (0, 1)
LOG_NORMAL = np.exp(0.5 + 0.25**2 / 2), (np.exp(0.25**2) - 1) * np.exp(2 * 0.5 + 0.25**2)
KINDS = [UNIFORM] * 4 + [NORMAL] * 5 + [LOG_NORMAL] * 3 + [UNIFORM, (3.5, 3.5)]


def are_drawn(numbers, mean, variance):
    """Say whether numbers have about the mean and variance, within five standard errors."""
    count = len(numbers)
    fourth = np.mean((numbers - numbers.mean()) ** 4)
    return (
        abs(numbers.mean() - mean) < 5 * np.sqrt(variance / count)
        and abs(numbers.var() - variance) < 5 * np.sqrt((fourth - variance**2) / count) + 1e-12
    )


def test_numbers_drawn_in_kernels_have_their_distributions(built):
    out, told, code = built(DEVICE).run()
    assert (told, code) == ("", 0)
    *rows, skipped = (np.array(line.split(), float) for line in out.splitlines())
    for number, (row, moments) in enumerate(zip(rows, KINDS, strict=True)):
        assert are_drawn(row, *moments), (number, row.mean(), row.var(), moments)
    uniform = np.concatenate(rows[:4])
    assert uniform.min() > 0 and uniform.max() <= 1
    # Pairs are of independent numbers.
    for first, second in ((0, 1), (2, 3), (4, 5), (6, 7)):
        assert abs(np.corrcoef(rows[first], rows[second])[0, 1]) < 5 / np.sqrt(len(rows[0]))
    assert len(np.unique(rows[0])) > 0.99 * len(rows[0])
    assert [skipped[1], skipped[3], skipped[5]] == [skipped[0], skipped[2], skipped[4]]


HOST = """
#include <cstdio>
#include <vector>
#include <curand.h>

const size_t COUNT = 20000;

template <class T> static void print(const char *name, const T *numbers, size_t count) {
    printf("%s:", name);
    for (size_t i = 0; i < count; i++) printf(" %.9g", (double)numbers[i]);
    printf("\\n");
}

template <class T, class Draw> static void draw(const char *name, Draw generate) {
    T *device;
    std::vector<T> host(COUNT);
    cudaMalloc(&device, COUNT * sizeof(T));
    curandStatus_t status = generate(device);
    if (status) printf("%s failed with %d\\n", name, (int)status);
    cudaMemcpy(host.data(), device, COUNT * sizeof(T), cudaMemcpyDeviceToHost);
    cudaFree(device);
    print(name, host.data(), COUNT);
}

int main() {
    curandGenerator_t g, again;
    curandCreateGenerator(&g, CURAND_RNG_PSEUDO_DEFAULT);
    curandSetPseudoRandomGeneratorSeed(g, 42);
    curandSetGeneratorOrdering(g, CURAND_ORDERING_PSEUDO_BEST);
    curandGenerateSeeds(g);
    draw<float>("uniform", [&](float *x) { return curandGenerateUniform(g, x, COUNT); });
    draw<double>("uniform double", [&](double *x) { return curandGenerateUniformDouble(g, x, COUNT); });
    draw<float>("normal", [&](float *x) { return curandGenerateNormal(g, x, COUNT, 2.0f, 3.0f); });
    draw<double>("normal double", [&](double *x) { return curandGenerateNormalDouble(g, x, COUNT, 2.0,
        3.0); });
    draw<float>("log normal", [&](float *x) { return curandGenerateLogNormal(g, x, COUNT, 0.5f, 0.25f); });
    draw<double>("log normal double", [&](double *x) { return curandGenerateLogNormalDouble(g, x, COUNT,
        0.5, 0.25); });
    draw<unsigned>("poisson", [&](unsigned *x) { return curandGeneratePoisson(g, x, COUNT, 3.5); });
    draw<unsigned>("bits", [&](unsigned *x) { return curandGenerate(g, x, COUNT); });
    curandCreateGenerator(&again, CURAND_RNG_PSEUDO_MTGP32);
    curandSetPseudoRandomGeneratorSeed(again, 42);
    draw<float>("same seed", [&](float *x) { return curandGenerateUniform(again, x, COUNT); });
    curandSetPseudoRandomGeneratorSeed(again, 43);
    draw<float>("other seed", [&](float *x) { return curandGenerateUniform(again, x, COUNT); });
    curandDestroyGenerator(again);
    std::vector<float> own(COUNT);
    curandCreateGeneratorHost(&again, CURAND_RNG_PSEUDO_PHILOX4_32_10);
    curandSetPseudoRandomGeneratorSeed(again, 42);
    curandGenerateUniform(again, own.data(), COUNT);
    print("on the host", own.data(), COUNT);
    curandDestroyGenerator(again);
    float *x;
    cudaMalloc(&x, 4 * COUNT);
    const int odd = curandGenerateNormal(g, x, 7, 0, 1), quasi = curandCreateGenerator(&again,
        CURAND_RNG_QUASI_SOBOL32);
    printf("odd: %d\\nquasi: %d\\n", odd, quasi);
    cudaFree(x);
    curandDestroyGenerator(g);
}
"""
DRAWN = {
    "uniform": UNIFORM,
    "uniform double": UNIFORM,
    "normal": (2, 9),
    "normal double": (2, 9),
    "log normal": LOG_NORMAL,
    "log normal double": LOG_NORMAL,
    "poisson": (3.5, 3.5),
    "bits": (2**32 / 2, 2**64 / 12),
    "other seed": UNIFORM,
}


def test_numbers_from_the_host_interface(built):
    out, told, code = built(HOST, "-lcurand").run()
    assert code == 0
    assert told == "labkit: quasirandom generators of cuRAND are not supported without a GPU\n"
    rows = (line.partition(":") for line in out.splitlines())
    found = {name: np.array(numbers.split(), float) for name, _, numbers in rows}
    assert found.keys() == DRAWN.keys() | {"same seed", "on the host", "odd", "quasi"}, found.keys()
    for name, moments in DRAWN.items():
        assert are_drawn(found[name], *moments), name
    assert np.array_equal(found["same seed"], found["uniform"])
    assert np.array_equal(found["on the host"], found["uniform"])
    assert abs(np.corrcoef(found["other seed"], found["uniform"])[0, 1]) < 5 / np.sqrt(20000)
    assert (found["odd"], found["quasi"]) == (105, 103)  # LENGTH_NOT_MULTIPLE, TYPE_ERROR
