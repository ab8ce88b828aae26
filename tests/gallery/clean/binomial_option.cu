// binomial_option: price of an American put on a binomial tree, one block per option, values move down in shared memory
// launch: option; grid 3; block 64; options -DSTEPS=60
// args: out value float64[3] nan; in price float64[3] uniform(20,40); strike float64 30; up float64 1.05; probability float64 0.51; discount float64 0.999
extern "C" __global__ void option(double* value, const double* price, double strike, double up, double probability, double discount) {
    __shared__ double v[STEPS + 1];
    int i = threadIdx.x;
    double S = price[blockIdx.x];
    if (i <= STEPS) v[i] = fmax(strike - S * pow(up, 2.0 * i - STEPS), 0.0);
    for (int step = STEPS - 1; step >= 0; --step) {
        __syncthreads();
        double hold = i <= step ? discount * (probability * v[i + 1] + (1 - probability) * v[i]) : 0;
        __syncthreads();
        if (i <= step) v[i] = fmax(hold, strike - S * pow(up, 2.0 * i - step));
    }
    if (i == 0) value[blockIdx.x] = v[0];
}
