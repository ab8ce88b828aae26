// gpu_write.h: C = alpha sum + beta C for elements of one row
// Writes COUNT elements of C, `apart` from each other, of which those before `inside` are there. Neighbours
// (apart = 1) are 4, and lie at 16 bytes.
template <int COUNT>
__device__ void write(float* to, const float* sum, int apart, int inside, float alpha, float beta)
{
    // As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
    alignas(16) float result[COUNT];
    for (int e = 0; e < COUNT; ++e)
        result[e] = alpha * sum[e] + (beta != 0 && e * apart < inside ? beta * to[e * apart] : 0);
    if (COUNT == 4 && apart == 1 && inside > 0)
        *(float4*)to = *(float4*)result;
    else if (COUNT != 4 || apart != 1)
        for (int e = 0; e < COUNT; ++e)
            if (e * apart < inside)
                to[e * apart] = result[e];
}
