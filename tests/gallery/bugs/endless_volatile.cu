// endless_volatile: nobody changes what the loop waits for
// launch: wait; grid 1; block 1
// args: out flag int32[2] 0
// timeout: 0.2
extern "C" __global__ void wait(volatile int* flag) {
    while (flag[0] == 0) {  // BUG timeout time limit
        flag[1] += 1;  // OR
    }
    flag[0] = 2;
}
