// atomics_integers: every atomic operation on integers, all threads on the same words
// launch: atomics; grid 3; block 48
// args: out words int32[8] = 0 1000 -1000 -1 0 0 5 0; out wide uint64[2] 1; in in int32[144] integers(-500,500)
extern "C" __global__ void atomics(int* words, unsigned long long* wide, const int* in) {
    int value = in[blockIdx.x * blockDim.x + threadIdx.x];
    atomicAdd(&words[0], value);
    atomicMin(&words[1], value);
    atomicMax(&words[2], value);
    atomicAnd(&words[3], value | 0xffff00);
    atomicOr(&words[4], value & 0xff);
    atomicXor(&words[5], value);
    atomicInc((unsigned*)&words[6], 20u);
    atomicSub(&words[7], value);
    atomicAdd(&wide[0], 5000000000ull + value);
    atomicMax(&wide[1], (unsigned long long)(value + 500) << 33);
}
