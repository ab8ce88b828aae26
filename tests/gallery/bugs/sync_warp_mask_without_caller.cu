// sync_warp_mask_without_caller: lanes call __syncwarp with a mask that does not name them
// launch: barrier; grid 1; block 32
// args: out out int32[32] 0
extern "C" __global__ void barrier(int* out) {
    out[threadIdx.x] = threadIdx.x;
    __syncwarp(0x0000ffff);  // BUG synccheck invalid mask
    out[threadIdx.x] += 1;
}
