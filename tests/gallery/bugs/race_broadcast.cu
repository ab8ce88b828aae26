// race_broadcast: one thread sets a value, the others read it at once
// launch: broadcast; grid 1; block 64
// args: out out int32[64] -1; in in int32[1] 5
// also: initcheck
extern "C" __global__ void broadcast(int* out, const int* in) {
    __shared__ int value;
    if (threadIdx.x == 0) value = in[0];  // OTHER
    out[threadIdx.x] = value;  // BUG racecheck race
}
