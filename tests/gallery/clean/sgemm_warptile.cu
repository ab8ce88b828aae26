// sgemm_warptile: block tile, warp tile and thread tile; A transposed in shared memory, four floats per access
// launch: sgemm<64, 64, 8, 32, 32, 1, 8, 4>; grid 2 1; block 128
// args: out C float32[64,128] uniform; in A float32[64,24] uniform; in B float32[24,128] uniform; M int32 64; N int32 128; K int32 24; alpha float32 0.5; beta float32 2
template <const int BM, const int BN, const int BK, const int WM, const int WN, const int WNITER, const int TM, const int TN>
__global__ void __launch_bounds__(128)
sgemm(float* C, float* A, float* B, int M, int N, int K, float alpha, float beta) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32, WMITER = WM * WN / (32 * TM * TN * WNITER);
    constexpr int WSUBM = WM / WMITER, WSUBN = WN / WNITER;
    const int warp = threadIdx.x / 32, warpCol = warp % (BN / WN), warpRow = warp / (BN / WN), lane = threadIdx.x % 32;
    const int laneCol = lane % (WSUBN / TN), laneRow = lane / (WSUBN / TN);
    __shared__ float As[BM * BK], Bs[BK * BN];
    A += blockIdx.y * BM * K;
    B += blockIdx.x * BN;
    C += (blockIdx.y * BM + warpRow * WM) * N + blockIdx.x * BN + warpCol * WN;
    float results[WMITER * TM * WNITER * TN] = {0.0}, regM[WMITER * TM], regN[WNITER * TN];
    for (int k = 0; k < K; k += BK) {
        for (int at = threadIdx.x; at < BM * BK / 4; at += THREADS) {
            int row = at / (BK / 4), col = at % (BK / 4) * 4;
            float4 t = reinterpret_cast<float4*>(&A[row * K + col])[0];
            As[(col + 0) * BM + row] = t.x, As[(col + 1) * BM + row] = t.y;
            As[(col + 2) * BM + row] = t.z, As[(col + 3) * BM + row] = t.w;
        }
        for (int at = threadIdx.x; at < BK * BN / 4; at += THREADS) {
            int row = at / (BN / 4), col = at % (BN / 4) * 4;
            reinterpret_cast<float4*>(&Bs[row * BN + col])[0] = reinterpret_cast<float4*>(&B[row * N + col])[0];
        }
        __syncthreads();
        for (int dot = 0; dot < BK; ++dot) {
            for (int sub = 0; sub < WMITER; ++sub)
                for (int i = 0; i < TM; ++i)
                    regM[sub * TM + i] = As[dot * BM + warpRow * WM + sub * WSUBM + laneRow * TM + i];
            for (int sub = 0; sub < WNITER; ++sub)
                for (int i = 0; i < TN; ++i)
                    regN[sub * TN + i] = Bs[dot * BN + warpCol * WN + sub * WSUBN + laneCol * TN + i];
            for (int m = 0; m < WMITER * TM; ++m)
                for (int n = 0; n < WNITER * TN; ++n) results[m * WNITER * TN + n] += regM[m] * regN[n];
        }
        A += BK, B += BK * N;
        __syncthreads();
    }
    for (int sm = 0; sm < WMITER; ++sm)
        for (int sn = 0; sn < WNITER; ++sn)
            for (int i = 0; i < TM; ++i) {
                float* at = C + (sm * WSUBM + laneRow * TM + i) * N + sn * WSUBN + laneCol * TN;
                float4 t = *reinterpret_cast<float4*>(at);
                const float* r = results + (sm * TM + i) * WNITER * TN + sn * TN;
                t.x = alpha * r[0] + beta * t.x, t.y = alpha * r[1] + beta * t.y;
                t.z = alpha * r[2] + beta * t.z, t.w = alpha * r[3] + beta * t.w;
                *reinterpret_cast<float4*>(at) = t;
            }
}
