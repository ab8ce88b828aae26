// srad_diffusion: coefficient of an anisotropic diffusion from the four differences, clamped at the borders
// launch: srad; grid 7; block 32
// args: out c float32[15,13] nan; in in float32[15,13] uniform(1,2); rows int32 15; cols int32 13; q0 float32 0.05
extern "C" __global__ void srad(float* c, const float* in, int rows, int cols, float q0) {
    int ei = blockIdx.x * blockDim.x + threadIdx.x;
    if (ei >= rows * cols) return;
    int row = ei / cols, col = ei % cols;
    float J = in[ei];
    float dN = in[max(row - 1, 0) * cols + col] - J, dS = in[min(row + 1, rows - 1) * cols + col] - J;
    float dW = in[row * cols + max(col - 1, 0)] - J, dE = in[row * cols + min(col + 1, cols - 1)] - J;
    float G2 = (dN * dN + dS * dS + dW * dW + dE * dE) / (J * J), L = (dN + dS + dW + dE) / J;
    float num = 0.5f * G2 - 1.0f / 16.0f * (L * L), den = 1 + 0.25f * L, q = num / (den * den);
    den = (q - q0) / (q0 * (1 + q0));
    float value = 1.0f / (1.0f + den);
    c[ei] = value < 0 ? 0 : value > 1 ? 1 : value;
}
