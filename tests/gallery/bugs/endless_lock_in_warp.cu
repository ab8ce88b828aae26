// endless_lock_in_warp: the lane with the lock waits for its warp, which waits for the lock
// launch: locked; grid 1; block 32
// args: out lock int32[1] 0; out sum int32[1] 0
// timeout: 0.2
extern "C" __global__ void locked(int* lock, int* sum) {
    while (atomicCAS(lock, 0, 1) != 0) { }  // BUG timeout time limit
    __syncwarp();  // OR
    *sum += 1;
    atomicExch(lock, 0);
}
