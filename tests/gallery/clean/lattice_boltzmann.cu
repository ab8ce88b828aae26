// lattice_boltzmann: one D2Q9 step on a torus: values pulled from nine neighbours, relaxed towards equilibrium
// launch: collide; grid 2 2; block 8 8
// args: out out float64[9,12,16] nan; in in float64[9,12,16] uniform(0.1,0.2); nx int32 16; ny int32 12; omega float64 1.2
__constant__ int CX[9] = {0, 1, 0, -1, 0, 1, -1, -1, 1}, CY[9] = {0, 0, 1, 0, -1, 1, 1, -1, -1};
__constant__ double W[9] = {4. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 9, 1. / 36, 1. / 36, 1. / 36, 1. / 36};

extern "C" __global__ void collide(double* out, const double* in, int nx, int ny, double omega) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= nx || y >= ny) return;
    double f[9], rho = 0, ux = 0, uy = 0;
    for (int q = 0; q < 9; q++) {
        f[q] = in[(q * ny + (y - CY[q] + ny) % ny) * nx + (x - CX[q] + nx) % nx];
        rho += f[q], ux += f[q] * CX[q], uy += f[q] * CY[q];
    }
    ux /= rho, uy /= rho;
    for (int q = 0; q < 9; q++) {
        double cu = 3 * (CX[q] * ux + CY[q] * uy);
        double eq = W[q] * rho * (1 + cu + 0.5 * cu * cu - 1.5 * (ux * ux + uy * uy));
        out[(q * ny + y) * nx + x] = f[q] + omega * (eq - f[q]);
    }
}
