// gpu_write.h: C = alpha sum + beta C for elements of one row
// As in BLAS, beta == 0 means that C is not read: it may hold NaN, and 0 * NaN is NaN.
__device__ float scaled(float sum, const float* old, float alpha, float beta)
{
    return alpha * sum + (beta != 0 ? beta * *old : 0);
}

// Writes COUNT elements of C, of which those before `inside` are there: 4 neighbours at 16 bytes, if they are
// `together`, or each APART from the next.
template <int COUNT, int APART>
__device__ void write(float* to, const float* sum, bool together, int inside, float alpha, float beta)
{
    if (together && COUNT == 4) {
        alignas(16) float result[COUNT];
        for (int e = 0; e < COUNT && inside > 0; ++e)
            result[e] = scaled(sum[e], to + e, alpha, beta);
        if (inside > 0)
            *(float4*)to = *(float4*)result;
    } else
        for (int e = 0; e < COUNT; ++e)
            if (e * APART < inside)
                to[e * APART] = scaled(sum[e], to + e * APART, alpha, beta);
}
