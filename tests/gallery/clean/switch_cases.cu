// switch_cases: a branch of six ways, one falls through
// launch: choose; grid 1; block 64
// args: out out int32[64] -1; in in int32[64] integers(0,8)
extern "C" __global__ void choose(int* out, const int* in) {
    int t = threadIdx.x, result = 0;
    switch (in[t]) {
    case 0: result = t; break;
    case 1: result = -t; break;
    case 2: result = t * t;
    case 3: result += 100; break;
    case 5: result = t / 3; break;
    case 6: result = t % 5; break;
    default: result = 7;
    }
    out[t] = result;
}
