// state_machine: goto and do-while, a different path in each lane
// launch: machine; grid 1; block 64
// args: out out int32[64] -1; in in int32[64] integers(0,60)
extern "C" __global__ void machine(int* out, const int* in) {
    int value = in[threadIdx.x], steps = 0;
start:
    steps++;
    if (value > 40) {
        value -= 7;
        goto start;
    }
#pragma unroll 1
    do {
        value += steps;
        if (value % 9 == 0) goto done;
    } while (value < 50);
    value = -value;
done:
    out[threadIdx.x] = 1000 * steps + value;
}
